"""Puts our services in the place of Google ADK's own in memory, of sessions and of memories."""

from __future__ import annotations

from typing import Any

import google.adk.memory
import google.adk.sessions
from google.adk.memory import in_memory_memory_service
from google.adk.sessions import in_memory_session_service
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.adk import KeepstoneMemoryService, KeepstoneSessionService


class InMemorySessionService(KeepstoneSessionService):
    """A service with the constructor of the framework's own."""

    def __init__(self, *_: Any) -> None:
        super().__init__(**place())


class InMemoryMemoryService(KeepstoneMemoryService):
    """A service with the constructor of the framework's own."""

    def __init__(self) -> None:
        super().__init__(**place())


for module in (google.adk.memory, in_memory_memory_service):
    vars(module)["InMemoryMemoryService"] = InMemoryMemoryService
for module in (google.adk.sessions, in_memory_session_service):
    vars(module)["InMemorySessionService"] = InMemorySessionService
