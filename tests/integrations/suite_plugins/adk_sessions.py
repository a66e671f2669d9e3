"""Puts a KeepstoneSessionService in the place of Google ADK's session services."""

from __future__ import annotations

from typing import Any

import google.adk.sessions
from google.adk.sessions import in_memory_session_service
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.adk import KeepstoneSessionService


class InMemorySessionService(KeepstoneSessionService):
    """A service with the constructor of the framework's own."""

    def __init__(self, *_: Any) -> None:
        super().__init__(**place())


for module in (google.adk.sessions, in_memory_session_service):
    vars(module)["InMemorySessionService"] = InMemorySessionService
