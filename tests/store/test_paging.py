"""Lists of a store come in pages, each of which leads to the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.store.paging import Page, pages
from keepstone.testing.making import record

TIE = [record(f"e{at:02}", f"walnut {at}") for at in range(25)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path, LAYOUTS["default"], durable=False)
    store.append("a", "s", TIE)
    yield store
    store.close()


def entry_pages(store: FileStore, limit: int, **how: Any) -> Iterator[Page[Any]]:
    cursor = None
    while True:
        page = store.entries("a", "s", limit, None, cursor=cursor, **how)
        yield page
        if (cursor := page.next) is None:
            return


def ids(page: Page[Any]) -> list[str]:
    return [entry.id for entry in page]


@pytest.mark.parametrize("how", [{}, {"archived": True}])
def test_pages_of_entries_lead_from_the_newest_to_the_oldest(store: FileStore, how: dict[str, Any]) -> None:
    found = [ids(page) for page in entry_pages(store, 10, **how)]
    names = [each["id"] for each in TIE]
    assert found == [names[15:], names[5:15], names[:5]]


@pytest.mark.parametrize("gone", ["the edge", "all but the edge", "the whole page"])
def test_entries_that_go_between_pages_move_no_other(store: FileStore, gone: str) -> None:
    seen: list[str] = []
    for page in entry_pages(store, 10):
        seen = ids(page) + seen
        chosen = {"the edge": ids(page)[:1], "all but the edge": ids(page)[1:], "the whole page": ids(page)}
        store.purge("a", "s", chosen[gone])
        store.append("a", "s", [record(f"new{len(seen)}", "pecan", minute=9)])
    assert seen == [each["id"] for each in TIE]


def test_cursor_holds_in_another_store_and_after_a_rebuild(store: FileStore, tmp_path: Path) -> None:
    first = store.entries("a", "s", 10, None)
    store.purge("a", "s", ["e03"])
    with_another = FileStore(tmp_path, LAYOUTS["default"])
    with_another.maintenance.rebuild(None)
    found = with_another.entries("a", "s", 10, None, cursor=first.next)
    with_another.close()
    assert ids(found) == [f"e{at:02}" for at in range(5, 15)]


def test_a_page_reads_nothing_of_the_log(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    pread, read = os.pread, list[int]()

    def counting(fd: int, length: int, at: int) -> bytes:
        read.append(length)
        return pread(fd, length, at)

    costs = []
    for more in (0, 500):
        store.append("a", "s", [record(f"x{at}", "pecan", minute=-1) for at in range(more)])
        cursor = store.entries("a", "s", 5, None).next
        with monkeypatch.context() as patched:
            patched.setattr(os, "pread", counting)
            store.entries("a", "s", 5, None, cursor=cursor)
        costs.append(len(read))
        read.clear()
    assert costs == [0, 0]


def test_pages_of_sessions_lead_from_the_newest_on(store: FileStore) -> None:
    for name in ("b", "c", "d"):
        store.append("a", name, TIE[:1])
    everything = store.sessions("a")
    assert list(pages(lambda cursor: store.sessions("a", 2, cursor))) == everything
    assert [len(store.sessions("a", 2)), store.sessions("a", 9).next] == [2, None]


def test_pages_of_a_history_hold_each_version_once(store: FileStore) -> None:
    for session in ("s", "t"):
        store.put("a", session, [record("e00", "first")])
        for at in range(3):
            store.modify("a", session, "e00", lambda _, at=at: record("e00", f"version {at}"))  # type: ignore[misc]
    everything = store.history("a", "e00", None)
    assert len(everything) == 9
    for limit in (1, 2, 4, 9):
        found, cursor = list[Any](), None
        while not found or cursor is not None:
            page = store.history("a", "e00", None, limit, cursor)
            found, cursor = [*found, *page], page.next
        assert found == everything


def test_pages_of_what_holds_a_text_hold_each_once(store: FileStore) -> None:
    store.append("a", "t", TIE[:3])
    everything = store.matching("a", "walnut", None)
    assert len(everything) == 28
    for limit in (1, 7, 25, 28):
        found = pages(lambda cursor, limit=limit: store.matching("a", "walnut", None, limit, cursor))  # type: ignore[misc]
        assert list(found) == everything


@pytest.mark.parametrize(
    "ask",
    [
        lambda store, cursor: store.entries("a", "s", 1, None, cursor=cursor),
        lambda store, cursor: store.sessions("a", 1, cursor),
        lambda store, cursor: store.history("a", "e00", None, 1, cursor),
        lambda store, cursor: store.matching("a", "walnut", None, 1, cursor),
    ],
)
@pytest.mark.parametrize("cursor", ["", "nonsense", "é", "bnVsbA==", "W1tdLCAiYSJd"])
def test_made_up_cursor_is_refused(
    store: FileStore, ask: Callable[[FileStore, str], object], cursor: str
) -> None:
    with pytest.raises(ValueError, match="is not a cursor of this list"):
        ask(store, cursor)
