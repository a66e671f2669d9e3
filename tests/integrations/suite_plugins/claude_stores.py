"""Puts a KeepstoneSessionStore in the place of the Claude Agent SDK's InMemorySessionStore."""

from __future__ import annotations

import os
import tempfile

import claude_agent_sdk
from claude_agent_sdk._internal import session_store
from claude_agent_sdk.types import SessionKey, SessionStoreEntry

import keepstone
from keepstone.integrations.claude_agent import KeepstoneSessionStore


class InMemorySessionStore(KeepstoneSessionStore):
    """A store with the constructor of the framework's own, and its helpers for tests."""

    def __init__(self) -> None:
        self.home = keepstone.open(tempfile.mkdtemp(dir=os.environ["KEEPSTONE_SUITE_HOMES"]))
        super().__init__(self.home)

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """Return all entries of a key, none if it is absent."""
        return self._load(key) or []

    @property
    def size(self) -> int:
        """The number of main transcripts."""
        heads = self.home.agent("default").iter_entries(types=["transcript"])
        return sum("subpath" not in head.data for head in heads)

    def clear(self) -> None:
        """Remove everything."""
        for info in self.home.agent("default").sessions():
            self.home.agent("default").session(info.id).remove()


for module in (claude_agent_sdk, session_store):
    vars(module)["InMemorySessionStore"] = InMemorySessionStore
