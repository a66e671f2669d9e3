"""Merging the published files of other devices: their erasures first, then their lines.

A purge wins over everything (docs/decisions/0022-merge-logs-by-line.md). The erasures of all devices are
applied before any merge, so that no device's older lines bring an erased entry back.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from keepstone.errors import InvalidAgentIdError
from keepstone.files import AgentFiles
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, DROPPED, PURGED, SUGGESTIONS, Layout, lock_file
from keepstone.filesystem.lock import Lock
from keepstone.home import Home
from keepstone.log.conflict_copies import original_of
from keepstone.log.line import dump_read
from keepstone.log.log_file import Log
from keepstone.log.sides import Purged, Side, SideLine, read_side, side_of
from keepstone.log.union import merged
from keepstone.operations.syncing.devices import MANIFEST, Device, content
from keepstone.operations.syncing.exchanged import Exchanged
from keepstone.operations.syncing.file_versions import Versions
from keepstone.store.files import purge_digests, suggestion_file
from keepstone.store.files.file_store import FileStore
from keepstone.store.removal_marks import digest
from keepstone.store.suggestion_lines import lines_of, united
from keepstone.text.display import counted

LINE_FILES = (DROPPED,)
"""Files beside the logs that two homes merge by the union of their lines."""

GIVEN_SUGGESTIONS = f".{SUGGESTIONS}"
"""Name of the suggestions in a device's folder. No session's log can have it, as it begins with a dot."""


@dataclass(slots=True)
class Synced:
    """The result of a sync."""

    devices: int = 0
    """How many other devices were read."""
    changed: list[str] = field(default_factory=list)
    """Sessions that received lines from other devices, as ``agent/session``."""
    purged: int = 0
    """Entries that were removed because they were purged elsewhere."""
    pending: list[str] = field(default_factory=list)
    """Files that could not be merged yet, most often because they have not arrived whole."""
    skipped: list[str] = field(default_factory=list)
    """Descriptions of skipped files and lines, such as the number of damaged lines of a file."""
    merged_copies: list[str] = field(default_factory=list)
    """Conflicting copies in this home that were merged and removed, as ``agent/session``."""
    device: str = ""
    """The folder below ``devices`` that this home wrote."""
    files: list[str] = field(default_factory=list)
    """Files of agents that were written or deleted here, as ``agent/path``."""


class LocalHome:
    """The home of this device during an exchange."""

    def __init__(self, home: Home, layout: Layout, result: Synced, exchanged: Exchanged) -> None:
        self.home = home
        self.layout = layout
        self.exchanged = exchanged
        self.taken: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        """Digests of the merged files that a device published, by session and then by device."""
        self.result = result
        self._store = cast("FileStore", home._store)  # noqa: SLF001  A home in a database was refused.

    @contextmanager
    def folder(self, agent: str, *, create: bool = False) -> Iterator[Folder | None]:
        """Yield the folder of an agent's sessions, None if there is none."""
        path = self.layout.sessions_folder(self.home.root, agent)
        if not path.is_dir() and not create:
            yield None
            return
        with Folder(path, root=self.home.root, create=create) as folder:
            yield folder

    def files(self, folder: Folder, session: str) -> tuple[Log, Log]:
        """Return the log and the archive of a session."""
        name = sessions(folder, self.layout).get(session) or self.layout.session_file(session)
        lock = Lock(folder, lock_file(name, self.layout.extension))
        return Log(folder, name, lock), Log(folder, f"{ARCHIVE}/{name}", lock)

    def files_of(self, agent: str) -> AgentFiles:
        """Return an agent's own files."""
        return self._store.files(agent)

    def was_purged(self, agent: str) -> bool:
        """Return whether an agent, given by its name or the name's digest, was purged on any device."""
        return purge_digests.was_purged(self.home.root, self.layout, agent)

    def forget_removed_agent(self, name: str, versions: Versions, *, is_here: bool) -> None:
        """Forget the live versions of an agent whose folder was removed by hand, unless it was purged.

        Its files then come back from other devices, as its logs do.
        """
        if not is_here and not self.was_purged(name):
            for key in [key for key, version in versions.items() if version.is_live]:
                del versions[key]

    def remove_emptied(self, agent: str) -> None:
        """Remove the remaining folders of an agent without files if it was purged and has no sessions."""
        with self.folder(agent) as folder:
            if folder is not None and (sessions(folder, self.layout) or entries(folder, ARCHIVE)):
                return
        is_there = any(path.is_dir() for path in self.layout.agent_folders(self.home.root, agent))
        if is_there and self.was_purged(agent):
            self._store.remove_purged(agent)

    def state(self, folder: Folder, log: Log, archive: Log) -> list[Any]:
        """Return a value that changes whenever the log, the archive or the journal of purges changes."""
        found: list[Any] = []
        for part in (log, archive):
            stat = part.stat()
            found.append(None if stat is None else [stat.size, stat.mtime, stat.inode])
        with suppress(FileNotFoundError):
            journal = folder.stat(PURGED)
            found.append([journal.st_size, journal.st_mtime_ns, journal.st_ino])
        return found

    def erased(self, agent: str, session: str) -> Purged:
        """Return a function from an entry's id to the number of its erased lives."""
        found = purge_digests.erased_of(self.home.root, self.layout, agent)
        return found.in_session(session)

    # Copies that a sync service made

    def merge_copies(self, agent: str) -> None:
        """Merge conflicting copies that a sync service made of this home's own logs, and remove them."""
        with self.folder(agent) as folder:
            names = sessions(folder, self.layout) if folder is not None else {}
            # Services such as Dropbox and Syncthing keep both versions of a file that two devices changed.
            for copy in sorted(names):
                original = original_of(copy)
                if folder is None or original is None or original not in names:
                    continue
                self._merge(agent, original, side_of(content(folder, names[copy])))
                self.home.agent(agent).session(copy).remove()
                self.result.merged_copies.append(f"{agent}/{copy}")

    # Other devices

    def take_erasures(self, device: Device) -> None:
        """Apply the erasures of another device to this home."""
        if not device.is_whole:
            self.result.pending.append(device.name("", MANIFEST).replace("//", "/"))
            return
        names = {purge_digests.gone_name(agent): agent for agent in self.home.agents()}
        for agent in sorted({agent for agent, _ in device.listed}):
            raw = device.read(agent, PURGED) if (agent, PURGED) in device.listed else None
            lines = purge_digests.erased_in((raw or b"").splitlines()).lines()
            if purge_digests.is_gone_name(agent) and agent not in names:
                if erasures := [*lines]:
                    purge_digests.take_gone(self.home.root, agent, erasures)
                continue
            try:
                known = self.layout.check_agent(names.get(agent, agent))
            except InvalidAgentIdError:
                self.result.pending.append(f"{agent!r:.80}: it is not an agent's slug")
                # The folder's name comes from another device, so only a valid slug may become a path here.
                device.leave_out(agent)
                continue
            self.result.purged += self._store.take_erased(known, lines)

    def take(self, device: Device) -> None:
        """Merge the sessions of another device; remove entries from its files that have been erased."""
        rewritten: dict[tuple[str, str], bytes] = {}
        for agent, file in sorted(device.listed) if device.is_whole else []:
            if file in LINE_FILES and (raw := device.read(agent, file)) is not None:
                self._take_lines(agent, file, raw)
            if file == GIVEN_SUGGESTIONS and (raw := device.read(agent, file)) is not None:
                self._take_suggestions(agent, raw)
            session = self.layout.session_of(file.removeprefix(f"{ARCHIVE}/"))
            is_alone = (
                file.startswith(f"{ARCHIVE}/") and (agent, file.removeprefix(f"{ARCHIVE}/")) in device.listed
            )
            if session is not None and not is_alone:
                rewritten |= self._take_session(device, agent, session, file.removeprefix(f"{ARCHIVE}/"))
        if rewritten:
            device.rewrite(rewritten)

    def _take_session(
        self, device: Device, agent: str, session: str, file: str
    ) -> dict[tuple[str, str], bytes]:
        """Merge a session; return the new content of the device's files that have erased entries."""
        names = [name for name in (file, f"{ARCHIVE}/{file}") if (agent, name) in device.listed]
        listed = {name: [*device.listed[agent, name]] for name in names}
        digests = [device.listed[agent, name][1] for name in names]
        with self.folder(agent) as folder:
            if folder is not None:
                known = self.exchanged.known(agent, session, self.state(folder, *self.files(folder, session)))
                # The second comparison: the device publishes exactly the lines that this home published.
                if known and (known.taken.get(device.place) == digests or known.given == listed):
                    self.taken[agent, session][device.place] = digests
                    return {}
        raw = {name: device.read(agent, name) for name in names}
        if missing := [name for name, content in raw.items() if content is None]:
            self.result.pending.extend(device.name(agent, name) for name in missing)
            return {}
        theirs = side_of(raw.get(file) or b"", raw.get(f"{ARCHIVE}/{file}") or b"")
        if theirs.damaged:
            name = device.name(agent, file)
            self.result.skipped.append(f"{counted(theirs.damaged, 'line')} of {name}")
        # Damaged lines and lines without an entry are not merged.
        theirs.log = [line for line in theirs.log if line.life]
        theirs.archive = [line for line in theirs.archive if line.life]
        if self._merge(agent, session, theirs):
            self.result.changed.append(f"{agent}/{session}")
        self.taken[agent, session][device.place] = digests
        purged = self.erased(agent, session)
        changed: dict[tuple[str, str], bytes] = {}
        for name, lines in ((file, theirs.log), (f"{ARCHIVE}/{file}", theirs.archive)):
            stay = [line for line in lines if line.life and line.life[1] > purged(line.life[0])]
            if len(stay) < len(lines):
                changed[agent, name] = published(stay, theirs if name == file else None)
        return changed

    def _merge(self, agent: str, session: str, theirs: Side) -> bool:
        """Merge another version of a session into this home's; return whether anything changed."""
        purged = self.erased(agent, session)
        with self.folder(agent) as folder:
            is_there = folder is not None and any(part.stat() for part in self.files(folder, session))
        alone = merged(Side(), theirs, purged)
        # Without this check, an empty log would be created for a session that was purged here.
        if not is_there and not alone.log and not alone.archive:
            return False  # All its entries were purged here, or it has none.
        with self.folder(agent, create=True) as folder:
            if folder is None:
                return False
            log, archive = self.files(folder, session)
            with closing(log), closing(archive), log.locked():
                with log.reading() as fd, archive.reading() as old:
                    ours = read_side(fd, old)
                result = merged(ours, theirs, purged)
                if not result.log_changed and not result.archive_changed:
                    return False
                if result.archive_changed:
                    folder.make_folder(ARCHIVE)
                    # Archive first: a kill between the two writes leaves lines in both files, not in neither.
                    archive.replace(result.archive)
                if result.log_changed or log.stat() is None:
                    log.create()
                    log.replace(result.log)
        return True

    def _take_suggestions(self, agent: str, raw: bytes) -> None:
        """Add the suggestions and decisions of another device; remove suggestions about purged entries."""
        root = self.home.root
        if "{agent}" not in self.layout.sessions or not self.layout.sessions_folder(root, agent).is_dir():
            return
        erased = purge_digests.erased_of(root, self.layout, agent).lives
        place = self.layout.beside(root, agent, SUGGESTIONS)
        if raw or place.is_file():
            united_with = partial(united, theirs=lines_of(raw), is_purged=lambda *key: digest(*key) in erased)
            suggestion_file.change(place, root, united_with, lambda _: None, durable=True)

    def _take_lines(self, agent: str, file: str, raw: bytes) -> None:
        """Add the lines of another device's file that this home's file lacks."""
        with self.folder(agent) as folder:
            if folder is None:
                return
            with closing(Log(folder, file, Lock(folder, file + ".lock"))) as log, log.locked():
                with log.reading() as fd:
                    present = set() if fd is None else set(os.pread(fd, os.fstat(fd).st_size, 0).splitlines())
                new = [line + b"\n" for line in raw.splitlines() if line and line not in present]
                if new:
                    log.append(new)


def entries(folder: Folder, sub: str) -> list[str]:
    """Return the names in a folder that have no leading dot; an empty list if the folder is missing."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [entry.name for entry in folder.scan(sub) if not entry.name.startswith(".")]
    return []


def sessions(folder: Folder, layout: Layout) -> dict[str, str]:
    """Return the file name of each session in a folder of logs."""
    found: dict[str, str] = {}
    for entry in folder.scan():
        session = layout.session_of(entry.name)
        if session is not None and entry.is_file(follow_symlinks=False):
            found.setdefault(session, entry.name)
    return found


def published(lines: Iterable[SideLine], side: Side | None) -> bytes:
    """Return lines in their published form; access counts follow the lines of a log."""
    listed = list(lines)
    raw = [line.raw + b"\n" for line in listed]
    if side is not None:
        lives = {line.life for line in listed}
        for (entry_id, life), count in sorted(side.counts.items()):
            if (entry_id, life) in lives and entry_id in side.live:
                raw.append(dump_read({"id": entry_id, "access": count}))
    return b"".join(raw)
