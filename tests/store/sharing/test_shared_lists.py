"""Lists of an agent's own entries together with those that others share with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keepstone.errors import NotGrantedError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.model import Scope
from keepstone.store.files.file_store import FileStore
from keepstone.store.sharing.granted_store import Reach
from keepstone.store.sharing.grants import Grant
from keepstone.store.sharing.shared_lists import SharedLists
from keepstone.testing.clock import START
from keepstone.testing.making import record

ALL = ["o0", "t0", "s0", "o1", "t1", "s1", "o2", "t2", "s2", "o3"]
"""By time; at one time the own entry comes first, then those of the others in their order."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    """Agents own, team and second; both others share notes with own."""
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        for agent, count in (("own", 4), ("team", 3), ("second", 3)):
            store.append(agent, "s", [record(f"{agent[0]}{n}", "x", minute=n) for n in range(count)])
            store.append(agent, "s", [record(f"{agent}-fact", "x", minute=1, kind="fact")])
        for agent in ("team", "second"):
            store.add_grant(agent, Grant("own", "read", types=("note",), ts=START))
        yield store


def lists(store: FileStore, *others: str) -> SharedLists:
    reaches = [Reach(store, lambda: START, "own", other) for other in others or ("team", "second")]
    return SharedLists(store, Scope("own", types=("note",)), reaches)


def revoke(store: FileStore, agent: str) -> None:
    store.add_grant(agent, Grant("own", "nothing", ts=START))


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 99])
def test_pages_hold_every_entry_once_by_time(store: FileStore, limit: int, newest_first: bool) -> None:  # noqa: FBT001
    found: list[str] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = lists(store).select(limit, cursor, newest_first=newest_first)
        found += [entry.id for entry in page]
        cursor, pages = page.next, pages + 1
    times = [name[1] for name in found]
    assert sorted(found) == sorted(ALL)
    assert times == sorted(times, reverse=newest_first)


def test_ties_are_in_the_order_of_the_agents(store: FileStore) -> None:
    assert [entry.id for entry in lists(store).select(99, None, newest_first=False)] == ALL


def test_a_page_of_nothing_is_the_last_one(store: FileStore) -> None:
    page = lists(store).select(0, None, newest_first=False)
    assert (page, page.next) == ([], None)


def test_all_parts_are_counted(store: FileStore) -> None:
    assert lists(store).count() == len(ALL)


def test_an_agent_that_shares_nothing_is_named(store: FileStore) -> None:
    revoke(store, "team")
    with pytest.raises(NotGrantedError, match="agent 'team' does not let 'own' read its memory"):
        lists(store).select(5, None, newest_first=False)


def test_a_revocation_ends_a_list_that_was_begun(store: FileStore) -> None:
    entries = lists(store).entries(newest_first=False)
    assert [next(entries).id, next(entries).id] == ALL[:2]
    revoke(store, "team")
    with pytest.raises(NotGrantedError):
        list(entries)


def test_an_iterator_leaves_out_what_a_grant_does_not_cover_any_more(store: FileStore) -> None:
    entries = lists(store, "team").entries(newest_first=False)
    found = [next(entries).id, next(entries).id]
    store.add_grant("team", Grant("own", "read", types=("fact",), ts=START))
    found += [entry.id for entry in entries]
    assert found == ["o0", "t0", "o1", "o2", "o3"]


@pytest.mark.parametrize("others", [("team",), ("second", "team")])
def test_a_cursor_goes_on_only_in_the_list_it_is_of(store: FileStore, others: tuple[str, ...]) -> None:
    cursor = lists(store).select(2, None, newest_first=False).next
    assert cursor is not None
    with pytest.raises(ValueError, match="is a cursor of other agents' entries: give the same shared="):
        lists(store, *others).select(2, cursor, newest_first=False)
