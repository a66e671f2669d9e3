"""The contract between a ``Home`` and its store: entries, searching, vectors, files, maintenance.

Every method may be called from any thread, and from several processes at the
same time. A method that raises has changed nothing, unless it says otherwise.
Callers have checked all agent slugs, session ids and records.
``keepstone.testing`` holds the suite that every store must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from keepstone.files import Check
from keepstone.model import (
    BackupInfo,
    Comparison,
    Entry,
    Finding,
    Record,
    Scope,
    SessionInfo,
    SessionSummary,
    Version,
)
from keepstone.store.changes import Change
from keepstone.store.decay import Decay
from keepstone.store.paging import Page
from keepstone.store.reader import Reader
from keepstone.store.shared_rows import SharedAnswerRows, SharedSignIns
from keepstone.store.sharing.grants import Grant
from keepstone.vector import Space, Vector

SessionCheck = Callable[[SessionInfo], None]
"""Called with a session's state while no other writer can change it; its error stops the change."""


class Compacted(NamedTuple):
    """The result of a compaction."""

    saved: int = 0
    """Bytes by which the log became shorter."""
    archived: int = 0
    """Live entries that were archived because they had faded."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Entries of a session that a scope selected; entries that it no longer selects are left unchanged."""

    ids: Sequence[str]
    scope: Scope


Ids = Sequence[str] | Selected
"""Entries by their ids alone, or by a scope that they still have to match when the session is locked."""


def ids_and_scope(ids: Ids) -> tuple[Sequence[str], Scope | None]:
    """Return the ids, and the scope that their entries still have to match."""
    return (ids.ids, ids.scope) if isinstance(ids, Selected) else (ids, None)


Modification = Callable[[Entry], Record | None]
"""Takes the current entry and returns the line to write, a put or a patch, or None to write nothing."""


class LiveSession(Protocol):
    """The live entries of one session while no other writer can change them."""

    def get(self, entry_id: str) -> Entry | None:
        """Return a live entry, or None if there is none."""

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return the links of live entries with this relation, each as the entry's id and the target."""

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:
        """Return the live entries of a type that meet all conditions, in log order."""


Revision = Callable[[LiveSession], Sequence[Record]]
"""Takes a session's live entries and returns the lines to write, each of them a put or a patch."""


class Files(Protocol):
    """An agent's own text files. Paths are relative, with ``/``, and cannot leave the agent's folder."""

    def read(self, path: str) -> str:
        """Return a file's text; MemoryFileNotFoundError if there is none."""

    def write(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Create or replace a file in one step; return the number of bytes. A failure leaves the old file."""

    def append(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Append to a file, or create it; return the number of bytes. A failure leaves the old file."""

    def matching(self, text: str) -> list[str]:
        """Return the paths of all files whose path or content contains a text, ignoring case."""

    def texts(self, most: int) -> dict[str, str | None]:
        """Return the texts of files by path, up to ``most`` bytes in total; None for others and binaries."""

    def list(self, folder: str = "") -> list[str]:
        """Return the sorted paths of all files, or of those below a folder."""

    def delete(self, path: str, *, check: Check | None = None) -> None:
        """Remove a file; MemoryFileNotFoundError if there is none."""


class EntryStore(Protocol):
    """The part of a store that entries and sessions need: writing, lists, and removal.

    Lists come in pages of at most ``limit`` items. ``cursor`` is the ``next`` of the previous page. Without a
    limit, the page has all items.

    Every argument is a value that can be sent to a database: no path, no open file and no lock.
    """

    def check_agent(self, agent: object) -> str:
        """Return a slug that this store accepts; InvalidAgentIdError otherwise. Touches nothing."""

    def check_session(self, session: object) -> str:
        """Return a session id that this store accepts; InvalidSessionIdError otherwise. Touches nothing."""

    def agents(self) -> list[str]:
        """Return the slugs of all agents that have anything stored, sorted."""

    def sessions(self, agent: str, limit: int | None = None, cursor: str | None = None) -> Page[SessionInfo]:
        """Return sessions, the last modified first, then by id; none for an unknown agent."""

    def session(self, agent: str, session: str) -> SessionInfo | None:
        """Return one session, or None if it is missing."""

    def summaries(
        self, agent: str, sessions: Sequence[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        """Return summaries of some sessions or of all, the one with the newest entry first, then by id.

        Without ``texts``, summaries have only titles that were given, and no previews.
        """

    def set_title(self, agent: str, session: str, title: str | None, ts: str) -> None:
        """Set the title of a session at this time (RFC 3339), or remove it (None).

        Raises:
            SessionNotFoundError: There is no such session.
        """

    def create(self, agent: str, session: str) -> None:
        """Create an empty session. An existing session is left unchanged."""

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Add all new entries durably, or none, and create the session if it is missing.

        A record whose id is taken by a live entry with the same content adds nothing;
        the existing entry is returned in its place.

        Raises:
            EntryExistsError: An id is taken by a live entry with different content.
            LockTimeoutError: The session was locked for too long.
            StoreError: The disk or the database failed.
        """

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Like ``append``, but a record whose id is taken replaces that entry's type and payload.

        If that changes the text, a vector given with the old text is removed, unless the put has a vector.
        """

    def modify(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        """Change one live entry based on its current state, and return the changed entry.

        Reading, ``change`` and writing are one atomic step: no other writer comes between. ``change``
        must not use the store. An error that it raises ends the call, and nothing is written.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
        """

    def restore(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        """Restore a deleted entry in one atomic step, and return it.

        ``change`` takes the entry as it was before its deletion, and returns the whole record to restore.
        It must not use the store.

        Raises:
            EntryNotFoundError: The session has no deleted entry with this id.
        """

    def revise(self, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
        """Change several entries based on the session's current state; return those that are then live.

        Reading, ``revision`` and writing are one atomic step: no other writer comes between, and readers
        see all of the lines or none. The entries come in the order of their lines. ``revision`` must not
        use the store. An error that it raises ends the call, and nothing is written. The entries with
        ``ids`` are read in advance; ``revision`` may ask for others, too.

        Raises:
            EntryNotFoundError: The session is missing.
        """

    def purge(self, agent: str, session: str, ids: Ids) -> int:
        """Remove every byte of these entries, including deleted ones; return their number.

        Of ``Selected`` entries, only those that are live and still match are removed.

        Raises:
            PurgePendingError: The entries are gone for every reader, but a reader elsewhere still
                keeps old bytes. The next call, or the next open, finishes.
        """

    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        """Add to the access counts of live entries, without durability; other ids are ignored.

        Without ``wait``, return False and count nothing if the session is locked.
        """

    def compact(
        self, agent: str, session: str, decay: Decay | None = None, *, wait: bool = True
    ) -> Compacted:
        """Fold a session's history into its archive; do nothing if the session is missing.

        Live entries that have faded by the rule ``decay``, if given, are also archived.
        Without ``wait``, nothing is done if the session is locked.
        """

    def copy(self, agent: str, session: str, new: str, until: str | None = None) -> None:
        """Copy a session with its history and its computed vectors into a new session, all or nothing.

        With ``until``, copy only the entries up to this one, by (time, place), and their history.

        Raises:
            SessionNotFoundError: There is no such session.
            EntryNotFoundError: ``until`` is not an entry of the session.
            ValueError: A session with the new id already exists.
        """

    def rename(self, agent: str, session: str, new: str) -> None:
        """Give a session another id in one step; an interrupted rename is undone or finished.

        Nothing is left under the old id. Computed vectors are kept.

        Raises:
            SessionNotFoundError: There is no such session.
            ValueError: A session with the new id already exists.
        """

    def lines(self, agent: str, session: str) -> Iterator[Record]:
        """Yield the lines of a session in the order of writing, including changes and deletions."""

    def compacted_size(self, agent: str, session: str) -> int:
        """Return the session's size after its last compaction; 0 if there was none or the size is unknown."""

    def clear(self, agent: str, session: str, *, check: SessionCheck | None = None) -> int | None:
        """Remove all entries, including archived ones; return the session's former size, None if missing."""

    def remove(self, agent: str, session: str, *, check: SessionCheck | None = None) -> bool:
        """Purge the whole session; return False if it is missing."""

    def drop(self, agent: str, session: str, ts: str, *, check: SessionCheck | None = None) -> int:
        """Purge the whole session and keep a mark that it was dropped at this time (RFC 3339).

        Returns the number of live entries that it had. If the session is missing, returns 0 and keeps no
        mark. An interrupted drop is finished when the home is opened next.
        """

    def dropped(self, agent: str) -> list[str]:
        """Return the sorted ids of dropped sessions, including those that were created again later."""

    def purge_agent(self, agent: str) -> None:
        """Remove every byte of an agent; AgentNotFoundError if there is no such agent."""

    def grants(self, agent: str) -> list[Grant]:
        """Return all grants of an agent in the order of writing; none for an unknown agent.

        Raises:
            DamagedGrantsError: The grants cannot be read with certainty.
            ValueError: The home has only one agent.
        """

    def add_grant(self, agent: str, grant: Grant, *, drop_later: bool = True) -> None:
        """Add a grant durably, and remove later grants to the same agent; errors as for ``grants``.

        Without ``drop_later``, later grants stay. ``purge_agent`` removes the grants of an agent and to it.
        """

    @property
    def has_agents(self) -> bool:
        """Whether there may be agents other than ``default``."""

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        """Return the live entries with an id, at most one per session."""

    def entries(
        self,
        agent: str,
        session: str,
        limit: int | None,
        types: Sequence[str] | None,
        *,
        as_of: datetime | None = None,
        archived: bool = False,
        cursor: str | None = None,
    ) -> Page[Entry]:
        """Return a session's live entries by (time, place), oldest first; a limit keeps the newest.

        The next page has the entries before these. Entries that are added or removed between two pages
        do not cause other entries to be repeated or left out.

        With ``as_of``, the entries are as they were at that time. With ``archived``, entries that were
        archived for their age are included.
        """

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        """Return all entries of ``entries`` as records. They are shared: callers must not change them."""

    def select(
        self, scope: Scope, limit: int | None = None, cursor: str | None = None, *, newest_first: bool = False
    ) -> Page[Entry]:
        """Return the live entries that a scope selects, by time, ties by session and place, oldest first.

        Entries that are added or removed between two pages do not cause others to be repeated or left out.
        """

    def select_count(self, scope: Scope) -> int:
        """Return the number of entries that ``select`` returns on all pages."""

    def delete(self, agent: str, session: str, ids: Ids, ts: str) -> int:
        """Hide live entries at this time (RFC 3339) with one write; return their number."""

    def matching(
        self, agent: str, text: str, session: str | None, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[str, str]]:
        """Return sorted (session, id) of all purgeable items that contain a text, ignoring case.

        These are entries, also deleted and archived ones, with any stored version that contains the text in
        a key or a value; and lines too damaged to be an entry, each under its own id.
        """

    def linked(self, agent: str, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
        """Return up to ``limit`` live entries that link to one of the ids, by a relation or by any (None)."""

    def pinned(self, agent: str) -> list[Entry]:
        """Return the live entries that are pinned, by time."""

    def standing(self, agent: str, limit: int) -> list[Entry]:
        """Return the newest live preferences and decisions of all sessions, by time and then by session."""

    def history(
        self,
        agent: str,
        entry_id: str,
        session: str | None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Version]:
        """Return an entry's versions by session, oldest first, including deletions; none after a purge."""

    def gone(self, agent: str, session: str) -> Container[str]:
        """Return a container of the ids that a session had: deleted, archived, or recorded as purged."""

    @property
    def keeps_suggestions(self) -> bool:
        """Whether suggestions can be kept; if not, the two methods below raise ValueError."""

    def suggestion_lines(self, agent: str) -> list[bytes]:
        """Return the lines of an agent's suggestions, newlines included, in the order of writing."""

    def change_suggestions(self, agent: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
        """Replace the lines of an agent's suggestions by the result of a function, in one atomic step.

        ``change`` must not use the store. An error that it raises ends the call, and nothing is written.
        Purging an entry, and emptying or removing a session, removes the suggestions that name their entries.
        """

    def entry_counts(self, agent: str, session: str | None = None) -> dict[str, int]:
        """Return the number of live entries of each session, or of one; empty sessions are left out."""


class VectorStore(Protocol):
    """The part of a store that keeps vectors: given with entries, or computed from their texts."""

    def home_space(self) -> Space | None:
        """Return the space of the home's embedder, or None if unrecorded; dimension 0 means unknown yet."""

    def set_home_space(self, space: Space) -> None:
        """Record the space of the home's embedder. Like an index, the record may be lost."""

    def spaces(self, agent: str) -> list[Space]:
        """Return the spaces in which the agent has vectors, given or computed."""

    def vectors(self, agent: str, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of a session's entries in a space, by id; entries without a vector are left out.

        Raises:
            StoreError: Vectors cannot be read now.
        """

    def keep_vectors(self, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
        """Keep vectors computed from entries' texts; return how many. They can be computed again.

        A vector whose entry was removed, or has another text now, is discarded: a late vector
        restores nothing. If the store cannot keep vectors now, it keeps none.
        """

    def forget_vectors(self, agent: str, space: str) -> int:
        """Remove an agent's vectors of a space; return their number. Vectors in logs may come back."""


class Maintenance(Protocol):
    """Operations that people run, and background work.

    Optional: a store raises StoreError for an operation that it leaves to other tools
    (``keepstone.store.unsupported``).
    """

    def upkeep(self, agent: str, *, ahead: bool = True) -> bool:
        """Do one step of background work, of about a second; return False if none is left.

        With ``ahead``, this includes graphs that no query has needed yet.
        """

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        """Rebuild all derived data; return the number of sessions. ``progress`` receives bytes."""

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        """Check everything. Only ``fix`` changes logs, and it keeps copies of their former states.

        ``deep`` also compares all derived data with its sources. ``progress`` receives bytes.
        """

    def backup(
        self, folder: Path, progress: Callable[[int, int], None] | None, *, vectors: bool = False
    ) -> BackupInfo:
        """Copy all truth into a new folder, consistent during concurrent writes, and check the copy.

        With ``vectors``, also copy computed vectors of the texts in the copy.

        Raises:
            ValueError: The folder is not empty, or is inside the home.
            StoreError: The disk is full or failed, or the copy differs from the source. No copy is left.
        """


class Store(EntryStore, VectorStore, Protocol):
    """A store of the entries of many agents. Each ``Home`` uses one store."""

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance of this store."""

    @property
    def language(self) -> str:
        """The stemming language for words in Latin letters; see ``keepstone.open``."""

    @property
    def sign_ins(self) -> SharedSignIns | None:
        """Tokens and sign-ins that all servers of the store share, or None if the home's folder has them."""

    @property
    def answers(self) -> SharedAnswerRows | None:
        """Requests with idempotency keys that all servers share, or None if each server keeps its own."""

    def on_erased(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with an agent after this process erased any of its memory.

        A store with ``answers`` does nothing, as a purge removes the responses itself.
        """

    def erased_state(self, agent: str) -> bytes:
        """Return a value that changes when any process erases memory of an agent, or of any agent ('')."""

    def purge_times(self, agent: str) -> list[datetime]:
        """Return the times at which entries of an agent were purged, one per entry, if known."""

    def sessions_state(self, agent: str) -> tuple[int, int] | None:
        """Return a value that changes when a session is created or removed; None if the store has none."""

    def files(self, agent: str) -> Files:
        """Return the agent's files. Creates nothing."""

    def reader(self, agent: str, as_of: datetime | None = None) -> AbstractContextManager[Reader]:
        """Pin one state of an agent's index inside a ``with``; with ``as_of``, the state at that time.

        The reader of an unknown agent finds nothing. A reader must not be used after the ``with``.
        """

    def changes(self, agents: Sequence[str] | None, since: str | None) -> Callable[[], list[Change]]:
        """Return a function that returns the changes since its last call, by any process.

        Its first call returns the changes since ``changes`` was called, or since the cursor ``since``. If
        ``agents`` is None, changes of all agents are returned. The changes of each session are in order. The
        function must not be used by two threads.

        Raises:
            ValueError: ``since`` is not the cursor of a change.
        """

    def sync(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Read the writes of other processes, for every agent.

        For long logs, ``progress`` receives the bytes read so far, and their total.

        Raises:
            LockTimeoutError: Another process that reads the same writes makes no progress.
        """

    def close(self) -> None:
        """Close all handles. A later use opens them again."""
