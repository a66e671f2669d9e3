"""Puts a KeepstoneSessionStore in the place of the Claude Agent SDK's InMemorySessionStore."""

from __future__ import annotations

import claude_agent_sdk
from claude_agent_sdk._internal import session_store
from claude_agent_sdk.types import SessionKey, SessionStoreEntry
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.homes import opened_agent


class InMemorySessionStore(KeepstoneSessionStore):
    """A store with the constructor of the framework's own, and its helpers for tests."""

    def __init__(self) -> None:
        where = place()
        self.agent = opened_agent(where["home"], where.get("agent", "default"))
        super().__init__(**where)

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """Return all entries of a key, none if it is absent."""
        return self._load(key) or []

    @property
    def size(self) -> int:
        """The number of main transcripts."""
        heads = self.agent.iter_entries(types=["transcript"])
        return sum("subpath" not in head.data for head in heads)

    def clear(self) -> None:
        """Remove everything."""
        for info in self.agent.sessions():
            self.agent.session(info.id).remove()


for module in (claude_agent_sdk, session_store):
    vars(module)["InMemorySessionStore"] = InMemorySessionStore
