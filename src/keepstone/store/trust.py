"""Trust and staleness of entries, computed from their origins and the store; never stored.

A stored score would become outdated when sources change, and a model could write it. So a line records only
who wrote it, and an entry has the least trust of its own origin and of all its sources
(docs/decisions/0031-trust-is-computed-from-origins.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from keepstone.errors import AmbiguousIdError, EntryNotFoundError, KeepstoneError
from keepstone.log.arguments import Clock
from keepstone.log.line import body_of, instant, links_of, read_time
from keepstone.log.where import conditions_of
from keepstone.model import (
    DERIVED,
    LEAST,
    SUPERSEDES,
    TRUST,
    Entry,
    Finding,
    Record,
    Scope,
    Writer,
    is_at_least,
    least,
    own_trust,
    sources_of,
    trust_level,
)
from keepstone.store.citations import BROKEN, Citation, Project, cited, is_citation
from keepstone.store.paging import pages
from keepstone.store.protocol import Store
from keepstone.store.validity import is_valid

Entries = TypeVar("Entries", bound=Sequence[Entry])

_SHOWN = 10
"""Maximum number of entries that a finding names."""
_MOST = 1_000
"""Maximum number of entries that one query of the store returns."""
_GONE = "gone"
_CITED = {"changed": "has changed", "gone": "is gone"}
_STALE = " stale"
"""Suffix of a source's state if the source was already stale when a person vouched for the entry."""


class Source(NamedTuple):
    """A source of a derived entry, as its origin names it."""

    id: str
    entry: Entry | None
    """None if the source was deleted or purged."""
    known: str | None
    """The state from which the entry was derived; None if the entry's line does not record it."""


class Judge:
    """Computes the trust and the staleness of entries from their direct and indirect sources."""

    def __init__(self, store: Store, clock: Clock, project: Project) -> None:
        self._store = store
        self._clock = clock
        self.project = project

    def attach(self, entries: Entries) -> Entries:
        """Attach this judge to the entries that have an origin or links, and return all entries.

        Each call restarts the budget of files that may be read.
        """
        asking = [entry for entry in entries if "origin" in entry.line or "links" in entry.line]
        if asking:
            self.project.begin()
        for entry in asking:
            # Entries are frozen; the judge is not part of their value.
            object.__setattr__(entry, "_judge", self)
        return entries

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Leave the store behind when an entry is pickled or copied."""
        return type(None), ()

    def trust(self, agent: str, session: str | None, record: Record) -> str:
        """Return the least trust of an entry and of its direct and indirect sources."""
        words, seen, edge = {own_trust(record)}, set[tuple[str, str]](), [(session, record)]
        # No trust is lower than the least, so the walk ends there.
        while edge and LEAST not in words:
            holder, line = edge.pop()
            # A person's confirmation outweighs the sources, unless these changed after it.
            if _is_vouched(line) and self.stale(agent, holder, line) is None:
                continue
            for source in self.sources(agent, holder, line):
                # The writer of a removed source is unknown.
                words.add(LEAST if source.entry is None else own_trust(source.entry.line))
                if source.entry is not None and (key := (source.entry.session, source.id)) not in seen:
                    seen.add(key)
                    edge.append((source.entry.session, source.entry.line))
        return least(words)

    def stale(self, agent: str, session: str | None, record: Record) -> str | None:
        """Return why an entry may be outdated, as a source or a cited text has changed; else None."""
        seen, edge = set[tuple[str, str]](), [(session, record)]
        while edge:
            # Breadth first, so that the nearest reason is named.
            holder, line = edge.pop(0)
            for source in self.sources(agent, holder, line):
                state, accepted = self._state(source, line), (source.known or "").removesuffix(_STALE)
                # Without a recorded state an edit cannot be detected, so only a source that is no longer
                # valid is a reason.
                if state != accepted and (source.known is not None or _status(state)):
                    return f"its source {source.id:.80} {_status(state) or 'was edited'}"
                key = (source.entry.session, source.id) if source.entry is not None else ("", source.id)
                # If the source was already stale when a person vouched for the entry, the sources of the
                # source are not examined.
                if source.entry is not None and key not in seen and not (source.known or "").endswith(_STALE):
                    seen.add(key)
                    edge.append((source.entry.session, source.entry.line))
        for link in cited(record):
            if (state := self.project.compare(link).state) in BROKEN:
                return f"it cites {link['to'].removeprefix('file:'):.200}, which {_CITED[state]}"
        return None

    def sources(self, agent: str, session: str | None, record: Record) -> Iterator[Source]:
        """Yield the sources of an entry, each from the recorded session or, if missing there, from any."""
        named = sources_of(record)
        links = {link["to"]: link for link in links_of(record) if link.get("rel") == DERIVED} if named else {}
        for name in named:
            link: Mapping[str, Any] = links.get(name, {})
            found = self._find(agent, link.get("session", session), name)
            known = link.get("digest")
            yield Source(name, next(iter(found), None), known if isinstance(known, str) else None)

    def derived(self, agent: str, session: str, entry_id: str) -> list[Entry]:
        """Return the live entries that were derived directly from an entry."""
        found = self._store.linked(agent, [entry_id], DERIVED, _MOST)
        self.attach(found)
        return [
            entry
            for entry in found
            if entry_id in sources_of(entry.line)
            and all(
                source.entry is None or source.entry.session == session
                for source in self.sources(agent, entry.session, entry.line)
                if source.id == entry_id
            )
        ]

    def all_derived(self, agent: str, session: str, entry_id: str) -> list[tuple[str, str]]:
        """Return (session, id) of all entries derived from an entry, even indirectly or now deleted."""
        found, edge = {(session, entry_id): None}, [entry_id]
        while edge:
            name = edge.pop()
            # ``linked`` returns live entries only, so all versions with the id in them are searched.
            for holder, other in pages(partial(self._store.matching, agent, name, None, _MOST)):
                versions = self._store.history(agent, other, holder)
                if versions and (holder, other) not in found and name in sources_of(versions[-1].line):
                    found[holder, other] = None
                    edge.append(other)
        return [*found][1:]

    def signed(self, writer: Writer, agent: str, session: str, record: Record) -> Record:
        """Return a new line of an entry with its origin, and with links to its sources.

        Raises:
            EntryNotFoundError: An id of ``derived_from`` names no entry.
            AmbiguousIdError: An id of ``derived_from`` names entries of several other sessions.
        """
        named = record.get("derived_from") or ()
        links = [self.project.cite(place) for place in record.get("cites") or ()]
        for name in named:
            source = self._source(agent, session, name)
            link = {"to": name, "rel": DERIVED, "digest": self._state(Source(name, source, None), record)}
            links.append(link if source.session == session else {**link, "session": source.session})
        new = {key: value for key, value in record.items() if key not in ("derived_from", "origin", "cites")}
        if origin := writer.origin(record.get("origin"), named):
            new["origin"] = origin
        if links:
            new["links"] = [*new.get("links", ()), *links]
        if "embedding" in new:
            new["embedding"] = new.pop("embedding")  # Last in the line, as ``Session.add`` writes it.
        return new

    def lowered(self, writer: Writer, entry: Entry) -> Record:
        """Return the origin of an entry after a less trusted writer's change, sources kept; else nothing."""
        own = own_trust(entry.line)
        if least((own, writer.by or TRUST[0])) == own:
            return {}
        return {"origin": writer.origin(entry.origin)}

    def relinked(self, entry: Entry, later: Record) -> Record:
        """Return a change that keeps an entry's links to its sources, even if it names other links."""
        if "links" not in later:
            return later
        kept = [link for link in links_of(entry.line) if _is_rested_on(link)]
        return later | {"links": [*(link for link in later["links"] or () if not _is_rested_on(link)), *kept]}

    def vouching(self, entry: Entry) -> Record:
        """Return the keys of the log line by which a person confirms the state of an entry and its sources.

        The line repeats the entry's content, so that a concurrent text from another device replaces both or
        neither: a confirmation never passes to a text that the person did not see.
        """
        sources = [*self.sources(entry.agent, entry.session, entry.line)]
        links = [link for link in entry.links if not _is_derived(link)]
        for source in sources:
            state = self._state(source, entry.line)
            if source.entry is not None and self.stale(entry.agent, source.entry.session, source.entry.line):
                state += _STALE
            link = {"to": source.id, "rel": DERIVED, "digest": state}
            is_own = source.entry is None or source.entry.session == entry.session
            links.append(
                link if is_own or source.entry is None else {**link, "session": source.entry.session}
            )
        origin: dict[str, Any] = {"by": TRUST[0]}
        if sources:
            origin["from"] = [source.id for source in sources]
        said = {"type": entry.type, **body_of(entry.line)}
        return {
            **said,
            "origin": origin | {"vouched": True},
            **({"links": links} if links or entry.links else {}),
        }

    def verified(self, agent: str) -> Iterator[Citation]:
        """Yield all citations of an agent's entries, each compared with the current file."""
        scope = Scope(agent, where=conditions_of({"links": {"exists": True}}))
        for entry in pages(lambda at: self._store.select(scope, _MOST, at)):
            for link in cited(entry.line):
                state, lines = self.project.compare(link, fresh=True)
                commit = self.project.commit_of(link["to"]) if state == "changed" else None
                yield Citation(entry.session, entry.id, link["to"], state, lines, commit)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each agent with entries derived from less trusted entries."""
        for agent in self._store.agents():
            found: list[str] = []
            with suppress(KeepstoneError, OSError):  # An agent that cannot be opened has its own finding.
                found = self._laundered(agent)
            if found:
                shown = ", ".join(found[:_SHOWN]) + (" …" if len(found) > _SHOWN else "")
                yield Finding(
                    "ok",
                    agent,
                    f"{len(found):,} entries were derived from less trusted ones: {shown}",
                    "keepstone why ID, then keepstone vouch ID or keepstone delete ID",
                    "contexts show them in the last fence",
                    agent,
                )

    def _laundered(self, agent: str) -> list[str]:
        """Return the entries of an agent whose sources have less trust than their writers."""
        scope = Scope(agent, where=conditions_of({"origin": {"exists": True}}))
        return [
            f"{entry.session}/{entry.id}"
            for entry in pages(partial(self._store.select, scope, _MOST))
            if sources_of(entry.line)
            and self.trust(agent, entry.session, entry.line) != own_trust(entry.line)
        ]

    def recited(self, entry: Entry) -> Record:
        """Return the links of an entry, with its citations renewed from the current texts."""
        if not any(cited(entry.line)):
            raise ValueError(f"entry {entry.id!r:.80} cites no file: name one that keepstone verify lists")
        links = []
        for link in entry.links:
            is_cited = any(link is citation for citation in cited(entry.line))
            state, lines = self.project.compare(link, fresh=True) if is_cited else ("", "")
            place = f"{link['to'].partition('#')[0]}#{lines}" if lines else (link["to"] if is_cited else "")
            links.append(self.project.cite(place) if state not in ("", "elsewhere") else link)
        return {"links": links}

    def narrowed(self, scope: Scope, level: str | None) -> Scope:
        """Return a scope limited to entries with at least a level of trust; unchanged without a level.

        Trust comes before validity: an entry stays valid if all entries that replaced it are filtered out.
        """
        if level is None:
            return scope
        condition = Trusted(self, scope.agent, trust_level(level), scope.valid_at)
        return replace(scope, where=(*scope.where, condition), valid_at=None)

    def _find(self, agent: str, session: object, entry_id: str) -> list[Entry]:
        found: list[Entry] = []
        if isinstance(session, str) and session:
            found = self._store.find(agent, entry_id, session)
        return found or self._store.find(agent, entry_id, None)

    def _source(self, agent: str, session: str, entry_id: str) -> Entry:
        found = self._find(agent, session, entry_id)
        if not found:
            raise EntryNotFoundError(
                f"derived_from names {entry_id!r:.80}, but agent {agent!r} has no such entry: "
                "give ids of entries that are there"
            )
        if len(found) > 1:
            sessions = ", ".join(sorted(entry.session for entry in found))
            raise AmbiguousIdError(
                f"derived_from names {entry_id!r:.80}, which is in several sessions: {sessions}; "
                "write into the session of the one that is meant"
            )
        return found[0]

    def _state(self, source: Source, derived: Record) -> str:
        """Return the state of a source with respect to an entry that was derived from it."""
        if source.entry is None:
            return _GONE
        line, now = source.entry.line, instant(self._clock(), "the clock's time")
        # Sorted, as the order of keys has no meaning.
        text = json.dumps(body_of(line), sort_keys=True, ensure_ascii=False)
        digest = f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
        if (end := read_time(line.get("expires"))) is not None and end <= now:
            return f"{digest} expired"
        closed = (end := read_time(line.get("valid_to"))) is not None and end <= now
        # An entry that supersedes its source is not stale because of that.
        replaced = {link["to"] for link in links_of(derived) if link.get("rel") == SUPERSEDES}
        return f"{digest} superseded" if closed and source.id not in replaced else digest


@dataclass(frozen=True, slots=True)
class Trusted:
    """A condition for entries with at least a level of trust that are valid among such entries."""

    judge: Judge
    agent: str
    value: str
    valid_at: datetime | None
    all: bool = False
    """Whether entries with less trust pass, too, if they are valid."""
    key: str = "origin"
    operator: str = "trust"

    def matches(self, record: Record) -> bool:
        """Return whether an entry passes, in the shape of its log line."""
        if not self.admits(record):
            return self.all and (self.valid_at is None or is_valid(record, self.valid_at))
        return self.valid_at is None or self._holds(record, self.valid_at)

    def admits(self, record: Record) -> bool:
        """Return whether an entry has at least the wanted level of trust, whether or not it is valid."""
        word = self.judge.trust(self.agent, None, record) if sources_of(record) else own_trust(record)
        return is_at_least(word, self.value)

    def _holds(self, record: Record, moment: datetime) -> bool:
        if is_valid(record, moment):
            return True
        # An entry that only a newer entry closed is valid again if the newer entry is filtered out.
        if not is_valid({key: value for key, value in record.items() if key != "valid_to"}, moment):
            return False
        newer = [*self._newer(record["id"])]
        return bool(newer) and not any(self.admits(entry.line) for entry in newer)

    def _newer(self, entry_id: str) -> Iterator[Entry]:
        """Yield all entries that superseded an entry, directly or indirectly."""
        seen, edge = {entry_id}, [entry_id]
        while edge:
            found = self.judge._store.linked(self.agent, edge, SUPERSEDES, _MOST)  # noqa: SLF001
            new = [entry for entry in found if entry.id not in seen]
            seen.update(entry.id for entry in new)
            edge = [entry.id for entry in new]
            yield from new


def _status(state: str) -> str:
    """Return a phrase for the state of a source that is no longer valid; empty for other states."""
    words = {_GONE: "is gone", "expired": "has expired", "superseded": "is superseded"}
    return words.get(state.rpartition(" ")[2], "")


def _is_vouched(record: Record) -> bool:
    origin = record.get("origin")
    return isinstance(origin, Mapping) and origin.get("vouched") is True and own_trust(record) == TRUST[0]


def _is_derived(link: Any) -> bool:
    return isinstance(link, Mapping) and link.get("rel") == DERIVED


def _is_rested_on(link: Any) -> bool:
    return _is_derived(link) or (isinstance(link, Mapping) and is_citation(link))
