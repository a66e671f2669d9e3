"""Digests of purged ids, kept beside the logs of a home that is under git or synced.

A purge removes an entry's bytes, so nothing is left that could tell another branch or device of it. The
digests do, without saying what the ids were: a merge leaves out what either side has purged.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import GIT_ATTRIBUTES, INDEX, LOCK, PURGED, SYNC, Layout
from keepstone.filesystem.lock import Lock
from keepstone.log.line import dump_read, parse
from keepstone.log.log_file import Log
from keepstone.log.union import read_side
from keepstone.store.removal_marks import PurgedIds, digest

_KEY = "purged"
NO_SESSION = ""
"""In the place of a session in the digest of a suggestion's id."""


def is_recording(folder: Folder, root: Path) -> bool:
    """Tell whether purges are recorded: the file is there, or the home is under git, or is synced."""
    try:
        folder.stat(PURGED)
    except FileNotFoundError:
        with suppress(PermissionError):  # What cannot be looked at may be synced.
            return (root / GIT_ATTRIBUTES).is_file() or (root / INDEX / SYNC).is_dir()
    return True


def record(folder: Folder, session: str, ids: Iterable[str]) -> None:
    """Write the digests of purged ids, synced, and make the file if it is missing."""
    _write(folder, [digest(session, entry_id) for entry_id in ids])


def record_suggestions(path: Path, root: Path, ids: Iterable[str]) -> None:
    """Record the ids of suggestions that are removed, as those of no session, if purges are recorded."""
    if path.is_dir():
        with Folder(path, root=root) as folder:
            if is_recording(folder, root):
                record(folder, NO_SESSION, ids)


def record_agent(root: Path, layout: Layout, agent: str) -> None:
    """Record all that an agent had before its folder goes, if the home is synced."""
    path = layout.sessions_folder(root, agent)
    try:
        is_synced = (root / INDEX / SYNC).is_dir() and path.is_dir()
    except PermissionError:  # The purge goes on, and then says that the index keeps its bytes.
        is_synced = False
    if not is_synced:
        return
    with Folder(path, root=root) as folder, Folder(vanished(root, agent), root=root, create=True) as kept:
        _write(kept, purged_digests(folder))
        for name in [entry.name for entry in folder.scan() if entry.is_file(follow_symlinks=False)]:
            session = layout.session_of(name)
            if session is not None:
                with closing(Log(folder, name, Lock(folder, name + LOCK))) as log, log.reading() as fd:
                    record(kept, session, sorted(read_side(fd).ids))


def vanished(root: Path, agent: str) -> Path:
    """Return the folder with the digests of all that an agent had when it was purged."""
    return root / INDEX / SYNC / "purged" / agent


def vanished_agents(root: Path) -> list[str]:
    """Return the agents that were purged whole and are recorded."""
    folder = vanished(root, "x").parent
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _write(folder: Folder, new: Iterable[str]) -> None:
    with closing(Log(folder, PURGED, Lock(folder, PURGED + LOCK))) as log, log.locked():
        log.create()
        there = purged_digests(folder)
        lines = [dump_read({_KEY: one}) for one in dict.fromkeys(new) if one not in there]
        if lines:
            log.append(lines)


def purged_digests(folder: Folder) -> frozenset[str]:
    """Return the recorded digests; none without a file."""
    with closing(Log(folder, PURGED, Lock(folder, PURGED + LOCK))) as log, log.reading() as fd:
        if fd is None:
            return frozenset()
        with open(fd, "rb", closefd=False) as file:
            return digests_in(file)


def digests_in(lines: Iterable[bytes]) -> frozenset[str]:
    """Return the digests in the lines of such a file; lines of another form are left out."""
    found = ((parse(line) or {}).get(_KEY) for line in lines)
    return frozenset(one for one in found if isinstance(one, str))


def recorded(root: Path, layout: Layout, agent: str) -> PurgedIds:
    """Return what a folder recorded of an agent's purges."""
    path, whole = layout.sessions_folder(root, agent), _purged_in(vanished(root, agent), root)
    if not path.is_dir():
        return PurgedIds(is_recorded=False, ids=frozenset(), vanished=whole)
    with Folder(path, root=root) as folder:
        return PurgedIds(is_recording(folder, root), purged_digests(folder), whole)


def _purged_in(path: Path, root: Path) -> frozenset[str]:
    if not path.is_dir():
        return frozenset()
    with Folder(path, root=root) as folder:
        return purged_digests(folder)


def take(root: Path, layout: Layout, agent: str, found: PurgedIds) -> None:
    """Add what another home recorded of an agent's purges."""
    if found.is_recorded:
        with Folder(layout.sessions_folder(root, agent), root=root, create=True) as folder:
            _write(folder, sorted(found.ids))
    if found.vanished:
        with Folder(vanished(root, agent), root=root, create=True) as folder:
            _write(folder, sorted(found.vanished))
