"""An index in memory that answers while the one on disk cannot."""

from __future__ import annotations

import pytest
from tests.damage import entry, lines

from keepstone.store.files import spare_index
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.spare_index import SpareIndex


@pytest.fixture
def filled(logs: AgentLogs) -> AgentLogs:
    for session in ("s", "t"):
        (logs.folder.path / f"{session}.ndjson").write_bytes(lines(entry("a"), entry("b")))
    return logs


@pytest.fixture
def spare() -> SpareIndex:
    return SpareIndex("en")


def test_it_holds_the_logs_that_it_is_asked_for(filled: AgentLogs, spare: SpareIndex) -> None:
    index = spare.holding(["s"], filled.log, is_all=False)
    assert index is not None
    assert (index.in_memory, index.counts()) == (True, {"s": 2})


def test_it_is_kept_and_follows_the_logs(filled: AgentLogs, spare: SpareIndex) -> None:
    first = spare.holding(["s"], filled.log, is_all=False)
    with (filled.folder.path / "s.ndjson").open("ab") as file:
        file.write(lines(entry("c")))
    second = spare.holding(["s", "t"], filled.log, is_all=False)
    assert second is not None
    assert second is first
    assert second.counts() == {"s": 3, "t": 2}


def test_a_session_that_is_gone_leaves_it_where_all_are_named(filled: AgentLogs, spare: SpareIndex) -> None:
    spare.holding(["s", "t"], filled.log, is_all=True)
    index = spare.holding(["s"], filled.log, is_all=True)
    assert index is not None
    assert list(index.known()) == ["s"]


def test_ids_that_no_session_can_have_and_missing_logs_hold_nothing(
    filled: AgentLogs, spare: SpareIndex
) -> None:
    index = spare.holding(["", "missing"], filled.log, is_all=False)
    assert index is not None
    assert index.counts() == {}


def test_logs_that_are_long_together_are_not_read(
    filled: AgentLogs, spare: SpareIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = (filled.folder.path / "s.ndjson").stat().st_size
    monkeypatch.setattr(spare_index, "AT_ONCE", 2 * length - 1)
    assert spare.holding(["s", "t"], filled.log, is_all=True) is None
    assert spare.holding(["s"], filled.log, is_all=False) is not None


def test_one_log_is_read_whatever_its_length(filled: AgentLogs, spare: SpareIndex) -> None:
    index = spare.with_log("s", filled.log("s"), within=9.0)
    assert index is not None
    assert index.counts("s") == {"s": 2}


def test_it_is_made_again_once_it_was_dropped(filled: AgentLogs, spare: SpareIndex) -> None:
    first = spare.holding(["s"], filled.log, is_all=False)
    spare.forget()
    assert spare.holding(["s"], filled.log, is_all=False) is not first
