"""A scope as a filter of columns, applied before any vector is compared.

Most queries are about one session, some sessions or a time range. A filter after a graph search costs recall,
and the narrower the filter, the more it costs (docs/decisions/0008-exact-first-vectors.md).
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from keepstone.index.database import Database
from keepstone.index.entries import conditions
from keepstone.log.line import microseconds
from keepstone.model import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Range = tuple[int, int]
"""Rows from the first number up to, and without, the second."""


class Columns(Protocol):
    """The columns that describe each vector, one value a row."""

    @property
    def vids(self) -> NDArray[np.int64]:
        """The numbers of the vectors."""

    @property
    def times(self) -> NDArray[np.int64]:
        """The times of the entries, in microseconds."""

    @property
    def sids(self) -> NDArray[np.int64] | NDArray[np.int32]:
        """The numbers of the sessions."""

    @property
    def types(self) -> NDArray[np.int64] | NDArray[np.int32]:
        """The types of the entries, as positions in a list of types."""


@dataclass(frozen=True, slots=True)
class ScopeFilter:
    """A scope in terms of columns. A field that is None restricts nothing."""

    sids: list[int] | None
    types: tuple[str, ...] | None
    since: int | None
    until: int | None
    vids: NDArray[np.int64] | None
    """The numbers of the vectors in scope, if only SQLite can find them, as for tags."""

    @property
    def is_plain(self) -> bool:
        """Whether all rows of the sessions are in scope."""
        return self.types is None and self.since is None and self.until is None and self.vids is None


EVERYTHING = ScopeFilter(None, None, None, None, None)
"""The filter that lets every row through."""


def filter_of(database: Database, space: int, scope: Scope, known: dict[str, int]) -> ScopeFilter:
    """Return the filter of a scope; ``known`` caches the numbers of sessions."""
    return ScopeFilter(
        None if scope.sessions is None else _sids(database, scope.sessions, known),
        None if scope.types is None else tuple(scope.types),
        None if scope.since is None else microseconds(scope.since),
        None if scope.until is None else microseconds(scope.until),
        _tagged(database, space, scope) if scope.tags else None,
    )


def _sids(database: Database, sessions: Sequence[str], known: dict[str, int]) -> list[int]:
    unknown = [name for name in sessions if name not in known]
    if unknown:
        sql = "SELECT name, sid FROM session WHERE name IN (SELECT value FROM json_each(?))"
        known |= database.rows(sql, (json.dumps(unknown),))
    return sorted({known[name] for name in sessions if name in known})


def _tagged(database: Database, space: int, scope: Scope) -> NDArray[np.int64]:
    import numpy as np

    condition, bindings = conditions(scope)
    sql = (
        # CROSS JOIN keeps SQLite to this order: from sessions to their entries to the vectors.
        "SELECT v.vid FROM session s CROSS JOIN entry e ON e.sid=s.sid "
        f"CROSS JOIN vector v ON v.space=? AND v.eid=e.eid WHERE {condition}"
    )
    return np.array([vid for (vid,) in database.rows(sql, (space, *bindings))], np.int64)


def ranges(columns: Columns, sessions: Mapping[int, Range], scope_filter: ScopeFilter) -> list[Range]:
    """Return ranges that include all rows in scope, of rows that are sorted by session and time.

    ``sessions`` gives the range of each session's rows.
    """
    if scope_filter.sids is None:
        return [(0, len(columns.sids))] if len(columns.sids) else []
    found = []
    for begin, end in (sessions[sid] for sid in scope_filter.sids if sid in sessions):
        # Rows of a session are sorted by time, so the rows between two times are a range.
        times = columns.times[begin:end]
        first = 0 if scope_filter.since is None else int(times.searchsorted(scope_filter.since))
        last = len(times) if scope_filter.until is None else int(times.searchsorted(scope_filter.until))
        if first < last:
            found.append((begin + first, begin + last))
    return found


def mask(
    columns: Columns, names: Sequence[str], rows: slice | NDArray[np.intp], scope_filter: ScopeFilter
) -> NDArray[np.bool_] | None:
    """Return a mask of the given rows that are in scope; None if all of them are."""
    import numpy as np

    masks = []
    if scope_filter.types is not None:
        types = columns.types[rows]
        wanted = [code for code, name in enumerate(names) if name in scope_filter.types]
        # Comparing the whole column with each type takes a fifth of the time of a lookup table.
        masks.append(types == wanted[0] if len(wanted) == 1 else np.isin(types, wanted, kind="sort"))
    if scope_filter.since is not None:
        masks.append(columns.times[rows] >= scope_filter.since)
    if scope_filter.until is not None:
        masks.append(columns.times[rows] < scope_filter.until)
    if scope_filter.vids is not None:
        masks.append(np.isin(columns.vids[rows], scope_filter.vids))
    return reduce(operator.and_, masks) if masks else None
