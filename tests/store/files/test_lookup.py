"""Entries that the index of an agent finds, in one session or in all."""

from __future__ import annotations

import pytest
from tests.damage import entry, lines, tombstone

from keepstone.errors import InvalidSessionIdError
from keepstone.model import Entry, Record
from keepstone.store.files import lookup
from keepstone.store.files.agent_logs import AgentLogs


def append(logs: AgentLogs, session: str, *items: Record) -> None:
    """Append to a log as a foreign program does."""
    with (logs.folder.path / f"{session}.ndjson").open("ab") as file:
        file.write(lines(*items))


@pytest.fixture
def filled(logs: AgentLogs) -> AgentLogs:
    """Sessions s and t, which both have an entry a."""
    append(logs, "s", entry("a", "one"), entry("b", links=[{"rel": "of", "to": "a"}]))
    append(logs, "t", entry("a", "two", pinned=True), entry("c", type="decision"))
    return logs


def ids(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(found.session, found.id) for found in entries]


def test_an_id_is_found_in_all_sessions_or_in_one(filled: AgentLogs) -> None:
    assert ids(lookup.find(filled, "a", None)) == [("s", "a"), ("t", "a")]
    assert [found.text for found in lookup.find(filled, "a", "t")] == ["two"]


@pytest.mark.parametrize("session", [None, "s", "missing"])
def test_an_id_that_nobody_has_is_not_found(filled: AgentLogs, session: str | None) -> None:
    assert lookup.find(filled, "none", session) == []


def test_an_id_that_no_session_can_have_is_refused(filled: AgentLogs) -> None:
    with pytest.raises(InvalidSessionIdError):
        lookup.find(filled, "a", "")


def test_a_change_by_another_program_is_seen_at_once(filled: AgentLogs) -> None:
    lookup.find(filled, "a", None)
    append(filled, "s", tombstone("a"))
    append(filled, "t", entry("a", "changed"))
    assert [found.text for found in lookup.find(filled, "a", None)] == ["changed"]


def test_links_are_found_by_their_target_and_relation(filled: AgentLogs) -> None:
    assert ids(lookup.linked(filled, ["a", "x"], None, 9)) == [("s", "b")]
    assert ids(lookup.linked(filled, ["a"], "of", 9)) == [("s", "b")]
    assert lookup.linked(filled, ["a"], "other", 9) == lookup.linked(filled, ["a"], None, 0) == []


def test_pinned_and_standing_entries_are_those_of_all_sessions(filled: AgentLogs) -> None:
    assert ids(lookup.pinned(filled)) == [("t", "a")]
    assert ids(lookup.standing(filled, 9)) == [("t", "c")]
    assert lookup.standing(filled, 0) == []


def test_sessions_without_entries_are_not_counted(filled: AgentLogs) -> None:
    append(filled, "empty", entry("x"), tombstone("x"))
    assert lookup.entry_counts(filled, None) == {"s": 2, "t": 2}
    assert lookup.entry_counts(filled, "t") == {"t": 2}
    assert lookup.entry_counts(filled, "empty") == {}
