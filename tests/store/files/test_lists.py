"""Pages of one agent's sessions, entries and versions, from its files."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.damage import entry, lines, tombstone

from keepstone.errors import InvalidSessionIdError
from keepstone.filesystem.layout import ARCHIVE
from keepstone.model import Record
from keepstone.store.files import lists
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.paging import encode


def ts(minute: int) -> str:
    return f"2026-01-11T14:{minute:02}:00.000000Z"


def write(logs: AgentLogs, session: str, *items: Record | bytes, minute: int = 0, sub: str = "") -> None:
    path = logs.folder.path / sub / f"{session}.ndjson"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lines(*items))
    os.utime(path, (minute * 60, minute * 60))


def all_pages(list_page: Any, limit: int) -> list[Any]:
    found, cursor = [], None
    while True:
        page = list_page(limit, cursor)
        assert len(page) <= limit
        found.append([*page])
        if page.next is None:
            return found
        cursor = page.next


def test_sessions_come_by_their_last_change_the_newest_first(logs: AgentLogs) -> None:
    for session, minute in (("old", 1), ("new", 3), ("b", 2), ("c", 2)):
        write(logs, session, entry("a"), minute=minute)
    pages = all_pages(lambda limit, cursor: lists.sessions(logs, limit, cursor), 1)
    assert [info.id for page in pages for info in page] == ["new", "c", "b", "old"]
    assert [info.id for info in lists.sessions(logs, None, None)] == ["new", "c", "b", "old"]


def test_a_session_that_changes_between_two_pages_is_not_repeated(logs: AgentLogs) -> None:
    for minute, session in enumerate(["a", "b", "c"]):
        write(logs, session, entry("x"), minute=minute)
    first = lists.sessions(logs, 2, None)
    write(logs, "b", entry("y"), minute=9)
    assert [info.id for info in lists.sessions(logs, 9, first.next)] == ["a"]


def test_lines_are_shown_without_the_marks_of_batches(logs: AgentLogs) -> None:
    write(logs, "s", entry("a", batch=[1, 1]), b"no line", tombstone("a"))
    assert list(lists.lines(logs.log("s"))) == [entry("a"), tombstone("a")]


def test_pages_of_entries_go_from_the_newest_back_each_oldest_first(logs: AgentLogs) -> None:
    write(logs, "s", *(entry(str(number), ts=ts(number)) for number in range(5)))
    pages = all_pages(lambda limit, cursor: lists.entries(logs, "s", limit, None, cursor), 2)
    assert [[found.id for found in page] for page in pages] == [["3", "4"], ["1", "2"], ["0"]]


def test_a_cursor_holds_once_its_entry_is_gone(logs: AgentLogs) -> None:
    written = [entry(str(number), ts=ts(number)) for number in range(4)]
    write(logs, "s", *written)
    first = lists.entries(logs, "s", 2, None, None)
    write(logs, "s", *written, tombstone("2"))
    assert [found.id for found in lists.entries(logs, "s", 2, None, first.next)] == ["0", "1"]


def test_entries_of_some_types_fill_their_pages(logs: AgentLogs) -> None:
    write(logs, "s", *(entry(str(n), ts=ts(n), type=("note", "fact")[n % 2]) for n in range(6)))
    pages = all_pages(lambda limit, cursor: lists.entries(logs, "s", limit, ["fact"], cursor), 2)
    assert [[found.id for found in page] for page in pages] == [["3", "5"], ["1"]]


def test_an_id_that_no_session_can_have_is_refused(logs: AgentLogs) -> None:
    with pytest.raises(InvalidSessionIdError):
        lists.entries(logs, "", None, None, None)


def test_a_past_state_has_the_same_pages_as_the_present(logs: AgentLogs) -> None:
    records = [entry(str(number), ts=ts(number)) for number in range(5)]
    pages = all_pages(lambda limit, cursor: lists.of_state(logs, "s", records, limit, None, cursor), 2)
    assert [[found.id for found in page] for page in pages] == [["3", "4"], ["1", "2"], ["0"]]


def test_a_page_of_a_past_state_goes_on_where_its_entry_is_gone(logs: AgentLogs) -> None:
    records = [entry(str(number), ts=ts(number)) for number in range(4)]
    first = lists.of_state(logs, "s", records, 2, None, None)
    left = [record for record in records if record["id"] != "2"]
    assert [found.id for found in lists.of_state(logs, "s", left, 2, None, first.next)] == ["0", "1"]


# Entries that hold a text


def test_a_text_is_found_in_logs_archives_and_other_spellings(logs: AgentLogs) -> None:
    write(logs, "s", entry("log", "Walnut"))
    write(logs, "s", entry("archived", "walnut"), sub=ARCHIVE)
    write(logs, "%73", entry("other", "walnuts"))
    write(logs, "t", entry("t", "walnut"), entry("none", "pecan"))
    found = [("s", "archived"), ("s", "log"), ("s", "other"), ("t", "t")]
    assert lists.matching(logs, "walnut", None, None, None) == found
    assert lists.matching(logs, "walnut", "t", None, None) == [("t", "t")]
    pages = all_pages(lambda limit, cursor: lists.matching(logs, "walnut", None, limit, cursor), 3)
    assert pages == [found[:3], found[3:]]


def test_versions_of_one_entry_come_by_session_in_pages(logs: AgentLogs) -> None:
    write(logs, "t", entry("a", "one"), entry("a", "two", ts=ts(40)))
    write(logs, "s", entry("a", "three"), entry("b", "other"))
    pages = all_pages(lambda limit, cursor: lists.history(logs, "a", None, limit, cursor), 2)
    assert [[version.text for version in page] for page in pages] == [["three", "one"], ["two"]]
    assert [version.text for version in lists.history(logs, "a", "t", None, None)] == ["one", "two"]


@pytest.mark.parametrize("cursor", ["made up", encode("x")])
def test_a_cursor_of_another_list_is_refused(logs: AgentLogs, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        lists.sessions(logs, 2, cursor)
