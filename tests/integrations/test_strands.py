"""The session manager of Strands Agents, in an environment of its own: see ``make frameworks``."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="Strands needs an older mcp: make frameworks")

from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType
from tests.integrations.locking import locked

import keepstone
from keepstone.integrations.strands import KeepstoneSessionManager


class Counting(Model):
    """A model that answers with the number of messages that it was sent."""

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: list[Any], *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": f"I read {len(messages)}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def message(number: int, text: str = "Hi", **keys: Any) -> SessionMessage:
    return SessionMessage({"role": "user", "content": [{"text": text}]}, number, **keys)


def manager(home: Path, session: str = "s1") -> KeepstoneSessionManager:
    """A manager of a session with one agent, ``a1``."""
    made = KeepstoneSessionManager(session, home)
    made.create_agent(session, SessionAgent("a1", {"n": 1}, {}))
    return made


def agent(home: Path, **keys: Any) -> Agent:
    sessions = KeepstoneSessionManager("s1", home)
    return Agent(model=Counting(), agent_id="a1", session_manager=sessions, callback_handler=None, **keys)


def test_an_agent_continues_its_session(tmp_path: Path) -> None:
    assert str(agent(tmp_path)("Hello")).strip() == "I read 1"
    again = agent(tmp_path)
    assert [said["content"][0]["text"] for said in again.messages] == ["Hello", "I read 1"]
    assert str(again("Hello")).strip() == "I read 3"


def test_an_agents_state_is_restored(tmp_path: Path) -> None:
    first = agent(tmp_path, state={"basket": [1, None, ""]})
    first.state.set("name", "Ünï")
    first("Hello")
    assert agent(tmp_path).state.get() == {"basket": [1, None, ""], "name": "Ünï"}


def test_a_graph_or_swarm_is_stored_and_replaced(tmp_path: Path) -> None:
    class Swarm:
        id = "swarm"

        def __init__(self, state: dict[str, Any]) -> None:
            self.serialize_state = lambda: state

    sessions: Any = manager(tmp_path)
    with pytest.raises(SessionException):
        sessions.update_multi_agent("s1", Swarm({}))
    sessions.create_multi_agent("s1", Swarm({"nodes": ["a"]}))
    sessions.update_multi_agent("s1", Swarm({"nodes": ["b"]}))
    assert KeepstoneSessionManager("s1", tmp_path).read_multi_agent("s1", "swarm") == {"nodes": ["b"]}
    assert sessions.read_multi_agent("s1", "none") is None


def test_messages_come_back_as_they_were_stored(tmp_path: Path) -> None:
    blocks: Any = [
        {"text": "Ü\u2028"},
        {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}},
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"id": "x", "deleted": True}}},
        {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"json": {"degrees": 4.5}}]}},
    ]
    given = SessionMessage({"role": "assistant", "content": blocks}, 0)
    manager(tmp_path).create_message("s1", "a1", given)
    assert KeepstoneSessionManager("s1", tmp_path).read_message("s1", "a1", 0) == given


def test_messages_are_listed_by_number(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    for number in (10, 2, 0, 1):
        sessions.create_message("s1", "a1", message(number))

    def listed(**keys: Any) -> list[int]:
        return [found.message_id for found in sessions.list_messages("s1", "a1", **keys)]

    assert listed() == [0, 1, 2, 10]
    assert (listed(limit=2, offset=1), listed(offset=3), listed(limit=0)) == ([1, 2], [10], [])


def test_agents_of_one_session_have_messages_of_their_own(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    sessions.create_agent("s1", SessionAgent("a2", {}, {}))
    sessions.create_message("s1", "a1", message(0, "one"))
    sessions.create_message("s1", "a2", message(0, "two"))
    assert [found.message["content"] for found in sessions.list_messages("s1", "a2")] == [[{"text": "two"}]]


def test_what_is_absent_reads_as_none(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    assert sessions.read_session("none") is None
    assert (sessions.read_agent("s1", "none"), sessions.read_agent("none", "a1")) == (None, None)
    assert sessions.read_message("s1", "a1", 7) is None


def test_changing_what_is_absent_is_a_session_exception(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    for change in (
        lambda: sessions.update_agent("s1", SessionAgent("none", {}, {})),
        lambda: sessions.update_message("s1", "a1", message(7)),
        lambda: sessions.list_messages("none", "a1"),
        lambda: sessions.list_messages("s1", "none"),
        lambda: sessions.delete_session("none"),
        lambda: sessions.create_session(Session("s1", SessionType.AGENT)),
    ):
        with pytest.raises(SessionException):
            change()


def test_updates_keep_the_time_of_creation(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    sessions.create_message("s1", "a1", message(0, created_at="2020"))
    sessions.update_message("s1", "a1", message(0, "changed", created_at="2026"))
    sessions.create_agent("s1", SessionAgent("a2", {}, {}, created_at="2020"))
    sessions.update_agent("s1", SessionAgent("a2", {"n": 2}, {}, created_at="2026"))
    found, changed = sessions.read_message("s1", "a1", 0), sessions.read_agent("s1", "a2")
    assert found is not None
    assert changed is not None
    assert (found.created_at, found.message["content"]) == ("2020", [{"text": "changed"}])
    assert (changed.created_at, changed.state) == ("2020", {"n": 2})


def test_a_redacted_message_is_restored_and_found_redacted(tmp_path: Path) -> None:
    first = agent(tmp_path)
    first("My card is 4111")
    latest: Any = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    sessions: Any = first._session_manager  # noqa: SLF001
    sessions.redact_latest_message(latest, first)
    assert agent(tmp_path).messages[-1] == latest
    memory = keepstone.open(tmp_path).agent("default")
    assert memory.recall("read 1").stale is False
    assert [entry.text for entry in memory.session("s1").entries(types=["message"])] == [
        "user: My card is 4111",
        "assistant: [redacted]",
    ]


@pytest.mark.parametrize("name", ["a/b", "../x", "/etc/passwd"])
def test_ids_with_a_path_separator_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot contain path separators"):
        FileSessionManager(name, str(tmp_path / "theirs"))
    with pytest.raises(ValueError, match="cannot contain path separators"):
        KeepstoneSessionManager(name, tmp_path / "ours")
    with pytest.raises(ValueError, match="cannot contain path separators"):
        manager(tmp_path / "ours").read_agent("s1", name)


@pytest.mark.parametrize("name", ["..", "ü ", "s" * 250, "ü" * 150])
def test_sessions_with_odd_ids_stay_apart_and_in_the_home(tmp_path: Path, name: str) -> None:
    manager(tmp_path / "home", name).create_message(name, "a1", message(0, "one"))
    manager(tmp_path / "home", name + "x")
    assert len(KeepstoneSessionManager(name, tmp_path / "home").list_messages(name, "a1")) == 1
    assert KeepstoneSessionManager(name + "x", tmp_path / "home").list_messages(name + "x", "a1") == []
    assert os.listdir(tmp_path) == ["home"]


def test_two_managers_see_each_others_writes(tmp_path: Path) -> None:
    one, other = manager(tmp_path), KeepstoneSessionManager("s1", tmp_path)
    one.create_message("s1", "a1", message(0))
    assert len(other.list_messages("s1", "a1")) == 1


def test_a_locked_home_is_a_session_exception(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    (log,) = tmp_path.glob("agents/default/memory/sessions/*.ndjson")
    with locked(log.with_suffix(".lock")), pytest.raises(SessionException, match="another writer holds"):
        sessions.create_message("s1", "a1", message(0))
    assert sessions.list_messages("s1", "a1") == []


def test_a_message_that_json_cannot_hold_is_refused_and_not_stored(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    bad = message(0)
    bad.message["content"] = [{"text": math.nan}]  # type: ignore[typeddict-item, unused-ignore]
    with pytest.raises((SessionException, TypeError, ValueError)) as raised:
        sessions.create_message("s1", "a1", bad)
    assert not isinstance(raised.value, keepstone.KeepstoneError)
    assert sessions.list_messages("s1", "a1") == []


def test_a_deleted_session_is_gone(tmp_path: Path) -> None:
    sessions = manager(tmp_path)
    sessions.delete_session("s1")
    assert sessions.read_session("s1") is None
    assert keepstone.open(tmp_path).agent("default").sessions() == []


def test_messages_are_recalled_and_state_is_not(tmp_path: Path) -> None:
    agent(tmp_path, state={"tool": "pnpm"})("We use pnpm")
    hits = keepstone.open(tmp_path).agent("default").recall("pnpm AGENT")
    assert hits[0].text == "user: We use pnpm"
    assert {hit.entry.type for hit in hits} == {"message"}
