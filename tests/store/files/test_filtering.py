"""Entries of all sessions that a scope selects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.damage import lines

from keepstone.log.where import conditions_of
from keepstone.model import Scope
from keepstone.store.files import filtering
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.testing.clock import START
from keepstone.testing.making import record, time_at


@pytest.fixture
def filled(logs: AgentLogs) -> AgentLogs:
    """Sessions s and t with the entries 0 to 5 each, two a minute; even ones are tagged."""
    for session in ("t", "s"):
        (logs.folder.path / f"{session}.ndjson").write_bytes(
            lines(
                *(
                    record(
                        f"{session}{n}",
                        "",
                        minute=n // 2,
                        data={"n": n},
                        tags=["even"] if n % 2 == 0 else [],
                        **({"valid_to": time_at(60)} if n == 5 else {}),
                    )
                    for n in range(6)
                )
            )
        )
    return logs


def selected(
    logs: AgentLogs, limit: int | None = None, *, newest_first: bool = False, **limits: Any
) -> list[str]:
    """Return the ids of all pages, once the count was found to be the same."""
    scope, found, cursor = Scope("a", **limits), list[str](), None
    while True:
        page = filtering.select(logs, scope, limit, cursor, newest_first=newest_first)
        found += [entry.id for entry in page]
        if page.next is None:
            break
        cursor = page.next
    assert filtering.count(logs, scope) == len(found)
    return found


ALL = [f"{session}{2 * pair + at}" for pair in range(3) for session in "st" for at in (0, 1)]


@pytest.mark.parametrize("limit", [None, 1, 2, 5, 12, 99])
def test_entries_come_by_time_session_and_place_in_pages(filled: AgentLogs, limit: int | None) -> None:
    assert selected(filled, limit) == ALL
    assert selected(filled, limit, newest_first=True) == ALL[::-1]


@pytest.mark.parametrize("step", [1, 2, 5])
def test_what_sql_cannot_decide_is_decided_on_entries(
    filled: AgentLogs, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtering, "_STEP", step)
    where = conditions_of({"n": {"ne": 3, "not_in": [0]}})
    expected = [name for name in ALL if name[1] not in "03"]
    assert selected(filled, 2, where=where) == expected


def test_validity_is_decided_on_the_entries_that_have_bounds(filled: AgentLogs) -> None:
    assert selected(filled, valid_at=START) == ALL
    assert selected(filled, valid_at=START + timedelta(hours=2)) == [name for name in ALL if name[1] != "5"]


def test_more_tags_than_sql_compares_are_compared_on_entries(
    filled: AgentLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtering, "MOST_TAGS", 0)
    assert selected(filled, tags=("even",)) == [name for name in ALL if int(name[1]) % 2 == 0]


def test_a_page_goes_on_behind_an_entry_that_is_gone(filled: AgentLogs) -> None:
    page = filtering.select(filled, Scope("a"), 2, None, newest_first=False)
    (filled.folder.path / "s.ndjson").write_bytes(
        lines(record("s3", "", minute=1), record("s4", "", minute=2))
    )
    filled.refresh(0)
    found = filtering.select(filled, Scope("a"), 99, page.next, newest_first=False)
    assert [entry.id for entry in found] == ["t0", "t1", "s3", "t2", "t3", "s4", "t4", "t5"]


def test_a_page_goes_on_behind_its_last_entry_though_that_and_its_number_are_gone(filled: AgentLogs) -> None:
    page = filtering.select(filled, Scope("a", ("t",)), 1, None, newest_first=False)
    again = (record(f"t{n}", "", minute=n // 2) for n in (1, 2, 3))
    (filled.folder.path / "t.ndjson").write_bytes(lines(*again))
    filled.refresh(0)
    found = filtering.select(filled, Scope("a", ("t",)), 9, page.next, newest_first=False)
    assert [entry.id for entry in found] == ["t1", "t2", "t3"]


def test_a_page_of_nothing_is_the_last_one(filled: AgentLogs) -> None:
    page = filtering.select(filled, Scope("a"), 0, None, newest_first=False)
    assert (page, page.next) == ([], None)


def test_records_of_one_session_come_by_place(filled: AgentLogs) -> None:
    filled.reach(None)
    scope = Scope("a", ("t",), tags=("even",))
    assert [found["id"] for found in filtering.selected_in(filled.index, scope)] == ["t0", "t2", "t4"]
