"""Exchange of agents' own files: the latest version of each, deletions, and copies of losing versions."""

from __future__ import annotations

import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from keepstone.errors import KeepstoneError, StoreError
from keepstone.files import file_name, locked_files
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FILE_MODE, Folder, check_file
from keepstone.filesystem.layout import FILES_TEMPORARY, RESERVED
from keepstone.operations.syncing.devices import Device, content, digest
from keepstone.operations.syncing.exchanged import ExchangedSession
from keepstone.operations.syncing.file_versions import (
    Known,
    Version,
    Versions,
    conflict_name,
    dump,
    ended,
    joined,
    parsed,
    written,
)
from keepstone.operations.syncing.giving import Giver
from keepstone.operations.syncing.taking import LocalHome
from keepstone.store.files import file_deletions, purge_digests
from keepstone.store.files.file_deletions import Beginning, Deletion, name_digest, packed
from keepstone.text.display import one_line, size

VERSIONS = ".files.json"
_FILE = ".file-"
"""Prefix of the names of published files in a device's folder; the digest of the path follows."""
MOST_BYTES = 64 << 20
"""Maximum size of an exchanged file, in bytes; a longer file is skipped."""
_FAILED = (KeepstoneError, ValueError, FileNotFoundError, NotADirectoryError)


def published_versions(
    local: LocalHome, devices: Iterable[Device], file: str
) -> dict[str, list[tuple[Device, str, Versions]]]:
    """Return the versions that devices publish in a file, by the digest of the agent's name."""
    found: dict[str, list[tuple[Device, str, Versions]]] = defaultdict(list)
    for device in devices:
        for agent in sorted({agent for agent, name in device.listed if name == file and device.is_whole}):
            raw = device.read(agent, file)
            if raw is None:
                local.result.pending.append(device.name(agent, file))
                continue
            try:
                versions = parsed(raw)
            except (ValueError, RecursionError) as error:
                local.result.skipped.append(f"{device.name(agent, file)}: {error}")
                continue
            found[purge_digests.as_gone_name(agent)].append((device, agent, versions))
    return found


@dataclass(slots=True)
class _Found:
    """A file of this home. Digest and length are those of its published form: the path, then the bytes."""

    path: str
    sha256: str
    length: int
    time: int
    state: list[Any]


class OwnFiles:
    """The exchange of the files of all agents."""

    def __init__(self, local: LocalHome, known: Known) -> None:
        self._local = local
        self._known = known
        self._all: dict[str, _Agent] = {}
        self.journal: list[Beginning | Deletion] = []
        """Files that were created and deleted here since the last exchange."""
        self._marks: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        """Marks of the lives that began since the last exchange, by the digests of agent and file name."""
        self._unmarked: dict[str, dict[str, str]] = defaultdict(dict)
        """Digests of files deleted before their first exchange; their deletion ends equal files elsewhere."""

    def take(self, devices: list[Device]) -> None:
        """Merge the files and deletions of other devices into this home."""
        agents = [*self._local.home.agents()]
        self._take_deletions()
        published = published_versions(self._local, devices, VERSIONS)
        slugs = {agent for device in devices for agent, _ in device.listed} | {*agents}
        names = {
            purge_digests.gone_name(slug): slug for slug in slugs if not purge_digests.is_gone_name(slug)
        }
        for name in sorted({*published, *map(purge_digests.gone_name, agents), *self._known.groups}):
            if purge_digests.is_gone_name(name):
                agent = names.get(name)
                self._local.forget_removed_agent(name, self._known.of(name), is_here=agent in agents)
                found = _Agent(self._local, self._known.of(name), agent, is_here=agent in agents)
                found.began, found.unmarked = self._marks[name], self._unmarked[name]
                self._all[name] = found
                found.exchange(published.get(name, []))

    def _take_deletions(self) -> None:
        """End the lives of files that were deleted since the last exchange, even if they exist again."""
        self.journal = file_deletions.read(self._local.home.root)
        for line in self.journal:
            began = self._marks[line.agent]
            if isinstance(line, Beginning):
                began[line.name].append(line.mark)
                continue
            versions = self._known.of(line.agent)
            old, marks = versions.get(line.name), began.pop(line.name, [])
            if old is None and not marks:
                self._unmarked[line.agent][line.name] = line.sha256
            if old is None or not old.is_live or old.sha256 != line.sha256:
                old = written(old, line.sha256, line.time, marks[-1] if marks else None)
            versions[line.name] = ended(old, marks)

    def give(self, giver: Giver, agent: str) -> None:
        """Publish the files of an agent, given by its slug or by the digest of its name."""
        name = purge_digests.as_gone_name(agent)
        if name in self._all:
            self._all[name].give(giver)


class _Agent:
    """The files of one agent during an exchange."""

    def __init__(self, local: LocalHome, ours: Versions, agent: str | None, *, is_here: bool) -> None:
        self._local = local
        self._result = local.result
        self._ours = ours
        self._agent = agent or ""
        self._is_here = is_here
        self.began: dict[str, list[str]] = {}
        self.unmarked: dict[str, str] = {}
        self._found: dict[str, _Found] = {}
        self._late: set[str] = set()

    @cached_property
    def _is_purged(self) -> bool:
        """Whether the agent was purged. Then a deletion also discards edits that its device had not seen."""
        return bool(self._agent) and self._local.was_purged(self._agent)

    def exchange(self, published: list[tuple[Device, str, Versions]]) -> None:
        """Find the local changes and join them with the versions of other devices."""
        unexchanged = self._scan() if self._is_here else set()
        self._find_changes([versions for _, _, versions in published], unexchanged)
        arrived = [
            (key, version, device, name)
            for device, name, those in published
            for key, version in those.items()
        ]
        # Deletions first: a file to delete may be in the way of a file that arrives.
        for key, version, device, name in sorted(arrived, key=lambda row: (row[1].is_live, row[0])):
            if version != self._ours.get(key) and key not in unexchanged:
                self._try(device, name, key, version)
        for key in self._found.keys() - self._late:
            self._keep(key, self._found[key])
        for device, name, _ in published:
            self._take_out(device, name)
        if self._is_here and not self._found and not unexchanged:
            self._local.remove_emptied(self._agent)

    def _find_changes(self, theirs: list[Versions], unexchanged: set[str]) -> None:
        """Update the versions for files that were written or deleted here since the last exchange."""
        for key, version in self._ours.items():
            if version.is_live and key not in self._found and key not in unexchanged:
                self._ours[key] = ended(version)
        for key, sha256 in self.unmarked.items():
            for other in [versions[key] for versions in theirs if key in versions]:
                if other.knows(sha256):
                    self._ours[key] = ended(self._ours[key], other.lives)
        for key, file in self._found.items():
            old, others = self._ours.get(key), [versions[key] for versions in theirs if key in versions]
            mark = self.began.get(key, [None])[-1]
            is_new = mark is not None and not any(mark in other.lives | other.over for other in others)
            # Content that another device's version knows came from there: from a backup, a clone, or a sync
            # that was killed.
            is_ours = old is not None and old.knows(file.sha256)
            if is_new or is_ours or not any(other.knows(file.sha256) for other in others):
                self._keep(key, file, mark)

    def _scan(self) -> set[str]:
        """Find the agent's files; return the keys of the files whose present content is not exchanged."""
        unexchanged: set[str] = set()
        with self._local.files_of(self._agent).folder() as folder:
            pending = [""] if folder is not None else []
            while folder is not None and pending:
                sub = pending.pop()
                for name, is_folder in [
                    (file.name, file.is_dir(follow_symlinks=False)) for file in folder.scan(sub)
                ]:
                    path = f"{sub}/{name}" if sub else name
                    if is_folder:
                        pending.append(path)
                    elif not path.startswith(RESERVED) and not self._record(folder, path):
                        shown = path.encode(errors="surrogateescape").decode(errors="replace")
                        unexchanged.add(name_digest(shown))
        return unexchanged

    def _record(self, folder: Folder, path: str) -> bool:
        """Record a file's present state; return False for a file that is not exchanged."""
        try:
            name = file_name(path)
            status = folder.stat(name)
            check_file(status, name)
            state = _state(status)
            # Replacing a hard-linked file would separate it from its other names.
            if status.st_nlink > 1 or status.st_size > MOST_BYTES:
                why = "a hard link" if status.st_nlink > 1 else size(status.st_size)
                self._result.skipped.append(f"{self._agent}/{one_line(path)}, which is {why}")
                return False
            key = name_digest(name)
            known = self._local.exchanged.known(self._agent, f"\0{key}", state)
            length, sha256 = known.given[""] if known else self._measured(folder, name)
        except FileNotFoundError:
            return True  # Deleted just now.
        except (KeepstoneError, ValueError):
            return False  # A link or a device, which agents cannot read either.
        self._found[key] = _Found(name, sha256, length, status.st_mtime_ns, state)
        return True

    @staticmethod
    def _measured(folder: Folder, name: str) -> list[Any]:
        raw = packed(name, content(folder, name, MOST_BYTES))
        return [len(raw), digest(raw)]

    def _keep(self, key: str, file: _Found, mark: str | None = None) -> None:
        """Make a new version for a file here, unless the last version already has its content."""
        old = self._ours.get(key)
        if old is None or not old.is_live or old.sha256 != file.sha256:
            self._ours[key] = written(old, file.sha256, file.time, mark)

    def _try(self, device: Device, name: str, key: str, theirs: Version) -> None:
        try:
            self._join(device, name, key, theirs)
        except _FAILED as error:
            self._late.add(key)
            self._result.pending.append(f"{device.name(name, _FILE + key)}: {one_line(str(error))}")

    def _join(self, device: Device, name: str, key: str, theirs: Version) -> None:
        ours, file = self._ours.get(key), self._found.get(key)
        new = joined(ours, theirs)
        # If only the digest of an agent's name is known, only deletions can be merged: the name of its
        # folder is unknown.
        if new == ours or (new.is_live and not self._agent):
            return
        if (
            theirs.is_live
            and self._is_here
            and (new.sha256 != theirs.sha256 if new.is_live else not self._is_purged)
            and not (ours is not None and ours.knows(theirs.sha256))
        ):
            self._copy(*self._read(device, name, key, theirs.sha256), theirs.time)
        if file is not None and (not new.is_live or file.sha256 != new.sha256):
            if not theirs.knows(file.sha256) and (new.is_live or not self._is_purged):
                self._copy(file.path, self._content(file), ours.time if ours is not None else file.time)
            if not new.is_live:
                self._delete(key, file)
        if new.is_live and (file is None or file.sha256 != new.sha256):
            path, raw = self._read(device, name, key, new.sha256)
            new = self._write(path, raw, new)
        self._ours[key] = new

    def _read(self, device: Device, name: str, key: str, sha256: str) -> tuple[str, bytes]:
        """Return the path and the content of a file that another device published."""
        length, listed = device.listed.get((name, _FILE + key), (0, ""))
        if length > MOST_BYTES + (1 << 16):
            raise ValueError(f"it has {size(length)}, more than {size(MOST_BYTES)}")
        raw = device.read(name, _FILE + key) if listed == sha256 else None
        if raw is None:
            raise StoreError("it has not arrived")
        head, _, rest = raw.partition(b"\n")
        path = file_name(json.loads(head))
        if name_digest(path) != key:
            raise ValueError(f"the published file is of another path, {path!r:.80}")
        return path, rest

    def _content(self, file: _Found) -> bytes:
        with self._local.files_of(self._agent).folder() as folder:
            raw = None if folder is None else content(folder, file.path, MOST_BYTES)
        if raw is None or digest(packed(file.path, raw)) != file.sha256:
            raise StoreError(f"{file.path!r} changed during the sync: sync again")
        return raw

    def _copy(self, path: str, raw: bytes, time: int) -> None:
        """Keep losing content in a conflict copy, whose name and content are the same on every device."""
        name = conflict_name(path, digest(packed(path, raw)))
        if name_digest(name) not in self._ours:
            sha256 = digest(packed(name, raw))
            new = self._write(name, raw, written(None, sha256, time))
            self._ours[name_digest(name)] = new

    def _write(self, path: str, raw: bytes, new: Version) -> Version:
        """Write a file and return its version, which is ended if a folder of this name contains files."""
        self._local.layout.refuse_twin(self._local.home.root, self._agent)
        for end in [at for at, char in enumerate(path) if char == "/"]:
            if (parent := self._found.get(name_digest(path[:end]))) is not None:
                self._copy(parent.path, self._content(parent), parent.time)
                key = name_digest(parent.path)
                self._delete(key, parent)
                self._ours[key] = ended(self._ours[key])
        place = self._local.layout.files_folder(self._local.home.root, self._agent)
        with Folder(place, root=self._local.home.root, create=True) as folder, locked_files(folder):
            is_in_use = self._is_folder_in_use(folder, path)
            if not is_in_use:
                mode = self._unchanged(folder, path)
                if parent_of_it := path.rpartition("/")[0]:
                    folder.make_folder(parent_of_it)
                status = replace_file(folder, path, [raw], temporary=FILES_TEMPORARY, mode=mode)
                length = len(packed(path, raw))
                self._found[name_digest(path)] = _Found(path, new.sha256, length, new.time, _state(status))
                self._result.files.append(f"{self._agent}/{path}")
        if is_in_use:
            self._result.pending.append(f"{self._agent}/{path}: a folder of its name has files")
            self._copy(path, raw, new.time)
            return ended(new)
        return new

    @staticmethod
    def _is_folder_in_use(folder: Folder, path: str) -> bool:
        try:
            is_folder = stat.S_ISDIR(folder.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not is_folder:
            return False
        try:
            _remove_empty(folder, path)
        except StoreError:
            return True
        return False

    def _delete(self, key: str, file: _Found) -> None:
        with self._local.files_of(self._agent).folder(locked=True) as folder:
            if folder is not None:
                self._unchanged(folder, file.path)
                folder.unlink(file.path)
                folder.sync(file.path.rpartition("/")[0])
        del self._found[key]
        self._result.files.append(f"{self._agent}/{file.path}")

    def _unchanged(self, folder: Folder, path: str) -> int:
        """Return a file's mode, the default one if it is missing; StoreError if it changed since the scan."""
        file = self._found.get(name_digest(path))
        try:
            status = folder.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return FILE_MODE
        check_file(status, path)
        if file is None or file.state != _state(status):
            raise StoreError(f"{path!r} changed during the sync: sync again")
        return status.st_mode

    def _take_out(self, device: Device, name: str) -> None:
        """Remove deleted files from a device's folder."""
        gone = {
            (name, _FILE + key): b""
            for key, version in self._ours.items()
            if not version.is_live and key not in self._late and (name, _FILE + key) in device.listed
        }
        if gone:
            device.rewrite(gone)

    def give(self, giver: Giver) -> None:
        """Publish the files and their versions."""
        for key, file in sorted(self._found.items()):
            version = self._ours.get(key)
            if version is None or not version.is_live or version.sha256 != file.sha256:
                continue
            entry = file.length, file.sha256
            if not giver.keep(_FILE + key, entry):
                try:
                    giver.write(_FILE + key, packed(file.path, self._content(file)))
                except _FAILED as error:
                    self._result.pending.append(f"{self._agent}/{file.path}: {one_line(str(error))}")
                    continue
            exchanged = ExchangedSession(file.state, {"": [*entry]})
            self._local.exchanged.keep(self._agent, f"\0{key}", exchanged)
        if self._ours:
            giver.write(VERSIONS, dump(self._ours))


def _remove_empty(folder: Folder, path: str) -> None:
    """Remove a folder that contains no files; raises StoreError if it contains any."""
    for name in [file.name for file in folder.scan(path) if file.is_dir(follow_symlinks=False)]:
        _remove_empty(folder, f"{path}/{name}")
    folder.remove_folder(path)


def _state(status: os.stat_result) -> list[Any]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]
