"""The PostgreSQL reader of one agent: the queries of a recall, in three round trips for most questions.

1. The word query, with the number of entries without a vector.
2. The vector query, with the neighbours of all candidates, their cosines and the beginnings of their texts.
3. The entries that are shown.

The reader caches all results. A word that no entry holds takes another round trip, which searches for typing
errors; so does an identifier whose parts are in more than 200 entries. If filters that are checked on loaded
entries reject most of them, recall asks for longer lists, one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from keepstone.model import Entry, Scope
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.candidate_rows import linked, measured, with_neighbours, with_records
from keepstone.store.postgres.common_words import sample
from keepstone.store.postgres.connecting import PLANNED_ONCE, Connections
from keepstone.store.postgres.entry_lists import FROM, LOADED, conditions, loaded
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.vector_rows import Query
from keepstone.store.postgres.vector_samples import VectorSamples
from keepstone.store.postgres.word_holders import WordHolders
from keepstone.store.postgres.word_scores import HolderCounts, WordQuery
from keepstone.store.reader import HNSW_FROM, Ahead, Candidate, Matches, Similar
from keepstone.vector import Space, Vector, quartiles

_SMALL = 5_000
"""Number of a session's vectors below which their exact scan uses a cached, generic plan."""
_NEVER = 1 << 62
"""A graph threshold above any number of vectors, so that no graph is used."""


class PostgresReader:
    """A ``Reader`` of the current state of an agent's sessions. Keys are never reused for other entries."""

    stale = False

    def __init__(
        self,
        connections: Connections,
        agent: str,
        counts: HolderCounts,
        due: set[tuple[str, str, int]],
        spaces: vector_rows.AgentSpaces,
        samples: VectorSamples,
        sizes: vector_rows.Sizes,
    ) -> None:
        self._connections = connections
        self._agent = agent
        self._counts = counts
        self._due = due
        self._spaces = spaces
        self._samples = samples
        self._sizes = sizes
        self._query_vector: tuple[str, Vector] | None = None
        self._near: dict[int, float | None] = {}
        self._heads: dict[int, tuple[str, datetime]] = {}
        self._pending: tuple[str, Scope, int] | None = None
        self._sampled: list[float] | None = None
        self._searched: list[tuple[Scope, WordQuery]] = []
        self._loaded: dict[int, Entry] = {}
        self._records: dict[int, Sequence[Any]] = {}
        """Rows of entries that came with an earlier query, for ``load``."""
        self._links: tuple[int, Scope, frozenset[int], list[tuple[int, int, int]]] | None = None
        self._holders = WordHolders(agent, connections.language, self._read_all, self._loaded)

    def search(self, terms: Sequence[str], scope: Scope, limit: int, names: Sequence[str] = ()) -> Matches:
        """Return entries in scope that hold any of the words, best first."""
        query = self._words(terms, scope, limit)
        if not query.sql or not limit:
            return Matches()
        writes, space = self._connections.writes, self._spaces.home.known
        queries = self._queries_with(query, scope, space)
        # Search for the names in the same round trip as the words.
        new = [name for name in names if not self._holders.is_known(name, scope)]
        phrases = [name for name in new if self._holders.is_phrase(name)]
        looks = [self._holders.first_look(name, scope) for name in phrases]
        answers = self._read_all([*queries.values(), *looks])
        for name, rows in zip(phrases, answers[len(queries) :], strict=True):
            self._holders.take(name, scope, rows)
        rows_of = dict(zip(queries, answers, strict=False))
        self._spaces.home.take(rows_of["home"])
        if space is not None:
            self._pending = (space.id, scope, rows_of["pending"][0][0])
            self._sizes.take(space.id, scope, rows_of["sizes"])
        if "spaces" in rows_of:
            self._spaces.take(self._agent, writes, rows_of["spaces"])
        if "sample" in rows_of:
            self._counts.common.take(self._agent, rows_of["sample"])
        ranked = query.ranked(rows_of["words"])
        # The first search of a large agent returns only its common words. Search again with these.
        if query.is_refused:
            return self.search(terms, scope, limit, names)
        self._searched.append((scope, query))
        self._heads |= {match.key: (shown(match.head), match.ts.astimezone(UTC)) for match in ranked}
        return Matches([Candidate(match.key, match.score) for match in ranked], *query.counted())

    def _queries_with(self, query: WordQuery, scope: Scope, space: Space | None) -> dict[str, Query]:
        """Return the word query and the other queries that a recall needs, by name."""
        queries: dict[str, Query] = {"words": (query.sql, query.values), "home": self._spaces.home.query}
        if space is not None:
            queries["pending"] = _pending_count(space.id, scope)
            queries["sizes"] = vector_rows.sizes(space.id, scope)
        if self._spaces.is_due(self._agent):
            queries["spaces"] = self._spaces.query(self._agent)
        if self._counts.common.is_due(self._agent):
            queries["sample"] = sample(self._agent)
        return queries

    def _words(self, terms: Sequence[str], scope: Scope, limit: int) -> WordQuery:
        return WordQuery(terms, scope, limit, self._counts, self._connections.language)

    def holding(
        self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]
    ) -> dict[str, set[int]]:
        """Return the keys of the entries in scope that hold each word.

        If more than ``most`` entries hold a word, only keys in ``among`` are returned.
        """
        for word in words:
            if not self._holders.is_known(word, scope):
                known = (query.holding(word) for within, query in self._searched if within == scope)
                keys = next((keys for keys in known if keys is not None), None)
                if keys is not None:
                    self._holders.learn(word, scope, keys)
        return self._holders.of(words, scope, most, among)

    def _read_all(self, queries: Sequence[Query], more: str = "") -> list[list[tuple[Any, ...]]]:
        """Run queries in one round trip and return the rows of each."""
        return self._connections.read_all(self._agent, queries, more)

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,
        *,
        ahead: Ahead | None = None,
    ) -> Similar:
        """Return the entries in scope whose vectors of a space are nearest, best first.

        With ``ahead``, the results of the next queries come in the same round trip.
        """
        if not limit:
            return Similar()
        self._remember(vector, space)
        by_graph, is_due = self._by_graph(space, scope, len(vector), hnsw_from)
        self._sampled = self._samples.cosines(self._agent, space, vector)
        is_due_to_count = self._sizes.is_due(space, scope)
        # The order matters: the answers are taken from the front of the list below.
        queries: list[Query] = [vector_rows.sizes(space, scope)] if is_due_to_count else []
        if self._sampled is None:
            queries.append(self._samples.query(self._agent, space, vector))
        if by_graph:
            # The settings last until the end of the transaction, which includes the search.
            queries.append((vector_rows.graph_settings(limit), ()))
            nearest = vector_rows.nearest_by_graph(vector, space, scope, limit)
        else:
            nearest = vector_rows.nearest(vector, space, scope, limit)
        if ahead is not None:
            near_to = measured(self._query_vector)
            nearest = (
                with_neighbours(nearest, ahead, scope, near_to)
                if ahead.reach
                else with_records(nearest, self._agent)
            )
        queries.append(nearest)
        more = PLANNED_ONCE if self._is_small(space, scope) else ""
        *sampled, rows = self._read_all(queries, more)
        if is_due_to_count:
            self._sizes.take(space, scope, sampled.pop(0))
        if self._sampled is None:
            self._sampled = self._samples.take(self._agent, space, vector, sampled[0])
        near = [row[:2] for row in rows if ahead is None or not ahead.reach or row[2] is None]
        count, _ = self._sizes.get(space, scope) or (0, False)
        if by_graph and len(near) < min(limit, count):  # Too few of the graph's vectors passed the filter.
            return self.similar(vector, space, scope, limit, _NEVER, ahead=ahead)
        found = sorted(
            (Candidate(key, -far) for key, far in near),
            key=lambda candidate: (-candidate.score, candidate.key),
        )
        self._near |= {candidate.key: candidate.score for candidate in found}
        if ahead is not None and ahead.reach:
            links = self._learned_links([row for row in rows if row[2] is not None])
            keys = frozenset((*ahead.keys, *(candidate.key for candidate in found)))
            self._links = (ahead.reach, scope, keys, links)
        elif ahead is not None:
            self._loaded |= {key: loaded(self._agent, row) for key, _, *row in rows}
        return Similar(found, "hnsw" if by_graph else "exact", is_due=is_due)

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        """Return median and upper quartile of a vector's cosines with a sample; None if it is too small."""
        self._remember(vector, space)
        if self._sampled is None:  # Otherwise it came with the nearest vectors.
            self._sampled = self._samples.cosines(self._agent, space, vector)
        if self._sampled is None:
            query = self._samples.query(self._agent, space, vector)
            [rows] = self._read_all([query])
            self._sampled = self._samples.take(self._agent, space, vector, rows)
        return quartiles(self._sampled or ())

    def _is_small(self, space: str, scope: Scope) -> bool:
        """Return whether scanning all vectors in scope takes less time than planning the query."""
        count, _ = self._sizes.get(space, scope) or (_SMALL, False)
        is_session = len(scope.sessions or ()) == 1 and not scope.limits_within_a_session
        return is_session and count < _SMALL and not self._connections.is_distributed

    def _by_graph(self, space: str, scope: Scope, dim: int, hnsw_from: int) -> tuple[bool, bool]:
        """Return whether to search the agent's graph, and whether a graph should be built."""
        is_whole = not scope.limits_within_a_session and len(scope.sessions or ("",)) == 1
        if not is_whole or dim > vector_rows.MOST_DIMENSIONS:
            return False, False
        count, is_there = self._sizes.get(space, scope) or (hnsw_from, False)
        if count >= hnsw_from and not is_there:  # Read again: a graph may have been built.
            [rows] = self._read_all([vector_rows.sizes(space, scope)])
            self._sizes.take(space, scope, rows)
            [(count, is_there)] = rows
        if count < hnsw_from:
            return False, False
        if not is_there:
            self._due.add((self._agent, space, dim))
        return is_there, not is_there

    def _remember(self, vector: Vector, space: str) -> None:
        """Set the query vector, and drop cached cosines with a different one."""
        known = self._query_vector
        # Usually it is the same object, so the elements are compared only if it is not.
        if known is None or known[0] != space or not (known[1] is vector or (known[1] == vector).all()):
            self._query_vector, self._near, self._sampled = (space, vector), {}, None

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return (key, neighbour's key, distance) for entries in scope at most ``reach`` places away."""
        if not keys:
            return []
        if self._links is not None and self._links[:2] == (reach, scope) and self._links[2] >= {*keys}:
            wanted = {*keys}
            return [link for link in self._links[3] if link[0] in wanted]
        query = linked("%s::bigint[]", [list(keys)], reach, scope, measured(self._query_vector))
        links = self._learned_links(self._read_all([query])[0])
        self._links = (reach, scope, frozenset(keys), links)
        return links

    def _learned_links(self, rows: Sequence[Sequence[Any]]) -> list[tuple[int, int, int]]:
        self._learn((other, near, head, ts) for _, near, _, other, head, ts, *_ in rows)
        self._records |= {row[3]: row[6:] for row in rows if row[6:]}
        return [(key, other, far) for key, _, far, other, *_ in rows if far]

    def _learn(self, rows: Iterable[Sequence[Any]]) -> None:
        for key, near, head, ts in rows:
            self._heads[key] = (shown(head), ts.astimezone(UTC))
            if self._query_vector is not None:
                self._near[key] = near

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of entries' vectors with ``vector``; entries without a vector are left out."""
        self._remember(vector, space)
        self._read_heads([key for key in keys if key not in self._near])
        found = ((key, self._near.get(key)) for key in keys)
        return {key: near for key, near in found if near is not None}

    def heads(self, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        """Return the beginnings of entries' texts and their timestamps, by key."""
        self._read_heads([key for key in keys if key not in self._heads])
        return {key: self._heads[key] for key in keys if key in self._heads}

    def _read_heads(self, keys: Sequence[int]) -> None:
        if not keys:
            return
        near = measured(self._query_vector)
        sql = (
            f"SELECT e.key, {near.column}, e.head, e.ts FROM entries e {near.joined} "
            "WHERE e.agent = %s AND e.key = ANY(%s)"
        )
        self._learn(self._read_all([(sql, [*near.vector, *near.space, self._agent, list(keys)])])[0])

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        """Return the entries with these keys; removed entries are left out."""
        missing = [key for key in keys if key not in self._loaded and key not in self._records]
        rows: dict[int, Sequence[Any]] = {}
        if missing:
            sql = f"SELECT e.key, {LOADED} {FROM} WHERE e.agent = %s AND e.key = ANY(%s)"
            rows = {key: row for key, *row in self._read_all([(sql, (self._agent, missing))])[0]}
        for key in keys:
            if key in self._records:
                self._loaded[key] = loaded(self._agent, self._records.pop(key))
        found = self._loaded | {key: loaded(self._agent, row) for key, row in rows.items()}
        return {key: found[key] for key in keys if key in found}

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the keys of entries in scope with text but without a vector of a space, oldest first."""
        self._pending = None  # The entries are about to get vectors, after which the count is outdated.
        source, values = _pending(space, scope)
        if cursor is not None:
            source += f" AND e.key {'<' if newest_first else '>'} %s"
            values = [*values, cursor]
        if keys is not None:
            source += " AND e.key = ANY(%s)"
            values = [*values, list(keys)]
        sql = f"SELECT e.key {source} ORDER BY e.key {'DESC' if newest_first else 'ASC'} LIMIT %s"
        return [key for (key,) in self._read_all([(sql, [*values, limit])])[0]]

    def pending_count(self, space: str, scope: Scope) -> int:
        """Return how many entries in scope have text and no vector of a space."""
        known = self._pending
        if known is not None and known[:2] == (space, scope):
            return known[2]
        queries = [_pending_count(space, scope), vector_rows.sizes(space, scope)]
        [[count]], sized = self._read_all(queries)
        self._sizes.take(space, scope, sized)
        self._pending = (space, scope, int(count))
        return int(count)


def _pending_count(space: str, scope: Scope) -> Query:
    source, values = _pending(space, scope)
    return f"SELECT count(*) {source}", values


def _pending(space: str, scope: Scope) -> Query:
    """Return the FROM and WHERE clauses for entries without a vector; sessions that lack none are skipped."""
    condition, values = conditions(scope)
    lacking, lacking_values = conditions(Scope(scope.agent, scope.sessions), alias="s")
    made = "SELECT c.vectors FROM spaces c WHERE c.agent = s.agent AND c.session = s.session AND c.space = %s"
    sessions = (
        f"SELECT s.session FROM sessions s WHERE {lacking} "
        f"AND (s.entries > s.texts OR s.texts > coalesce(({made}), 0))"
    )
    return (
        f"FROM entries e WHERE {condition} AND e.sum IS NOT NULL "
        # An array, so that PostgreSQL finds the sessions once, before the entries.
        f"AND e.session = ANY(ARRAY({sessions})) AND NOT EXISTS (SELECT 1 FROM vectors v "
        "WHERE v.agent = e.agent AND v.key = e.key AND v.space = %s)",
        [*values, *lacking_values, stored(space), stored(space)],
    )
