"""SQL for the candidates of a recall, with the data that recall needs next, to save round trips.

The data are their neighbours, their cosines with a vector, the beginnings of their texts, and their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keepstone.model import Scope
from keepstone.store.postgres.entry_lists import FROM, LINES, LOADED, conditions
from keepstone.store.postgres.entry_rows import stored
from keepstone.store.postgres.vector_rows import Query
from keepstone.store.reader import Ahead
from keepstone.vector import Vector


@dataclass(frozen=True, slots=True)
class Measured:
    """SQL for the cosines of entries ``e`` with a vector."""

    column: str = "NULL::float8"
    joined: str = ""
    vector: Sequence[Any] = ()
    """The parameter of the column; empty if nothing is measured."""
    space: Sequence[Any] = ()
    """The parameter of the join."""


def measured(query_vector: tuple[str, Vector] | None) -> Measured:
    """Return the SQL for cosines with a vector of a space, or for nulls if there is no vector."""
    if query_vector is None:
        return Measured()
    space, vector = query_vector
    joined = "LEFT JOIN vectors v ON v.agent = e.agent AND v.key = e.key AND v.space = %s"
    return Measured("-(v.embedding <#> %s::vector)", joined, (vector,), (stored(space),))


def _around(agent: str, reach: int) -> Query:
    """Return the query for the keys of entry ``x`` and its neighbours, with their distances."""
    near = [
        f" UNION ALL (SELECT n.key, row_number() OVER (ORDER BY n.seq {order}) AS far FROM entries n "
        f"WHERE n.agent = %s AND n.session = x.session AND n.seq {sign} x.seq "
        f"ORDER BY n.seq {order} LIMIT {reach})"
        for order, sign in (("DESC", "<"), ("ASC", ">"))
        if reach
    ]
    return f"SELECT x.key, 0::bigint AS far{''.join(near)}", [agent] * len(near)


def linked(keys: str, given: list[Any], reach: int, scope: Scope, near: Measured) -> Query:
    """Return the query for entries, whose keys are an SQL array, and for their neighbours.

    A row has the key of an entry ``x``. Then follow, for ``x`` or one of its neighbours, the cosine, the
    distance from ``x`` (0 for ``x`` itself), the key, the head and the time. With ``where``, which is checked
    on all of them, the record comes last.
    """
    condition, values = conditions(scope)
    record, lines = (f", {LOADED}", LINES) if scope.where else ("", "")
    around, agents = _around(scope.agent, reach)
    return (
        f"SELECT x.key, {near.column}, near.far, e.key, e.head, e.ts{record} FROM entries x "
        f"CROSS JOIN LATERAL ({around}) near "
        f"JOIN entries e ON e.agent = x.agent AND e.key = near.key {lines} {near.joined} "
        f"WHERE x.agent = %s AND x.key = ANY({keys}) AND (near.far = 0 OR ({condition}))",
        [*near.vector, *agents, *near.space, scope.agent, *given, *values],
    )


def with_neighbours(nearest: Query, ahead: Ahead, scope: Scope, near: Measured) -> Query:
    """Return the query for the nearest entries, then for these and those of ``ahead`` with neighbours."""
    sql, values = linked(
        "(SELECT array_agg(key) FROM nearest) || %s::bigint[]", [list(ahead.keys)], ahead.reach, scope, near
    )
    return (
        # MATERIALIZED, as it is used twice and must be computed only once.
        f"WITH nearest AS MATERIALIZED ({nearest[0]}) SELECT key, distance, NULL::bigint, NULL::bigint, "
        f"NULL, NULL{', NULL, NULL' if scope.where else ''} FROM nearest UNION ALL {sql}",
        [*nearest[1], *values],
    )


def with_records(nearest: Query, agent: str) -> Query:
    """Return the query for the nearest entries, each with its record."""
    return (
        f"WITH nearest AS MATERIALIZED ({nearest[0]}) SELECT nearest.key, nearest.distance, {LOADED} "
        f"{FROM} JOIN nearest ON nearest.key = e.key WHERE e.agent = %s",
        [*nearest[1], agent],
    )
