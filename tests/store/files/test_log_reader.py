"""The reader of an agent's logs as they are now."""

from __future__ import annotations

import pytest
from tests.damage import entry, lines

from keepstone.errors import StoreError
from keepstone.index import DamagedError, UnavailableError
from keepstone.model import Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.log_reader import LogReader
from keepstone.store.reader import ROWS, ExpiredError

ALL = Scope("a")


@pytest.fixture
def filled(logs: AgentLogs) -> AgentLogs:
    (logs.folder.path / "s.ndjson").write_bytes(lines(entry("a", "walnut"), entry("b", "pecan")))
    return logs


@pytest.fixture
def reader(filled: AgentLogs) -> LogReader:
    return LogReader(filled)


def found(reader: LogReader, *terms: str) -> list[int]:
    return [candidate.key for candidate in reader.search(terms, ALL, 9)]


def test_what_is_found_can_be_loaded(reader: LogReader) -> None:
    keys = found(reader, "walnut")
    loaded = reader.load(keys)
    assert [(loaded[key].session, loaded[key].id) for key in keys] == [("s", "a")]


def test_an_entry_that_is_gone_is_left_out(filled: AgentLogs, reader: LogReader) -> None:
    keys = found(reader, "walnut", "pecan")
    filled.index.forget("s", ["a"])
    assert [one.id for one in reader.load(keys).values()] == ["b"]


def test_a_key_of_another_epoch_is_refused(reader: LogReader) -> None:
    (key,) = found(reader, "walnut")
    with pytest.raises(ExpiredError, match="a key is of another epoch"):
        reader.load([key + ROWS])


def test_an_index_that_was_replaced_during_an_answer_ends_the_recall(
    filled: AgentLogs, reader: LogReader
) -> None:
    found(reader, "walnut")
    with pytest.raises(ExpiredError, match="the index was replaced"), reader as index:
        index._database.discard()  # noqa: SLF001  As a damaged file is.
    assert filled.index.counts() == {}


def test_a_damaged_index_is_filled_again_and_ends_the_recall(filled: AgentLogs, reader: LogReader) -> None:
    with pytest.raises(ExpiredError, match="a damaged page"), reader:
        raise DamagedError("a damaged page")
    assert filled.index.counts() == {"s": 2}


def test_an_index_that_cannot_be_used_makes_answers_stale(reader: LogReader) -> None:
    assert not reader.stale
    with pytest.raises(StoreError, match="agent 'a'"), reader:
        raise UnavailableError("the disk is full")
    assert reader.stale


def test_stale_answers_stay_so_though_the_index_has_followed_since(
    filled: AgentLogs, reader: LogReader
) -> None:
    filled.lag()
    filled.stale = True
    with pytest.raises(StoreError), reader:
        raise UnavailableError("busy")
    filled.stale = False
    assert reader.stale


def test_other_errors_are_raised_as_they_are(reader: LogReader) -> None:
    with pytest.raises(ZeroDivisionError), reader:
        raise ZeroDivisionError
    assert not reader.stale
