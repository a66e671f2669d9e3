"""Sessions of the OpenAI Agents SDK: items in, items out, as its built-in sessions do."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone.log.line import RESERVED

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner, SessionSettings, TResponseInputItem
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message
from tests.integrations.locking import locked

from keepstone.integrations.openai_agents import KeepstoneSession

run = asyncio.run


def item(content: str, **keys: Any) -> TResponseInputItem:
    return cast("TResponseInputItem", {"role": "user", "content": content, **keys})


def items(*texts: str) -> list[TResponseInputItem]:
    return [item(text) for text in texts]


def log_of(home: Path, session: str) -> Path:
    return home / "agents" / "default" / "memory" / "sessions" / f"{session}.ndjson"


@pytest.fixture
def session(tmp_path: Path) -> KeepstoneSession:
    return KeepstoneSession("s1", home=tmp_path / "home")


def test_it_is_a_session_of_the_framework(session: KeepstoneSession) -> None:
    assert isinstance(session, Session)
    assert session.session_id == "s1"
    assert session.session_settings == SessionSettings()


def test_items_come_back_oldest_first(session: KeepstoneSession) -> None:
    run(session.add_items(items("one", "two")))
    run(session.add_items(items("three")))
    assert run(session.get_items()) == items("one", "two", "three")


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"])])
def test_a_limit_keeps_the_newest(session: KeepstoneSession, limit: int, expected: list[str]) -> None:
    run(session.add_items(items("a", "b", "c")))
    assert run(session.get_items(limit)) == items(*expected)


def test_an_explicit_limit_beats_the_settings(tmp_path: Path) -> None:
    session = KeepstoneSession("s1", home=tmp_path, session_settings={"limit": 1})
    run(session.add_items(items("a", "b", "c")))
    assert run(session.get_items()) == items("c")
    assert run(session.get_items(2)) == items("b", "c")
    session.session_settings = SessionSettings(limit=0)
    assert run(session.get_items()) == []
    session.session_settings = None
    assert run(session.get_items()) == items("a", "b", "c")


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError)):
        KeepstoneSession("s1", home=tmp_path, session_settings={"limits": 1})


def test_items_with_keys_of_the_log_line_stay_whole(session: KeepstoneSession) -> None:
    odd = [item("x", id="same", type="message", ts="now", data={"data": 1}, deleted=True, text="t")] * 2
    run(session.add_items(odd))
    run(session.add_items([item("y", **dict.fromkeys(RESERVED))]))
    assert run(session.get_items()) == [*odd, item("y", **dict.fromkeys(RESERVED))]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["id", "type", "role", "content", "data", "text", "ts", ""])


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_any_json_object_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]]
) -> None:
    session = KeepstoneSession("s1", home=tmp_path_factory.mktemp("home"))
    given_items = cast("list[TResponseInputItem]", objects)
    run(session.add_items(given_items))
    assert run(session.get_items()) == given_items
    popped = [run(session.pop_item()) for _ in range(len(objects) + 1)]
    assert popped == [*reversed(objects), None]


@pytest.mark.parametrize("bad", [object(), {1, 2}, math.nan, math.inf, b"x", "\ud800"])
def test_a_batch_with_an_item_that_json_cannot_hold_stores_nothing(
    session: KeepstoneSession, tmp_path: Path, bad: object
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        run(session.add_items([item("before"), item("x", value=bad), item("after")]))
    assert not isinstance(raised.value, keepstone.KeepstoneError)
    assert not (tmp_path / "home").exists()
    run(session.add_items(items("fine")))
    assert run(session.get_items()) == items("fine")


def test_adding_nothing_creates_nothing(session: KeepstoneSession, tmp_path: Path) -> None:
    run(session.add_items([]))
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    run(session.clear_session())
    assert not (tmp_path / "home").exists()


def test_pop_removes_and_returns_the_newest(session: KeepstoneSession) -> None:
    run(session.add_items(items("a", "b")))
    assert [run(session.pop_item()) for _ in range(3)] == [item("b"), item("a"), None]
    assert run(session.get_items()) == []


def test_two_poppers_never_get_the_same_item(tmp_path: Path) -> None:
    sessions = [KeepstoneSession("s1", home=keepstone.open(tmp_path)) for _ in range(4)]
    run(sessions[0].add_items(items(*map(str, range(40)))))
    with ThreadPoolExecutor(4) as pool:
        popped = list(pool.map(lambda number: run(sessions[number % 4].pop_item()), range(44)))
    texts = [cast("dict[str, str]", found)["content"] for found in popped if found is not None]
    assert sorted(texts, key=int) == [*map(str, range(40))]


def test_lines_that_are_not_items_do_not_count_for_a_limit(session: KeepstoneSession, tmp_path: Path) -> None:
    run(session.add_items(items("a", "b")))
    with keepstone.open(tmp_path / "home") as home:
        other = home.agent("default").session("s1")
        other.add("note", text="a note of another program")
        other.add_many([{"type": "message", "text": "no payload"}] * 3)
    with log_of(tmp_path / "home", "s1").open("a") as log:
        log.write("not JSON\n[1]\n")
    assert run(session.get_items(2)) == items("a", "b")
    assert run(session.pop_item()) == item("b")


def test_clearing_leaves_no_byte_and_the_session_can_go_on(session: KeepstoneSession, tmp_path: Path) -> None:
    run(session.add_items(items("a secret plan")))
    run(session.clear_session())
    assert log_of(tmp_path / "home", "s1").read_bytes() == b""
    run(session.add_items(items("next")))
    assert run(session.get_items()) == items("next")


def test_what_a_caller_changes_is_not_stored(session: KeepstoneSession) -> None:
    original = item("x", tags=["a"])
    run(session.add_items([original]))
    for _ in range(2):
        found = cast("dict[str, Any]", run(session.get_items())[0])
        assert found["tags"] == ["a"]
        found["tags"].append("b")


def test_adapters_of_one_home_see_each_other_at_once(tmp_path: Path) -> None:
    first, second = (KeepstoneSession("s1", home=keepstone.open(tmp_path)) for _ in range(2))
    run(first.add_items(items("a")))
    assert run(second.get_items()) == items("a")
    run(second.clear_session())
    assert run(first.get_items()) == []


@pytest.mark.parametrize(
    "odd", ["a/b", "../x", "a b", "über", "x" * 150, "ü" * 150, ".", "S1", "%2F", "東" * 99]
)
def test_any_id_is_a_session_of_its_own_inside_the_home(tmp_path: Path, odd: str) -> None:
    names = ["s1", odd, odd + "x"]
    for name in names:
        run(KeepstoneSession(name, home=tmp_path / "home").add_items(items(name)))
    for name in names:
        assert run(KeepstoneSession(name, home=tmp_path / "home").get_items()) == items(name)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_long_id_is_in_the_log(tmp_path: Path) -> None:
    run(KeepstoneSession("ü" * 150, home=tmp_path).add_items(items("a")))
    (log,) = (tmp_path / "agents/default/memory/sessions").glob("*.ndjson")
    assert "ü" * 150 in log.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "kind"), [("", ValueError), (7, TypeError), ("\ud800", ValueError)])
def test_an_invalid_id_is_refused(tmp_path: Path, name: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised:
        KeepstoneSession(name, home=tmp_path / "home")
    assert not isinstance(raised.value, keepstone.KeepstoneError)
    assert not (tmp_path / "home").exists()


def test_batches_of_two_writers_do_not_mix(tmp_path: Path) -> None:
    sessions = [KeepstoneSession("s1", home=tmp_path) for _ in range(4)]

    async def write_all() -> None:
        batches = [items(*(f"{number}.{turn}" for turn in range(5))) for number in range(4)]
        await asyncio.gather(*(one.add_items(batch) for one, batch in zip(sessions, batches, strict=True)))

    run(write_all())
    texts = [cast("dict[str, str]", found)["content"] for found in run(sessions[0].get_items())]
    runs = [texts[place : place + 5] for place in range(0, 20, 5)]
    assert sorted(runs) == [[f"{number}.{turn}" for turn in range(5)] for number in range(4)]


def test_a_locked_session_raises_a_plain_timeout_and_the_loop_goes_on(
    session: KeepstoneSession, tmp_path: Path
) -> None:
    run(session.add_items(items("a")))
    turns = []

    async def main() -> None:
        writing = asyncio.ensure_future(session.add_items(items("b")))
        while not writing.done():
            turns.append(await session.get_items())  # The loop is free, and reads do not wait.
        with pytest.raises(TimeoutError) as raised:
            await writing
        assert type(raised.value) is TimeoutError

    with locked(log_of(tmp_path / "home", "s1").with_suffix(".lock")):
        run(main())
    assert len(turns) > 10
    assert run(session.get_items()) == items("a")


def test_a_cancelled_write_has_ended_when_its_caller_goes_on(
    session: KeepstoneSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    put_many = session._session.put_many  # noqa: SLF001

    def slow(lines: Any) -> Any:
        begun.set()
        go_on.wait()
        return put_many(lines)

    monkeypatch.setattr(session._session, "put_many", slow)  # noqa: SLF001

    async def main() -> list[TResponseInputItem]:
        task = asyncio.create_task(session.add_items(items("a")))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert run(main()) == items("a")


def test_one_session_serves_several_event_loops(session: KeepstoneSession) -> None:
    def add(number: int) -> None:
        run(session.add_items(items(str(number))))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert len(run(session.get_items())) == 12


def test_methods_can_be_overridden_and_replaced(tmp_path: Path) -> None:
    class Shouting(KeepstoneSession):
        async def add_items(self, items: list[TResponseInputItem]) -> None:
            await super().add_items([item(str(cast("Any", one)["content"]).upper()) for one in items])

    session = Shouting("s1", home=tmp_path)
    run(session.add_items(items("a")))
    assert run(session.get_items()) == items("A")

    async def nothing(limit: int | None = None) -> list[TResponseInputItem]:  # noqa: ARG001
        return []

    session.get_items = nothing  # type: ignore[method-assign]
    assert run(session.get_items()) == []


def test_a_runner_continues_the_conversation(session: KeepstoneSession) -> None:
    model = ScriptedModel(steps=[[assistant_message("San Francisco")], [assistant_message("California")]])
    guide, config = Agent(name="guide", model=model), RunConfig(tracing_disabled=True)

    async def talk() -> str:
        await Runner.run(guide, "Where is the Golden Gate Bridge?", session=session, run_config=config)
        second = await Runner.run(guide, "In which state?", session=session, run_config=config)
        return str(second.final_output)

    assert run(talk()) == "California"
    roles = [cast("dict[str, Any]", one).get("role") for one in run(session.get_items())]
    assert roles == ["user", "assistant", "user", "assistant"]


def test_a_run_s_settings_limit_what_the_model_sees(session: KeepstoneSession) -> None:
    run(session.add_items(items("one", "two", "three")))
    model = ScriptedModel(steps=[[assistant_message("ok")]])
    config = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=1))
    run(Runner.run(Agent(name="a", model=model), "four", session=session, run_config=config))
    assert model.calls[-1].input == [item("three"), item("four")]


def test_items_are_recalled_like_every_memory(session: KeepstoneSession, tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "find_ferry", "arguments": '{"port": "Dover"}'}
    run(session.add_items([item("We sail at dawn"), cast("TResponseInputItem", call)]))
    with keepstone.open(tmp_path / "home") as home:
        agent = home.agent("default")
        assert agent.recall("when do we sail")[0].entry.type == "message"
        assert agent.recall("Dover")[0].entry.data == call
