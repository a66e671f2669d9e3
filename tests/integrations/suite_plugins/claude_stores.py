"""Puts a KeepstoneSessionStore in the place of the Claude Agent SDK's InMemorySessionStore.

Four tests count turns of the event loop, within which the framework's store, which never waits, has answered.
A store that does any work in a thread has not; neither has the framework's own one as soon as each of its
methods awaits a thread once. There our calls run at once, so that what these tests check is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk._internal import session_store
from claude_agent_sdk.types import SessionKey, SessionStoreEntry
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations import claude_agent
from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.homes import opened_agent

COUNT_TURNS = (
    "test_load_concurrency_is_bounded",
    "test_cancelled_after_mkdtemp_cleans_temp_dir",
    "test_gap_fill_bounded_concurrency",
    "test_eager_flush_mode_appends_per_frame_before_result",
)


async def at_once(call: Callable[..., Any], *args: Any) -> Any:
    """Run a call on the event loop."""
    return call(*args)


@pytest.fixture(autouse=True)
def calls_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer within a turn where a test counts them."""
    if request.node.originalname in COUNT_TURNS:
        monkeypatch.setattr(claude_agent, "_in_thread", at_once)


class Times:
    """The times of the last writes, which the framework's store has in a dict."""

    def __init__(self, store: InMemorySessionStore) -> None:
        self._store = store

    def __setitem__(self, key: str, mtime: int) -> None:
        """Set the time of a transcript, given as ``project/session``."""
        project, _, session = key.partition("/")
        stored = self._store._session((project, session, None))  # noqa: SLF001
        data = self._store.agent.get("@transcript", stored.id).data
        stored.update("@transcript", data={**data, "mtime": mtime})


class InMemorySessionStore(KeepstoneSessionStore):
    """A store with the constructor of the framework's own, and its helpers for tests."""

    def __init__(self) -> None:
        where = place()
        self.agent = opened_agent(where["home"], where.get("agent", "default"))
        super().__init__(**where)
        self._mtimes = Times(self)

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """Return all entries of a key, none if it is absent."""
        return self._load(key) or []

    @property
    def size(self) -> int:
        """The number of main transcripts."""
        heads = self.agent.iter_entries(types=["transcript"], include_superseded=True)
        return sum("subpath" not in head.data for head in heads)

    def clear(self) -> None:
        """Remove everything."""
        for info in self.agent.sessions():
            self.agent.session(info.id).remove()


for module in (claude_agent_sdk, session_store):
    vars(module)["InMemorySessionStore"] = InMemorySessionStore
