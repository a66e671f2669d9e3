"""The contract between a ``Home`` and its store: entries, searching, vectors, files, maintenance.

Every method may be called from any thread, and from several processes at the
same time. A method that raises has changed nothing, unless it says otherwise.
Agent slugs, session ids and records are checked before they come here.
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
    """The entries of a session that a scope selected; one that it no longer selects is left as it is."""

    ids: Sequence[str]
    scope: Scope


Ids = Sequence[str] | Selected
"""Entries by their ids alone, or by a scope that they still have to match when the session is locked."""


def ids_and_scope(ids: Ids) -> tuple[Sequence[str], Scope | None]:
    """Return the ids, and the scope that their entries still have to match."""
    return (ids.ids, ids.scope) if isinstance(ids, Selected) else (ids, None)


Modification = Callable[[Entry], Record | None]
"""Takes an entry as it is and returns the line to write, a put or a patch; None to write nothing."""


class LiveSession(Protocol):
    """The live entries of one session while no other writer can change them."""

    def get(self, entry_id: str) -> Entry | None:
        """Return a live entry, None if there is none."""

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return the links of this relation that live entries have: the id of the entry, and the target."""

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:
        """Return the live entries of a type that meet all conditions, in the order of their places."""


Revision = Callable[[LiveSession], Sequence[Record]]
"""Takes a session's live entries and returns the lines to write, each of them a put or a patch."""


class Files(Protocol):
    """An agent's own text files. Paths are relative, with ``/``, and cannot leave the agent's folder."""

    def read(self, path: str) -> str:
        """Return a file's text; MemoryFileNotFoundError if there is none."""

    def write(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Make or replace a file in one step; return the bytes written. A failure leaves the old file."""

    def append(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Add to a file, or make it; return the bytes written. A failure leaves the file as it was."""

    def matching(self, text: str) -> list[str]:
        """Return the paths of all files that hold a text, in any case, in their names or contents."""

    def texts(self, most: int) -> dict[str, str | None]:
        """Return the texts of files by path, ``most`` bytes in all; None for others and binary ones."""

    def list(self, folder: str = "") -> list[str]:
        """Return the paths of all files, or of those below a folder, sorted; none if there are none."""

    def delete(self, path: str, *, check: Check | None = None) -> None:
        """Remove a file; MemoryFileNotFoundError if there is none."""


class EntryStore(Protocol):
    """The part of a store that entries and sessions need: writing, lists, and removal.

    Lists come in pages: at most ``limit`` items, from the place on that ``cursor`` says, which is the
    ``next`` of the page before. Without a limit the page holds all.

    Every argument is a value that can be sent to a database: no path, no open file and no lock.
    """

    def check_agent(self, agent: object) -> str:
        """Return a slug that this store accepts; InvalidAgentIdError otherwise. Touches nothing."""

    def check_session(self, session: object) -> str:
        """Return a session id that this store accepts; InvalidSessionIdError otherwise. Touches nothing."""

    def agents(self) -> list[str]:
        """Return the slugs of all agents that have anything stored, sorted."""

    def sessions(self, agent: str, limit: int | None = None, cursor: str | None = None) -> Page[SessionInfo]:
        """Return sessions, the one changed last first, then by id; none for an unknown agent."""

    def session(self, agent: str, session: str) -> SessionInfo | None:
        """Return one session, None if it is missing."""

    def summaries(
        self, agent: str, sessions: Sequence[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        """Return summaries of some sessions or of all, the one with the newest entry first, then by id.

        Without ``texts`` a title is only one that was given, and there is no preview.
        """

    def set_title(self, agent: str, session: str, title: str | None, ts: str) -> None:
        """Give a session a title at this time (RFC 3339), or take it away (None).

        Raises:
            SessionNotFoundError: There is no such session.
        """

    def create(self, agent: str, session: str) -> None:
        """Make an empty session. An existing session is left as it is."""

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Add new entries durably, all or none, and make the session if need be.

        A record whose id is taken by a live entry of the same content adds nothing;
        the entry as it is comes back in its place.

        Raises:
            EntryExistsError: An id is taken by a live entry of other content.
            LockTimeoutError: The session was locked for too long.
            StoreError: The disk or the database failed.
        """

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Like ``append``, but a record whose id is taken replaces that entry's type and payload.

        Where that changes the text, a vector given with the old one goes too, unless the put brings another.
        """

    def modify(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        """Change one live entry by its present state, and return the changed entry.

        Reading, ``change`` and writing are one atomic step: no other writer comes between. ``change``
        must not use the store. An error that it raises ends the call, and nothing is written.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
        """

    def restore(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        """Make a deleted entry again, in one atomic step, and return it.

        ``change`` takes the entry as it was before it was deleted, and returns the new one's whole record.
        It must not use the store.

        Raises:
            EntryNotFoundError: The session has no deleted entry with this id.
        """

    def revise(self, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
        """Change several entries by the session's present state; return those that are live then.

        Reading, ``revision`` and writing are one atomic step: no other writer comes between, and readers
        see all of the lines or none. The entries come in the order of their lines. ``revision`` must not
        use the store. An error that it raises ends the call, and nothing is written. ``ids`` are looked up at
        once, before it asks for them; it may ask for others, too.

        Raises:
            EntryNotFoundError: The session is missing.
        """

    def purge(self, agent: str, session: str, ids: Ids) -> int:
        """Remove every byte of these entries, deleted ones included; return how many there were.

        Of ``Selected`` ones only those that are live and still match.

        Raises:
            PurgePendingError: The entries are gone for every reader, but a reader elsewhere still
                keeps old bytes. The next call, or the next open, finishes.
        """

    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        """Add to the access counts of live entries, not durably; ids that are not there are left out.

        Without ``wait``, return False and count nothing if the session is locked.
        """

    def compact(
        self, agent: str, session: str, decay: Decay | None = None, *, wait: bool = True
    ) -> Compacted:
        """Fold the session's history away into its archive; nothing is done if the session is missing.

        Live entries that have faded by a rule, if one is given, are archived too.
        Without ``wait``, nothing is done if a writer is at work.
        """

    def copy(self, agent: str, session: str, new: str, until: str | None = None) -> None:
        """Copy a session with its history, and the vectors that were made, into a new one, all or nothing.

        With ``until`` only the entries up to this one, by (time, place), and their history.

        Raises:
            SessionNotFoundError: There is no such session.
            EntryNotFoundError: ``until`` is not an entry of it.
            ValueError: The new session exists.
        """

    def rename(self, agent: str, session: str, new: str) -> None:
        """Give a session another id, in one step; a rename that is killed is undone or finished.

        Nothing is left under the old id. The vectors that were made are kept.

        Raises:
            SessionNotFoundError: There is no such session.
            ValueError: The new session exists.
        """

    def lines(self, agent: str, session: str) -> Iterator[Record]:
        """Yield the lines of a session in the order of writing, changes and deletions too."""

    def compacted_size(self, agent: str, session: str) -> int:
        """Return the session's size after its last compaction; 0 if there was none, or it is not known."""

    def clear(self, agent: str, session: str, *, check: SessionCheck | None = None) -> int | None:
        """Remove all entries, archived ones too; return the session's size before, None if it is missing."""

    def remove(self, agent: str, session: str, *, check: SessionCheck | None = None) -> bool:
        """Purge the whole session; False if it is missing."""

    def drop(self, agent: str, session: str, ts: str, *, check: SessionCheck | None = None) -> int:
        """Purge the whole session and keep a mark that it was dropped at this time (RFC 3339).

        Returns how many live entries it had; 0, and no mark, if it is missing. A drop that is
        killed half-way is finished when the home is opened next.
        """

    def dropped(self, agent: str) -> list[str]:
        """Return the ids of the sessions that were dropped, sorted; also of those that began again since."""

    def purge_agent(self, agent: str) -> None:
        """Remove every byte of an agent; AgentNotFoundError if it has none."""

    def grants(self, agent: str) -> list[Grant]:
        """Return all grants of an agent in the order of writing; none for an unknown agent.

        Raises:
            DamagedGrantsError: They cannot be read with certainty.
            ValueError: The home has only one agent.
        """

    def add_grant(self, agent: str, grant: Grant, *, drop_later: bool = True) -> None:
        """Add a grant durably, and remove grants of a later time to the same agent; errors as for ``grants``.

        Without ``drop_later`` these stay. ``purge_agent`` removes an agent's grants, and the grants of others
        to it.
        """

    @property
    def has_agents(self) -> bool:
        """Whether there may be agents beside ``default``."""

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        """Return the live entries with an id, at most one a session."""

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

        The next page has the entries before these. Entries that are added or removed in between make
        no other entry come twice or be left out.

        With ``as_of`` as they were then; with ``archived`` also those that were archived for their age.
        """

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        """Return all that ``entries`` does as records, shared with other callers: not to be changed."""

    def select(
        self, scope: Scope, limit: int | None = None, cursor: str | None = None, *, newest_first: bool = False
    ) -> Page[Entry]:
        """Return the live entries that a scope selects, by time, ties by session and place, oldest first.

        Entries that are added or removed between two pages make no other entry come twice or be left out.
        """

    def select_count(self, scope: Scope) -> int:
        """Return how many entries ``select`` gives on all pages."""

    def delete(self, agent: str, session: str, ids: Ids, ts: str) -> int:
        """Hide live entries at this time (RFC 3339) with one write; return how many there were."""

    def matching(
        self, agent: str, text: str, session: str | None, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[str, str]]:
        """Return session and id, sorted, of all purgeable items that hold a text, ignoring case.

        These are entries of which any version that is kept anywhere holds it, in a key or a value, also
        deleted and archived entries; and lines too damaged to be an entry, each under an id of its own.
        """

    def linked(self, agent: str, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
        """Return at most ``limit`` live entries that link to one of the ids, by this relation or any."""

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
        """Return an entry's versions by session, oldest first, with deletions; none if it was purged."""

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
        """Return how many live entries each session has, or only one; those without any are left out."""


class VectorStore(Protocol):
    """The part of a store that keeps vectors: given with entries, or made of their texts."""

    def home_space(self) -> Space | None:
        """Return the space of the home's embedder, None if none is recorded; dimension 0 is not known yet."""

    def set_home_space(self, space: Space) -> None:
        """Record the space of the home's embedder. Like an index, the record may be lost."""

    def spaces(self, agent: str) -> list[Space]:
        """Return the spaces that the agent has vectors of, given or made."""

    def vectors(self, agent: str, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that a session's entries have in a space, by id; those without one are left out.

        Raises:
            StoreError: Vectors cannot be looked up now.
        """

    def keep_vectors(self, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
        """Keep vectors made of entries' texts; return how many were kept. They can be made again.

        A vector whose entry was removed, or has another text now, is discarded: a late vector
        brings nothing back. Where the store cannot keep them now, none is kept.
        """

    def forget_vectors(self, agent: str, space: str) -> int:
        """Remove an agent's vectors of a space; return how many there were. Those in logs may return."""


class Maintenance(Protocol):
    """Maintenance: operations that people run, and work in the background.

    Optional: a store raises StoreError for an operation that it leaves to other tools
    (``keepstone.store.unsupported``).
    """

    def upkeep(self, agent: str, *, ahead: bool = True) -> bool:
        """Do one step of background work, of about a second; False if none is left.

        ``ahead``: also graphs that no query has asked for yet.
        """

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        """Rebuild all that is derived; return how many sessions there are. ``progress`` receives bytes."""

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        """Check everything; change no log unless to ``fix`` it, and keep a copy of its former state.

        ``deep`` also compares all derived data with its sources. ``progress`` receives bytes.
        """

    def backup(
        self, folder: Path, progress: Callable[[int, int], None] | None, *, vectors: bool = False
    ) -> BackupInfo:
        """Copy all truth into a new folder, consistent while others write, and check the copy.

        With ``vectors`` also the vectors that were made of texts which the copy has.

        Raises:
            ValueError: The folder is not empty, or is inside the home.
            StoreError: The disk is full or failed, or the copy differs from the source. No copy is left.
        """


class Store(EntryStore, VectorStore, Protocol):
    """Keeps the entries of many agents; a ``Home`` is opened on one."""

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance of this store."""

    @property
    def language(self) -> str:
        """The language by whose rules words in Latin letters are stemmed, see ``keepstone.open``."""

    @property
    def sign_ins(self) -> SharedSignIns | None:
        """Tokens and sign-ins that all servers of the store share; None: they are in the home's folder."""

    @property
    def answers(self) -> SharedAnswerRows | None:
        """Requests with idempotency keys that all servers share; None: each server keeps its own."""

    def on_erased(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with an agent after this process erased any of its memory.

        A store with ``answers`` does nothing: a purge removes them itself.
        """

    def erased_state(self, agent: str) -> bytes:
        """Return a value that changes when any process erases memory of an agent, or of any (empty)."""

    def purge_times(self, agent: str) -> list[datetime]:
        """Return when entries of an agent were purged, one time for each, if it is known."""

    def sessions_state(self, agent: str) -> tuple[int, int] | None:
        """Return a value that changes when a session is made or removed; None if the store has none."""

    def files(self, agent: str) -> Files:
        """Return the agent's files. Makes nothing."""

    def reader(self, agent: str, as_of: datetime | None = None) -> AbstractContextManager[Reader]:
        """Pin one state of an agent's index inside a ``with``; with ``as_of`` the state at that time.

        An unknown agent has a reader too, which finds nothing. The reader is of no use after the ``with``.
        """

    def changes(self, agents: Sequence[str] | None, since: str | None) -> Callable[[], list[Change]]:
        """Return a function that returns the changes since its last call, by any process.

        Its first call returns the changes since ``changes`` was called, or since the cursor ``since``. Of
        all agents, if ``agents`` is None. Changes are in the order of each session. Not for two threads.

        Raises:
            ValueError: ``since`` is not the cursor of a change.
        """

    def sync(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Take in the writes of others, for every agent.

        For long logs ``progress`` receives the bytes read so far, and their total.

        Raises:
            LockTimeoutError: Another process that does the same does not get on.
        """

    def close(self) -> None:
        """Close all handles. A later use opens them again."""
