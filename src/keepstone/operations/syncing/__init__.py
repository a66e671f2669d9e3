"""Bringing homes to the same state over a folder that they share, such as a mounted disk or a synced folder.

Each device writes into a folder of its own, below ``devices``, and reads those of the others: so two never
write one file. A device's files count only where they are as its manifest says, which is written last.
docs/moving.md describes the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from keepstone.errors import InvalidAgentIdError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import ARCHIVE, INDEX, PURGED, SUGGESTIONS, SYNC, Layout, lock_file
from keepstone.filesystem.lock import Lock
from keepstone.home import Home
from keepstone.log.conflict_copies import original_of
from keepstone.log.line import id_of, is_tombstone
from keepstone.log.log_file import Log
from keepstone.log.scan import Scan
from keepstone.log.union import Knowledge, Side, merged_lines, read_side, side_of
from keepstone.operations.syncing.devices import (
    MANIFEST,
    TEMPORARY,
    Device,
    check_format,
    content,
    content_or_none,
    device_name,
    digest,
    write_manifest,
)
from keepstone.store import removal_marks
from keepstone.store.files import purge_digests, suggestion_file
from keepstone.store.opening import is_database
from keepstone.store.suggestion_lines import lines_of, united
from keepstone.text.display import counted

_LOCK = "lock"
_SUGGESTIONS = f".{SUGGESTIONS}"
"""The name of the suggestions in a device's folder, where a session's log cannot have it."""


@dataclass(slots=True)
class Synced:
    """The result of a sync."""

    devices: int = 0
    """How many other devices were read."""
    changed: list[str] = field(default_factory=list)
    """Sessions that got lines from elsewhere, as ``agent/session``."""
    purged: int = 0
    """Entries that were removed because they were purged elsewhere."""
    pending: list[str] = field(default_factory=list)
    """Files of other devices that have not arrived whole yet."""
    skipped: list[str] = field(default_factory=list)
    """Damaged lines of other devices, which stay there: how many, and of which file."""
    merged_copies: list[str] = field(default_factory=list)
    """Conflicting copies in this home that were merged and removed, as ``agent/session``."""
    device: str = ""
    """The folder below ``devices`` that this home wrote."""


def sync(home: Home, layout: Layout, folder: Path) -> Synced:
    """Exchange entries and purges with the other homes that sync over a folder.

    Raises:
        ValueError: The folder and the home contain each other, nothing is where the folder would be made, the
            folder is of a newer format, or the home is a database.
        LockTimeoutError: Another process syncs this home, or holds a log.
        StoreError: As for ``Session.add``. What was done before stays; sync again.
    """
    if is_database(home.root):
        raise ValueError(
            "a home in a database needs no folder to sync over: devices open the database itself"
        )
    here, there = home.root.resolve(), folder.expanduser().resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise ValueError(
            f"{folder} and the home {home.root} contain each other: choose a folder outside of it"
        )
    if not there.parent.is_dir():
        raise ValueError(f"{there.parent} is not a folder: mount it or make it, then sync again")
    with one_sync(home):
        return exchange(home, layout, there)


@contextmanager
def one_sync(home: Home) -> Iterator[None]:
    """Hold the lock of a home's syncs for the block.

    Raises:
        LockTimeoutError: Another process syncs this home.
    """
    with (
        Folder(home.root / INDEX / SYNC, root=home.root, create=True) as folder,
        closing(Lock(folder, _LOCK)) as lock,
        lock.hold(),
    ):
        yield


def exchange(home: Home, layout: Layout, there: Path) -> Synced:
    """Exchange with the devices in a folder; the caller holds ``one_sync``."""
    result = Synced()
    with border(there), Folder(there, create=True) as shared:
        check_format(shared)
        device = result.device = device_name(home.root, shared)
        for agent in home.agents():
            _record_purges(home, layout, agent)
            _merge_copies(home, layout, agent, result)
        for name in sorted(entry.name for entry in _entries(shared, "devices")):
            if name != device:
                result.devices += 1
                _take(home, layout, Device(shared, f"devices/{name}"), result)
        _give(home, layout, shared, f"devices/{device}")
    if result.changed or result.merged_copies:
        home.sync()  # The index takes in what was written beside it.
    return result


def _entries(folder: Folder, sub: str) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError):
        yield from [entry for entry in folder.scan(sub) if not entry.name.startswith(".")]


def _record_purges(home: Home, layout: Layout, agent: str) -> None:
    path = layout.sessions_folder(home.root, agent)
    if path.is_dir():
        with Folder(path, root=home.root) as folder:
            purge_digests.record(folder, "", ())


def _digests_in(path: Path) -> frozenset[str]:
    """Return the purges recorded in a folder; none if it is missing."""
    if not path.is_dir():
        return frozenset()
    with Folder(path) as folder:
        return purge_digests.purged_digests(folder)


def _sessions(folder: Folder, layout: Layout) -> dict[str, str]:
    """Return the file name of each session in a folder of logs."""
    found: dict[str, str] = {}
    for entry in _entries(folder, ""):
        session = layout.session_of(entry.name)
        if session is not None and entry.is_file(follow_symlinks=False):
            found.setdefault(session, entry.name)
    return found


def _log(folder: Folder, layout: Layout, name: str) -> Log:
    return Log(folder, name, Lock(folder, lock_file(name, layout.extension)))


def _merge_copies(home: Home, layout: Layout, agent: str, result: Synced) -> None:
    """Merge conflicting copies that a sync service made of this home's own logs, and remove them."""
    path = layout.sessions_folder(home.root, agent)
    if not path.is_dir():
        return
    with Folder(path, root=home.root) as folder:
        names = _sessions(folder, layout)
    for copy in sorted(names):
        original = original_of(copy)
        if original is not None and original in names:
            with Folder(path, root=home.root) as folder:
                other = side_of(content(folder, names[copy]))
            _merge(home, layout, agent, original, other, frozenset())
            home.agent(agent).session(copy).remove()
            result.merged_copies.append(f"{agent}/{copy}")


def _take(home: Home, layout: Layout, device: Device, result: Synced) -> None:
    """Take in what another device has written: first its purges, then its entries."""
    if not device.is_whole:
        result.pending.append(device.name("", MANIFEST).replace("//", "/"))
        return
    for agent in sorted({agent for agent, _ in device.listed}):
        try:
            layout.check_agent(agent)
        except InvalidAgentIdError:
            result.pending.append(f"{agent!r:.80}: it is not an agent's slug")
            continue
        files = sorted(file for owner, file in device.listed if owner == agent)
        digests = frozenset[str]()
        if PURGED in files and (raw := device.read(agent, PURGED)) is not None:
            digests = purge_digests.digests_in(raw.splitlines())
            result.purged += _purge(home, layout, agent, digests)
        for file in files:
            session = layout.session_of(file)
            if session is None:
                continue
            raw = device.read(agent, file)
            if raw is None:
                result.pending.append(device.name(agent, file))
                continue
            theirs = side_of(raw)
            lines = [line for line in theirs.lines if line.record is not None]
            if damaged := len(theirs.lines) - len(lines):
                result.skipped.append(f"{counted(damaged, 'line')} of {device.name(agent, file)}")
                theirs = Side(lines, {line.key for line in lines}, theirs.ids, theirs.live)
            if _merge(home, layout, agent, session, theirs, digests):
                result.changed.append(f"{agent}/{session}")
        _take_suggestions(home, layout, device, agent, digests)


def _take_suggestions(
    home: Home, layout: Layout, device: Device, agent: str, purged_there: Container[str]
) -> None:
    """Add the suggestions of another device, and what was decided there; remove what was purged there."""
    path = layout.sessions_folder(home.root, agent)
    is_given = (agent, _SUGGESTIONS) in device.listed and "{agent}" in layout.sessions
    if not is_given or not path.is_dir():
        return
    here = _digests_in(path) | _digests_in(purge_digests.vanished(home.root, agent))

    def is_purged(*one: str) -> bool:
        return (key := removal_marks.digest(*one)) in here or key in purged_there

    place, raw = layout.beside(home.root, agent, SUGGESTIONS), device.read(agent, _SUGGESTIONS) or b""
    if raw or place.is_file():
        both = partial(united, theirs=lines_of(raw), is_purged=is_purged)
        suggestion_file.change(place, home.root, both, lambda _: None, durable=True)


def _purge(home: Home, layout: Layout, agent: str, digests: frozenset[str]) -> int:
    """Purge the entries here that were purged elsewhere, and return how many there were."""
    path = layout.sessions_folder(home.root, agent)
    if not digests or not path.is_dir():
        return 0
    count = 0
    with Folder(path, root=home.root) as folder:
        known = purge_digests.purged_digests(folder)
        for session, name in _sessions(folder, layout).items():
            ids: set[str] = set()
            for part in (name, f"{ARCHIVE}/{name}"):
                with closing(_log(folder, layout, part)) as log, log.reading() as fd:
                    ids |= read_side(fd).ids
            # What was purged here, too, and added again since, stays.
            new = [
                one
                for one in sorted(ids)
                if (key := removal_marks.digest(session, one)) in digests and key not in known
            ]
            count += home.agent(agent).session(session).purge_many(new) if new else 0
    return count


def _merge(
    home: Home, layout: Layout, agent: str, session: str, theirs: Side, purged_there: Container[str]
) -> bool:
    """Merge another version of a log into this home's; tell whether anything changed."""
    path = layout.sessions_folder(home.root, agent)
    gone_here = _digests_in(path) | _digests_in(purge_digests.vanished(home.root, agent))
    known = [
        Knowledge(lambda one, digests=digests: removal_marks.digest(session, one) in digests)  # type: ignore[misc]
        for digests in (gone_here, purged_there)
    ]
    if not path.is_dir() and not merged_lines(Side(), Side(), theirs, known[0], known[1]):
        return False  # The agent was purged here, or has nothing.
    with Folder(path, root=home.root, create=True) as folder:
        name = _sessions(folder, layout).get(session) or layout.session_file(session)
        with closing(_log(folder, layout, name)) as log, log.locked():
            with log.reading() as fd, _log(folder, layout, f"{ARCHIVE}/{name}").reading() as archived_fd:
                ours, archived = read_side(fd), read_side(archived_fd)
            new = _without_known(theirs, ours, archived)
            # What both have stands for the version that they began with.
            base = Side(keys=ours.keys & new.keys, ids=ours.ids & new.ids)
            lines = merged_lines(base, ours, new, known[0], known[1])
            if lines == [line.key[0] + b"\n" for line in ours.lines]:
                return False
            log.create()
            log.replace(lines)
    return True


def _without_known(theirs: Side, ours: Side, archived: Side) -> Side:
    """Return another version without what this home has folded away, deleted or archived already."""
    old = {line.key[0] for line in archived.lines}
    changed = {line.id for line in theirs.lines if line.key[0] not in old and line.key not in ours.keys}
    # A deletion that the other side knew, and came back from, is over.
    restored = {line.id for line in theirs.lines if line.is_tombstone and line.key[0] in old} & theirs.live
    deleted = archived.ids - archived.live - restored
    kept = [
        line
        for line in theirs.lines
        if line.key in ours.keys
        or (line.key[0] not in old if line.id in ours.ids else line.id in changed and line.id not in deleted)
    ]
    return Side(kept, {line.key for line in kept}, {line.id for line in kept if line.id}, theirs.live)


def _give(home: Home, layout: Layout, shared: Folder, place: str) -> None:
    """Write this home's logs, with the tombstones of compacted entries, and its purges; the manifest last."""
    shared.make_folder(place)
    old = Device(shared, place).listed
    manifest: list[bytes] = []
    for agent, path in _published_agents(home, layout).items():
        shared.make_folder(f"{place}/{agent}")
        with Folder(path, root=home.root) as folder:
            files = {
                layout.session_file(session): name for session, name in _sessions(folder, layout).items()
            }
            for file, name in sorted({**files, PURGED: PURGED, _SUGGESTIONS: agent}.items()):
                is_log = file != _SUGGESTIONS
                raw = _published(folder, layout, name) if is_log else _suggestions(home, layout, agent)
                entry = (len(raw), digest(raw))
                if old.get((agent, file)) != entry:
                    replace_file(shared, f"{place}/{agent}/{file}", [raw], temporary=f"{place}/{TEMPORARY}")
                line = {"agent": agent, "file": file, "size": entry[0], "sha256": entry[1]}
                manifest.append(json.dumps(line).encode() + b"\n")
        for entry_there in _entries(shared, f"{place}/{agent}"):
            if entry_there.name not in files:  # Removed here; its digests are among the purges.
                shared.unlink(f"{place}/{agent}/{entry_there.name}")
    write_manifest(home.root, shared, place, manifest)


def _published_agents(home: Home, layout: Layout) -> dict[str, Path]:
    """Return the folders to publish: of the agents, and what is recorded of agents that were purged."""
    folders = {agent: layout.sessions_folder(home.root, agent) for agent in home.agents()}
    names = [name for name in purge_digests.vanished_agents(home.root) if name not in folders]
    gone = {name: purge_digests.vanished(home.root, name) for name in names}
    return {agent: path for agent, path in {**gone, **folders}.items() if path.is_dir()}


def _published(folder: Folder, layout: Layout, name: str) -> bytes:
    if name == PURGED:
        return content_or_none(folder, PURGED) or b""
    with closing(_log(folder, layout, name)) as log, log.locked(), log.reading() as fd:
        side = read_side(fd)
        with _log(folder, layout, f"{ARCHIVE}/{name}").reading() as archived:
            tombstones = [] if archived is None else list(_tombstones(archived, side.ids))
    return b"".join([*tombstones, *(line.key[0] + b"\n" for line in side.lines)])


def _suggestions(home: Home, layout: Layout, agent: str) -> bytes:
    """Return an agent's suggestions; none in a layout of one agent."""
    if "{agent}" not in layout.sessions:
        return b""
    return b"".join(suggestion_file.read(layout.beside(home.root, agent, SUGGESTIONS), home.root))


def _tombstones(fd: int, there: Container[str]) -> Iterable[bytes]:
    """Yield the tombstones in an archive of entries that the log does not have any more."""
    for line in Scan(fd):
        if line.record is not None and is_tombstone(line.record) and id_of(line.record) not in there:
            yield line.raw + b"\n"
