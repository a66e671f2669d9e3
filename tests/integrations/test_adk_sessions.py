"""Google ADK's sessions: events and state, in the agent's sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.adk.agents import BaseAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai.types import Blob, Content, Part

import keepstone
from keepstone import Home
from keepstone.integrations.adk import KeepstoneMemoryService, KeepstoneSessionService

pytestmark = pytest.mark.anyio
ADA: dict[str, Any] = {"app_name": "trips", "user_id": "ada"}
BOB: dict[str, Any] = {"app_name": "trips", "user_id": "bob"}


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none") as home:
        yield home


@pytest.fixture
def service(home: Home) -> KeepstoneSessionService:
    return KeepstoneSessionService(home)


def event(text: str | None = None, **delta: Any) -> Event:
    content = Content(role="user", parts=[Part(text=text)]) if text else None
    return Event(author="user", content=content, actions=EventActions(state_delta=delta))


async def read(service: KeepstoneSessionService, session: Session, **config: Any) -> Session:
    found = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=GetSessionConfig(**config) if config else None,
    )
    assert found is not None
    return found


async def test_a_session_comes_back_as_it_was_left(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA, state={"n": 1}, session_id=" monday ")
    said = event("I take the ferry", n=2, gone=None)
    said.content = Content(parts=[Part(text="Hi"), Part(inline_data=Blob(data=b"\xff", mime_type="x/y"))])
    said.long_running_tool_ids = {"t1"}
    await service.append_event(session, said)
    assert await read(service, session) == session
    assert (session.id, session.state) == ("monday", {"n": 2, "gone": None})


async def test_an_app_s_state_is_shared_by_its_users(service: KeepstoneSessionService) -> None:
    first = await service.create_session(**ADA, state={"app:a": 1, "user:u": 1, "own": 1})
    await service.append_event(first, Event(author="x", actions=EventActions(state_delta={"app:b": 2})))
    assert (await service.create_session(**BOB)).state == {"app:a": 1, "app:b": 2}
    assert (await service.create_session(**ADA)).state == {"app:a": 1, "app:b": 2, "user:u": 1}
    assert await service.get_user_state(**ADA) == {"u": 1}
    assert await service.get_user_state(**BOB) == {}


async def test_temporary_state_is_not_stored(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA)
    await service.append_event(session, Event(author="x", actions=EventActions(state_delta={"temp:t": 1})))
    assert session.state == {"temp:t": 1}
    stored = await read(service, session)
    assert (stored.state, stored.events[0].actions.state_delta) == ({}, {})


async def test_partial_events_are_not_stored(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA)
    await service.append_event(session, Event(author="x", partial=True))
    assert (session.events, (await read(service, session)).events) == ([], [])


async def test_an_event_delivered_twice_is_stored_once(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA)
    one, other = event("one"), event("other")
    other.id = one.id
    for said in (one, one, other):
        await service.append_event(session, said)
    assert [said.content for said in (await read(service, session)).events] == [one.content, other.content]


async def test_the_newest_events_can_be_asked_for(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA)
    for moment in range(1, 6):
        await service.append_event(session, Event(author="x", timestamp=moment))

    async def times(**config: Any) -> list[float]:
        return [said.timestamp for said in (await read(service, session, **config)).events]

    assert await times(num_recent_events=3) == [3, 4, 5]
    assert await times(num_recent_events=9, after_timestamp=4) == [4, 5]
    assert await times(num_recent_events=0) == []


async def test_a_stale_session_loses_no_event(service: KeepstoneSessionService) -> None:
    stale = await service.create_session(**ADA)
    await service.append_event(await read(service, stale), event("one", a=1))
    await service.append_event(stale, event("two", b=2))
    assert (await read(service, stale)).state == {"a": 1, "b": 2}
    assert len((await read(service, stale)).events) == 2


async def test_sessions_are_listed_by_their_last_change(service: KeepstoneSessionService) -> None:
    first = await service.create_session(**ADA, session_id="a")
    await service.create_session(**ADA, session_id="b")
    await service.create_session(**BOB, session_id="c", state={"n": 1})
    await service.append_event(first, event("Hi"))
    listed = (await service.list_sessions(**ADA)).sessions
    assert [(one.id, one.events) for one in listed] == [("b", []), ("a", [])]
    everyone = (await service.list_sessions(app_name="trips")).sessions
    assert [(one.user_id, one.id) for one in everyone] == [("ada", "b"), ("bob", "c"), ("ada", "a")]
    assert (await service.list_sessions(app_name="other")).sessions == []


async def test_an_id_is_unique_to_its_user(service: KeepstoneSessionService) -> None:
    session = await service.create_session(**ADA, session_id="monday")
    await service.append_event(session, event("Hi"))
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ADA, session_id="monday ")
    assert (await read(service, await service.create_session(**BOB, session_id="monday"))).events == []


async def test_a_deleted_session_takes_no_event(service: KeepstoneSessionService, home: Home) -> None:
    session = await service.create_session(**ADA)
    await service.delete_session(**ADA, session_id=session.id)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("Hi"))
    assert home.agent("default").sessions() == []


async def test_memory_searches_only_what_was_added_to_it(home: Home) -> None:
    service, memory = KeepstoneSessionService(home), KeepstoneMemoryService(home)
    session = await service.create_session(**ADA)
    await service.append_event(session, event("I take the ferry"))
    assert home.agent("default").recall("ferry")[0].entry.text == "user: I take the ferry"
    assert (await memory.search_memory(**ADA, query="ferry")).memories == []
    await memory.add_session_to_memory(session)
    assert len((await memory.search_memory(**ADA, query="ferry")).memories) == 1
    assert await read(service, session) == session


async def test_a_runner_goes_on_with_a_stored_session(service: KeepstoneSessionService) -> None:
    class Counting(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> Any:
            count = ctx.session.state.get("count", 0) + 1
            yield Event(author=self.name, actions=EventActions(state_delta={"count": count}))

    session = await service.create_session(**ADA)
    for _ in range(2):
        runner = Runner(app_name="trips", agent=Counting(name="counting"), session_service=service)
        said = Content(role="user", parts=[Part(text="count")])
        async for _event in runner.run_async(user_id="ada", session_id=session.id, new_message=said):
            pass
    assert (await read(service, session)).state["count"] == 2
