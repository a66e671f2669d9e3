"""What a writer knows of the entries of its session while it holds the lock."""

from __future__ import annotations

import pytest
from tests.damage import entry

from keepstone.index import reading
from keepstone.index.index import Index
from keepstone.log.line import dump
from keepstone.log.log_file import Log
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.live_entries import LiveEntries, search


@pytest.fixture
def log(logs: AgentLogs) -> Log:
    """The log of a session that has one entry."""
    log = logs.log("s")
    with log.locked():
        log.append([dump(entry("a", "walnut"))])
    return log


def live(logs: AgentLogs, log: Log, *ids: str) -> LiveEntries:
    return LiveEntries(logs, log, "s", log.stat(), ids)


@pytest.mark.parametrize("indexed", [False, True])
def test_whether_any_entry_was_met_is_known_afterwards(logs: AgentLogs, log: Log, *, indexed: bool) -> None:
    if indexed:
        logs.index.catch_up("s", log)
    known = live(logs, log, "a", "b")
    assert (known.get("b"), known.met) == (None, False)
    assert (known.get("a"), known.met) == (entry("a", "walnut"), True)


def test_where_the_index_cannot_answer_the_log_does(logs: AgentLogs, log: Log) -> None:
    logs.index.close()
    known = live(logs, log, "a", "b")
    assert (known.get("a"), known.get("b")) == (entry("a", "walnut"), None)
    assert logs.stale


def test_what_an_index_that_is_behind_lacks_is_not_taken_for_absent(logs: AgentLogs, log: Log) -> None:
    logs.index.catch_up("s", log)
    with log.locked():
        log.append([dump(entry("b", "pecan"))])
    known = live(logs, log, "b")
    assert known.get("b") == entry("b", "pecan")


def test_entries_are_those_of_the_log_whatever_the_index_on_disk_can_do(logs: AgentLogs, log: Log) -> None:
    logs.index.close()
    known = live(logs, log)
    assert [record["id"] for record in known.select("note", ())] == ["a"]
    assert known.links("supersedes") == []


def test_reader_is_answered_from_memory_where_the_index_on_disk_cannot_be_used(
    logs: AgentLogs, log: Log
) -> None:
    with log.locked():
        log.append([dump(entry("b", "pecan"))])
    logs.index.close()
    assert [row.id for row in logs.query_current(("s",), Index.newest, "s", -1, None)] == ["a", "b"]
    assert logs.stale


def test_an_index_made_again_since_the_search_is_not_taken_for_whole(
    logs: AgentLogs, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.locked():
        log.append([dump(entry(name, "pecan")) for name in "bcd"])
    logs.index.catch_up("s", log)
    found = search(logs, "s", log, ["c"])
    assert found is not None
    logs.index.discard()
    monkeypatch.setattr(reading, "STEP_LINES", 1)
    logs.index.step("s", log)
    with log.locked():
        log.append([dump(entry("e", "pecan"))])
    known = LiveEntries(logs, log, "s", log.stat(), ["c"], searched=found)
    assert known.get("c") == entry("c", "pecan")
