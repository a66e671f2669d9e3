"""A scope that is applied to columns lets through what it allows, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from keepstone.index.database import Database
from keepstone.index.entries import insert
from keepstone.index.session_table import LogState, room_in, save_known
from keepstone.index.vectors.scope_filter import ScopeFilter, filter_of, mask, ranges
from keepstone.index.vectors.vector_table import given_with
from keepstone.index.vectors.vector_table import insert as insert_vectors
from keepstone.log.line import format_time, microseconds
from keepstone.log.log_file import Stat
from keepstone.model import Scope
from keepstone.testing import START
from keepstone.vector import encode, unit

NAMES = ["note", "fact", "decision"]


@dataclass
class Table:
    """Columns, their rows sorted by session and time."""

    vids: NDArray[np.int64]
    times: NDArray[np.int64]
    sids: NDArray[np.int64]
    types: NDArray[np.int64]

    @property
    def sessions(self) -> dict[int, tuple[int, int]]:
        rows = {sid: np.flatnonzero(self.sids == sid) for sid in set(self.sids.tolist())}
        return {sid: (int(found[0]), int(found[-1]) + 1) for sid, found in rows.items()}


def table(rows: list[tuple[int, int, int]]) -> Table:
    sids, times, types = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    return Table(np.arange(len(rows), dtype=np.int64) + 50, times, sids, types)


tables = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 2)), max_size=15).map(table)
asked = st.builds(
    ScopeFilter,
    st.none() | st.lists(st.integers(1, 4), max_size=4, unique=True).map(sorted),
    st.none() | st.lists(st.sampled_from([*NAMES, "other"]), max_size=2).map(tuple),
    st.none() | st.integers(0, 4),
    st.none() | st.integers(0, 4),
    st.none() | st.lists(st.integers(48, 66)).map(lambda vids: np.array(vids, np.int64)),
)


def allows(columns: Table, row: int, one: ScopeFilter) -> bool:
    """The meaning of a scope, one row at a time."""
    return (
        (one.sids is None or columns.sids[row] in one.sids)
        and (one.types is None or NAMES[columns.types[row]] in one.types)
        and (one.since is None or columns.times[row] >= one.since)
        and (one.until is None or columns.times[row] < one.until)
        and (one.vids is None or columns.vids[row] in one.vids)
    )


@given(tables, asked)
@example(table([(1, time, 0) for time in range(4)]), ScopeFilter(None, None, 1, 3, None))
def test_ranges_and_masks_let_through_exactly_what_is_in_scope(columns: Table, one: ScopeFilter) -> None:
    found = []
    for begin, end in ranges(columns, columns.sessions, one):
        masked = mask(columns, NAMES, slice(begin, end), one)
        found += [row for row in range(begin, end) if masked is None or masked[row - begin]]
    assert found == [row for row in range(len(columns.vids)) if allows(columns, row, one)]


def test_a_range_begins_with_since_and_ends_before_until() -> None:
    columns = table([(sid, time, 0) for sid in (1, 2) for time in range(4)])
    assert ranges(columns, columns.sessions, ScopeFilter([1, 2], None, 1, 3, None)) == [(1, 3), (5, 7)]


@given(tables, asked)
def test_no_range_is_empty_and_none_overlap(columns: Table, one: ScopeFilter) -> None:
    found = ranges(columns, columns.sessions, one)
    ends = [0, *(end for _, end in found)]
    assert all(begin >= before and begin < end for before, (begin, end) in zip(ends, found, strict=False))


def test_a_query_for_all_rows_has_no_mask() -> None:
    one = ScopeFilter([1], None, None, None, None)
    assert (one.is_plain, mask(table([(1, 1, 1)]), NAMES, slice(0, 1), one)) == (True, None)


def test_without_any_types_none_is_wanted() -> None:
    empty = table([])
    masked = mask(empty, [], slice(0, 0), ScopeFilter(None, ("note",), None, None, None))
    assert masked is not None
    assert len(masked) == 0


# What a scope asks for


@pytest.fixture
def database() -> Database:
    """Sessions s1 and s2 with an entry each, of which the second has a tag and vectors of two spaces."""
    database = Database(None)
    for number, tags in ((1, None), (2, ["x"])):
        record = {
            "id": f"e{number}",
            "ts": format_time(START),
            "type": "note",
            "text": "x",
            "tags": tags,
            "embedding": encode("given:2", unit([1, 0])),
        }
        known = LogState(0, "", Stat(1, 0, 0), 1, None, 0, 0, 0)
        sid = save_known(database, f"s{number}", known)
        room = room_in(database, sid)
        insert(database, sid, [record], room)
        insert_vectors(database, given_with(database, [(room.eid, record)])[0])
    database.execute("INSERT INTO vector(space, eid, made, f32) VALUES(7, 2, 1, x'00')")
    return database


@pytest.mark.parametrize(
    ("sessions", "sids"),
    [(None, None), ((), []), (("s2", "none", "s1", "s2"), [1, 2]), (("none",), []), (('"', "\ud800"), [])],
)
def test_sessions_are_wanted_by_number_and_unknown_ones_have_none(
    database: Database, sessions: tuple[str, ...] | None, sids: list[int] | None
) -> None:
    assert filter_of(database, 1, Scope("a", sessions), {}).sids == sids


@pytest.mark.parametrize(("tags", "vids"), [(("x",), [2]), (("x", "y"), []), (("X",), [])])
def test_what_has_all_tags_is_wanted_by_number(
    database: Database, tags: tuple[str, ...], vids: list[int]
) -> None:
    found = filter_of(database, 1, Scope("a", tags=tags), {}).vids
    assert found is not None
    assert found.tolist() == vids


@pytest.mark.parametrize(
    ("scope", "is_plain"),
    [
        (Scope("a"), True),
        (Scope("a", ("s1",)), True),
        (Scope("a", tags=()), True),
        (Scope("a", types=()), False),
        (Scope("a", tags=("x",)), False),
        (Scope("a", since=START), False),
        (Scope("a", until=START), False),
    ],
)
def test_only_whole_sessions_are_plain(database: Database, scope: Scope, *, is_plain: bool) -> None:
    assert filter_of(database, 1, scope, {}).is_plain is is_plain


def test_times_are_wanted_in_microseconds(database: Database) -> None:
    found = filter_of(database, 1, Scope("a", since=START, until=START + timedelta(microseconds=1)), {})
    assert (found.since, found.until) == (microseconds(START), microseconds(START) + 1)
