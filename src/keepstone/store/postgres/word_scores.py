"""Word search in PostgreSQL: the entries that hold words of a query, ranked by BM25.

Stems and scores are the same as in the file store. A score uses the number of times that the entry holds a
word, the length of the entry, and the number of the agent's entries that hold the word. The rows of sessions
have the counts of entries and words. The number of entries that hold a word is counted by the query, cached
from a recent query, or estimated for the common words of a large agent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from keepstone.model import Scope
from keepstone.store.postgres.common_words import LARGE, MOST, Chosen, CommonWords, choose
from keepstone.store.postgres.entry_lists import conditions
from keepstone.store.postgres.entry_rows import tokens_of

_SATURATION, _BY_LENGTH = 1.2, 0.75
"""BM25's k1 and b."""
_LEAST = 1e-6
"""The weight of a word that at least half of all entries hold."""
_FEW = 1_000
"""Number of an agent's entries below which common words are searched, too."""
_LARGE = 20_000
"""Size of an agent, in entries, from which the store caches how many entries hold a word."""
_RARE = 5
"""Maximum number of entries that hold a rare word; a reader caches these entries."""
_SECONDS = 60.0
_MOST = 10_000


class Rare(NamedTuple):
    """An entry that holds a rare word, with the number of times that it holds each word of the query."""

    key: int
    times: list[float]


class Ranked(NamedTuple):
    """An entry in the result of the query."""

    key: int
    score: float
    head: str
    ts: Any


class HolderCounts:
    """Cache of the number of entries that hold each word, for large agents."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[tuple[str, int], tuple[float, int]] = {}
        self.common = CommonWords()

    def of(self, agent: str, tokens: Sequence[int]) -> list[int | None]:
        """Return the cached count of each word, or None if the word must be counted."""
        now = time.monotonic()
        with self._guard:
            found = [self._known.get((agent, token)) for token in tokens]
        return [None if cached is None or now - cached[0] > _SECONDS else cached[1] for cached in found]

    def keep(self, agent: str, tokens: Sequence[int], counts: Sequence[int], entries: float) -> None:
        """Cache the counts of a query if the agent is large."""
        if entries < _LARGE:
            return
        now = time.monotonic()
        with self._guard:
            if len(self._known) > _MOST:
                self._known.clear()
            for token, count in zip(tokens, counts, strict=True):
                self._known.setdefault((agent, token), (now, count))
                if now - self._known[agent, token][0] > _SECONDS:
                    self._known[agent, token] = (now, count)


class WordQuery:
    """The query for the entries in a scope that hold any of the given words."""

    def __init__(
        self, terms: Sequence[str], scope: Scope, limit: int, counts: HolderCounts, language: str
    ) -> None:
        self._agent = scope.agent
        self._counts = counts
        self._entries, self._length = 0, 0.0
        self._rare: list[Rare] = []
        self._terms = {term: tokens_of(scope.agent, term, language) for term in terms}
        words = [tokens for tokens in self._terms.values() if tokens]
        self._tokens = list(dict.fromkeys(token for tokens in words for token in tokens))
        self._holders = dict.fromkeys(self._tokens, 0)
        self.sql, self.values = self._made(words, scope, limit) if words else ("", [])

    def _made(self, words: Sequence[Sequence[int]], scope: Scope, limit: int) -> tuple[str, list[Any]]:
        tokens, agent = self._tokens, self._agent
        known = self._counts.of(agent, tokens)
        common = self._counts.common.of(agent)
        self._is_guarded = common is None
        # For a large agent whose common words are not known yet, the query finds and counts nothing.
        guard = "true" if common is not None else f"(SELECT n FROM total) < {LARGE}"
        estimated = {} if common is None else common.holders
        holders, holder_values = [], list[Any]()
        for at, (token, exact) in enumerate(zip(tokens, known, strict=True)):
            count = estimated.get(token) if exact is None else exact
            if count is None:
                holders.append(
                    f"CASE WHEN {guard} THEN (SELECT count(*) FROM entries e WHERE e.agent = %s "
                    f"AND e.terms @> ARRAY[%s]::bigint[]) ELSE 0 END AS d{at}"
                )
                holder_values += [agent, token]
            else:
                holders.append(f"{count}::bigint AS d{at}")
        idf = "ln(greatest(n - {d} + 0.5, 0.5) / ({d} + 0.5))"
        # The formula of the file store and of FTS5, so that both stores give the same scores.
        factor = _SATURATION + 1
        is_telling = f"(n < {_FEW} OR d{{at}} * 2 < n)"
        any_telling = " OR ".join(f"({is_telling.format(at=at)} AND d{at} > 0)" for at in range(len(tokens)))
        weights = [
            f"CASE WHEN NOT {is_telling.format(at=at)} AND ({any_telling}) THEN 0 "
            f"WHEN {idf.format(d=f'd{at}')} > 0 THEN {idf.format(d=f'd{at}')} ELSE {_LEAST} END "
            f"* {factor} AS w{at}"
            for at in range(len(tokens))
        ]
        place = {token: at for at, token in enumerate(tokens)}
        times = [
            f"coalesce(e.times[array_position(e.terms, %s::bigint)], 0)::float8 AS t{at}"
            for at in range(len(tokens))
        ]
        sums = []
        for word in words:  # Words with the same stem count separately, as in the file store.
            parts = " + ".join(
                f"w{place[token]} * (t{place[token]} / (t{place[token]} + damping))" for token in word
            )
            has_all = " AND ".join(f"t{place[token]} > 0" for token in word)
            sums.append(f"CASE WHEN {has_all} THEN {parts} ELSE 0 END")
        is_whole = replace(scope, where=()) == Scope(agent)
        chosen = choose(tokens, common) if common is not None and is_whole else Chosen([*tokens], [], [])
        asked_tokens = ", ".join(
            f"CASE WHEN {is_telling.format(at=place[token])} THEN %s::bigint END" for token in chosen.any
        )
        damping = f"{_SATURATION} * ({1 - _BY_LENGTH} + {_BY_LENGTH} * e.length / weight.average)"
        hardly = " + ".join(["0", *(f"d{place[token]}" for token in chosen.any)])
        hardly = f"(SELECT {hardly} FROM weight) < {limit}"
        taken, taken_values = self._taken(chosen, conditions(scope), guard, hardly)
        sql = (
            "WITH total AS MATERIALIZED (SELECT greatest(sum(entries), 1)::float8 AS n, "
            "greatest(sum(words) / greatest(sum(entries), 1), 1)::float8 AS average "
            "FROM sessions WHERE agent = %s), "
            f"held AS MATERIALIZED (SELECT {', '.join(holders)}), "
            # Leave out words that half of all entries hold: they have no weight, and finding the entries that
            # hold them would be most of the work.
            f"weight AS MATERIALIZED (SELECT *, {', '.join(weights)}, "
            f"CASE WHEN {any_telling} THEN array_remove(ARRAY[{asked_tokens}]::bigint[], NULL) "
            "ELSE %s::bigint[] END AS asked "
            "FROM total, held), "
            f"taken AS ({taken}), "
            f"found AS MATERIALIZED (SELECT e.key, e.head, e.ts, {damping} AS damping, {', '.join(times)} "
            "FROM taken e, weight), "
            f"scored AS (SELECT found.key, {' + '.join(sums)} AS score, found.head, found.ts "
            "FROM found, weight), "
            "best AS (SELECT * FROM scored WHERE score > 0 ORDER BY score DESC, key LIMIT %s) "
            "SELECT best.*, weight.n, weight.average, "
            f"ARRAY[{', '.join(f'd{at}' for at in range(len(tokens)))}] "
            "FROM weight LEFT JOIN best ON true"
        )
        # Also return the word counts of the entries that hold rare words, which saves recall another round
        # trip.
        if len(tokens) > 1:
            rare = " OR ".join(f"(d{at} <= {_RARE} AND t{at} > 0)" for at in range(len(tokens)))
            times_held = ", ".join(f"t{at}" for at in range(len(tokens)))
            sql += (
                f" UNION ALL SELECT found.key, NULL, NULL, NULL, NULL, NULL, ARRAY[{times_held}] "
                f"FROM found, weight WHERE {rare}"
            )
        return sql, [agent, *holder_values, *chosen.any, chosen.any, *taken_values, *tokens, limit]

    def _taken(
        self, chosen: Chosen, within: tuple[str, list[Any]], guard: str, hardly: str
    ) -> tuple[str, list[Any]]:
        """Return the query for the entries to score; ``hardly`` is the condition for ``chosen.few``."""
        source = f"SELECT e.key, e.head, e.ts, e.length, e.terms, e.times FROM entries e WHERE {within[0]}"
        before = "e.terms && (SELECT asked FROM weight)"
        sql, values, seen = f"{source} AND {guard} AND {before}", [*within[1]], list[Any]()
        # Each part leaves out the entries of the parts before it, so that none is scored twice.
        for every, condition in ((chosen.every, "true"), (chosen.few, hardly)):
            if every:
                own = f"{source} AND {condition} AND e.terms @> %s::bigint[] AND NOT ({before}) LIMIT {MOST}"
                sql += f" UNION ALL (SELECT * FROM ({own}) e)"
                values += [*within[1], every, *seen]
                before, seen = f"{before} OR e.terms @> %s::bigint[]", [every]
        return sql, values

    def ranked(self, rows: Sequence[tuple[Any, ...]]) -> list[Ranked]:
        """Return the candidates in the query's rows, best first."""
        found = [row for row in rows if row[4] is not None]
        if found:
            self._entries, self._length, holders = int(found[0][4]), found[0][5], found[0][6]
            self._holders = dict(zip(self._tokens, holders, strict=True))
            if not self.is_refused:
                self._counts.keep(self._agent, self._tokens, holders, self._entries)
        self._rare = [Rare(row[0], row[6]) for row in rows if row[4] is None]
        ranked = [Ranked(*row[:4]) for row in found if row[0] is not None]
        return sorted(ranked, key=lambda match: (-match.score, match.key))

    @property
    def is_refused(self) -> bool:
        """Whether the query returned nothing, as the agent is large and its common words were not known."""
        return self._is_guarded and self._entries >= LARGE

    def counted(self) -> tuple[int, dict[str, int], float]:
        """Return the agent's number of entries, upper bounds of each word's holders, and the mean length."""
        holders = {
            term: min((self._holders[token] for token in tokens), default=0)
            for term, tokens in self._terms.items()
        }
        return self._entries, holders, self._length

    def holding(self, word: str) -> set[int] | None:
        """Return the keys of the entries in scope that hold a word, or None if the result lacks them.

        The result has them for rare words, if the query has several words.
        """
        tokens = self._terms.get(word, ())
        if len(tokens) != 1 or len(self._tokens) == 1 or self._holders[tokens[0]] > _RARE:
            return None
        place = self._tokens.index(tokens[0])
        return {rare.key for rare in self._rare if rare.times[place] > 0}
