"""Sessions for the ids of frameworks, which may be longer than a file name, and entries for their state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from keepstone.agent import Agent
from keepstone.errors import InvalidSessionIdError
from keepstone.filesystem.layout import Layout
from keepstone.session import Session

STATE: Mapping[str, Any] = MappingProxyType({"text": "", "expires": "1970-01-01T00:00:00Z"})
"""Keys of an entry that holds a framework's state: no search and no context returns it."""


def session_for(agent: Agent, name: str, *, create: bool = False) -> Session:
    """Return the session of a framework's id; one that is too long for a file name has a digest as its id.

    With ``create``, which writers pass, a new session with a digest begins with an entry that has the id.
    """
    try:
        return agent.session(name)
    except InvalidSessionIdError:
        if not name:
            raise
    session = agent.session(Layout.session_name(name))
    if create:
        session.add("session", {"session_id": name}, id="name", **STATE)
    return session
