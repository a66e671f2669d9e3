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
"""Tokens of a context's budget for each recalled hit; the number of hits has a minimum and a maximum."""
_MOST_HITS = 40
_CONTEXT_NEWEST = 6

_STREAMED = 1_000
"""Number of entries that an iterator reads from the store per page."""
_MATCHES = 10_000
"""Number of entries that a purge looks up per page."""


class Agent(BoundToProcess):
    """The unit of isolation: no call on an agent accesses another agent's memory without its grant."""

    def __init__(self, shared: Shared, slug: str, seen_by: str | None = None) -> None:
        """Use ``Home.agent`` instead."""
        self.slug = slug
        self.seen_by = seen_by
        """The slug of the agent to which this agent's grants give access; None for unrestricted access."""
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
        """Return the session with a new or given id; create it if it is missing.

        ``title`` sets the session's title, as ``Session.set_title`` does.

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

        ``of`` names another agent, whose session is returned. Each call on that session accesses only the
        entries that the other agent's grant covers at the time of the call. Apart from reading, the session
        can only add, update, supersede and delete entries.

        Raises:
            InvalidSessionIdError: The id is empty or too long for a file name.
        """
        if of is not None:
            return self._view_of(of).session(id)
        return Session(self._shared, self.slug, self._store.check_session(id))

    def sessions(self) -> list[SessionInfo]:
        """Return the id, last change and size of all sessions, the most recently changed first."""
        return self._store.sessions(self.slug)

    def session_summaries(
        self, ids: Iterable[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        """Return the titles, counts and previews of sessions; the session with the newest entry comes first.

        The title is the one given with ``Session.set_title``, else the start of the first message of a user.

        Args:
            ids: Only these sessions.
            texts: Whether to return previews, and titles made from messages. False is much faster.
        """
        return self._store.summaries(self.slug, names_of(ids, "ids"), texts=bool(texts))

    def dropped_sessions(self) -> list[str]:
        """Return the sorted ids of all sessions that ``Session.drop`` marked, including ids in use again."""
        return self._store.dropped(self.slug)

    def get(self, id: str, session: str | None = None, of: str | None = None) -> Entry:  # noqa: A002
        """Return an entry. With ``of``, return an entry that this other agent shares.

        Raises:
            EntryNotFoundError: No live entry has this id.
            AmbiguousIdError: Several sessions have an entry with this id; choose with ``session``.
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
        """Return a page of the entries of all sessions, oldest first.

        Entries of the same time are sorted by session, then by position in the log. Only valid entries are
        listed: from ``valid_from`` on, before ``valid_to`` and ``expires``. If entries are added or removed
        between two pages, no other entry is repeated or skipped.

        Args:
            limit: Maximum number of entries on the page.
            cursor: The ``next`` of the previous page. Other processes can use it, too.
            newest_first: Return the newest entries first.
            shared: The slugs of other agents whose shared entries are listed, too.
            filters: ``types``, ``tags``, ``where``, ``since``, ``until``, ``ids`` and ``trust``; entries must
                pass all of them. ``include_superseded`` also lists entries that are not valid now.

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
        """Return an iterator over the entries of all pages of ``entries``."""
        scope, attach = self._scope(filters), self._shared.judge.attach
        if reaches := self._reaches(shared):
            found = SharedLists(self._store, scope, reaches).entries(newest_first=newest_first)
            return (attach([entry])[0] for entry in found)
        return pages(lambda at: attach(self._store.select(scope, _STREAMED, at, newest_first=newest_first)))

    def count(self, *, shared: Iterable[str] | None = None, **filters: Unpack[Filters]) -> int:
        """Return the number of entries that pass the filters; see ``entries``."""
        return SharedLists(self._store, self._scope(filters), self._reaches(shared)).count()

    def delete_where(self, *, dry_run: bool = False, **filters: Unpack[Filters]) -> int:
        """Hide all entries that pass the filters, with one write per session, and return their number.

        Superseded, expired and future entries are not hidden, unless ``include_superseded`` is true.

        Raises:
            ValueError: No filter is given.
        """

        def delete(session: str, selected: Selected) -> int:
            return self._store.delete(self.slug, session, selected, now(self._shared.clock))

        return remove_selected(self._store, self._scope(filters), delete, dry_run=dry_run)

    @traced("purge", {"keepstone.entries": int})
    def purge_where(self, *, dry_run: bool = False, **filters: Unpack[Filters]) -> int:
        """Remove every byte of all entries that pass the filters, and return their number; see ``purge``.

        Superseded, expired and future entries are purged, too, unless ``include_superseded`` is false.

        Raises:
            ValueError: No filter is given.
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
        """Allow another agent to read, or to read and write, this agent's entries.

        A new grant to an agent replaces the previous one.

        Args:
            to: The slug of the other agent, which need not exist.
            may: ``"read"``, or ``"write"``, which includes reading. Writers can add, update, supersede and
                delete entries. They cannot purge entries, or clear, rename or compact sessions.
            types: Limit reading and writing to entries of these types.
            tags: Limit reading and writing to entries with all of these tags.
            until: When the grant expires: a time as for ``expires``; ``"7d"`` means seven days from now.
            by: Who grants it, as text for people.

        Raises:
            InvalidAgentIdError: ``to`` is not a slug.
            ValueError: ``to`` is this agent, an argument is invalid, or the home has only one agent.
            StoreError: The agent's grants are damaged; nothing was written. The message says where.

        Examples:
            >>> home.agent("team").grant("coder", "read", types=["decision"]).may
            'read'
        """
        return add_grant(self._store, self.slug, self._now(), to, may, types, tags, until, by)

    def revoke(self, to: str) -> bool:
        """Revoke the grant to an agent, and return whether there was one.

        The grant ends with the next call of every process.

        Raises:
            StoreError: The agent's grants are damaged, so that none is in force; nothing was written.
        """
        return revoke(self._store, self.slug, self._now(), to)

    def grants(self) -> list[Grant]:
        """Return the grants in force, sorted by the other agent's slug; none if the grants are damaged."""
        return sorted(grants_now(self._store, self.slug, self._now()), key=lambda grant: grant.to)

    def share(self, id: str, to: str, session: str | None = None) -> Entry:  # noqa: A002
        """Copy an entry into another agent's session with the same id, and return the copy.

        The copy has a link ``copy_of``. Sharing the same entry again returns the existing copy.

        Args:
            id: The entry.
            to: The slug of the other agent, which must have granted writing.
            session: The session of the entry, if several sessions have an entry with this id.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            NotGrantedError: The other agent did not grant writing, or its grant does not cover this entry.

        Examples:
            >>> home.agent("team").grant("coder", "write").to
            'coder'
            >>> home.agent("coder").share(decision.id, to="team").agent
            'team'
        """
        entry, target = self.get(id, session), self._reach(to)
        copied = copy_of(entry)
        # Check the grant before the search for a copy: without a grant, not even its existence may be
        # revealed.
        target.check(WRITE)
        try:
            return self.get(copied["id"], entry.session, of=to)
        except EntryNotFoundError:
            return self.session(entry.session, of=to).add_many([copied])[0]

    def _view_of(self, of: str) -> Agent:
        """Return a view of another agent, restricted by its grants at each call; this agent for its slug."""
        reach = self._reach(of)
        if reach.of == self.slug:
            return self
        # All methods of the returned agent use this store, which refuses access that no grant covers.
        store = granted(reach)
        judge = Judge(store, self._shared.clock, self._shared.judge.project)
        return Agent(
            replace(self._shared, store=store, conflicts=NoConflicts(), judge=judge), reach.of, self.slug
        )

    def _reach(self, of: str) -> Reach:
        return Reach(self._store, self._now, self.slug, self._store.check_agent(of))

    def _reaches(self, shared: Iterable[str] | None) -> list[Reach]:
        """Return this agent's access to each named agent, without duplicates and without itself."""
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
        """Set the value of a key, and return the entry that holds it; see ``Session.set``.

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
        """Return a key's value, now or at the time ``as_of``; ``default`` if it had none then."""
        return self.session(session).value(key, default, as_of=as_of)

    def values(self, session: str = DEFAULT_SESSION, as_of: datetime | str | None = None) -> dict[str, Any]:
        """Return all keys with their values, now or at the time ``as_of``."""
        return self.session(session).values(as_of=as_of)

    def unset(self, key: str, session: str = DEFAULT_SESSION) -> bool:
        """Delete the value of a key, and return whether it had one. The value stays in the history."""
        return self.session(session).unset(key)

    def delete(self, id: str, session: str | None = None) -> None:  # noqa: A002
        """Hide an entry; see ``Session.delete``."""
        self._session_of(id, session).delete(id)

    def restore(self, id: str, session: str | None = None) -> Entry:  # noqa: A002
        """Restore a deleted entry; see ``Session.restore``.

        Raises:
            EntryNotFoundError: No deleted entry has this id: the id is live, purged or unknown.
            AmbiguousIdError: Several sessions have such an entry; choose with ``session``.
        """
        if session is None:
            last = {version.session: version for version in self.history(id)}
            # If several sessions have entries with this id, restore the deleted one.
            holders = [name for name, version in last.items() if version.deleted] or list(last)
            if len(holders) > 1:
                raise _ambiguous(id, holders)
            session = holders[0]
        return self.session(session).restore(id)

    def purge(self, id: str, session: str | None = None, *, follow: bool = False) -> Purged:  # noqa: A002
        """Remove every byte of an entry, deleted or not, and return what was purged; see ``Session.purge``.

        ``follow`` also purges all entries that were derived from it, deleted or not.
        """
        entry_id_of(id)
        if session is None:
            # Search the history and not the live entries, as deleted entries can be purged, too.
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
        # Remove the purged ids from the agent's memory tests, too.
        purge_ids(self._shared.root, self.slug, {entry_id for _, entry_id in names})
        return Purged(tuple(names))

    def sources(self, id: str, session: str | None = None) -> list[Entry]:  # noqa: A002
        """Return the entries that an entry was derived from; entries that no longer exist are left out.

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

        This holds until the entry, or an entry that it was derived from, changes. Models have no tool for it.

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
        """Compare all citations of entries with their files, and return them. No cached result is used.

        Args:
            accept: The id of an entry whose citations are first updated to the current text of their files.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            MemoryFileNotFoundError, NotTextError, ValueError: The cited text no longer exists or cannot be
                read, or the entry cites no file.
        """
        if accept is not None:
            entry, ts = self.get(accept), now(self._shared.clock)

            def taken(entry: Entry) -> Record:
                return {"id": entry.id, "ts": ts, **self._shared.judge.recited(entry)}

            self._store.modify(self.slug, entry.session, entry.id, taken)
        return [*self._shared.judge.verified(self.slug)]

    def on_behalf(self, by: str, via: str | None = None, *, may_cite: bool = True) -> Agent:
        """Return this agent for a surface, such as a tool or a server.

        Entries written through the returned agent record who said them, and through which surface. None of
        them has more trust than ``by``.

        Args:
            by: ``"user"``, ``"program"``, ``"model"``, ``"import"`` or ``"tool"``.
            via: The surface, such as ``"mcp/claude-code"``.
            may_cite: Whether entries may cite files of the project. Use False for writers on other machines,
                which could otherwise learn the content of the files.

        Examples:
            >>> agent.on_behalf("tool", "crawler").add("The office closes at six").trust
            'tool'
        """
        now = self._shared.writer
        # Use the lower trust of both: a surface behind another surface cannot raise the trust of its entries.
        writer = Writer(least((trust_level(by), now.by or by)), via, may_cite and now.may_cite)
        return Agent(replace(self._shared, writer=writer), self.slug)

    @traced("purge")
    def purge_matching(self, text: str, session: str | None = None, *, dry_run: bool = False) -> Purged:
        """Purge entries, sessions, files and suggestions with a text, ignoring case and Unicode normal form.

        The keys and values of every line of logs and archives are searched. This also finds deleted and
        archived entries, previous versions, and damaged lines, whose ids are digests. A session whose id
        contains the text is removed as a whole, and so is a file whose path or content contains it.

        Args:
            text: The text to search for, such as a name or a key.
            session: Only purge entries of this session, and no files.
            dry_run: Only return what would be purged.

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
        """Return the times of purges from ``since`` until before ``until``, oldest first.

        The list has one time for each purged entry. Clearing or removing a session purges all its entries. No
        other information about purged entries is kept.

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
        """Replace an entry with a new one, which is valid from then on, and return the new one.

        The new entry is added to the old one's session, with a link ``supersedes``. The old entry's
        ``valid_to`` becomes the new entry's ``valid_from``, or its time if it has none. Both changes are one
        atomic step, for readers and after a crash. From then on, recall, contexts and queries return the new
        entry. ``reinstate`` undoes this.

        Args:
            old_id: The id of the entry to replace.
            item: A mapping with the keys of a log line, or the new text. Without a ``type``, the new entry
                has the old entry's type.
            session: The session of the old entry, if several sessions have an entry with this id.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            AlreadySupersededError: The old entry is already superseded; the message names the entry that is
                valid now.
            EntryExistsError: An entry with the item's id exists.
            TypeError, ValueError: The item cannot be stored, or its id is the id of an entry that the old
                entry supersedes.

        Examples:
            >>> newer = agent.supersede(decision.id, {"decision": "Use passkeys to sign in"})
            >>> newer.type, newer.supersedes == (decision.id,)
            ('decision', True)
        """
        return self._session_of(old_id, session).supersede(old_id, item)

    def reinstate(self, old_id: str, session: str | None = None) -> Entry:
        """Undo ``supersede``: delete all replacements of an entry, make it valid again, and return it.

        This also works if the replacement was deleted or purged separately.

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
        """Propose a change of memory, for a person to accept or reject. No entry is changed.

        Args:
            do: ``"merge"`` (one new entry supersedes several), ``"supersede"``, ``"delete"``, ``"tag"`` (the
                item's ``tags`` are added), ``"pin"`` or ``"add"``.
            entries: The ids of the entries to change; none for ``add``.
            item: For ``merge``, ``supersede`` and ``add``, the new entry: a mapping with the keys of a log
                line, or its text. For ``tag``, ``{"tags": […]}``.
            why: The reason, for the person.
            evidence: Ids of entries, or other references, that the proposal is based on.
            by: Who proposes it.

        Raises:
            EntryNotFoundError, AmbiguousIdError: As for ``get``.
            TypeError, ValueError: An argument is invalid, one of the entries to replace is not valid now, or
                1,000 suggestions are open.
            SecretError: The suggestion contains a suspected secret, which the home refuses.

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
        """Return the suggestions in a state, or all if ``state`` is None, oldest first.

        A state is ``"open"``, ``"accepted"``, ``"rejected"``, ``"undone"`` or ``"outdated"``.
        """
        if state is not None and state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)} or None, not {state!r:.80}")
        return self._suggestions.select(state)

    def accept(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Apply a suggestion in one step, and record who accepted it. Only a person should accept one.

        If the suggestion adds an entry, the entry has the suggestion's id.

        Args:
            id: The suggestion.
            by: Who accepts it; default: ``"user"``.

        Raises:
            EntryNotFoundError: There is no such suggestion.
            SuggestionOutdatedError: The suggestion's entries have changed since it was made; nothing was
                written.
            ValueError: The suggestion was already decided, or this agent writes on behalf of a model, a tool
                or an import.
        """
        self._check_decides()
        ts = now(self._shared.clock)

        def new(suggestion: Suggestion, targets: Sequence[Entry]) -> Record:
            if not all(map(self.holds, targets)):
                raise ValueError(
                    f"an entry of suggestion {suggestion.id!r:.80} is not valid now: reject the suggestion"
                )
            item = {"type": targets[0].type if targets else "note"} | (suggestion.item or {})
            record = record_of(item | {"id": suggestion.id, "ts": ts}, self._shared.clock)
            self._shared.meaning.claim(self.slug)
            session = self.session(targets[0].session if targets else "main")
            signed = self._shared.judge.signed(self._shared.writer, self.slug, session.id, record)
            return session.guarded(signed)

        return self._suggestions.accept(name_of(id, "id"), _person(by), ts, new)

    def reject(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Reject a suggestion, and record who rejected it; see ``accept``."""
        self._check_decides()
        return self._suggestions.reject(name_of(id, "id"), _person(by), now(self._shared.clock))

    def undo(self, id: str, by: str | None = None) -> Suggestion:  # noqa: A002
        """Revert an accepted suggestion in one step, or reopen a rejected one.

        Raises:
            EntryNotFoundError: There is no such suggestion.
            SuggestionOutdatedError: The suggestion's entries have changed since it was accepted; nothing was
                written.
            ValueError: The suggestion was neither accepted nor rejected, or as for ``accept``.
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
        """Return the best matches for a query, with explanations: entries and, on request, files and notes.

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
                as ``"7d"``, or words such as ``"last week"``, which mean the start of that period.
            until: Only entries made before this time.
            as_of: Search the entries as they were at this time, including entries that were changed or
                deleted later. The formats are those of ``since``.
            min_priority: Only entries with at least this decayed priority.
            min_relevance: Only hits with at least this relevance, from 0 to 1; the result may be empty.
            vector: The vector to search with instead of the query's own; must not be zero.
            neighbours: Number of entries before and after each hit, in its session, to return with it. They
                do not count toward the limit.
            include_superseded: Include entries that are not valid now, or at ``as_of``: superseded, expired
                and future ones.
            trust: Only entries of at least this trust: ``"user"``, ``"program"``, ``"model"``, ``"import"``
                or ``"tool"``. Less trusted entries are ignored, even if they supersede a trusted one.
            include: What to search: ``"entries"``, the agent's ``"files"``, ``"notes"``. A hit in a file or a
                note is a bullet or paragraph, with ``path``, ``line`` and ``text``. The filters above apply
                to entries only. At most 1 MiB of files is searched; ``Hits.skipped`` lists the files that
                were not.
            notes: The notes to search if ``include`` names them, such as ``Notes(".")``.
            shared: The slugs of other agents whose shared entries are searched, too. Hits are then sorted by
                relevance; ``Hit.agent`` is the agent of the entry.

        Raises:
            NotGrantedError: An agent in ``shared`` shares nothing or does not exist, or ``as_of`` is given,
                too.
            TypeError, ValueError: An argument is invalid, ``include`` names notes and none are given, or
                ``as_of`` is given with files or notes, which have no versions.
            EmbeddingDimMismatchError, InvalidEmbeddingError: ``vector`` is invalid, or has another dimension
                than the agent's vectors.
            SpaceMismatchError: The home was opened with an embedder other than the one that made its vectors.

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
        """Yield the pairs of valid entries that repeat or contradict each other, except chat messages.

        Nothing is stored or resolved. A nightly job can pass the time of its previous run as ``since``.

        Args:
            since: Only pairs with an entry made at this time or later.
            kinds: ``"contradiction"`` or ``"duplicate"``; default: both.

        Raises:
            ValueError: A kind is unknown, or ``since`` is not a time.

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
        """Return the agent's vector search, in the space of an embedder or of vectors given by callers.

        Args:
            embedder: The embedder; default: the home's.
            dim: The required dimension; default: the embedder's, or that of the first given vector.

        Raises:
            TypeError, ValueError, EmbedderUnavailableError: The embedder is invalid or not usable.
            SpaceMismatchError: The embedder is not the home's.
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

        The prefix contains short instructions, notes, pinned entries, preferences and decisions. It is the
        same for every query as long as none of these changes. Recalled entries and the newest turns follow.
        Of a long recalled entry, only the best passage is shown.

        Args:
            query: The user's question. Without a question, or if nothing is relevant to it, nothing is
                recalled.
            budget: Maximum number of tokens.
            notes: The notes of a project and its user, such as ``Notes(".")``.
            counter: Counts the tokens of a text, such as ``keepstone.counter_of("openai")``; default: a
                conservative estimate.
            window: Texts and entry ids that the prompt already contains. Recalled entries and newest turns
                that match one of them are left out; the prefix does not change.
            ids: Also show the session and the id of each entry in the text.
            shared: The slugs of other agents whose shared entries are recalled, too.
            trust: The minimum trust of entries shown as memory; see ``Entry.trust``. Less trusted entries of
                every kind are shown in a separate fence at the end, with their origin.
            untrusted: ``"fence"``, or ``"omit"`` to leave out less trusted entries.
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
        # Check the grants here: without a query nothing is read from the other agents, and a missing grant
        # would go unnoticed.
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
        """Return a context's hits for a question; hits below the wanted trust come last, beyond the limit."""
        vectors = None if self._shared.meaning.is_unwanted else self.vectors()
        # The condition checks validity together with trust: if the newer of two facts is filtered out, the
        # older one is valid.
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
        # Search again without untrusted entries, which must not displace trusted ones.
        return [*hits(trusted), *others] if others else found

    def _newest(self, trusted: Trusted) -> list[Entry]:
        """Return the newest valid entries, oldest first, of the session that has the newest valid entry."""
        now = self._now()
        last = self._store.select(Scope(self.slug, valid_at=now), 1, newest_first=True)
        if not last:
            return []
        tied = {
            entry.session for entry in self._store.select(Scope(self.slug, since=last[0].ts, valid_at=now))
        }
        # If the newest entries of several sessions have the same time, use the session whose log changed
        # last.
        sessions = self._store.sessions(self.slug) if len(tied) > 1 else ()
        session = next((info.id for info in sessions if info.id in tied), last[0].session)

        def newest(limit: int | None) -> list[Entry]:
            return self._store.entries(self.slug, session, limit, None)

        return self._of_both(lambda holds: newest_valid(newest, _CONTEXT_NEWEST, holds), trusted)

    def _of_both(
        self, find: Callable[[Callable[[Entry], bool]], list[Entry]], trusted: Trusted
    ) -> list[Entry]:
        """Return the results for all entries and those for trusted entries only, merged by time."""
        either = replace(trusted, all=True)
        found = find(lambda entry: either.matches(entry.line))
        if all(trusted.admits(entry.line) for entry in found):
            return found
        known = {(entry.session, entry.id) for entry in found}
        more = find(lambda entry: trusted.matches(entry.line))
        found += [entry for entry in more if (entry.session, entry.id) not in known]
        return sorted(found, key=lambda entry: entry.ts)

    def tools(self, format: ToolFormat = "json") -> list[dict[str, Any]]:  # noqa: A002
        """Return the ten tools that let a model use this memory; ``call`` runs them.

        The MCP server offers the same tools.

        ``format`` is ``"json"`` (``name``, ``description``, and ``parameters`` as a JSON schema),
        ``"anthropic"``, ``"openai"`` (chat completions) or ``"openai-responses"``.
        """
        return self._toolbox("main").definitions(format)

    def call(self, name: str, arguments: Mapping[str, Any] | str, session: str = "main") -> dict[str, Any]:
        """Run a tool with the arguments that a model sent, and return the result. Never raises.

        ``arguments`` is a mapping or its JSON text. Saved entries record a model as their origin; see
        ``Entry.origin``.

        The result is ``{"ok": True, …}``, or ``{"ok": False, "error": {"code": …, "message": …}}``, where the
        message says what the model can do. ``session`` is the session to use if the arguments name none.

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

        The file or folder is created atomically at the end. ``Home.import_from`` reads every format.

        Args:
            path: The file or folder to write to.
            format: ``ndjson``, ``md``, ``okf``, ``sqlite`` or ``csv``.
            force: Replace what is at the path.

        Raises:
            FileExistsError: The path exists.
            ValueError: The format is unknown, or the path and the home contain each other.
            AgentNotFoundError: The agent has neither a session nor a file.
            AccessDeniedError, StoreError: The output cannot be written; no partial output is left.
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
    """Return the agent, or with ``of`` a view of that other agent, restricted by its grants; for servers."""
    return agent if of is None else agent._view_of(of)  # noqa: SLF001  Of this module.


def shares(agent: Agent, other: str) -> bool:
    """Return whether another agent shares anything now; for servers, which may run longer than a grant."""
    try:
        # ``ids=()`` matches no entry: this only checks the grants.
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
