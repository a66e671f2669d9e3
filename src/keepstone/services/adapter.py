"""``MemoryAdapter``: save, load, clear and list sessions (requirement 0)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.log.arguments import new_id
from keepstone.log.line import RESERVED, instant
from keepstone.model import Record, SessionInfo

logger = logging.getLogger("keepstone.debugger")


class Debugger(Protocol):
    """Receives events about memory."""

    def log(self, event: dict[str, Any]) -> object:
        """Receive one event."""


class MemoryAdapter:
    """The session logs of one agent. Each event is one line of its session's NDJSON file.

    Args:
        root: The home, or its folder; logs are in ``agents/<slug>/memory/sessions`` below it.
        agent: The agent. Memory of other agents cannot be accessed.
        debugger: Receives an event for every clear: a callable, or an object with ``log``. The logger
            ``keepstone.debugger`` always receives the event, too.

    Examples:
        >>> memory = MemoryAdapter()
        >>> session = memory.new_session()
        >>> event = memory.save({"role": "user", "content": "Hi"})
        >>> memory.load(session, {"limit": 1})[0]["content"]
        'Hi'
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Home = ".work-agent",
        agent: str = "default",
        *,
        debugger: Debugger | Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """Open the home. Nothing is written before the first ``save``."""
        self._debugger = debugger
        self._home = root if isinstance(root, Home) else open_home(root)
        self._agent = self._home.agent(agent)
        self._current: dict[Literal["session"], str] = {}
        """The current session of ``save``. ``setdefault`` makes concurrent threads use the same session."""

    def for_agent(self, slug: str) -> MemoryAdapter:
        """Return an adapter for another agent of the same home, without a current session."""
        return MemoryAdapter(self._home, slug, debugger=self._debugger)

    def new_session(self) -> str:
        """Create a session, make it the current one of ``save``, and return its id."""
        session_id = self._agent.new_session().id
        self._current["session"] = session_id
        return session_id

    def save(self, event: Mapping[str, Any], session_id: str | None = None) -> dict[str, Any]:
        """Append an event to a session's log, and return the event as ``load`` returns it.

        Without ``session_id``, the event is saved in the current session, or in a new session if there is
        none. An event keeps its own ``id``, ``type`` and ``ts``. An event whose id the session already has
        replaces the existing event.

        Raises:
            TypeError, ValueError: The event cannot be written as JSON; nothing was written.
        """
        if not isinstance(event, Mapping):
            raise TypeError(f"an event must be a mapping, not {type(event).__name__}: {event!r:.80}")
        if session_id is None:
            session_id = self._current.get("session") or self._current.setdefault("session", new_id())
        item = _wrapped(event) if _needs_wrapping(event) else event
        return _event(self._agent.session(session_id).put(item).as_dict())

    def load(self, session_id: str, options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return a session's events, oldest first; with ``{"limit": N}``, only the newest N.

        A missing session has none.
        """
        unknown = set(options or ()) - {"limit"}
        if unknown:
            raise ValueError(f"unknown option {min(unknown)!r}: load takes {{'limit': N}}")
        limit = options.get("limit") if options else None
        session = self._agent.session(session_id)
        return [_event(entry.as_dict()) for entry in session.entries(limit=limit, include_superseded=True)]

    def list(self) -> list[SessionInfo]:
        """Return the id, last change and size of every session, the most recently changed first."""
        return self._agent.sessions()

    def clear(self, session_id: str) -> bool:
        """Clear a session's log to zero bytes and notify the debugger; False if it is missing."""
        session = self._agent.session(session_id)
        info = session.info()
        if info is None or not session.clear():
            return False
        self._report(
            {"event": "memory.clear", "agent": self._agent.slug, "session": session_id, "bytes": info.size}
        )
        return True

    def delete(self, session_id: str) -> bool:
        """Remove a session and every byte of it; False if it is missing."""
        if session_id == self._current.get("session"):
            self._current.pop("session", None)
        return self._agent.session(session_id).remove()

    def _report(self, event: dict[str, Any]) -> None:
        logger.info("memory.clear agent=%(agent)s session=%(session)s bytes=%(bytes)d", event)
        if callable(self._debugger):
            self._debugger(event)
        elif self._debugger is not None:
            self._debugger.log(event)


def _needs_wrapping(event: Mapping[str, Any]) -> bool:
    """Return whether an event has keys or values with another meaning in a log line."""
    if "data" in event or any(key in RESERVED for key in event):
        return True
    texts = all(isinstance(event[key], str) and event[key] for key in ("id", "type") if key in event)
    return (
        not texts
        or not isinstance(event.get("text", ""), str)
        or ("ts" in event and not _is_instant(event["ts"]))
    )


def _is_instant(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(instant(value))
    except ValueError:
        return False


def _wrapped(event: Mapping[str, Any]) -> Record:
    head = {key: event[key] for key in ("id", "type") if isinstance(event.get(key), str) and event[key]}
    if _is_instant(event.get("ts")):
        head["ts"] = event["ts"]
    return {**head, "data": event}


def _event(line: Record) -> dict[str, Any]:
    """Return the event of a log line as it was saved, without the envelope if it was wrapped."""
    # A wrapped event looks like any event with a payload; it is recognized by the keys that need wrapping.
    data = line.get("data")
    if isinstance(data, dict) and _needs_wrapping(data):
        return dict(data)
    # The store adds ``modified``, which the event did not have.
    return {key: value for key, value in line.items() if key != "modified"}
