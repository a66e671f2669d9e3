"""Google ADK: a session service that stores in the agent's sessions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.adk_texts import content_text
from keepstone.integrations.homes import (
    clock_of,
    found_in,
    in_thread,
    needs,
    opened_agent,
    opened_session,
    revise,
    write_in_thread,
)
from keepstone.integrations.texts import STATE
from keepstone.log.arguments import new_id, now
from keepstone.log.line import format_time
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.store.protocol import LiveSession

with needs("adk"):
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.sessions import Session as AdkSession
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.state import State
    from pydantic_core import to_jsonable_python

_HEAD, _EVENT, _SHARED = "adk_session", "adk_event", "adk_state"
_ID = "session"
"""The id of the entry that records the session's app and user."""
_STATE_ID = "state"


class _Place(NamedTuple):
    app_name: str
    user_id: str
    session_id: str


class KeepstoneSessionService(BaseSessionService):
    """Sessions of an ADK runner: events and state, in logs that people can read and recall searches.

    Each ADK session is a session of the agent, and each event is an entry, whose text recall finds. The state
    of an app and of a user is stored in separate sessions. Services in other threads and processes may share
    the home.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first session."""
        self._agent = opened_agent(home, agent)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> AdkSession:
        """Create a session with the given id, or with a new id.

        Raises:
            AlreadyExistsError: The user has a session with this id.
        """
        # Like ADK's own services, strip the session id, and treat a blank id as none.
        place = _Place(app_name, user_id, (session_id or "").strip() or new_id())
        return await write_in_thread(self._create, place, state or {})

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> AdkSession | None:
        """Return a session with the events that ``config`` asks for; None if it is missing."""
        return await in_thread(self._read, _Place(app_name, user_id, session_id.strip()), config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users of an app, without events, sorted by last change."""
        return await in_thread(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove every byte of a session; do nothing if it is missing."""
        session = _session(self._agent, _Place(app_name, user_id, session_id.strip()))
        await write_in_thread(session.remove)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state that all sessions of a user share; its keys have no prefix ``user:``."""
        return await in_thread(_shared, _state_of(self._agent, app_name, user_id))

    async def append_event(self, session: AdkSession, event: Event) -> Event:
        """Store an event, and apply it to the session. A partial event is not stored.

        Appending the same event again changes nothing.

        Raises:
            SessionNotFoundError: The session was deleted.
        """
        if event.partial:
            return event
        # This is the order of ADK's BaseSessionService: temporary state is applied to the running session,
        # and removed before the event is stored.
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        place = _Place(session.app_name, session.user_id, session.id)
        if await write_in_thread(self._append, place, event):
            session.last_update_time = event.timestamp
            self._commit_event_to_session(session, event)
        return event

    def _create(self, place: _Place, state: Mapping[str, Any]) -> AdkSession:
        # Values without a JSON form are refused here, before the session is created.
        app, user, own = _parted(to_jsonable_python(state))
        created = time.time()
        head = {
            "id": _ID,
            "ts": now(clock_of(self._agent)),
            "type": _HEAD,
            "data": {**place._asdict(), "state": own, "created": created},
            **STATE,
        }

        def line(live: LiveSession) -> list[Record]:
            if live.get(_ID) is not None:
                raise AlreadyExistsError(f"Session with id {place.session_id} already exists.")
            return [head]

        # Check for an existing session and create it in one step, so that one of two concurrent callers gets
        # the error.
        revise(_session(self._agent, place), line, [_ID], lines=[head])
        self._share(place, app, user)
        return AdkSession(
            **_named(place), state=self._merged(place, own), events=[], last_update_time=created
        )

    def _read(self, place: _Place, config: GetSessionConfig | None) -> AdkSession | None:
        records = _session(self._agent, place).records()
        head = next((record["data"] for record in records if record["type"] == _HEAD), None)
        if head is None:
            return None
        stored = [record["data"]["event"] for record in records if record["type"] == _EVENT]
        own = dict(head["state"])
        for event in stored:
            # Compute the state from the events. It is stored nowhere else, so that state and events cannot
            # disagree.
            own.update(_parted(event.get("actions", {}).get("state_delta", {}))[2])
        changed = stored[-1]["timestamp"] if stored else head["created"]
        events = [*map(Event.model_validate, _chosen(stored, config))]
        state = self._merged(place, own)
        return AdkSession(**_named(place), state=state, events=events, last_update_time=changed)

    def _list(self, app_name: str, user_id: str | None) -> ListSessionsResponse:
        where = {"app_name": app_name} | ({} if user_id is None else {"user_id": user_id})
        heads = self._agent.iter_entries(types=[_HEAD], where=where, include_superseded=True)
        places = [_Place(*(head.data[name] for name in _Place._fields)) for head in heads]
        # ADK expects lists without events.
        nothing = GetSessionConfig(num_recent_events=0)
        found = [session for place in places if (session := self._read(place, nothing)) is not None]
        found.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=found)

    def _append(self, place: _Place, event: Event) -> bool:
        """Store an event; return False if it is already stored."""
        data = {"event": event.model_dump(mode="json", exclude_none=True)}
        text = content_text(event.content, event.author) if event.content else ""
        line = {
            "ts": format_time(datetime.fromtimestamp(event.timestamp, UTC)),
            "type": _EVENT,
            "data": data,
            **({"text": text} if text else STATE),
        }
        is_new = True

        def lines(live: LiveSession) -> list[Record]:
            nonlocal is_new
            if live.get(_ID) is None:
                raise SessionNotFoundError(f"Session {place.session_id} not found.")
            before = live.get(event.id)
            is_new = before is None or before.data != data
            # The same event again is a retry. A different event with the same id is stored under a new id.
            return [{"id": event.id if before is None else new_id(), **line}] if is_new else []

        # Do not create the session: an event that arrives after the session was deleted must not recreate it.
        written = revise(_session(self._agent, place), lines, [_ID, event.id], create=False)
        if is_new and not written:
            raise SessionNotFoundError(f"Session {place.session_id} not found.")
        if is_new:
            app, user, _ = _parted(data["event"].get("actions", {}).get("state_delta", {}))
            self._share(place, app, user)
        return is_new

    def _share(self, place: _Place, app: Mapping[str, Any], user: Mapping[str, Any]) -> None:
        """Update the state shared by the sessions of an app and by the sessions of a user."""
        for delta, names in ((app, [place.app_name]), (user, [place.app_name, place.user_id])):
            if delta:
                self._update(_state_of(self._agent, *names), delta)

    def _update(self, session: Session, delta: Mapping[str, Any]) -> None:
        ts = now(clock_of(self._agent))

        def line(live: LiveSession) -> Sequence[Record]:
            # Merge under the lock, so that no key is lost if two sessions set different keys at the same
            # time.
            before = live.get(_STATE_ID)
            merged = {**(before.data["state"] if before else {}), **delta}
            return [{"id": _STATE_ID, "ts": ts, "type": _SHARED, "data": {"state": merged}, **STATE}]

        revise(session, line, [_STATE_ID], lines=[{"data": delta}])

    def _merged(self, place: _Place, own: Mapping[str, Any]) -> dict[str, Any]:
        app = _shared(_state_of(self._agent, place.app_name))
        user = _shared(_state_of(self._agent, place.app_name, place.user_id))
        return {
            **own,
            **{State.APP_PREFIX + key: value for key, value in app.items()},
            **{State.USER_PREFIX + key: value for key, value in user.items()},
        }


def _session(agent: Agent, place: _Place) -> Session:
    return opened_session(agent, "adk-session", *place)


def _state_of(agent: Agent, *names: str) -> Session:
    return opened_session(agent, "adk-state", *names)


def _shared(session: Session) -> dict[str, Any]:
    entry = found_in(session, _STATE_ID)
    return dict(entry.data["state"]) if entry is not None else {}


def _named(place: _Place) -> dict[str, str]:
    return {"app_name": place.app_name, "user_id": place.user_id, "id": place.session_id}


def _parted(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split a state into that of the app, of the user and of the session, without temporary keys."""
    app, user, own = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for key, value in state.items():
        if key.startswith(State.APP_PREFIX):
            app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            own[key] = value
    return app, user, own


def _chosen(events: Sequence[Record], config: GetSessionConfig | None) -> Sequence[Record]:
    """Return the events that a config selects: the newest N, and of these, the events from a time on."""
    if config is None:
        return events
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events else []
    since = config.after_timestamp
    return events if since is None else [event for event in events if event["timestamp"] >= since]
