"""Estimated frequencies of common words in a large agent's entries, and the choice of entries to score.

Counting and scoring all entries that hold a common word takes seconds at a million entries. So their number
is estimated from a sample. An entry without a rare word of the query is scored only if it holds the common
words together, as an entry with only some of them ranks below.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Query: TypeAlias = "tuple[str, Sequence[Any]]"

LARGE = 50_000
"""Number of entries from which an agent is large."""
MOST = 20_000
"""Maximum number of holders of common words in each part of a search; rare words have no maximum."""
_SAMPLED = 2_000
_COMMON = 6
"""A word is common if at least this number of sampled entries hold it: 3 in 1,000."""
_SECONDS = 600.0
_MOST_AGENTS = 1_000


class Common(NamedTuple):
    """The number of a large agent's entries, and of the entries that hold each common word."""

    entries: int
    holders: Mapping[int, int]


class CommonWords:
    """Cache of the common words of large agents."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[str, tuple[float, Common]] = {}

    def of(self, agent: str) -> Common | None:
        """Return an agent's common words (empty for a small agent), or None if they are not cached."""
        with self._guard:
            known = self._known.get(agent)
        return None if known is None else known[1]

    def is_due(self, agent: str) -> bool:
        """Return whether the next search should read an agent's common words."""
        with self._guard:
            return time.monotonic() - self._known.get(agent, (float("-inf"),))[0] >= _SECONDS

    def take(self, agent: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Cache the result of the query ``sample``."""
        holders = {token: round(hits * entries / sampled) for token, hits, sampled, entries in rows}
        found = Common(rows[0][3] if rows else 0, holders)
        with self._guard:
            if len(self._known) > _MOST_AGENTS:
                self._known.clear()
            self._known[agent] = (time.monotonic(), found)


def sample(agent: str) -> Query:
    """Return the query for the common words of evenly spaced entries, empty for a small agent."""
    keys = "SELECT key FROM entries WHERE agent = %s"
    return (
        "WITH total AS MATERIALIZED "
        "(SELECT coalesce(sum(entries), 0)::bigint AS n FROM sessions WHERE agent = %s), "
        f"bounds AS MATERIALIZED (SELECT ({keys} ORDER BY key LIMIT 1) AS low, "
        f"({keys} ORDER BY key DESC LIMIT 1) AS high), "
        f"chosen AS MATERIALIZED (SELECT DISTINCT ({keys} "
        # Evenly spaced keys, each found by one index lookup: nothing is counted or sorted.
        f"AND key >= low + (high - low) * step / {_SAMPLED - 1} "
        "ORDER BY key LIMIT 1) AS key FROM total, bounds, "
        f"generate_series(0, CASE WHEN n >= {LARGE} THEN {_SAMPLED - 1} ELSE -1 END) AS step) "
        "SELECT token, count(*), (SELECT count(*) FROM chosen), (SELECT n FROM total) "
        "FROM chosen JOIN entries e ON e.agent = %s AND e.key = chosen.key, unnest(e.terms) AS token "
        f"GROUP BY token HAVING count(*) >= {_COMMON}",
        [agent] * 5,
    )


class Chosen(NamedTuple):
    """The words whose holders a search scores."""

    any: list[int]
    """Words whose holders are all scored."""
    every: list[int]
    """Common words; of the entries that hold all of these words, at most ``MOST`` are scored."""
    few: list[int]
    """A common word; if too few entries hold a word of ``any``, at most ``MOST`` that hold it are scored."""


def choose(tokens: Sequence[int], common: Common) -> Chosen:
    """Choose the holders of a query's words to score; at most about ``MOST`` hold common words only.

    Examples:
        >>> choose([1, 2, 3, 4], Common(1_000_000, {2: 15_000, 3: 90_000, 4: 300_000}))
        Chosen(any=[1, 2], every=[3, 4], few=[])
        >>> choose([1, 3, 4, 5], Common(1_000_000, {3: 60_000, 4: 90_000, 5: 300_000}))
        Chosen(any=[1], every=[3, 4], few=[3])
    """
    entries, holders = common
    chosen = [token for token in tokens if token not in holders]
    rest = sorted((token for token in tokens if token in holders), key=lambda token: holders[token])
    room = MOST
    while rest and holders[rest[0]] <= room:
        room -= holders[rest[0]]
        chosen.append(rest.pop(0))
    few = rest[:1] if room == MOST else []
    for count in range(2, len(rest)):
        # Estimate as if words were independent; in fact they occur together more often.
        if entries * math.prod(holders[token] / entries for token in rest[:count]) <= MOST:
            return Chosen(chosen, rest[:count], few)
    return Chosen(chosen, rest if len(rest) > 1 else [], few)
