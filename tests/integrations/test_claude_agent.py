"""The Claude Agent SDK's session store: transcripts in, transcripts out, and their summaries."""

from __future__ import annotations

import math
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.warm import warm

pytest.importorskip("claude_agent_sdk")

import anyio
from claude_agent_sdk import InMemorySessionStore, SessionKey, fold_session_summary
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.types import SessionStoreEntry
from tests.integrations.locking import locked

import keepstone
from keepstone import Home
from keepstone.integrations.claude_agent import KeepstoneSessionStore

MAIN: SessionKey = {"project_key": "app", "session_id": "s1"}
SUB: SessionKey = {**MAIN, "subpath": "subagents/agent-1"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return keepstone.open(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> KeepstoneSessionStore:
    return KeepstoneSessionStore(home)


def run(call: Any, *args: Any) -> Any:
    return anyio.run(call, *args)


def said(content: Any, uuid: str | None = None, **keys: Any) -> SessionStoreEntry:
    line = {"type": "user", "message": {"role": "user", "content": content}, **keys}
    return cast("SessionStoreEntry", line | ({} if uuid is None else {"uuid": uuid}))


def mtimes(store: KeepstoneSessionStore, project: str = "app") -> dict[str, int]:
    return {one["session_id"]: one["mtime"] for one in run(store.list_sessions, project)}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_sdk_s_conformance_suite_passes(tmp_path: Path, backend: str) -> None:
    number = iter(range(100))
    anyio.run(
        run_session_store_conformance,
        lambda: KeepstoneSessionStore(tmp_path / str(next(number))),
        backend=backend,
    )


def test_lines_come_back_deep_equal_in_order(store: KeepstoneSessionStore) -> None:
    lines = [
        said("Hi", "u1", id="x", ts="now", data={"data": None}, deleted=True, text="", priority=7),
        cast("SessionStoreEntry", {"type": "file-history-snapshot", "snapshot": {"a/b.py": [1.5, None]}}),
        said([{"type": "text", "text": "ü"}], "a1", batch=[1, 2]),
        cast("SessionStoreEntry", {}),
    ]
    run(store.append, MAIN, lines)
    assert run(store.load, MAIN) == lines
    run(store.load, MAIN)[0]["data"]["data"] = "changed by a caller"
    assert run(store.load, MAIN) == lines


def test_a_key_that_was_never_written_is_none(store: KeepstoneSessionStore, home: Home) -> None:
    run(store.append, MAIN, [])
    assert run(store.load, MAIN) is None
    assert run(store.list_sessions, "app") == run(store.list_subkeys, MAIN) == []
    run(store.delete, MAIN)
    assert not home.root.exists()


def test_a_known_uuid_is_ignored_and_others_always_appended(store: KeepstoneSessionStore) -> None:
    title = cast("SessionStoreEntry", {"type": "custom-title", "customTitle": "Ferries"})
    for _ in range(2):
        run(store.append, MAIN, [said("one", "u1"), title, said("again", "u1")])
    assert run(store.load, MAIN) == [said("one", "u1"), title, title]
    run(store.append, SUB, [said("one", "u1")])
    run(store.delete, MAIN)
    run(store.append, MAIN, [said("later", "u1")])
    assert run(store.load, MAIN) == [said("later", "u1")]


@pytest.mark.parametrize("uuid", ["@transcript", "@", "a/b", "x" * 300, "ü"])
def test_any_uuid_is_known_again(store: KeepstoneSessionStore, uuid: str) -> None:
    for _ in range(2):
        run(store.append, MAIN, [said("one", uuid)])
    assert run(store.load, MAIN) == [said("one", uuid)]


@pytest.mark.parametrize("bad", [{"x": object()}, {"x": math.nan}, {"x": "\ud800"}, "text", None])
def test_a_batch_with_a_line_that_json_cannot_hold_stores_nothing(
    store: KeepstoneSessionStore, home: Home, bad: Any
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        run(store.append, MAIN, [said("one", "u1"), bad])
    assert not isinstance(raised.value, keepstone.KeepstoneError)
    assert not home.root.exists()
    run(store.append, MAIN, [said("fine")])
    assert run(store.load, MAIN) == [said("fine")]


KEYS: list[SessionKey] = [
    {"project_key": "a", "session_id": "b/c"},
    {"project_key": "a/b", "session_id": "c"},
    {"project_key": "a", "session_id": "b", "subpath": "c"},
    {"project_key": "a", "session_id": "b"},
    {"project_key": "../a", "session_id": "b"},
    {"project_key": "p" * 210, "session_id": "s" * 36, "subpath": "subagents/" + "x" * 60},
    {"project_key": "p" * 210, "session_id": "s" * 36},
    {"project_key": "ü ö", "session_id": "東"},
]


def test_no_two_keys_are_one(store: KeepstoneSessionStore, tmp_path: Path) -> None:
    for number, key in enumerate(KEYS):
        run(store.append, key, [said(str(number))])
    assert [run(store.load, key) for key in KEYS] == [[said(str(number))] for number in range(len(KEYS))]
    assert [*mtimes(store, "a")] == ["b/c", "b"]
    assert run(store.list_subkeys, KEYS[6]) == [KEYS[5]["subpath"]]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("key", [{**MAIN, "subpath": ""}, {"project_key": "", "session_id": "s"}])
def test_an_empty_part_of_a_key_is_refused(store: KeepstoneSessionStore, key: SessionKey) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        run(store.append, key, [said("x")])


def test_each_later_append_has_a_later_time(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 11, tzinfo=UTC)
    homes = [keepstone.open(tmp_path / "home", clock=lambda: moment) for _ in range(2)]
    stores = [KeepstoneSessionStore(home) for home in homes]
    told = []
    for number in range(12):
        key: SessionKey = {"project_key": "app", "session_id": f"s{number % 3}"}
        run(stores[number % 2].append, key, [said("x")])
        told.append(mtimes(stores[0])[key["session_id"]])
    assert told == sorted(set(told))
    assert told[0] >= 1768089600000


def test_another_process_goes_on_after_the_last_time(tmp_path: Path) -> None:
    ahead = keepstone.open(tmp_path, clock=lambda: datetime(2999, 1, 1, tzinfo=UTC))
    run(KeepstoneSessionStore(ahead).append, MAIN, [said("x")])
    program = f"""
import anyio
from keepstone.integrations.claude_agent import KeepstoneSessionStore
store = KeepstoneSessionStore({str(tmp_path)!r})
anyio.run(store.append, {{"project_key": "app", "session_id": "s2"}}, [{{"type": "user"}}])
"""
    subprocess.run([*warm(), "-c", program], check=True)
    times = mtimes(KeepstoneSessionStore(tmp_path))
    assert times["s2"] > times["s1"]


def test_a_clock_that_is_set_back_keeps_the_order(tmp_path: Path) -> None:
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 4, 3, 6)]
    for number, time in enumerate(times):
        home = keepstone.open(tmp_path, clock=lambda time=time: time)  # type: ignore[misc]
        run(KeepstoneSessionStore(home).append, MAIN, [said(str(number))])
    assert run(KeepstoneSessionStore(tmp_path).load, MAIN) == [said(str(number)) for number in range(4)]


def test_summaries_are_the_sdk_s_fold_of_main_transcripts(store: KeepstoneSessionStore) -> None:
    first = [said("Where do ferries sail?", "u1", timestamp="2026-01-11T12:00:00Z", cwd="/app")]
    second = [cast("SessionStoreEntry", {"type": "custom-title", "customTitle": "Ferries"})]
    for lines in (first, second, first):  # The last one is a batch that was sent again.
        run(store.append, MAIN, lines)
    run(store.append, SUB, [said("in a subagent", "u2")])
    (summary,) = run(store.list_session_summaries, "app")
    folded = fold_session_summary(fold_session_summary(None, MAIN, first), MAIN, second)
    assert summary == {"session_id": "s1", "mtime": mtimes(store)["s1"], "data": folded["data"]}
    assert run(store.list_session_summaries, "other") == []
    run(store.delete, MAIN)
    assert run(store.list_session_summaries, "app") == run(store.list_sessions, "app") == []


def test_deleting_leaves_no_byte_and_spares_the_rest(store: KeepstoneSessionStore, home: Home) -> None:
    others: list[SessionKey] = [{**MAIN, "project_key": "other"}, {**MAIN, "session_id": "s2"}]
    second: SessionKey = {**MAIN, "subpath": "subagents/agent-2"}
    for key in (MAIN, SUB, second, *others):
        run(store.append, key, [said("the secret plan")])
    run(store.delete, SUB)
    assert run(store.list_subkeys, MAIN) == ["subagents/agent-2"]
    run(store.delete, MAIN)
    assert [run(store.load, key) for key in (MAIN, SUB, second)] == [None] * 3
    assert [len(run(store.load, key)) for key in others] == [1, 1]
    logs = [path for path in home.root.rglob("*.ndjson") if path.name.startswith("claude-")]
    assert len(logs) == 2


def test_concurrent_appends_lose_nothing(store: KeepstoneSessionStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: run(store.append, MAIN, [said(str(n), f"u{n % 20}")]), range(40)))
    assert len(run(store.load, MAIN)) == 20
    (summary,) = run(store.list_session_summaries, "app")
    assert summary["mtime"] == mtimes(store)["s1"]


def test_a_locked_session_raises_a_plain_timeout_and_the_loop_goes_on(
    store: KeepstoneSessionStore, home: Home
) -> None:
    run(store.append, MAIN, [said("one", "u1")])
    (log,) = home.root.rglob("claude-*.ndjson")
    turns = 0

    async def main() -> None:
        nonlocal turns
        done = anyio.Event()

        async def write() -> None:
            with pytest.raises(TimeoutError) as raised:
                await store.append(MAIN, [said("two", "u2")])
            assert type(raised.value) is TimeoutError
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not done.is_set():
                await store.load(MAIN)
                turns += 1

    with locked(log.with_suffix(".lock")):
        anyio.run(main, backend="trio")
    assert turns > 10
    assert run(store.load, MAIN) == [said("one", "u1")]


def test_what_was_said_is_recalled_without_its_envelope(store: KeepstoneSessionStore, home: Home) -> None:
    block = {"type": "tool_use", "id": "t1", "name": "book", "input": {"port": "Dover"}}
    run(store.append, MAIN, [said("We take the ferry", "u1", cwd="/elsewhere"), said([block], "u2")])
    agent = home.agent("default")
    (hit,) = agent.recall("ferry", limit=1)
    assert (hit.entry.id, hit.entry.type, hit.entry.text) == ("u1", "message", "user: We take the ferry")
    assert agent.recall("Dover", limit=1)[0].entry.id == "u2"
    assert "u1" not in [hit.entry.id for hit in agent.recall("elsewhere")]


def test_methods_can_be_overridden(home: Home) -> None:
    class Empty(KeepstoneSessionStore):
        async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
            return await super().load(key) or []

    assert run(Empty(home).load, MAIN) == []


PARTS = st.sampled_from(["a", "b", "a/b"])
STORED = st.fixed_dictionaries(
    {"type": st.just("user")},
    optional={
        "uuid": st.sampled_from(["u1", "u2", "@transcript"]),
        "customTitle": st.sampled_from(["x", "y"]),
    },
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "delete"]), PARTS, PARTS, st.none() | PARTS, st.lists(STORED, max_size=3)
    ),
    max_size=10,
)


def as_key(project: str, session: str, subpath: str | None) -> SessionKey:
    key: SessionKey = {"project_key": project.replace("/", "-"), "session_id": session.replace("/", "-")}
    return key if subpath is None else {**key, "subpath": subpath}


@given(STEPS)
def test_the_same_steps_leave_what_the_in_memory_store_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    ours, built_in = KeepstoneSessionStore(tmp_path_factory.mktemp("home")), InMemorySessionStore()
    keys = {(project, session, subpath) for _, project, session, subpath, _ in steps}

    async def main() -> None:
        for step, project, session, subpath, lines in steps:
            key = as_key(project, session, subpath)
            if step == "delete":
                await ours.delete(key)
                await built_in.delete(key)
            else:
                known = {line.get("uuid") for line in await built_in.load(key) or []} - {None}
                new = [line for line in lines if line.get("uuid") not in known]
                first = {line["uuid"]: line for line in reversed(new) if "uuid" in line}
                new = [line for line in new if "uuid" not in line or first[line["uuid"]] is line]
                await ours.append(key, lines)
                if new:
                    await built_in.append(key, new)
        for project, session, subpath in keys:
            key = as_key(project, session, subpath)
            assert await ours.load(key) == await built_in.load(key)
            assert sorted(await ours.list_subkeys(key)) == sorted(await built_in.list_subkeys(key))
            for method in ("list_sessions", "list_session_summaries"):
                found, wanted = [await getattr(one, method)(key["project_key"]) for one in (ours, built_in)]
                shown = [sorted(repr({**one, "mtime": 0}) for one in some) for some in (found, wanted)]
                assert shown[0] == shown[1]

    anyio.run(main)
