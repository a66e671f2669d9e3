"""Store checks: selecting entries of all sessions by filters, in pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from keepstone.log.where import MOST_KEYS, conditions_of
from keepstone.model import Scope
from keepstone.store.protocol import Store
from keepstone.testing.clock import START
from keepstone.testing.making import AGENT, Factory, amend, ids_of, rebuild, record, same, time_at


def _fill(store: Store) -> None:
    cities = ("Bern", "Zürich")
    for name in ("s2", "s1"):
        store.append(
            AGENT,
            name,
            [
                record(
                    f"{name}-{number}",
                    "",
                    minute=number // 2,
                    kind="fact" if number % 3 else "note",
                    data={"n": number, "user": {"city": cities[number % 2]}},
                    tags=["all", f"t{number % 2}"],
                )
                for number in range(6)
            ],
        )


def _selected(store: Store, *, newest_first: bool = False, **limits: Any) -> list[str]:
    found = store.select(Scope(AGENT, **limits), newest_first=newest_first)
    same(store.select_count(Scope(AGENT, **limits)), len(found), "the count is that of the entries")
    return ids_of(found)


def check_select(factory: Factory) -> None:
    """A scope selects entries of all sessions, ordered by (time, session, place)."""
    with factory() as store:
        same(_selected(store), [], "an unknown agent has no entries")
        _fill(store)
        everything = [
            f"{name}-{2 * pair + at}" for pair in range(3) for name in ("s1", "s2") for at in (0, 1)
        ]
        same(_selected(store), everything, "all entries")
        same(_selected(store, newest_first=True), everything[::-1], "all entries, the newest first")
        first_minute = START + timedelta(minutes=1)
        # Use the maximum number of keys: SQLite limits the depth of an expression to 1,000.
        many = [f"none.{number}" for number in range(MOST_KEYS)]
        scopes: list[tuple[dict[str, Any], set[int]]] = [
            ({"types": ("note",)}, {0, 3}),
            ({"types": ()}, set()),
            ({"tags": ("t1", "all")}, {1, 3, 5}),
            ({"since": first_minute, "until": first_minute + timedelta(minutes=1)}, {2, 3}),
            ({"where": conditions_of({"user.city": "Bern", "n": {"gt": 0}})}, {2, 4}),
            ({"where": conditions_of({"n": {"not_in": [0, 1, 2]}})}, {3, 4, 5}),
            ({"where": conditions_of({"none": {"exists": True}})}, set()),
            ({"where": conditions_of({key: {"exists": False, "ne": 1} for key in many})}, {0, 1, 2, 3, 4, 5}),
            ({"where": conditions_of({key: {"gt": 0, "lt": 9, "in": [1]} for key in many})}, set()),
            ({"tags": ("t1", *(f"none-{number}" for number in range(2_000)))}, set()),
        ]
        for limits, numbers in scopes:
            expected = [entry for entry in everything if int(entry[-1]) in numbers]
            same(_selected(store, **limits), expected, f"what {limits} selects")
        same(_selected(store, ids=("s1-4", "none")), ["s1-4"], "an id selects an entry")
        amend(store, "s1", {"id": "s1-0", "ts": time_at(9), "data": {"n": 5}})
        found = _selected(store, where=conditions_of({"n": 5}))
        same(found, ["s1-0", "s1-5", "s2-5"], "a selection follows changes")


def check_select_pages(factory: Factory) -> None:
    """Pages of a selection neither repeat nor miss an entry while other entries are removed."""
    for newest_first in (False, True):
        with factory() as store:
            _fill(store)
            expected = _selected(store, newest_first=newest_first)
            seen: list[str] = []
            cursor = None
            while True:
                page = store.select(Scope(AGENT), 2, cursor, newest_first=newest_first)
                seen += ids_of(page)
                if page.next is None:
                    break
                cursor = page.next
                # Purge the entry that the cursor names, and rebuild the index: the next page must begin at
                # the same place.
                store.purge(AGENT, page[-1].session, [page[-1].id])
                rebuild(store)
            same(seen, expected, "all pages of a selection")


def check_delete_many(factory: Factory) -> None:
    """One call deletes the live entries with several ids and returns their number."""
    with factory() as store:
        _fill(store)
        same(store.delete(AGENT, "s1", ["s1-0", "s1-1", "s1-0", "none"], time_at(9)), 2, "two were there")
        same(store.delete(AGENT, "s1", ["s1-0"], time_at(9)), 0, "a deleted entry is not there")
        same(store.delete(AGENT, "none", ["s1-0"], time_at(9)), 0, "a missing session has none")
        same(len(_selected(store)), 10, "the others stay")
