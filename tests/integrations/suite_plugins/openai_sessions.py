"""Puts a KeepstoneSession in the place of the OpenAI Agents SDK's SQLiteSession."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.openai_agents import KeepstoneSession


class SQLiteSession(KeepstoneSession):
    """A session with the constructor of the framework's own."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **keys: Any) -> None:
        in_memory = str(db_path) == ":memory:"
        path = None if in_memory else Path(db_path).with_suffix(".home")
        super().__init__(session_id, **place(path), **keys)

    def close(self) -> None:
        """Do nothing: the home stays open for other sessions."""


for module in (agents, agents.memory):
    vars(module)["SQLiteSession"] = SQLiteSession
