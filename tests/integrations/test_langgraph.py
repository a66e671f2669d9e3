"""LangGraph's store: filters, namespaces, times to live, and search with and without an index."""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

import pytest

import keepstone
from keepstone import Agent, Home, SessionInfo

pytest.importorskip("langgraph.store")

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
)
from tests.integrations.locking import locked

from keepstone.integrations.langgraph import KeepstoneStore

ADA = ("users", "ada")
run = asyncio.run


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 11, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Home:
    return keepstone.open(tmp_path / "home", clock=clock)


@pytest.fixture
def store(home: Home) -> KeepstoneStore:
    return KeepstoneStore(home)


def keys(store: BaseStore, prefix: tuple[str, ...] = (), **query: Any) -> list[str]:
    return [item.key for item in store.search(prefix, **query)]


def letters(texts: Sequence[str]) -> list[list[float]]:
    """Vectors of the shares of a, b and c: equal texts have equal ones."""
    return [[float(text.count(letter)) for letter in "abc"] + [0.1] for text in texts]


INDEX: Any = {"dims": 4, "embed": letters, "fields": ["text"], "something else": 1}


def test_what_is_put_comes_back_with_its_times(store: KeepstoneStore, clock: Clock) -> None:
    store.put(ADA, "tea", {"text": "Ada drinks tea", "n": None, "x": {"y": [1, 2.5, ""]}})
    made = clock.now
    clock.sleep(5)
    store.put(ADA, "tea", {"text": "Ada drinks coffee"})
    item = store.get(ADA, "tea")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (ADA, "tea", {"text": "Ada drinks coffee"})
    assert (item.created_at, item.updated_at) == (made, clock.now)


def test_a_deleted_item_that_is_put_again_is_a_new_one(store: KeepstoneStore, clock: Clock) -> None:
    for key in ("a", "b"):
        store.put(ADA, key, {})
    store.delete(ADA, "a")
    store.delete(ADA, "absent")
    assert store.get(ADA, "a") is None
    clock.sleep(1)
    store.put(ADA, "a", {"n": 1})
    item = store.get(ADA, "a")
    assert item is not None
    assert item.created_at == clock.now
    assert keys(store) == ["b", "a"]


def test_results_are_copies(store: KeepstoneStore) -> None:
    value = {"tags": ["a"]}
    store.put(ADA, "k", value)
    for _ in range(2):
        for item in (store.get(ADA, "k"), store.search(ADA)[0]):
            assert item is not None
            assert item.value == {"tags": ["a"]}
            item.value["tags"].append("b")


def test_reads_of_a_batch_see_the_state_before_its_puts(store: KeepstoneStore) -> None:
    store.put(ADA, "k", {"n": 1})
    ops: list[Op] = [
        PutOp(ADA, "k", {"n": 2}),
        GetOp(ADA, "k"),
        SearchOp(()),
        ListNamespacesOp(),
        PutOp(("new",), "k", {}),
        PutOp(ADA, "k", {"n": 3}),
    ]
    results = store.batch(ops)
    assert results[0] is results[4] is results[5] is None
    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in results[2]] == [{"n": 1}]  # type: ignore[union-attr]
    assert results[3] == [ADA]
    item = store.get(ADA, "k")
    assert item is not None
    assert item.value == {"n": 3}


@pytest.mark.parametrize(
    "value", [{"x": object()}, {"x": math.nan}, {"x": "\ud800"}, ["list"], "text", {1: 2}]
)
def test_a_batch_with_a_value_that_json_cannot_hold_stores_nothing(
    store: KeepstoneStore, home: Home, value: Any
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        store.batch([PutOp(ADA, "a", {"n": 1}), PutOp(("other",), "b", value), PutOp(ADA, "c", {"n": 1})])
    with pytest.raises((TypeError, ValueError)):
        store.put(ADA, "b", value)
    assert not isinstance(raised.value, keepstone.KeepstoneError)
    assert keys(store) == []
    assert not home.root.exists()


@pytest.mark.parametrize("namespace", [("a.b",), ("",), (1,), ("a", "x\0y")])
def test_an_invalid_label_refuses_the_whole_batch(store: KeepstoneStore, home: Home, namespace: Any) -> None:
    for op in (GetOp(namespace, "k"), PutOp(namespace, "k", {}), SearchOp(namespace)):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(ADA, "k", {"n": 1}), op])
    with pytest.raises(InvalidNamespaceError):
        store.put(("langgraph",), "k", {})
    assert not home.root.exists()
    store.batch([PutOp(("langgraph",), "k", {"n": 1})])
    assert keys(store, ("langgraph",)) == ["k"]


def test_lists_serve_as_namespaces(store: KeepstoneStore) -> None:
    space: Any = ["users", "ada"]
    store.put(space, "k", {"n": 1})
    item = store.get(space, "k")
    assert item is not None
    assert item.namespace == ADA
    assert keys(store, space) == ["k"]


@pytest.mark.parametrize(
    "label", ["a/b", "..%", "%2F", " ", "ü" * 150, "x" * 300, "a\n", "*", "_", "[", "?", "'; DROP", "-", "~"]
)
def test_odd_labels_and_keys_stay_distinct_and_inside(
    store: KeepstoneStore, tmp_path: Path, label: str
) -> None:
    spaces = [("s", label.replace(".", "")), ("s", label.replace(".", "") + "x"), ("s",)]
    for space in spaces:
        store.put(space, label, {"at": list(space)})
    for space in spaces:
        item = store.get(space, label)
        assert item is not None
        assert item.value == {"at": list(space)}
        assert item.key == label
    assert store.list_namespaces() == sorted(spaces)
    assert [item.value["at"] for item in store.search(spaces[0])] == [list(spaces[0])]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_prefix_matches_whole_labels_in_their_case(store: KeepstoneStore) -> None:
    for space in (("a",), ("ab",), ("A",), ("a", "b")):
        store.put(space, "/".join(space), {"n": 1})
    assert keys(store, ("a",)) == ["a", "a/b"]
    assert sorted(keys(store, ())) == ["A", "a", "a/b", "ab"]


def test_pages_join_up_to_the_full_listing(store: KeepstoneStore, clock: Clock) -> None:
    for number in range(25):
        store.put(("n", str(number % 3)), str(number), {"n": number})
        clock.sleep(0.1)
    assert keys(store, limit=100) == [*map(str, range(25))]
    pages = [keys(store, limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [*chain.from_iterable(pages)] == [*map(str, range(25))]


VALUES: dict[str, dict[str, Any]] = {
    "one": {"n": 1, "s": "b", "tags": ["x", "y"], "deep": {"a": {"b": 1, "c": 2}}},
    "two": {"n": 2, "s": "a", "tags": ["x"], "deep": {"a": {"b": 2}}, "none": None},
    "half": {"n": 0.5, "s": "9", "x' OR 1=1 --": True},
    "none": {"a.b": 1},
}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, ["one", "two", "half", "none"]),
        ({}, ["one", "two", "half", "none"]),
        ({"n": 1}, ["one"]),
        ({"n": {"$eq": 1}}, ["one"]),
        ({"n": {"$ne": 1}}, ["two", "half", "none"]),
        ({"n": {"$gt": 0.5, "$lte": 2}}, ["one", "two"]),
        ({"n": {"$lt": 1}}, ["half"]),
        ({"n": {"$gte": "1"}}, ["one", "two"]),
        ({"s": {"$gt": "a"}}, ["one"]),
        ({"tags": ["x", "y"]}, ["one"]),
        ({"tags": ["x"]}, ["two"]),
        ({"tags": ("x",)}, ["two"]),
        ({"deep": {"a": {"b": 1}}}, ["one"]),
        ({"deep": {"a": {"b": {"$gt": 1}}}}, ["two"]),
        ({"none": None}, ["two"]),
        ({"absent": None}, []),
        ({"absent": {"$gt": 0}}, []),
        ({"absent": {"$ne": 0}}, ["one", "two", "half", "none"]),
        ({"a.b": 1}, ["none"]),
        ({"deep.a": {"b": 1}}, []),
        ({"x' OR 1=1 --": True}, ["half"]),
        ({"$.n": 1}, []),
        ({"n": 1, "s": "a"}, []),
    ],
)
def test_filters_compare_top_level_keys(
    store: KeepstoneStore, wanted: dict[str, Any] | None, expected: list[str]
) -> None:
    store.batch([PutOp(ADA, key, value) for key, value in VALUES.items()])
    assert keys(store, ADA, filter=wanted) == expected


@pytest.mark.parametrize(
    "wanted", [{"n": {"$in": [1]}}, {"n": {"$gt": 1, "$no": 1}}, {"a": {"b": {"$x": 1}}}]
)
def test_an_unknown_operator_is_a_value_error(store: KeepstoneStore, wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unsupported operator"):
        store.batch([PutOp(ADA, "k", {"n": 1}), SearchOp(ADA, wanted)])
    assert keys(store) == []


def test_namespaces_are_listed_sorted_truncated_and_paged(store: KeepstoneStore) -> None:
    for space in (("b", "x", "1"), ("a", "x", "2"), ("a", "y"), ("c",), ("a", "x", "1")):
        store.put(space, "k", {"n": 1})
    assert store.list_namespaces(max_depth=2) == [("a", "x"), ("a", "y"), ("b", "x"), ("c",)]
    assert store.list_namespaces(max_depth=2, offset=1, limit=2) == [("a", "y"), ("b", "x")]
    assert store.list_namespaces(prefix=("*", "x")) == [("a", "x", "1"), ("a", "x", "2"), ("b", "x", "1")]
    assert store.list_namespaces(suffix=("x", "*"), prefix=("a",)) == [("a", "x", "1"), ("a", "x", "2")]
    store.delete(("c",), "k")
    assert ("c",) not in store.list_namespaces()


def test_without_an_index_a_query_does_not_filter(store: KeepstoneStore) -> None:
    store.put(ADA, "k", {"text": "tea"}, index=["text"])
    assert [(item.key, item.score) for item in store.search(ADA, query="coffee")] == [("k", None)]


def test_the_score_is_the_cosine_of_the_best_path(home: Home) -> None:
    store = KeepstoneStore(home, index=INDEX)
    store.put(ADA, "a", {"text": "aa"})
    store.put(ADA, "many", {"parts": ["bb", "ac"], "text": "b"}, index=["parts[*]"])
    store.put(ADA, "same", {"text": "aa", "other": "c"})
    store.put(ADA, "unseen", {"text": "aa"}, index=False)
    found = store.search(ADA, query="aa")
    assert [item.key for item in found] == ["a", "same", "many", "unseen"]
    assert found[0].score == found[1].score == pytest.approx(1.0)
    one, other = letters(["aa", "ac"])
    cosine = sum(map(math.prod, zip(one, other, strict=True))) / (math.hypot(*one) * math.hypot(*other))
    assert found[2].score == pytest.approx(cosine)
    assert found[3].score is None
    assert keys(store, ADA, query="aa", limit=3) == ["a", "same", "many"]
    assert [keys(store, ADA, query="aa", limit=2, offset=offset) for offset in (0, 2, 4)] == [
        ["a", "same"],
        ["many", "unseen"],
        [],
    ]


def test_all_items_in_scope_qualify_and_filters_apply_first(home: Home) -> None:
    store = KeepstoneStore(home, index=INDEX)
    store.batch([PutOp(ADA, str(number), {"text": "b", "n": number}) for number in range(60)])
    store.put(("users", "bob"), "best", {"text": "a"})
    assert len(store.search(ADA, query="a", limit=100)) == 60
    assert keys(store, ADA, query="a", filter={"n": {"$gte": 58}}) == ["58", "59"]


def test_putting_again_replaces_vectors(home: Home) -> None:
    store = KeepstoneStore(home, index=INDEX)
    store.put(ADA, "k", {"parts": ["aa", "bb"]}, index=["parts[*]"])
    store.put(ADA, "k", {"text": "cc"})
    assert store.search(ADA, query="aa")[0].score == pytest.approx(0.0, abs=0.05)
    store.put(ADA, "k", {"text": "cc"}, index=False)
    assert store.search(ADA, query="cc")[0].score is None


def test_vectors_are_kept_for_other_instances_and_processes(home: Home) -> None:
    KeepstoneStore(home, index=INDEX).put(ADA, "k", {"text": "aa"})
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return letters(texts)

    other = KeepstoneStore(keepstone.open(home.root), index={"dims": 4, "embed": embed})
    assert other.search(ADA, query="aa")[0].score == pytest.approx(1.0)
    assert asked == ["aa"]
    assert KeepstoneStore(home).search(ADA, query="aa")[0].score is None


def test_vectors_of_another_dimension_are_not_compared(home: Home) -> None:
    KeepstoneStore(home, index=INDEX).put(ADA, "k", {"text": "aa"})
    other = KeepstoneStore(home, index={"dims": 2, "embed": lambda texts: [[1.0, 2.0] for _ in texts]})
    assert other.search(ADA, query="aa")[0].score is None


def test_an_empty_query_is_no_query(home: Home) -> None:
    store = KeepstoneStore(home, index=INDEX)
    store.put(ADA, "k", {"text": "aa"})
    assert store.search(ADA, query="")[0].score is None


@pytest.mark.parametrize(
    "embed", [lambda texts: letters(texts)[1:], lambda texts: [[math.nan] * 4 for _ in texts]]
)
def test_a_failing_embedder_stores_nothing(home: Home, embed: Any) -> None:
    store = KeepstoneStore(home, index={"dims": 4, "embed": embed})
    with pytest.raises(ValueError):  # noqa: PT011  The embedder's own text.
        store.batch([PutOp(ADA, "a", {"n": 1}), PutOp(ADA, "b", {"n": 2})])
    assert keys(store) == []


def test_an_async_embedder_serves_the_async_methods(home: Home) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return letters(texts)

    store = KeepstoneStore(home, index={"dims": 4, "embed": embed, "fields": ["text"]})

    async def main() -> list[tuple[str, Any]]:
        await store.aput(ADA, "a", {"text": "aa"})
        await store.aput(ADA, "b", {"text": "bb"})
        return [(item.key, item.score) for item in await store.asearch(ADA, query="bb", limit=1)]

    assert run(main()) == [("b", pytest.approx(1.0))]


def test_every_call_has_its_async_twin(store: KeepstoneStore) -> None:
    async def main() -> None:
        await store.aput(ADA, "k", {"n": 1})
        item = await store.aget(ADA, "k")
        assert item is not None
        assert item.value == {"n": 1}
        assert await store.alist_namespaces() == [ADA]
        assert len(await store.asearch(("users",))) == 1
        await store.adelete(ADA, "k")
        assert await store.abatch([GetOp(ADA, "k"), ListNamespacesOp()]) == [None, []]

    run(main())


def test_an_expired_item_is_hidden_at_once(store: KeepstoneStore, clock: Clock, home: Home) -> None:
    store.put(ADA, "brief", {"text": "the password of the day"}, ttl=10)
    store.put(ADA, "long", {"text": "Ada drinks tea"})
    clock.sleep(9.5)
    assert store.get(ADA, "brief", refresh_ttl=False) is not None
    clock.sleep(0.5)
    assert store.get(ADA, "brief") is None
    assert keys(store) == ["long"]
    assert [hit.entry.id for hit in home.agent("default").recall("password tea")] == ["long"]
    store.delete(ADA, "long")
    assert store.list_namespaces() == []


def test_reads_renew_an_item_s_own_time_to_live(store: KeepstoneStore, clock: Clock) -> None:
    store.put(ADA, "a", {"n": 1}, ttl=10)
    store.put(ADA, "b", {"n": 1}, ttl=10)
    updated = clock.now
    for _ in range(4):
        clock.sleep(8)
        assert store.get(ADA, "a") is not None
        assert "b" not in keys(store, refresh_ttl=False) or clock.now - updated < timedelta(minutes=10)
    clock.sleep(8)
    assert keys(store) == ["a"]
    clock.sleep(9)
    item = store.get(ADA, "a", refresh_ttl=False)
    assert item is not None
    assert (item.created_at, item.updated_at) == (updated, updated)
    clock.sleep(2)
    assert store.get(ADA, "a") is None


def test_the_configuration_has_defaults_that_a_put_can_leave(home: Home, clock: Clock) -> None:
    store = KeepstoneStore(home, ttl={"default_ttl": 10, "refresh_on_read": False})
    assert store.supports_ttl
    assert store.ttl_config == {"default_ttl": 10, "refresh_on_read": False}
    store.put(ADA, "default", {"n": 1})
    store.put(ADA, "for ever", {"n": 1}, ttl=None)
    store.put(ADA, "was brief", {"n": 1}, ttl=1)
    store.put(ADA, "was brief", {"n": 1}, ttl=None)
    clock.sleep(6)
    assert store.get(ADA, "default") is not None
    clock.sleep(6)
    assert keys(store) == ["for ever", "was brief"]


def test_an_expired_item_that_is_put_again_is_a_new_one(store: KeepstoneStore, clock: Clock) -> None:
    store.put(ADA, "k", {"n": 1}, ttl=1)
    clock.sleep(2)
    store.put(ADA, "k", {"n": 2})
    clock.sleep(2)
    item = store.get(ADA, "k")
    assert item is not None
    assert item.created_at == clock.now - timedelta(minutes=2)


@pytest.mark.parametrize("ttl", [math.nan, math.inf, 1e300])
def test_a_time_to_live_without_an_end_is_refused(store: KeepstoneStore, ttl: float) -> None:
    with pytest.raises(ValueError, match="ttl"):
        store.put(ADA, "k", {"n": 1}, ttl=ttl)
    assert keys(store) == []


def test_a_sweep_counts_the_items_that_it_removes(store: KeepstoneStore, clock: Clock) -> None:
    store.batch([PutOp(ADA, str(number), {"n": number}, ttl=1) for number in range(3)])
    store.put(("other",), "k", {"n": 1}, ttl=1)
    store.put(("other",), "long", {"n": 1}, ttl=100)
    assert store.sweep_ttl() == 0
    clock.sleep(2)
    assert (store.sweep_ttl(), store.sweep_ttl()) == (4, 0)
    assert keys(store) == ["long"]


def test_the_sweeper_sweeps_until_it_is_stopped(store: KeepstoneStore, clock: Clock) -> None:
    swept = threading.Event()
    sweep = store.sweep_ttl

    def sweep_and_tell() -> int:
        count = sweep()
        swept.set()
        return count

    store.sweep_ttl = sweep_and_tell  # type: ignore[method-assign]
    store.put(ADA, "k", {"n": 1}, ttl=1)
    clock.sleep(2)
    future = store.start_ttl_sweeper(sweep_interval_minutes=0.0001)
    assert swept.wait(30)
    assert store.stop_ttl_sweeper(timeout=30)
    assert future.done()
    assert sweep() == 0
    assert store.stop_ttl_sweeper()


def test_two_stores_of_one_home_see_each_other_at_once(tmp_path: Path) -> None:
    first, second = (KeepstoneStore(keepstone.open(tmp_path)) for _ in range(2))
    first.put(ADA, "k", {"n": 1})
    assert keys(second, ADA) == ["k"]
    second.put(ADA, "k", {"n": 2})
    item = first.get(ADA, "k")
    assert item is not None
    assert item.value == {"n": 2}


def test_threads_put_into_one_namespace_without_loss(store: KeepstoneStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.put(ADA, str(number), {"n": number}), range(40)))
    assert len(store.search(ADA, limit=100)) == 40


def test_a_locked_namespace_raises_a_plain_timeout_and_the_loop_goes_on(
    store: KeepstoneStore, home: Home
) -> None:
    store.put(ADA, "k", {"n": 1})
    turns = []

    async def main() -> None:
        writing = asyncio.ensure_future(store.aput(ADA, "k", {"n": 2}))
        while not writing.done():
            turns.append(await store.aget(ADA, "k"))
        with pytest.raises(TimeoutError) as raised:
            await writing
        assert type(raised.value) is TimeoutError

    sessions = home.root / "agents" / "default" / "memory" / "sessions"
    with locked(sessions / "langgraph%2Fusers%2Fada.lock"):
        run(main())
    assert len(turns) > 10


def settled(home: Home) -> Path:
    """Let the folder of the sessions look as if it had not changed for long."""
    sessions = home.root / "agents" / "default" / "memory" / "sessions"
    os.utime(sessions, (1_700_000_000, 1_700_000_000))
    return sessions


def test_a_search_lists_sessions_only_after_one_was_made_or_removed(
    store: KeepstoneStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings: list[str] = []
    listed = Agent.sessions

    def counted(agent: Agent) -> list[SessionInfo]:
        listings.append(agent.slug)
        return listed(agent)

    monkeypatch.setattr(Agent, "sessions", counted)
    store.put(ADA, "k", {"n": 1})
    settled(home)
    for number in range(5):
        store.put(ADA, str(number), {"n": number})
        assert len(store.search(("users",))) == number + 2
        assert store.list_namespaces() == [ADA]
    assert len(listings) == 1
    KeepstoneStore(home.root).put(("users", "eve"), "k", {"n": 2})
    assert [item.namespace for item in store.search(("users", "eve"))] == [("users", "eve")]
    assert len(listings) == 2


def test_a_new_namespace_is_found_also_if_the_folder_s_time_stays(store: KeepstoneStore, home: Home) -> None:
    store.put(ADA, "k", {"n": 1})
    assert len(store.search(())) == 1
    before = (home.root / "agents" / "default" / "memory" / "sessions").stat().st_mtime_ns
    store.put(("users", "eve"), "k", {"n": 2})
    os.utime(home.root / "agents" / "default" / "memory" / "sessions", ns=(before, before))
    assert len(store.search(())) == 2


def test_any_mapping_serves_as_a_value(store: KeepstoneStore) -> None:
    value: Mapping[str, Any] = MappingProxyType({"n": 1})
    store.put(ADA, "k", value)  # type: ignore[arg-type, unused-ignore]
    assert store.search(ADA)[0].value == {"n": 1}


def test_a_home_that_masks_secrets_masks_those_of_values(tmp_path: Path) -> None:
    store = KeepstoneStore(keepstone.open(tmp_path, secrets="mask"))
    token = "ghp_" + "a1B2" * 9
    store.put(ADA, "k", {"text": f"use {token}"})
    assert token not in str(store.search(ADA)[0].value)


def test_methods_can_be_overridden(home: Home) -> None:
    class Loud(KeepstoneStore):
        def get(self, *args: Any, **keys: Any) -> Any:
            item = super().get(*args, **keys)
            return item and item.value["text"].upper()

    store = Loud(home)
    store.put(ADA, "k", {"text": "tea"})
    assert store.get(ADA, "k") == "TEA"


class State(TypedDict):
    """What the graph passes on."""

    question: str
    answer: str


def test_a_graph_remembers_between_its_runs(store: KeepstoneStore, home: Home) -> None:
    def remember(state: State, *, store: BaseStore) -> dict[str, str]:
        known = [item.value["text"] for item in store.search(ADA)]
        store.put(ADA, str(len(known)), {"text": state["question"]})
        return {"answer": f"you said: {known}"}

    graph = StateGraph(State)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    app = graph.compile(store=store)
    assert app.invoke({"question": "I take the ferry", "answer": ""})["answer"] == "you said: []"
    assert "I take the ferry" in app.invoke({"question": "How do I travel?", "answer": ""})["answer"]
    assert home.agent("default").recall("ferry")[0].entry.data == {"text": "I take the ferry"}
