"""Agents: the unit of isolation, with sessions, files and recall."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from keepstone.context import Contents, Counter, build
from keepstone.context.block import Context
from keepstone.context.standing import standing
from keepstone.errors import (
    AgentNotFoundError,
    AmbiguousIdError,
    EntryNotFoundError,
    MemoryFileNotFoundError,
    NotGrantedError,
)
from keepstone.log.arguments import (
    Filters,
    NewKeys,
    UpdateKeys,
    count_of,
    entry_id_of,
    item_of,
    name_of,
    names_of,
    new_id,
    now,
    number_of,
    query_of,
    record_of,
    scope_of,
)
from keepstone.log.line import instant, plain
from keepstone.log.merging import check_content
from keepstone.log.time_words import moment_of
from keepstone.model import (
    MODEL,
    TRUSTED,
    ConflictingPair,
    Entry,
    Excerpt,
    Hit,
    Hits,
    Purged,
    Record,
    Scope,
    SessionInfo,
    SessionSummary,
    Suggestion,
    Version,
    Writer,
    least,
    trust_level,
)
from keepstone.recall import Question, recall
from keepstone.recall.conflicts import NoConflicts
from keepstone.recall.excerpts import LARGEST, kinds_of, with_excerpts
from keepstone.recall.relevance import worth_telling
from keepstone.recall.selection import Meaning
from keepstone.recall.shared import BoundToProcess, Shared
from keepstone.recall.shared_recall import merged, recall_shared
from keepstone.recall.vectors import Vectors
from keepstone.session import Session
from keepstone.store.citations import Citation
from keepstone.store.facts import DEFAULT_SESSION
from keepstone.store.memory_tests import purge_ids, purge_text
from keepstone.store.paging import Page, pages
from keepstone.store.protocol import Files, Selected
from keepstone.store.related import related
from keepstone.store.removal import remove_selected
from keepstone.store.sharing.changes_of_grants import add_grant, copy_of, grants_now, revoke
from keepstone.store.sharing.granted_store import Reach, granted
from keepstone.store.sharing.grants import WRITE, Grant
from keepstone.store.sharing.shared_lists import SharedLists
from keepstone.store.suggestion_lines import STATES, holding, without_text
from keepstone.store.suggestion_lines import check as check_suggestion
from keepstone.store.suggestions import Suggestions
from keepstone.store.trust import Judge, Trusted
from keepstone.store.validity import is_valid, newest_valid
from keepstone.text.passage import marked
from keepstone.text.tokenizer import containing
from keepstone.tracing import traced
from keepstone.vector import VectorLike, unit

if TYPE_CHECKING:
    from keepstone.embed import EmbedderLike
    from keepstone.notes.notes import Notes
    from keepstone.operations.toolbox import Toolbox, ToolFormat

_CONTEXT_HITS = 8
_TOKENS_A_HIT = 250
"""Tokens of a context's budget per recalled hit, above the minimum number of hits."""
_MOST_HITS = 40
_CONTEXT_NEWEST = 6

_STREAMED = 1_000
"""Entries that an iterator takes from the store at a time."""
_MATCHES = 10_000
"""Entries that a purge looks up per page."""


class Agent(BoundToProcess):
    """The unit of isolation: no call on an agent accesses another agent's memory."""

    def __init__(self, shared: Shared, slug: str, seen_by: str | None = None) -> None:
        """Use ``Home.agent`` instead."""
        self.slug = slug
        self.seen_by = seen_by
        """The agent that accesses this one by its grants; None for the whole memory."""
        self._shared = shared
        self._store = shared.store
        self._suggestions = Suggestions(shared.store, slug)

    def __repr__(self) -> str:
        return f"<Agent {self.slug!r}>"

    @property
    def files(self) -> Files:
        """The agent's own text files."""
        return self._store.files(self.slug)

    def new_session(self, id: str | None = None, *, title: str | None = None) -> Session:  # noqa: A002
        """Create an empty session with a new or given id, unless it exists, and return it.

        ``title`` is given to it as by ``Session.set_title``.

        Raises:
            InvalidSessionIdError: The id is empty or too long for a file name.
        """
        session = self.session(new_id() if id is None else id)
        self._store.create(self.slug, session.id)
        if title is not None:
            session.set_title(title)
        return session

    def session(self, id: str, of: str | None = None) -> Session:  # noqa: A002  The name in the log line.
        """Return a session, which need not exist: its first write creates it.

        With ``of`` it is a session of another agent, of which each call sees and changes only what that
        agent granted at that moment. It adds, updates, supersedes and deletes entries, and nothing else.

        Raises:
            InvalidSessionIdError: The id is empty or too long for a file name.
        """
        if of is not None:
            return self._view_of(of).session(id)
        return Session(self._shared, self.slug, self._store.check_session(id))

    def sessions(self) -> list[SessionInfo]:
        """Return id, last change and size of all sessions, last changed first."""
        return self._store.sessions(self.slug)

    def session_summaries(
        self, ids: Iterable[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        """Return titles, counts and previews of sessions, the one with the newest entry first.

        A title is what ``Session.set_title`` gave, else the start of the first user's message.

        Args:
            ids: Only these sessions.
            texts: Without texts there are only given titles and no previews, which is much faster.
        """
        return self._store.summaries(self.slug, names_of(ids, "ids"), texts=bool(texts))

    def dropped_sessions(self) -> list[str]:
        """Return the ids of the sessions that ``Session.drop`` marked, sorted; also if they began again."""
        return self._store.dropped(self.slug)

    def get(self, id: str, session: str | None = None, of: str | None = None) -> Entry:  # noqa: A002
        """Return an entry; with ``of`` one that another agent shares.

        Raises:
            EntryNotFoundError: No live entry has this id.
            AmbiguousIdError: Several sessions have one; choose with ``session``.
            NotGrantedError: The other agent shares nothing, or does not exist.
        """
        if of is not None:
            return self._view_of(of).get(id, session)
        name_of(id, "id")
        found = self._store.find(
            self.slug, id, None if session is None else self._store.check_session(session)
        )
        if not found:
            raise EntryNotFoundError(f"agent {self.slug!r} has no entry {id!r:.80}{_in(session)}")
        if len(found) > 1:
            raise _ambiguous(id, sorted(entry.session for entry in found))
        return self._shared.judge.attach(found)[0]

    def entries(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        newest_first: bool = False,
        shared: Iterable[str] | None = None,
        **filters: Unpack[Filters],
    ) -> Page[Entry]:
        """Return a page of the entries of all sessions, by time, ties by session and place; the oldest first.

        Only valid entries are listed: from ``valid_from`` on, before ``valid_to`` and ``expires``.
        What is added or removed between two pages makes no other entry come twice or be left out.

        Args:
            limit: The most entries of the page.
            cursor: The ``next`` of the page before; it holds in other processes, too.
            newest_first: Begin with the newest.
            shared: Other agents whose shared entries are listed, too.
            filters: ``types``, ``tags``, ``where``, ``since``, ``until`` and ``ids``, all of which entries
                must pass, and ``include_superseded``, which lists entries that are not valid now, too.

        Examples:
            >>> page = agent.entries(types=["decision"], where={"by": "Ada"}, limit=50)
            >>> rest = agent.entries(types=["decision"], where={"by": "Ada"}, cursor=page.next)
        """
        scope, most = self._scope(filters), count_of(limit, "limit")
        if reaches := self._reaches(shared):
            found = SharedLists(self._store, scope, reaches).select(most, cursor, newest_first=newest_first)
        else:
            found = self._store.select(scope, most, cursor, newest_first=newest_first)
        return self._shared.judge.attach(found)

    def iter_entries(
        self, *, newest_first: bool = False, shared: Iterable[str] | None = None, **filters: Unpack[Filters]
    ) -> Iterator[Entry]:
        """Return an iterator over all entries that ``entries`` gives on its pages."""
        scope, attach = self._scope(filters), self._shared.judge.attach
        if reaches := self._reaches(shared):
            found = SharedLists(self._store, scope, reaches).entries(newest_first=newest_first)
            return (attach([entry])[0] for entry in found)
        return pages(lambda at: attach(self._store.select(scope, _STREAMED, at, newest_first=newest_first)))

    def count(self, *, shared: Iterable[str] | None = None, **filters: Unpack[Filters]) -> int:
        """Return how many entries pass filters; see ``entries``."""
        return SharedLists(self._store, self._scope(filters), self._reaches(shared)).count()

    def delete_where(self, *, dry_run: bool = False, **filters: Unpack[Filters]) -> int:
        """Hide all entries that pass filters, with one write a session; return how many.

        Superseded, expired and future entries are left as they are, unless ``include_superseded`` is true.

        Raises:
            ValueError: There is no filter.
        """

        def delete(session: str, selected: Selected) -> int:
            return self._store.delete(self.slug, session, selected, now(self._shared.clock))

        return remove_selected(self._store, self._scope(filters), delete, dry_run=dry_run)

    @traced("purge", {"keepstone.entries": int})
    def purge_where(self, *, dry_run: bool = False, **filters: Unpack[Filters]) -> int:
        """Remove every byte of all entries that pass filters, and return how many; see ``purge``.

        Superseded, expired and future entries are purged, too, unless ``include_superseded`` is false.

        Raises:
            ValueError: There is no filter.
            PurgePendingError: As for ``Session.purge``.
        """

        def purge(session: str, selected: Selected) -> int:
            return self._store.purge(self.slug, session, selected)

        filters.setdefault("include_superseded", True)
        return remove_selected(self._store, self._scope(filters), purge, dry_run=dry_run)

    def _scope(self, filters: Filters) -> Scope:
        given: Any = {name: value for name, value in filters.items() if name != "trust"}
        return self._shared.judge.narrowed(scope_of(self.slug, self._now(), **given), filters.get("trust"))

    def grant(
        self,
        to: str,
        may: Literal["read", "write"] = "read",
        *,
        types: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        until: datetime | str | None = None,
        by: str | None = None,
    ) -> Grant:
        """Let another agent read, or also write, entries of this one; the newest grant to an agent counts.

        Args:
            to: The slug of the other agent, which need not exist.
            may: ``"read"``, or ``"write"``, which includes reading. A writer adds, updates, supersedes and
                deletes entries; it purges, clears, renames and compacts nothing.
            types: Only entries of these types, those written included.
            tags: Only entries with all of these tags, those written included.
            until: When the grant expires: a time as for ``expires``; ``"7d"`` means seven days from now.
            by: Who grants it, in words, for people.

        Raises:
            InvalidAgentIdError: ``to`` is not a slug.
            ValueError: ``to`` is this agent, an argument is invalid, or the home has only one agent.
            StoreError: The grants are damaged; nothing was written. The error says where.

        Examples:
            >>> home.agent("team").grant("coder", "read", types=["decision"]).may
            'read'
        """
        return add_grant(self._store, self.slug, self._now(), to, may, types, tags, until, by)

    def revoke(self, to: str) -> bool:
        """Withdraw a grant, from the next call of every process on; False if nothing was granted.

        Raises:
            StoreError: The grants are damaged, so they grant nothing; nothing was written.
        """
        return revoke(self._store, self.slug, self._now(), to)

    def grants(self) -> list[Grant]:
        """Return the grants that are in force, by agent; none if the grants are damaged."""
        return sorted(grants_now(self._store, self.slug, self._now()), key=lambda grant: grant.to)

    def share(self, id: str, to: str, session: str | None = None) -> Entry:  # noqa: A002
        """Copy an entry into the session of the same id of another agent, and return the copy.

        The copy has a link ``copy_of``. Sharing the same entry again returns the copy that is there.

        Args:
            id: The entry.
            to: The slug of the other agent, which must have granted writing.
            session: The session of the entry, where several have its id.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            NotGrantedError: The other agent did not grant writing, or not of such an entry.

        Examples:
            >>> home.agent("team").grant("coder", "write").to
            'coder'
            >>> home.agent("coder").share(decision.id, to="team").agent
            'team'
        """
        entry, target = self.get(id, session), self._reach(to)
        copied = copy_of(entry)
        # Before the copy is looked for: without the grant not even its existence may show.
        target.check(WRITE)
        try:
            return self.get(copied["id"], entry.session, of=to)
        except EntryNotFoundError:
            return self.session(entry.session, of=to).add_many([copied])[0]

    def _view_of(self, of: str) -> Agent:
        """Return a view of another agent, restricted by its grants at each call; this agent as it is."""
        reach = self._reach(of)
        if reach.of == self.slug:
            return self
        # All of the agent's methods work on this store, which refuses what no grant covers.
        store = granted(reach)
        judge = Judge(store, self._shared.clock, self._shared.judge.project)
        return Agent(
            replace(self._shared, store=store, conflicts=NoConflicts(), judge=judge), reach.of, self.slug
        )

    def _reach(self, of: str) -> Reach:
        return Reach(self._store, self._now, self.slug, self._store.check_agent(of))

    def _reaches(self, shared: Iterable[str] | None) -> list[Reach]:
        """Return this agent's access to others, each once; it need not share with itself."""
        names = dict.fromkeys(names_of(shared, "shared") or ())
        return [self._reach(name) for name in names if name != self.slug]

    def add(
        self,
        text: str,
        *,
        type: str = "note",  # noqa: A002
        session: str = "main",
        data: Mapping[str, Any] | None = None,
        **reserved: Unpack[NewKeys],
    ) -> Entry:
        """Add an entry with a text; see ``Session.add``.

        Examples:
            >>> agent.add("Ada likes tea", tags=["drinks"]).session
            'main'
        """
        return self.session(session).add(type, data, text=name_of(text, "text"), **reserved)

    def update(
        self,
        id: str,  # noqa: A002
        data: Mapping[str, Any] | str | None = None,
        *,
        session: str | None = None,
        **keys: Unpack[UpdateKeys],
    ) -> Entry:
        """Change an entry; see ``Session.update``.

        Examples:
            >>> agent.update(decision.id, "Sign in with OAuth").text
            'Sign in with OAuth'
        """
        return self._session_of(id, session).update(id, data, **keys)

    def set(self, key: str, value: Any, session: str = DEFAULT_SESSION) -> Entry:
        """Set the value of a key, and return the entry that says it; see ``Session.set``.

        Examples:
            >>> agent.set("plan", "Pro").data
            {'key': 'plan', 'value': 'Pro'}
        """
        return self.session(session).set(key, value)

    def value(
        self,
        key: str,
        default: Any = None,
        session: str = DEFAULT_SESSION,
        as_of: datetime | str | None = None,
    ) -> Any:
        """Return the value that a key has now, or had at a time; ``default`` if it has none."""
        return self.session(session).value(key, default, as_of=as_of)

    def values(self, session: str = DEFAULT_SESSION, as_of: datetime | str | None = None) -> dict[str, Any]:
        """Return all keys with the values that they have now, or had at a time."""
        return self.session(session).values(as_of=as_of)

    def unset(self, key: str, session: str = DEFAULT_SESSION) -> bool:
        """Delete the value of a key, which its history keeps; False if it has none."""
        return self.session(session).unset(key)

    def delete(self, id: str, session: str | None = None) -> None:  # noqa: A002
        """Hide an entry; see ``Session.delete``."""
        self._session_of(id, session).delete(id)

    def restore(self, id: str, session: str | None = None) -> Entry:  # noqa: A002
        """Give a deleted entry back; see ``Session.restore``.

        Raises:
            EntryNotFoundError: No deleted entry has this id: it is live, purged or unknown.
            AmbiguousIdError: Several sessions have one; say which with ``session``.
        """
        if session is None:
            last = {version.session: version for version in self.history(id)}
            # Of several sessions with this id the one that deleted it is meant.
            holders = [name for name, version in last.items() if version.deleted] or list(last)
            if len(holders) > 1:
                raise _ambiguous(id, holders)
            session = holders[0]
        return self.session(session).restore(id)

    def purge(self, id: str, session: str | None = None, *, follow: bool = False) -> Purged:  # noqa: A002
        """Remove every byte of an entry, deleted or not, and return what was purged; see ``Session.purge``.

        With ``follow`` all that was derived from it is purged, too, deleted or not.
        """
        entry_id_of(id)
        if session is None:
            # From the history and not from live entries: what was deleted can be purged as well.
            holders = sorted({version.session for version in self.history(id)})
            if len(holders) > 1:
                raise _ambiguous(id, holders)
            session = holders[0]
        names = [(session, id)]
        if follow:
            names += self._shared.judge.all_derived(self.slug, session, id)
        self.session(session).purge(id)
        for name in sorted({holder for holder, _ in names[1:]}):
            self._store.purge(self.slug, name, [entry_id for holder, entry_id in names[1:] if holder == name])
        # Tests of memory may name the purged ids.
        purge_ids(self._shared.root, self.slug, {entry_id for _, entry_id in names})
        return Purged(tuple(names))

    def sources(self, id: str, session: str | None = None) -> list[Entry]:  # noqa: A002
        """Return the entries that an entry was derived from; those that are gone are left out.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
        """
        entry = self.get(id, session)
        sources = self._shared.judge.sources(self.slug, entry.session, entry.line)
        return self._shared.judge.attach([source.entry for source in sources if source.entry is not None])

    def derived(self, id: str, session: str | None = None) -> list[Entry]:  # noqa: A002
        """Return the entries that were derived from an entry.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.

        Examples:
            >>> note = session.add("note", text="The team signs in with OAuth", derived_from=[decision.id])
            >>> [entry.id for entry in agent.derived(decision.id)] == [note.id]
            True
        """
        entry = self.get(id, session)
        return self._shared.judge.derived(self.slug, entry.session, entry.id)

    def vouch(self, id: str, session: str | None = None) -> Entry:  # noqa: A002
        """Confirm an entry as a person, and return it: its trust is ``user``, and it is not stale.

        That lasts until it, or an entry that it was derived from, changes. No tool of a model does this.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            ValueError: This agent writes on behalf of a model, a tool or an import.

        Examples:
            >>> page = session.add("note", text="The office closes at six", origin="tool")
            >>> agent.vouch(page.id).trust
            'user'
        """
        self._check_decides()
        entry = self.get(id, session)
        ts = now(self._shared.clock)

        def vouched(entry: Entry) -> Record:
            return {"id": entry.id, "ts": ts, **self._shared.judge.vouching(entry)}

        return self._shared.judge.attach([self._store.modify(self.slug, entry.session, entry.id, vouched)])[0]

    def _check_decides(self) -> None:
        by = self._shared.writer.by
        if by not in (None, "user", "program"):
            raise ValueError(
                f"a {by} confirms nothing and decides nothing: a person does, on the page or the command line"
            )

    def verify(self, *, accept: str | None = None) -> list[Citation]:
        """Return all citations of entries, each compared with its file; nothing cached is used.

        Args:
            accept: The id of an entry whose citations take the text that their files have now.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            MemoryFileNotFoundError, NotTextError, ValueError: What is to be accepted is gone.
        """
        if accept is not None:
            entry, ts = self.get(accept), now(self._shared.clock)

            def taken(entry: Entry) -> Record:
                return {"id": entry.id, "ts": ts, **self._shared.judge.recited(entry)}

            self._store.modify(self.slug, entry.session, entry.id, taken)
        return [*self._shared.judge.verified(self.slug)]

    def on_behalf(self, by: str, via: str | None = None, *, may_cite: bool = True) -> Agent:
        """Return this agent for a surface: what is written through it says who said it, and through what.

        No item that is written through it has more trust than that.

        Args:
            by: ``"user"``, ``"program"``, ``"model"``, ``"import"`` or ``"tool"``.
            via: The surface, such as ``"mcp/claude-code"``.
            may_cite: Whether it may cite files of the project; not for writers from other machines, which
                would learn what the files say.

        Examples:
            >>> agent.on_behalf("tool", "crawler").add("The office closes at six").trust
            'tool'
        """
        now = self._shared.writer
        # The least of both: a surface behind another one cannot raise the trust of what it passes on.
        writer = Writer(least((trust_level(by), now.by or by)), via, may_cite and now.may_cite)
        return Agent(replace(self._shared, writer=writer), self.slug)

    @traced("purge")
    def purge_matching(self, text: str, session: str | None = None, *, dry_run: bool = False) -> Purged:
        """Purge entries, sessions, files and suggestions with a text, ignoring case and Unicode normal form.

        The keys and values of every line of logs and archives are searched, so deleted, archived and previous
        versions are found, too, and damaged lines, whose ids are digests. A session whose id contains the
        text is removed as a whole, and so is a file.

        Args:
            text: The text to search for, such as a name or a key.
            session: Only purge entries of this session, and no files.
            dry_run: Purge nothing, only return what would be purged.

        Raises:
            ValueError: The text is empty.
            PurgePendingError: As for ``Session.purge``.

        Examples:
            >>> agent.purge_matching("oauth", dry_run=True)
            Purged(entries=(('main', '…'),), sessions=(), files=(), suggestions=())
        """
        holder = self._checked(session)

        def matching(cursor: str | None) -> Page[tuple[str, str]]:
            return self._store.matching(self.slug, name_of(text, "text"), holder, _MATCHES, cursor)

        entries = tuple(pages(matching))
        found = Purged(entries) if session is not None else self._with_matching_names(text, entries)
        if not dry_run:
            for name in sorted({holder for holder, _ in found.entries}):
                self._store.purge(self.slug, name, [eid for holder, eid in found.entries if holder == name])
            for name in found.sessions:
                self._store.remove(self.slug, name)
            for path in found.files:
                with suppress(MemoryFileNotFoundError):
                    self.files.delete(path)
            if found.suggestions:
                self._store.change_suggestions(self.slug, partial(without_text, containing(text)))
            purge_ids(self._shared.root, self.slug, {entry_id for _, entry_id in found.entries})
            if session is None:
                purge_text(self._shared.root, self.slug, text)
        return found

    def _with_matching_names(self, text: str, entries: tuple[tuple[str, str], ...]) -> Purged:
        contains = containing(text)
        sessions = sorted(info.id for info in self.sessions() if contains(info.id))
        lines = self._store.suggestion_lines(self.slug) if self._store.keeps_suggestions else ()
        files = tuple(self.files.matching(text))
        return Purged(entries, tuple(sessions), files, tuple(holding(lines, contains)))

    def purge_times(self, since: datetime, until: datetime | None = None) -> list[datetime]:
        """Return when entries were purged from a time on and before another: one time for each, oldest first.

        Cleared and removed sessions count with all their entries. Nothing else is known of what was purged.

        Examples:
            >>> from datetime import datetime, timedelta, timezone
            >>> len(agent.purge(agent.add("The code is 1234").id).entries)
            1
            >>> len(agent.purge_times(datetime.now(timezone.utc) - timedelta(days=1)))
            1
        """
        times = self._store.purge_times(self.slug)
        return sorted(ts for ts in times if since <= ts and (until is None or ts < until))

    def history(self, id: str, session: str | None = None) -> list[Version]:  # noqa: A002
        """Return all versions of an entry, oldest first; a deletion is a version with ``deleted`` set.

        Raises:
            EntryNotFoundError: The entry never existed, or was purged.
        """
        entry_id_of(id)
        versions = self._store.history(self.slug, id, self._checked(session))
        if not versions:
            raise EntryNotFoundError(f"agent {self.slug!r} has no entry {id!r:.80}{_in(session)}")
        return versions

    def link(self, a: str, b: str, rel: str) -> Entry:
        """Link entry ``a`` to entry ``b``, and return the new ``a``.

        Raises:
            EntryNotFoundError: One of them does not exist.

        Examples:
            >>> agent.link(decision.id, finding.id, "because").links
            ({'to': '…', 'rel': 'because'},)
        """
        source, target = self.get(a), self.get(b)
        return self.session(source.session).link(source.id, target.id, rel)

    def supersede(self, old_id: str, item: Mapping[str, Any] | str, session: str | None = None) -> Entry:
        """Add an entry in the place of an older one, which holds until then, and return the new one.

        It goes into the old one's session, with a link ``supersedes``. The old one's ``valid_to`` becomes
        the new one's ``valid_from``, or else its time. Both are one step: no reader, and no crash, sees only
        one of them. Recall, contexts and queries show the new one from then on; ``reinstate`` undoes it.

        Args:
            old_id: The entry that holds no longer.
            item: A mapping with the keys of a log line, or the new text. Without a ``type`` it has the old
                one's.
            session: The session of the old entry, where several have its id.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            AlreadySupersededError: The old entry was superseded before; the error names the one valid now.
            EntryExistsError: The item's id is taken.
            TypeError, ValueError: The item cannot be stored, or the old entry replaced one with its id.

        Examples:
            >>> newer = agent.supersede(decision.id, {"decision": "Use passkeys to sign in"})
            >>> newer.type, newer.supersedes == (decision.id,)
            ('decision', True)
        """
        return self._session_of(old_id, session).supersede(old_id, item)

    def reinstate(self, old_id: str, session: str | None = None) -> Entry:
        """Undo ``supersede``: delete all entries that came after one, open that one, and return it.

        An entry whose newer one was deleted or purged by itself is opened, too.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            ValueError: Nothing replaced the entry.
        """
        return self._session_of(old_id, session).reinstate(old_id)

    def suggest(
        self,
        do: str,
        entries: Iterable[str] = (),
        item: Mapping[str, Any] | str | None = None,
        *,
        why: str,
        evidence: Iterable[str] = (),
        by: str | None = None,
    ) -> Suggestion:
        """Propose a change of memory, which a person accepts or rejects. No entry is changed.

        Args:
            do: ``"merge"`` (one new entry supersedes several), ``"supersede"``, ``"delete"``, ``"tag"`` (adds
                the item's ``tags``), ``"pin"`` or ``"add"``.
            entries: The ids of the entries to change; none for ``add``.
            item: The new entry of ``merge``, ``supersede`` and ``add``, a mapping with the keys of a log line
                or its text; ``{"tags": […]}`` for ``tag``.
            why: The reason, for the person.
            evidence: Ids of entries, or other references, that the proposal is based on.
            by: Who proposes it.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            TypeError, ValueError: This cannot be proposed, one of the entries to replace is not valid now, or
                1,000 suggestions are open.
            SecretError: It has a suspected secret, which the home refuses.

        Examples:
            >>> suggestion = agent.suggest("pin", [decision.id], why="every session needs it", by="nightly")
            >>> agent.accept(suggestion.id, by="Ada").state, agent.get(decision.id).pinned
            ('accepted', True)
        """
        given = None if item is None else dict(item_of(item))
        ids, based_on = names_of(entries, "entries") or (), names_of(evidence, "evidence") or ()
        check_suggestion(do, ids, given)
        if given is not None and do != "tag":
            check_content(record_of(given, self._shared.clock))
        targets = [self.get(entry_id) for entry_id in ids]
        for entry in targets if do in ("merge", "supersede") else ():
            if not self.holds(entry):
                raise ValueError(f"entry {entry.id!r:.80} is not valid now: suggest it of the one that is")
        said: Record = {"item": plain(given), "why": name_of(why, "why")}
        said = said if self._shared.guard is None else self._shared.guard("main", [said])[0]
        line = {"id": new_id(), "do": do, "entries": [*ids], **said, "evidence": [*based_on]}
        line |= {
            "by": None if by is None else name_of(by, "by"),
            "ts": now(self._shared.clock),
            "state": "open",
        }
        also = self._store.select(Scope(self.slug, ids=based_on)) if based_on else ()
        return self._suggestions.add(line, targets, also)

    def suggestions(self, state: str | None = "open") -> list[Suggestion]:
        """Return the suggestions in a state, oldest first; None for all of them.

        A state is ``"open"``, ``"accepted"``, ``"rejected"``, ``"undone"`` or ``"outdated"``.
        """
        if state is not None and state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)} or None, not {state!r:.80}")
        return self._suggestions.select(state)

    def accept(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Carry a suggestion out in one step, and keep who accepted it. Only a person should decide this.

        A new entry has the suggestion's id.

        Args:
            id: The suggestion.
            by: Who accepts it; default: ``"user"``.

        Raises:
            EntryNotFoundError: There is no such suggestion.
            SuggestionOutdatedError: Its entries changed since; nothing was changed.
            ValueError: It is decided already, or this agent writes on behalf of a model, a tool or an import.
        """
        self._check_decides()
        ts = now(self._shared.clock)

        def new(suggestion: Suggestion, targets: Sequence[Entry]) -> Record:
            if not all(map(self.holds, targets)):
                raise ValueError(f"an entry of suggestion {suggestion.id!r:.80} is not valid now: reject it")
            item = {"type": targets[0].type if targets else "note"} | (suggestion.item or {})
            record = record_of(item | {"id": suggestion.id, "ts": ts}, self._shared.clock)
            self._shared.meaning.claim(self.slug)
            session = self.session(targets[0].session if targets else "main")
            signed = self._shared.judge.signed(self._shared.writer, self.slug, session.id, record)
            return session.guarded(signed)

        return self._suggestions.accept(name_of(id, "id"), _person(by), ts, new)

    def reject(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Keep that a suggestion is not wanted; see ``accept``."""
        self._check_decides()
        return self._suggestions.reject(name_of(id, "id"), _person(by), now(self._shared.clock))

    def undo(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Take back in one step what an accepted suggestion changed; a rejected one is open again.

        Raises:
            EntryNotFoundError: There is no such suggestion.
            SuggestionOutdatedError: Its entries changed since; nothing was changed.
            ValueError: It was neither accepted nor rejected, or as for ``accept``.
        """
        self._check_decides()
        return self._suggestions.undo(name_of(id, "id"), _person(by), now(self._shared.clock))

    def related(self, id: str, rel: str | None = None, depth: int = 1) -> list[Entry]:  # noqa: A002
        """Return the entries linked with an entry, in either direction, nearest first.

        Args:
            id: The id of the entry.
            rel: Only links of this relation.
            depth: Maximum number of links to follow.

        Raises:
            EntryNotFoundError: There is no such entry.
            ValueError: ``depth`` is less than 1, or more than 1,000 entries are related.
        """
        found = related(self._store, self.get(id), rel, count_of(depth, "depth", least=1))
        return self._shared.judge.attach(found)

    @traced("recall", {"keepstone.hits": len})
    def recall(
        self,
        query: str | None,
        *,
        limit: int = 10,
        sessions: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
        min_priority: float = 0.0,
        min_relevance: float = 0.0,
        vector: VectorLike | None = None,
        neighbours: int = 0,
        include_superseded: bool = False,
        trust: str | None = None,
        include: Iterable[str] = ("entries",),
        notes: Notes | None = None,
        shared: Iterable[str] | None = None,
    ) -> Hits:
        """Return what matches a query best, with explanations: entries, and files and notes on request.

        Only valid entries are searched: from ``valid_from`` on, before ``valid_to`` and ``expires``.

        Args:
            query: Words or a question; None or ``""`` searches by ``vector`` alone.
            limit: Maximum number of hits.
            sessions: Only entries of these sessions.
            types: Only entries of these types.
            tags: Only entries with all of these tags.
            where: Only entries with these values at these keys of the payload, dotted paths into it, or
                reserved keys: ``{"user.city": "Zürich", "score": {"gte": 3}}``. Operators are ``eq ne gt
                gte lt lte in not_in exists``.
            since: Only entries made at this time or later: an aware datetime, RFC 3339, a date, a span such
                as ``"7d"``, or words such as ``"last week"``, which mean its beginning.
            until: Only entries made before this time.
            as_of: Search the entries as they were at this time, including later changed or deleted ones; a
                time as for ``since``.
            min_priority: Only entries with at least this decayed priority.
            min_relevance: Only hits with at least this relevance, from 0 to 1, even if none is left.
            vector: The vector to search with instead of the query's own; must not be zero.
            neighbours: Number of entries before and after each hit in its session to return with it, not
                counted in the limit.
            include_superseded: Include entries that are not valid now, or at ``as_of``: superseded, expired
                and future ones.
            trust: Only entries of at least this trust: ``"user"``, ``"program"``, ``"model"``, ``"import"``
                or ``"tool"``. An entry whose newer ones have less trust holds.
            include: What to search: ``"entries"``, the agent's ``"files"``, ``"notes"``. Of files and notes
                a hit is a bullet or paragraph, with ``path``, ``line`` and ``text``. The filters above are
                of entries. Files are searched up to 1 MiB in all; ``Hits.skipped`` names the others.
            notes: The notes to search if ``include`` names them, such as ``Notes(".")``.
            shared: Other agents whose shared entries are searched, too. Hits, whose ``agent``
                tells them apart, are then in the order of their relevance.

        Raises:
            NotGrantedError: An agent in ``shared`` shares nothing, or does not exist; or ``as_of`` is given.
            TypeError, ValueError: An argument is invalid, ``include`` names notes and none are given,
                or files or notes are to be searched as of another time: they have no versions.
            EmbeddingDimMismatchError, InvalidEmbeddingError: The vector is not in the agent's space.
            SpaceMismatchError: The home was opened with an embedder other than its own.

        Examples:
            >>> str(agent.recall("how do we sign in?", types=["decision"])[0].why)
            'found by words #1; words: sign'
        """
        vectors = None if vector is None and self._shared.meaning.is_unwanted else self.vectors()
        now = self._now()
        question = Question(
            query_of(query),
            count_of(limit, "limit"),
            now,
            self._now,
            None if vector is None else unit(vector),
            number_of(min_priority, "min_priority", least=0),
            number_of(min_relevance, "min_relevance", least=0, most=1),
            count_of(neighbours, "neighbours"),
            None if as_of is None else moment_of(as_of, now, "as_of"),
            bool(include_superseded) or trust is not None,
        )
        scope = scope_of(
            self.slug, now, sessions=sessions, types=types, tags=tags, where=where, since=since, until=until
        )
        valid_at = None if include_superseded else question.as_of or now
        scope = self._shared.judge.narrowed(replace(scope, valid_at=valid_at), trust)
        kinds = {"entries"} if include == ("entries",) else kinds_of(include, has_notes=notes is not None)
        self._shared.judge.project.begin()
        others: list[Hits] = []
        if (reaches := self._reaches(shared)) and "entries" in kinds:
            is_by_words = vectors is None

            def vectors_of(agent: str) -> Vectors | None:
                return None if is_by_words else Vectors(self._store, agent, self._shared.meaning)

            others = recall_shared(reaches, question, scope, vectors_of, self._shared.reranker)
        if "entries" in kinds:
            hits = recall(self._store, vectors, question, scope, self._shared.reranker)
            for hit in hits:
                self._shared.judge.attach([hit.entry, *hit.neighbours])
        else:
            hits = Hits()
        if not kinds - {"entries"}:
            return merged(hits, others, question.limit)
        files = self.files.texts(LARGEST) if "files" in kinds else {}
        found = [
            Excerpt("note", note.source, note.line, note.content)
            for note in (notes.entries() if notes is not None and "notes" in kinds else ())
        ]
        own = with_excerpts(
            hits,
            files,
            found,
            question,
            scope,
            vectors or self.vectors(),
            self._store.language,
            self._shared.reranker,
        )
        return merged(own, others, question.limit)

    def conflicts(
        self, since: datetime | str | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[ConflictingPair]:
        """Yield the pairs of entries that hold now and repeat or contradict one another, chat aside.

        Nothing is stored or resolved; a nightly job may ask for what came since the last one.

        Args:
            since: Only pairs with an entry made at this time or later.
            kinds: ``"contradiction"`` or ``"duplicate"``; default: both.

        Raises:
            ValueError: Another kind, or ``since`` is not a time.

        Examples:
            >>> for new, old in agent.conflicts(kinds=["contradiction"]):
            ...     print(new.text, "/", old.text)
        """
        from keepstone.recall.conflict_review import pairs

        wanted = names_of(kinds, "kinds")
        unknown = set(wanted or ()) - {"contradiction", "duplicate"}
        if unknown:
            raise ValueError(f"kinds are contradiction and duplicate, not {min(unknown)!r:.80}")
        begin = None if since is None else instant(since, "since")
        return pairs(self._store, self.slug, self._shared.clock, begin, wanted)

    def holds(self, entry: Entry) -> bool:
        """Return whether an entry is valid now: from ``valid_from``, before ``valid_to`` and ``expires``."""
        return is_valid(entry.line, self._now())

    def _now(self) -> datetime:
        return instant(self._shared.clock(), "the clock's time")

    def entry_counts(self) -> dict[str, int]:
        """Return the number of entries of each session; empty sessions are left out."""
        return self._store.entry_counts(self.slug)

    def vectors(self, embedder: EmbedderLike | None = None, dim: int | None = None) -> Vectors:
        """Return the vector search of the agent, in the space of an embedder or of given vectors.

        Args:
            embedder: The embedder; default: the home's.
            dim: The required dimension; default: the embedder's, or that of the first given vector.

        Raises:
            TypeError, ValueError, EmbedderUnavailableError: The embedder is invalid or not usable.
            SpaceMismatchError: It is not the home's embedder.
            EmbeddingDimMismatchError: ``dim`` is not the embedder's dimension.
        """
        meaning = self._shared.meaning
        if embedder is not None:
            meaning = Meaning(self._store, embedder, meaning.wake, meaning.spaces)
        return Vectors(self._store, self.slug, meaning, dim)

    @traced("context", {"keepstone.tokens": lambda found: found.tokens})
    def context(
        self,
        query: str | None = None,
        *,
        budget: int = 2000,
        notes: Notes | None = None,
        counter: Counter | None = None,
        window: Iterable[str] = (),
        ids: bool = False,
        shared: Iterable[str] | None = None,
        trust: str = TRUSTED,
        untrusted: Literal["fence", "omit"] = "fence",
        stale: Literal["omit", "mark"] = "omit",
    ) -> Context:
        """Return a memory block for a system prompt, with a stable prefix.

        Each entry has a short reference, such as ``[3]``; ``Context.sources`` maps it to the entry.

        The prefix has short instructions, notes, pinned entries, preferences and decisions, and is the same
        for every query while none of these changes. Recalled entries, long ones by their best passage, and
        the newest turns follow.

        Args:
            query: The user's question; without it, or if nothing is relevant to it, nothing is recalled.
            budget: Maximum number of tokens.
            notes: The notes of a project and its user, such as ``Notes(".")``.
            counter: Counts the tokens of a text, such as ``keepstone.counter_of("openai")``; default: a
                conservative estimate.
            window: Texts, and ids of entries, that the prompt already has. Recalled entries and newest turns
                among them are left out; the prefix does not change.
            ids: Show the session and the id of each entry in the text, too.
            shared: Other agents whose shared entries are recalled, too.
            trust: The least trust of what is shown as memory; see ``Entry.trust``. Entries below it, of
                every kind, are in a fence of their own at the end, which says where they come from.
            untrusted: ``"fence"``, or ``"omit"`` to leave out entries below the trust.
            stale: ``"omit"`` leaves out stale entries, see ``Entry.stale``; ``"mark"`` marks them.

        Raises:
            NotGrantedError: An agent in ``shared`` shares nothing, or does not exist.
            TypeError, ValueError: An argument or a result of the counter is invalid.
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A notes file
                cannot be read.

        Examples:
            >>> context = agent.context("How do we sign in?", budget=1000, notes=Notes("."))
            >>> cached, fresh = context.text[: context.stable], context.text[context.stable :]
        """
        if notes is not None and not hasattr(notes, "sources"):
            raise TypeError(f"notes must be Notes or None, not {type(notes).__name__}: {notes!r:.80}")
        tokens = count_of(budget, "budget")
        sent = names_of(window, "window") or ()
        hits = min(max(_CONTEXT_HITS, tokens // _TOKENS_A_HIT), _MOST_HITS)
        if untrusted not in ("fence", "omit") or stale not in ("omit", "mark"):
            raise ValueError(
                f"untrusted must be 'fence' or 'omit' and stale 'omit' or 'mark', not {untrusted!r:.80} and "
                f"{stale!r:.80}"
            )
        reaches = self._reaches(shared)
        # Without a query nothing of the other agents is read, and a missing grant would not show.
        for reach in reaches:
            reach.check()
        self._shared.judge.project.begin()
        trusted = Trusted(self._shared.judge, self.slug, trust_level(trust), self._now())
        recalled = [] if query is None else self._told(query, hits, trusted, reaches)
        newest = self._newest(trusted)
        found = {hit.entry.key: hit for hit in recalled}
        whole = {entry.key for entry in newest}

        def passage(entry: Entry) -> str:
            key = entry.key
            if key in whole or key not in found:
                return entry.text
            return marked(found[key].passage, entry.text)

        either = replace(trusted, all=True)
        pinned = [entry for entry in self._store.pinned(self.slug) if either.matches(entry.line)]
        best = self._of_both(lambda holds: standing(self._store, self.slug, holds), trusted)
        for entries in (pinned, best, newest, [hit.entry for hit in recalled]):
            self._shared.judge.attach(entries)
        wanted = Contents(
            pinned=pinned,
            standing=best,
            recalled=[hit.entry for hit in recalled],
            passage=passage,
            newest=newest,
            trust=trust,
            untrusted=untrusted,
            stale=stale,
            notes=notes.sources() if notes is not None else (),
            query=query,
            window=sent,
            with_ids=bool(ids),
        )
        return build(wanted, tokens, counter)

    @traced("recall", {"keepstone.hits": len})
    def _told(self, query: str, limit: int, trusted: Trusted, reaches: Sequence[Reach]) -> list[Hit]:
        """Return a context's hits for a question; hits below the trust do not count toward the limit."""
        vectors = None if self._shared.meaning.is_unwanted else self.vectors()
        # Validity is decided by the condition, together with trust: where the newer of two facts is filtered
        # away, the older one holds.
        question = Question(query_of(query), limit, self._now(), self._now, include_superseded=True)

        def vectors_of(agent: str) -> Vectors | None:
            return None if vectors is None else Vectors(self._store, agent, self._shared.meaning)

        def hits(condition: Trusted) -> list[Hit]:
            scope, reranker = Scope(self.slug, where=(condition,)), self._shared.reranker
            others = recall_shared(reaches, question, scope, vectors_of, reranker)
            own = recall(self._store, vectors, question, scope, reranker)
            return worth_telling(merged(own, others, limit))

        found = hits(replace(trusted, all=True))
        others = [hit for hit in found if not trusted.admits(hit.entry.line)]
        # Searched once more without them, as untrusted entries must not take the places of trusted ones.
        return [*hits(trusted), *others] if others else found

    def _newest(self, trusted: Trusted) -> list[Entry]:
        """Return the newest valid entries of the session with the newest one, the oldest of them first."""
        now = self._now()
        last = self._store.select(Scope(self.slug, valid_at=now), 1, newest_first=True)
        if not last:
            return []
        tied = {
            entry.session for entry in self._store.select(Scope(self.slug, since=last[0].ts, valid_at=now))
        }
        # Of entries with the same time, those of the log that changed last were added last.
        sessions = self._store.sessions(self.slug) if len(tied) > 1 else ()
        session = next((info.id for info in sessions if info.id in tied), last[0].session)

        def newest(limit: int | None) -> list[Entry]:
            return self._store.entries(self.slug, session, limit, None)

        return self._of_both(lambda holds: newest_valid(newest, _CONTEXT_NEWEST, holds), trusted)

    def _of_both(
        self, find: Callable[[Callable[[Entry], bool]], list[Entry]], trusted: Trusted
    ) -> list[Entry]:
        """Return the results for trusted entries and for all entries together, by time."""
        either = replace(trusted, all=True)
        found = find(lambda entry: either.matches(entry.line))
        if all(trusted.admits(entry.line) for entry in found):
            return found
        known = {(entry.session, entry.id) for entry in found}
        more = find(lambda entry: trusted.matches(entry.line))
        found += [entry for entry in more if (entry.session, entry.id) not in known]
        return sorted(found, key=lambda entry: entry.ts)

    def tools(self, format: ToolFormat = "json") -> list[dict[str, Any]]:  # noqa: A002
        """Return the ten tools with which a model uses this memory; ``call`` runs them.

        They are those of the MCP server.

        ``format`` is ``"json"`` (``name``, ``description``, and ``parameters`` as a JSON schema),
        ``"anthropic"``, ``"openai"`` (chat completions) or ``"openai-responses"``.
        """
        return self._toolbox("main").definitions(format)

    def call(self, name: str, arguments: Mapping[str, Any] | str, session: str = "main") -> dict[str, Any]:
        """Run a tool with what a model sent, a mapping or its JSON text, and return its result. Never raises.

        What it saves says that a model said it, see ``Entry.origin``.

        The result is ``{"ok": True, …}``, or ``{"ok": False, "error": {"code": …, "message": …}}``, where the
        message says what the model can do. ``session`` is the one that is meant where a call names none.

        Examples:
            >>> agent.call("memory_save", {"text": "Ada prefers tea", "type": "preference"})
            {'ok': True, 'id': '…', 'session': 'main'}
        """
        return self._toolbox(session).call(name, arguments).data

    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "ndjson",  # noqa: A002
        *,
        force: bool = False,
    ) -> int:
        """Export the live entries to a new file, or a folder for ``md`` and ``okf``; return their number.

        It appears as a whole at the end, or not at all. ``Home.import_from`` reads every format.

        Args:
            path: The file or folder to write to.
            format: ``ndjson``, ``md``, ``okf``, ``sqlite`` or ``csv``.
            force: Replace what is at the path.

        Raises:
            FileExistsError: There is something at the path.
            ValueError: The format is unknown, or the path and the home contain each other.
            AgentNotFoundError: The agent has neither a session nor a file.
            AccessDeniedError, StoreError: The output cannot be written; nothing is left of it.
        """
        from keepstone.operations.exporting import export_agent  # Loaded for an export only.

        if self.slug not in self._store.agents():
            raise AgentNotFoundError(f"there is no agent {self.slug!r}: it has neither sessions nor files")
        return export_agent(self, self._shared.root, path, format=format, force=force)

    def _toolbox(self, session: str) -> Toolbox:
        from keepstone.operations.agent_tools import agent_tools  # Loaded for a model only.
        from keepstone.operations.tool_definitions import memory_tools
        from keepstone.operations.toolbox import Toolbox

        memory = self.on_behalf(MODEL, self._shared.writer.via)
        tools = (tool.tool for tool in memory_tools(memory, session))
        return Toolbox(tools, unlisted=agent_tools(memory, session))

    def _session_of(self, id: str, session: str | None) -> Session:  # noqa: A002
        return self.session(session if session is not None else self.get(id).session)

    def _checked(self, session: str | None) -> str | None:
        return None if session is None else self._store.check_session(session)


def view_of(agent: Agent, of: str | None) -> Agent:
    """Return a view of another agent, restricted by its grants, for servers; this agent without ``of``."""
    return agent if of is None else agent._view_of(of)  # noqa: SLF001  Of this module.


def shares(agent: Agent, other: str) -> bool:
    """Return whether another agent shares anything with this one now, for servers that outlast grants."""
    try:
        # Counts nothing: only the check of the grants matters.
        agent.count(shared=[other], ids=())
    except NotGrantedError:
        return False
    return True


def _ambiguous(entry_id: str, sessions: list[str]) -> AmbiguousIdError:
    return AmbiguousIdError(
        f"entry {entry_id!r:.80} is in several sessions: {', '.join(sessions)}; choose one with session="
    )


def _person(by: str | None) -> str:
    return "user" if by is None else name_of(by, "by")


def _in(session: str | None) -> str:
    return "" if session is None else f" in session {session!r:.80}"
