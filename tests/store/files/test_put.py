"""What records come to beside the entries that are there, before a byte is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import entry, opened, patch

from keepstone.errors import EntryExistsError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.fold import Fold
from keepstone.log.line import apply, dump, parse
from keepstone.log.log_file import Log
from keepstone.log.scan import Scan
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.put import LiveEntries, folded_of, in_batch
from keepstone.store.resolving import Written, counted, refuse_other, resolve, without_old_vector
from keepstone.vector import encode, unit

EMBEDDING = encode("given:2", unit([1, 0]))


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[AgentLogs]:
    logs = AgentLogs(
        tmp_path,
        LAYOUTS["default"],
        "a",
        durable=False,
        create=True,
        most_logs=lambda: 8,
        finish=lambda _: None,
        language="en",
    )
    yield logs
    logs.close()


@pytest.fixture
def log(logs: AgentLogs) -> Log:
    """The log of a session that has one entry."""
    log = logs.log("s")
    with log.locked():
        log.append([dump(entry("a", "walnut"))])
    return log


@pytest.fixture
def known(logs: AgentLogs, log: Log) -> LiveEntries:
    return LiveEntries(logs, log, "s")


def written(*records: Record) -> list[Written]:
    return [Written(record, dump(record)) for record in records]


def expect(known: LiveEntries, log: Log, *ids: str) -> None:
    stat = log.stat()
    assert stat is not None
    known.look_up(stat, ids)


# What is there


@pytest.mark.parametrize("indexed", [False, True])
def test_whether_any_entry_was_met_is_known_afterwards(
    logs: AgentLogs, known: LiveEntries, log: Log, *, indexed: bool
) -> None:
    if indexed:
        logs.index.catch_up("s", log)
    expect(known, log, "a", "b")
    assert (known.get("b"), known.met) == (None, False)
    assert (known.get("a"), known.met) == (entry("a", "walnut"), True)


def test_where_the_index_cannot_answer_the_log_does(logs: AgentLogs, known: LiveEntries, log: Log) -> None:
    logs.index.close()
    expect(known, log, "a", "b")
    assert (known.get("a"), known.get("b")) == (entry("a", "walnut"), None)
    assert logs.stale


def test_what_an_index_that_is_behind_lacks_is_not_taken_for_absent(
    logs: AgentLogs, known: LiveEntries, log: Log
) -> None:
    logs.index.catch_up("s", log)
    with log.locked():
        log.append([dump(entry("b", "pecan"))])
    expect(known, log, "b")
    assert known.get("b") == entry("b", "pecan")


# What comes of records


def test_only_what_is_new_needs_writing(known: LiveEntries) -> None:
    again, new = entry("a", "walnut") | {"ts": "2026-02-02T00:00:00Z"}, entry("b", "pecan")
    results, needed = resolve(written(again, new), known, refuse_other)
    assert results == [entry("a", "walnut"), new]
    assert [one.record for one in needed] == [new]


def test_a_record_meets_those_before_it_in_its_batch(known: LiveEntries) -> None:
    results, needed = resolve(written(entry("b", "one"), entry("b", "two")), known, apply)
    assert [record["text"] for record in results] == ["one", "two"]
    assert len(needed) == 2
    assert known.met
    with pytest.raises(EntryExistsError, match="'b' exists with other content"):
        resolve(written(entry("b", "one"), entry("b", "two")), known, refuse_other)


def test_an_entry_that_would_outgrow_a_line_is_refused(known: LiveEntries) -> None:
    halves = [
        {"id": "a", "type": "note", "data": {"content": "x" * 9_000_000}},
        patch("a", tags=["x" * 9_000_000]),
    ]
    with pytest.raises(ValueError, match="the entry would have .* split it"):
        resolve(written(*halves), known, apply)


@pytest.mark.parametrize(
    ("there", "later", "named"),
    [
        ({}, {"text": "other"}, False),
        ({"embedding": EMBEDDING}, {"text": "other"}, True),
        ({"embedding": EMBEDDING}, {"text": "x"}, False),
        ({"embedding": EMBEDDING}, {"text": "other", "embedding": EMBEDDING}, False),
        ({"embedding": EMBEDDING}, {"text": "x", "speaker": "Ada"}, True),
    ],
)
def test_a_vector_is_given_up_where_it_would_answer_for_another_text(
    there: Record, later: Record, *, named: bool
) -> None:
    [one] = written({"id": "a", "type": "note", **later})
    new = without_old_vector(entry("a", "x", **there), one)
    assert (new.record == one.record | {"embedding": None}) is named
    assert (new is one) is not named
    assert parse(new.raw) == new.record


# The same again


@pytest.mark.parametrize(
    "changed", [{"access": 9}, {"pinned": True, "tags": ["x"]}, {"embedding": EMBEDDING}]
)
def test_what_patches_changed_since_does_not_make_a_record_another(changed: Record) -> None:
    there = entry("a", "x", **changed)
    assert refuse_other(there, entry("a", "x")) is refuse_other(there, entry("a", "x", **changed)) is there


@pytest.mark.parametrize(
    "other",
    [entry("a", "y"), entry("a", "x", type="fact"), entry("a", "x", pinned=False), entry("a", "x", more=1)],
)
def test_what_a_record_says_otherwise_is_refused(other: Record) -> None:
    with pytest.raises(EntryExistsError, match="update it, or choose another id"):
        refuse_other(entry("a", "x", pinned=True), other)


# Lines


@pytest.mark.parametrize(("access", "total"), [(None, 2), (3, 5), ("many", 2), (1.5, 2)])
def test_a_count_is_added_to_what_is_a_number(access: object, total: int) -> None:
    [line] = counted([entry("a", access=access), entry("b", access=4)], {"a": 2, "none": 7})
    assert parse(line) == {"id": "a", "access": total}


records = st.lists(
    st.builds(entry, st.uuids().map(str), st.text(st.characters(exclude_categories=["Cs"]))),
    min_size=1,
    max_size=6,
)


@given(records)
def test_the_lines_of_a_batch_say_their_place(some: list[Record]) -> None:
    lines = in_batch([dump(record) for record in some])
    places = [{"batch": [place, len(some)]} for place in range(1, len(some) + 1)]
    assert [parse(line) for line in lines] == [
        record | place for record, place in zip(some, places, strict=True)
    ]


@given(records, st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"") + b"\n"))
def test_what_was_appended_is_folded_as_a_reader_would(some: list[Record], before: bytes) -> None:
    raw = in_batch([dump(record) for record in some])
    with opened(before + b"".join(raw)) as fd:
        read = Fold().take(Scan(fd, len(before)))
    assert folded_of(some, raw, len(before)) == list(read.entries.values())
