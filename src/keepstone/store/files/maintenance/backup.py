"""A consistent copy of a home while others write to it.

A session is copied under its lock, so that no write is half in the copy. Files that are rewritten or removed
after they were copied, as by a purge, are copied again or removed from the copy before it gets its final
name. The copy is made beside its final place, read back, opened, synced and then renamed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from keepstone.errors import StoreError
from keepstone.files import AgentFiles, locked_files
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FOLDER_MODE, Folder, border, sync_folder
from keepstone.filesystem.layout import (
    ARCHIVE,
    DROPPED,
    GRANTS,
    LOCK,
    PURGE,
    PURGED,
    STATE,
    SUGGESTIONS,
    SYNC,
    TEMPORARY,
    TESTS,
    TESTS_LOCK,
    Layout,
)
from keepstone.filesystem.lock import Lock
from keepstone.log.log_file import Log
from keepstone.model import BackupInfo
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.home_space import HomeSpace
from keepstone.store.files.maintenance.checkup import Using
from keepstone.store.files.maintenance.copying import Copy, Unit
from keepstone.store.files.maintenance.originals import log_of, original_names
from keepstone.store.protocol import Store
from keepstone.store.sharing.grants_file import GrantsFile

_ROUNDS = 10
"""Maximum passes over files that were rewritten during the backup."""

_AT_ONCE = 1_000
"""Number of entries whose vectors are copied at a time."""

Progress = Callable[[int, int], None]
Opened = Callable[[Path], Store]
"""Opens a home at another place, with the same layout."""


class BackupRun:
    """One backup while it is being made."""

    def __init__(self, source: Store, root: Path, layout: Layout, using: Using, opened: Opened) -> None:
        self._source = source
        self._root = root
        self._layout = layout
        self._using = using
        self._opened = opened
        self._copies: dict[Path, Copy] = {}

    def make(self, folder: Path, progress: Progress | None, *, vectors: bool = False) -> BackupInfo:
        """Copy the home into a folder that is missing or empty; see ``Home.backup``."""
        target = self._checked(folder)
        with border(target.parent):
            target.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            # The copy has a temporary name until it is complete, so that it is not mistaken for a complete
            # one.
            made = Path(tempfile.mkdtemp(".partial", f".{target.name}.", target.parent))
        try:
            info = self._copied(made, progress, vectors=vectors)
            _sync(made)
            _rename(made, target)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return replace(info, folder=target)

    def _copied(self, made: Path, progress: Progress | None, *, vectors: bool) -> BackupInfo:
        # Copy this before the files: the state of syncs may be older than the files, never newer.
        self._copy_state(made, of_sync=True)
        for _ in range(_ROUNDS):
            self._copy_all(made, progress)
            info = self._check(made)
            if not vectors:
                return info
            self._copy_vectors(made)
            # Entries purged during this must not stay in the indexes either: if any file changed, start over.
            if not self._copy_round(made, lambda _: None):
                return info
        raise self._rewritten()

    def _rewritten(self) -> StoreError:
        return StoreError(f"{self._root} is rewritten faster than it is copied: try again when less goes on")

    def _checked(self, folder: Path) -> Path:
        target, root = folder.resolve(), self._root.resolve()
        if root == target or root in target.parents:
            raise ValueError(f"{folder} lies in the home itself: choose a folder elsewhere")
        with border(target):
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise ValueError(f"{folder} is not empty: choose a new folder for the backup")
        return target

    def _copy_all(self, made: Path, progress: Progress | None) -> None:
        total = self._size() if progress else 0
        done = 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            if progress:
                progress(min(done, total), total)

        for _ in range(_ROUNDS):
            if not self._copy_round(made, tell):
                return
        raise self._rewritten()

    def _size(self) -> int:
        agents = self._layout.agents(self._root)
        return sum(info.size for agent in agents for info in self._source.sessions(agent))

    def _copy_round(self, made: Path, tell: Callable[[int], None]) -> bool:
        """Copy new and rewritten files since the last round; return whether there were any."""
        agents = self._layout.agents(self._root)
        changed = [self._copy_agent(agent, made, tell) for agent in agents]
        # A list, not a generator, so that every step is done whatever the other steps return.
        return any([*changed, self._copy_tests(made, tell), self._leave_only(agents, made)])

    def _leave_only(self, agents: Collection[str], made: Path) -> bool:
        """Remove agents from the copy that were purged during the backup."""
        gone = set(self._layout.agents(made)) - set(agents)
        for path in [path for agent in gone for path in self._layout.agent_folders(made, agent)]:
            shutil.rmtree(path, ignore_errors=True)
            self._copies = {at: copy for at, copy in self._copies.items() if not at.is_relative_to(path)}
        return bool(gone)

    def _copy_agent(self, agent: str, made: Path, tell: Callable[[int], None]) -> bool:
        changed = False
        with self._using(agent) as logs:
            if logs is not None:
                copy = self._copy_at(self._layout.sessions_folder(made, agent), made, tell)
                changed = copy.follow(logs.folder, session_units(logs))
        changed = self._copy_suggestions(agent, made, tell) or changed
        if self._layout.has_agents:
            changed = self._copy_grants(agent, made, tell) or changed
        place = self._layout.files_folder(self._root, agent)
        # Most agents have no files, and so no files folder.
        with suppress(FileNotFoundError, NotADirectoryError), Folder(place, root=self._root) as folder:
            copy = self._copy_at(self._layout.files_folder(made, agent), made, tell)
            unit = Unit(AgentFiles(place, root=self._root).list, lambda: locked_files(folder))
            changed = copy.follow(folder, {"files": unit}) or changed
        return changed

    def _copy_tests(self, made: Path, tell: Callable[[int], None]) -> bool:
        if not (self._root / TESTS).is_file():
            return False
        with Folder(self._root) as folder:
            unit = Unit(lambda: [TESTS], lambda: _locked(folder, TESTS_LOCK))
            return self._copies.setdefault(made / TESTS, Copy(made, made, tell)).follow(folder, {"": unit})

    def _copy_suggestions(self, agent: str, made: Path, tell: Callable[[int], None]) -> bool:
        if "{agent}" not in self._layout.sessions:
            return False
        path, copied = (self._layout.beside(root, agent, SUGGESTIONS) for root in (self._root, made))
        if not path.is_file():
            return False
        with Folder(path.parent, root=self._root) as folder:
            unit = Unit(lambda: [path.name], lambda: _marks(folder, path.name))
            return self._copies.setdefault(copied, Copy(copied.parent, made, tell)).follow(folder, {"": unit})

    def _copy_grants(self, agent: str, made: Path, tell: Callable[[int], None]) -> bool:
        file, target = GrantsFile(self._root, self._layout, agent), self._layout.beside(made, agent, GRANTS)
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            Folder(file.path.parent, root=self._root) as folder,
        ):
            copy = self._copies.setdefault(target, Copy(target.parent, made, tell))
            unit = Unit(lambda: [target.name] if file.is_there() else [], nullcontext)
            return copy.follow(folder, {"grants": unit})
        return False

    def _copy_at(self, place: Path, made: Path, tell: Callable[[int], None]) -> Copy:
        return self._copies.setdefault(place, Copy(place, made, tell))

    def _check(self, made: Path) -> BackupInfo:
        """Read the copy back, then open it like any home; return its counts."""
        wrong = [name for copy in self._copies.values() for name in copy.wrong()]
        if wrong:
            raise StoreError(f"the copy of {wrong[0]} is not what was read: check the disk, and try again")
        with closing(self._opened(made)) as store:
            agents = store.agents()
            sessions = [(agent, info.id) for agent in agents for info in store.sessions(agent)]
            entries = sum(len(store.records(*session)) for session in sessions)
            files = sum(len(store.files(agent).list()) for agent in agents)
            findings = tuple(finding for finding in store.maintenance.doctor() if finding.level == "error")
        derived = self._layout.derived_folder(made)
        # Opening the copy made indexes, which do not belong to it.
        shutil.rmtree(derived, ignore_errors=True)
        self._copy_state(made, of_sync=False)
        size = sum(copy.count()[1] for copy in self._copies.values())
        return BackupInfo(made, len(agents), len(sessions), entries, files, size, findings)

    def _copy_state(self, made: Path, *, of_sync: bool) -> None:
        """Copy the home's settings, or the state of its syncs; its vector space is recorded separately."""
        for path in sorted((self._root / STATE).rglob("*")):
            if path.is_relative_to(self._root / SYNC) != of_sync:
                continue
            if path.is_file() and not path.is_symlink() and path.suffix not in (LOCK, TEMPORARY):
                place = (made / path.relative_to(self._root)).parent
                with Folder(place, root=made, create=True) as folder:
                    replace_file(folder, path.name, [path.read_bytes()], temporary=path.name + TEMPORARY)
        # The record contains the inode of its home's folder, so the copy needs a new one.
        space = HomeSpace(self._root).get()
        if space is not None:
            HomeSpace(made).set(space)

    def _copy_vectors(self, made: Path) -> None:
        """Add the existing vectors of the copied texts to the indexes of the copy."""
        with closing(self._opened(made)) as store:
            for agent in store.agents():
                for space in (space for space in self._source.spaces(agent) if not space.is_given):
                    for session in store.sessions(agent):
                        self._copy_vectors_of(store, agent, session.id, space.id)
                store.sync()

    def _copy_vectors_of(self, store: Store, agent: str, session: str, space: str) -> None:
        now = {entry.id: entry.text for entry in self._source.entries(agent, session, None, None)}
        copied = store.entries(agent, session, None, None)
        # The text may have changed since it was copied: the old text must not get the vector of the new one.
        same = [entry for entry in copied if now.get(entry.id) == entry.text]
        for begin in range(0, len(same), _AT_ONCE):
            batch = same[begin : begin + _AT_ONCE]
            ids = [entry.id for entry in batch]
            found = self._source.vectors(agent, session, space, ids)
            given = store.vectors(agent, session, space, ids)
            made = [entry for entry in batch if entry.id in found and entry.id not in given]
            store.keep_vectors(agent, space, [(entry, found[entry.id]) for entry in made])


def session_units(logs: AgentLogs) -> dict[str, Unit]:
    """Return the files of an agent's sessions folder, grouped in units that are copied together."""
    units = {}
    for session, name, _ in logs.files():
        units[f"session {session}"] = _session_unit(logs, session, name)
    taken = {name for _, name, _ in logs.files()}
    for name in (PURGE, PURGED, DROPPED):
        units[name] = Unit(lambda name=name: [name], lambda name=name: _marks(logs.folder, name))  # type: ignore[misc]
    for path in _others(logs, taken):
        units[path] = Unit(lambda path=path: [path], nullcontext)  # type: ignore[misc]
    return units


def _session_unit(logs: AgentLogs, session: str, name: str) -> Unit:
    def names() -> list[str]:
        kept = sorted(other for other in original_names(logs.folder) if log_of(other) == name)
        return [name, f"{ARCHIVE}/{name}", *(f"{ARCHIVE}/{other}" for other in kept)]

    return Unit(names, lambda: _locked_session(logs.log(session)), log=name)


@contextmanager
def _locked_session(log: Log) -> Iterator[None]:
    with log.locked():
        yield
        if log.stat() is None:
            log.lock.remove()  # The session was removed during the backup.


def _others(logs: AgentLogs, taken: Collection[str]) -> list[str]:
    """Return other files that look like logs or archives: a second file for a session, an archive alone."""
    found = []
    for sub in ("", f"{ARCHIVE}/"):
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in logs.folder.scan(sub.rstrip("/")):
                if entry.is_file(follow_symlinks=False) and (log_of(entry.name) or entry.name) not in taken:
                    looks_like_one = logs.layout.session_of(log_of(entry.name) or entry.name) is not None
                    found += [sub + entry.name] if looks_like_one else []
    return found


def _marks(folder: Folder, name: str) -> AbstractContextManager[object]:
    try:
        folder.stat(name)
    except FileNotFoundError:
        return nullcontext()  # Taking the lock would create a lock file.
    return _locked(folder, name + LOCK)


@contextmanager
def _locked(folder: Folder, name: str) -> Iterator[None]:
    with closing(Lock(folder, name)) as lock, lock.hold():
        yield


def _sync(made: Path) -> None:
    """Sync the folders of the copy; the files themselves are already synced."""
    for path in (made, *(path for path in made.rglob("*") if path.is_dir())):
        sync_folder(path)


def _rename(made: Path, target: Path) -> None:
    with border(target):
        if target.exists():
            target.rmdir()  # It was empty; if it no longer is, this fails and nothing is lost.
        made.rename(target)
    sync_folder(target.parent)
