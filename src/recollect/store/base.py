"""What a store does: the contract between ``Home`` and whatever keeps the entries.

Every method may be called from any thread, and from several processes at the
same time. A method that raises has changed nothing, unless it says otherwise.
Agent slugs, session ids and records are checked before they come here.
``recollect.testing`` holds the suite that every store must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recollect.model import Entry, Finding, Record, Scope, SessionInfo, Version


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that one list of a search found."""

    key: int
    """Names the entry in this store until it changes; ``Store.load`` takes it."""
    score: float
    """BM25, higher is better; comparable within one list."""


class Files(Protocol):
    """An agent's own text files. Paths are relative, with ``/``, and cannot leave the agent's folder."""

    def read(self, path: str) -> str:
        """Return a file's text; MemoryFileNotFoundError if there is none."""

    def write(self, path: str, content: str) -> int:
        """Make or replace a file in one step; return the bytes written. A failure leaves the old file."""

    def append(self, path: str, content: str) -> int:
        """Add to a file, or make it; return the bytes written. A failure leaves the file as it was."""

    def list(self) -> list[str]:
        """Return the paths of all files, sorted; none for an agent without files."""

    def delete(self, path: str) -> None:
        """Remove a file; MemoryFileNotFoundError if there is none."""


class Store(Protocol):
    """Keeps the entries of many agents."""

    def check_agent(self, agent: object) -> str:
        """Return a slug that this store accepts; InvalidAgentIdError otherwise. Touches nothing."""

    def check_session(self, session: object) -> str:
        """Return a session id that this store accepts; InvalidSessionIdError otherwise. Touches nothing."""

    def agents(self) -> list[str]:
        """Return the slugs of all agents that have anything stored, sorted."""

    def files(self, agent: str) -> Files:
        """Return the agent's files. Makes nothing."""

    def sessions(self, agent: str) -> list[SessionInfo]:
        """Return all sessions, the one changed last first; none for an unknown agent."""

    def session(self, agent: str, session: str) -> SessionInfo | None:
        """Return one session, None if it is missing."""

    def create(self, agent: str, session: str) -> None:
        """Make an empty session. One that exists is left as it is."""

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
        """Like ``append``, but a record whose id is taken is a put: it replaces that entry's type and payload."""

    def amend(self, agent: str, session: str, record: Record) -> Entry:
        """Write a put or patch for one live entry and return it as it is then; EntryNotFoundError if there is none."""

    def purge(self, agent: str, session: str, ids: Sequence[str]) -> int:
        """Remove every byte of these entries, deleted ones included; return how many there were.

        Raises:
            PurgePendingError: The entries are gone for every reader, but a reader elsewhere still
                keeps old bytes. The next call, or the next open, finishes.
        """

    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        """Add to the access counts of live entries, not durably; ids that are not there are left out.

        Without ``wait``, False at once if a writer is at work, and nothing is counted.
        """

    def compact(self, agent: str, session: str, aged: Callable[[Record], bool] | None = None) -> int:
        """Fold the session's history away into its archive; return the bytes saved, 0 if there is no session.

        Live entries for which ``aged`` is true, unless they are pinned, are archived too.
        """

    def clear(self, agent: str, session: str) -> int | None:
        """Remove all entries, archived ones too, and keep the session; return its size before, None if missing."""

    def remove(self, agent: str, session: str) -> bool:
        """Purge the whole session; False if it is missing."""

    def purge_agent(self, agent: str) -> None:
        """Remove every byte of an agent; AgentNotFoundError if it has none."""

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
    ) -> list[Entry]:
        """Return a session's live entries by (time, place), oldest first; a limit keeps the newest. Missing: none.

        With ``as_of`` as they were then; with ``archived`` also those that were archived for their age.
        """

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        """Return all that ``entries`` does as records, shared with other callers: not to be changed."""

    def linked(self, agent: str, entry_id: str) -> list[Entry]:
        """Return the live entries whose links name an id."""

    def history(self, agent: str, entry_id: str, session: str | None) -> list[Version]:
        """Return all versions of an entry, oldest first, deletions included; none if it never was or is purged."""

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Candidate]:
        """Return entries in scope that hold any of the words, best first.

        ``Scope.where`` is not looked at here: the caller compares what it loads.
        """

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return keys with the other entries in scope that lie at most ``reach`` places from them in their session.

        Each item is a key that was asked about, the key of the other, and the distance from 1.
        """

    def load(self, agent: str, keys: Sequence[int]) -> dict[int, Entry]:
        """Return the entries that candidates name; those that changed meanwhile are left out."""

    def stale(self, agent: str) -> bool:
        """Tell whether searches may miss entries because the store could not take them in."""

    def sync(self) -> None:
        """Take in what others wrote, for every agent in use."""

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        """Make everything derived anew; return how many sessions were read. ``progress`` gets done and all bytes."""

    def doctor(self) -> list[Finding]:
        """Look at everything and change nothing."""

    def close(self) -> None:
        """Give back all handles. The store can be used again, which opens them anew."""
