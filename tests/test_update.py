"""Adding, updating and replacing entries: what is kept, and what is refused."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Entry, Session
from keepstone.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def session(tmp_path: Path, clock: ManualClock) -> Iterator[Session]:
    with keepstone.open(tmp_path, embedder="none", durability="os", clock=clock) as home:
        yield home.agent("a").session("s")


def log_of(tmp_path: Path) -> bytes:
    return (tmp_path / "agents/a/memory/sessions/s.ndjson").read_bytes()


def test_a_new_text_keeps_the_payload(session: Session) -> None:
    session.add("note", {"n": 1}, id="a", text="one", tags=["x"])
    changed = session.update("a", text="two")
    assert (changed.text, changed.data, changed.tags, changed.type) == ("two", {"n": 1}, ("x",), "note")
    assert session.entries() == [changed]


def test_merging_sets_and_removes_single_keys_of_the_payload(session: Session) -> None:
    session.add("note", {"n": 1, "by": "Ada"}, id="a")
    assert session.update("a", data_merge={"n": 2, "by": None}).data == {"n": 2}
    assert [entry.data for entry in session.entries()] == [{"n": 2}]


def test_an_update_to_what_is_there_writes_nothing(session: Session, tmp_path: Path) -> None:
    session.add("note", {"n": 1}, id="a", text="one", tags=["x"])
    before = log_of(tmp_path)
    session.update("a", text="one", data={"n": 1}, tags=["x"], summary=None, type="note")
    assert log_of(tmp_path) == before


def test_an_update_writes_one_line(session: Session, tmp_path: Path) -> None:
    session.add("note", {"n": 1}, id="a", text="one")
    session.update("a", text="two", data_merge={"n": 2}, pinned=True, type="fact")
    assert log_of(tmp_path).count(b"\n") == 2


def test_merges_of_many_threads_are_all_kept(session: Session) -> None:
    session.add("note", {"n": 1}, id="a")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: session.update("a", data_merge={f"k{n}": n}), range(40)))
    assert session.entries()[0].data == {"n": 1} | {f"k{n}": n for n in range(40)}


@pytest.mark.parametrize("keys", [{"tag": ["x"]}, {"tgas": ["x"]}])
def test_an_unknown_keyword_names_the_nearest_known_one(session: Session, keys: dict[str, Any]) -> None:
    session.add("note", {"n": 1}, id="a")
    calls: list[Callable[[], Entry]] = [
        lambda: session.add("note", text="x", **keys),
        lambda: session.update("a", **keys),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="did you mean 'tags'"):
            call()
    assert [entry.data for entry in session.entries()] == [{"n": 1}]


def test_data_and_data_merge_together_are_refused(session: Session) -> None:
    session.add("note", {"n": 1}, id="a")
    with pytest.raises(ValueError, match="give one of them"):
        session.update("a", data={"n": 2}, data_merge={"n": 3})


def test_replace_puts_an_item_in_the_place_of_an_entry(session: Session) -> None:
    first = session.add("note", {"n": 1}, id="a", text="one", tags=["x"])
    replaced = session.replace("a", {"type": "fact", "content": "new"})
    assert (replaced.type, replaced.data, replaced.tags, replaced.ts) == (
        "fact",
        {"content": "new"},
        ("x",),
        first.ts,
    )
    assert session.replace("a", {"text": "newer"}).type == "fact"


def test_replace_of_a_missing_entry_or_by_another_id_is_refused(session: Session) -> None:
    session.add("note", {"n": 1}, id="a")
    with pytest.raises(keepstone.EntryNotFoundError):
        session.replace("none", {"type": "note", "text": "x"})
    with pytest.raises(ValueError, match="leave it out"):
        session.replace("a", {"id": "b", "type": "note", "text": "x"})
    with pytest.raises(ValueError, match="needs a text or a payload"):
        session.replace("a", {"type": "note"})


def test_modified_is_the_time_of_the_last_put_or_patch(session: Session, clock: ManualClock) -> None:
    added = session.add("note", {"n": 1}, id="a")
    assert added.modified == added.ts
    times = []
    for keys in ({"text": "two"}, {"pinned": True}):
        clock.advance(timedelta(hours=1))
        times.append(clock())
        assert session.update("a", **keys).modified == times[-1]
    clock.advance(timedelta(hours=1))
    session.count({"a": 2})
    assert session.entries()[0].modified == times[-1]


def test_modified_survives_compaction(session: Session, clock: ManualClock, tmp_path: Path) -> None:
    session.add("note", {"n": 1}, id="a")
    clock.advance(timedelta(hours=1))
    changed = session.update("a", text="two")
    session.compact()
    assert session.entries() == [changed]
    assert b'"modified":"' in log_of(tmp_path)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "note"},
        {"type": "note", "text": ""},
        {"type": "note", "data": {}, "tags": ["x"]},
        {"type": "note", "text": "x", "priority": 1.5},
        {"type": "note", "text": "x", "priority": -0.1},
        {"type": "note", "text": "x", "expires": "tomorrow"},
        {"type": "note", "text": "x", "valid_from": "2026-13-01"},
        {"type": "note", "text": "x", "valid_to": 5},
    ],
)
def test_values_that_mean_nothing_are_refused_and_nothing_is_written(
    session: Session, item: dict[str, Any], tmp_path: Path
) -> None:
    session.add("note", {"n": 1}, id="a")
    before = log_of(tmp_path)
    keys = {key: value for key, value in item.items() if key != "type"}
    calls: list[Callable[[], object]] = [
        lambda: session.add(item["type"], **keys),
        lambda: session.add_many([{"type": "note", "text": "fine"}, item]),
        lambda: session.replace("a", item),
    ]
    calls += [lambda: session.update("a", **keys)] if keys.get("text") else []
    for call in calls:
        with pytest.raises((TypeError, ValueError)):
            call()
    assert log_of(tmp_path) == before


def test_an_item_without_a_type_is_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="has no type"):
        session.add_many([{"type": "note", "text": "fine"}, {"text": "no type"}])
    assert session.entries() == []


def test_an_entry_of_a_text_alone_has_an_empty_payload(session: Session) -> None:
    assert session.add("note", text="one").data == {}
