"""The file names of sessions in the sessions folder of one agent.

Each session has one canonical file name, but another program or a person may have given its log another name.
The canonical name is tried first. Other names are searched only if it is missing, as the search takes time in
proportion to all sessions of the folder.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from keepstone.errors import InvalidSessionIdError, KeepstoneError, StoreError
from keepstone.filesystem.confine import Folder, MovedError
from keepstone.filesystem.layout import Layout, lock_file, refuse_case_twin
from keepstone.filesystem.lock import Lock
from keepstone.log.log_file import Log, Stat, stat_of
from keepstone.model import SessionInfo
from keepstone.store.files.purge_marks import resume
from keepstone.store.files.spellings import named_sessions, other_spellings

if TYPE_CHECKING:
    from keepstone.filesystem.inotify import FolderChanges

WATCHED_FROM = 256
"""Number of sessions from which a folder is watched; a smaller folder is read quickly."""

_LONGEST_NAME = 255
"""Maximum length of a file name in usual file systems."""


class SessionFiles:
    """The names of the logs in one sessions folder. Any thread may call it.

    A folder of many sessions is watched if the system reports changes, so that it need not be read again.
    ``_watching`` guards the watch and its reports; each file name is stored atomically.
    """

    def __init__(self, folder: Folder, layout: Layout) -> None:
        self.folder = folder
        self.layout = layout
        self._known: dict[str, str] = {}
        self._watching = threading.Lock()
        self._watch: FolderChanges | None = None
        self._is_large = False
        self._all_canonical = False
        self._is_read = False
        self._changed: set[str] = set()
        self._touched: set[str] = set()
        self._newest: tuple[int, str, os.stat_result] | None = None

    def watch(self, *, is_read: bool) -> None:
        """Begin to watch the folder for changes if it has many sessions.

        With ``is_read`` the caller reads the whole folder next, so that only later changes matter.
        """
        with self._watching:
            self._changed.clear()
            self._is_read, self._newest = is_read, None
            # ``names`` returns None after changes were lost; then the watch is started again.
            if self._watch is None or self._watch.names() is None:
                self._unwatch()
                self._watch = _watched(self.folder) if self._is_large else None
            # Read the names after the watch has begun, since the watch reports each later name.
            self._all_canonical = self._watch is not None and all(
                self._is_canonical(entry.name) for entry in self.folder.scan()
            )

    def changed(self) -> set[str] | None:
        """Return the sessions that changed since the last call; None if the whole folder has to be read.

        The result is None unless the folder is watched and every file has its canonical name.
        """
        with self._watching:
            if not self._follow() or not self._is_read:
                return None
            changed, self._changed = self._changed, set()
            return changed

    def newest(self) -> tuple[str, os.stat_result] | None:
        """Return the session changed last, and its state; None if only reading the folder can show it."""
        with self._watching:
            if not self._follow() or not self._is_read:
                return None
            for session in self._touched:
                # None stays None: only reading the folder shows then which session is the newest.
                self._newest = self._newest and self._newer(self._newest, session)
            self._touched.clear()
            return self._newest and self._newest[1:]

    def _newer(
        self, newest: tuple[int, str, os.stat_result], session: str
    ) -> tuple[int, str, os.stat_result] | None:
        """Return the newest session after a session changed; None if the newest one was removed."""
        try:
            status = self.folder.stat(self.layout.session_file(session))
        except FileNotFoundError:
            return None if session == newest[1] else newest
        changed = _dated(session, status)
        # If the newest session now has an earlier time, another session may be newer.
        return None if session == newest[1] and changed < newest else max(changed, newest)

    def close(self) -> None:
        """Stop watching, and forget many names. No thread may be at work here, as in a forked child."""
        self._unwatch()
        if self._is_large:
            self._known = {}

    def _unwatch(self) -> None:
        watch, self._watch, self._all_canonical = self._watch, None, False
        if watch is not None:
            watch.close()

    def _follow(self) -> bool:
        """Record the changes; return whether all changes are known and all names canonical."""
        if self._watch is None or not self._all_canonical:
            return False
        names = self._watch.names()
        if names is None or not all(map(self._is_canonical, names)):
            self._all_canonical = False
            return False
        sessions = [session for name in names if (session := self.layout.session_of(name))]
        self._changed.update(sessions)
        self._touched.update(sessions)
        return True

    def _is_canonical(self, name: str) -> bool:
        session = self.layout.session_of(name)
        return session is None or self.canonical(session) == name

    def _has_only_canonical(self) -> bool:
        """Return whether all files are known to have canonical names, without reading the folder."""
        if self._is_large and self._watch is None:
            self.watch(is_read=False)
        with self._watching:
            return self._follow()

    def keep(self, names: Mapping[str, str]) -> None:
        """Cache the file names of all sessions, as the folder was just read."""
        self._known = dict(names)

    def keep_one(self, session: str, name: str) -> None:
        """Cache the file name of one session."""
        self._known[session] = name

    def forget(self, session: str) -> None:
        """Forget the file name of a session whose log was removed."""
        self._known.pop(session, None)

    def __iter__(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield the id, file name and state of every session.

        If several files have the same session id, the canonical name is used, or, if there is none, the
        first name in character order.
        """
        found: dict[str, tuple[str, os.stat_result]] = {}
        for entry in self.folder.scan():
            session = self.layout.session_of(entry.name)
            if session is None or not entry.is_file(follow_symlinks=False):
                continue
            if session not in found or self._is_better(entry.name, found[session][0], session):
                with suppress(FileNotFoundError):
                    found[session] = (entry.name, entry.stat(follow_symlinks=False))
        self._is_large = len(found) >= WATCHED_FROM
        self._newest = max((_dated(name, status) for name, (_, status) in found.items()), default=None)
        for session, (name, status) in found.items():
            yield session, name, status

    def all_names(self, session: str | None) -> dict[str, set[str]]:
        """Return the log names of one session or of all; names of archives and originals count, too."""
        names: dict[str, set[str]] = {} if session is None else {session: set()}
        for found, name in named_sessions(self.folder, self.layout):
            if session in (None, found):
                names.setdefault(found, set()).add(name)
        return names

    def _is_better(self, name: str, other: str, session: str) -> bool:
        """Return whether the first of two names for a session is preferred."""
        canonical = self.canonical(session)
        if canonical is None:
            return name < other
        return canonical == name or (canonical != other and name < other)

    def name(self, session: str) -> str:
        """Return the file name of a session: the canonical one unless only a hand-made one exists."""
        canonical = self.canonical(session)
        if canonical is None:
            return self._name_by_hand(session) or self.layout.session_file(session)
        # On a case-insensitive file system, another session's file could be opened instead.
        refuse_case_twin(self.folder.path / canonical, InvalidSessionIdError)
        if self.exists(canonical):
            return canonical
        return self._name_by_hand(session) or canonical

    def canonical(self, session: str) -> str | None:
        """Return the canonical file name of a session; None if the id is too long for one."""
        try:
            return self.layout.session_file(session)
        except InvalidSessionIdError:
            return None

    def stat(self, session: str) -> Stat | None:
        """Return the state of a log that has the session's plain name, without opening it; else None."""
        name = session + self.layout.extension
        try:
            status = self.folder.stat(name) if self.canonical(session) == name else None
        except FileNotFoundError:
            return None
        return stat_of(status) if status is not None and S_ISREG(status.st_mode) else None

    def exists(self, name: str) -> bool:
        """Return whether the folder has a file of this name."""
        try:
            self.folder.stat(name)
        except FileNotFoundError:
            return False
        return True

    def _name_by_hand(self, session: str) -> str | None:
        """Return the name of an existing file that another program or a person gave to a session's log."""
        if self._has_only_canonical():
            return None
        # Only the first search reads the folder; later searches check whether the file still exists.
        if not self._known:
            self._known = {session: name for session, name, _ in self}
        by_hand = self._known.get(session, session + self.layout.extension)
        with suppress(KeepstoneError, ValueError):
            is_its_own = "/" not in by_hand and self.layout.session_of(by_hand) == session
            if is_its_own and self.exists(by_hand):
                return by_hand
        return self.spelled(session)

    def spelled(self, session: str) -> str | None:
        """Return the first file name of a session that is now in the folder.

        For an id of plain characters only, returns None without a search: file names that encode plain
        characters are rare, and searching the folder for each new session would take time in proportion to
        all sessions.
        """
        if len(session) > _LONGEST_NAME or self.canonical(session) == session + self.layout.extension:
            return None
        if self._has_only_canonical():
            return None
        is_spelled = _spelling(session + self.layout.extension).fullmatch
        return min(
            (
                entry.name
                for entry in self.folder.scan()
                if is_spelled(entry.name)
                and self.layout.session_of(entry.name) == session
                and entry.is_file(follow_symlinks=False)
            ),
            default=None,
        )


def _dated(session: str, status: os.stat_result) -> tuple[int, str, os.stat_result]:
    # In microseconds, the precision of session lists.
    return status.st_mtime_ns // 1000, session, status


def _watched(folder: Folder) -> FolderChanges | None:
    """Begin to watch a folder and return the watch; None if the system does not report changes."""
    from keepstone.filesystem.inotify import FolderChanges  # Only large folders need it.

    try:
        watch = FolderChanges(str(folder.path))
    except OSError:
        return None
    # The watch follows the path, which may now lead to a folder different from the open one.
    if folder.is_moved():
        watch.close()
        return None
    return watch


class SessionLog(Log):
    """A session's log, in which a killed purge is finished each time its lock is taken.

    The log closes its files when it is garbage-collected, as a thread may still use it after ``close``.
    """

    def __init__(self, files: SessionFiles, session: str, name: str, *, durable: bool) -> None:
        lock = Lock(files.folder, lock_file(name, files.layout.extension))
        super().__init__(files.folder, name, lock, durable=durable)
        self._files = files
        self._session = session
        self._canonical = files.canonical(session)
        self.is_plain = name == self._canonical == session + files.layout.extension

    def is_renamed(self) -> bool:
        """Return whether the session's file has another name now; a plain name has no other spelling."""
        files, canonical = self._files, self._canonical
        if self.name == canonical:
            return not files.exists(self.name) and files.spelled(self._session) is not None
        return not files.exists(self.name) or (canonical is not None and files.exists(canonical))

    def begin(self) -> None:
        """Refuse a log that was renamed, and finish a killed purge."""
        folder = self._files.folder
        # A plain name has no other spelling, so writes need not search the folder.
        if not self.is_plain and self.is_renamed():
            raise MovedError(f"{folder.path / self.name} was renamed; nothing was written: try again")
        resume(folder, self._session, self, self._spellings)

    def _spellings(self) -> list[Log]:
        return other_spellings(self._files.folder, self._files.layout, self._session, self.name)

    def __del__(self) -> None:
        self.close()


def _spelling(name: str) -> re.Pattern[str]:
    """Return a pattern for a file name with any of its characters percent-encoded, in either letter case.

    Matching the pattern takes less time than decoding each name of a large folder.
    """
    encoded = ("".join(f"%{byte:02x}" for byte in char.encode(errors="surrogatepass")) for char in name)
    pairs = zip(name, encoded, strict=True)
    return re.compile("".join(f"(?:{re.escape(char)}|(?i:{code}))" for char, code in pairs))


def opened_folder(path: Path, root: Path, *, create: bool, durable: bool) -> Folder:
    """Open the folder of an agent's sessions; raise StoreError if a file is in its place."""
    try:
        return Folder(path, root=root, create=create, durable=durable)
    except NotADirectoryError as error:
        # Search from the root down: the first path that is not a folder is in the way.
        file = next((place for place in reversed((path, *path.parents)) if not place.is_dir()), path)
        raise StoreError(f"{file} is not a folder; move it away, then try again") from error


def info_of(session: str, stat: Stat) -> SessionInfo:
    """Return a session's entry in a list of sessions."""
    # Computed with integers, as a float of this size cannot hold microseconds exactly.
    seconds, nanoseconds = divmod(stat.mtime, 1_000_000_000)
    modified = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000)
    return SessionInfo(session, modified, stat.size)
