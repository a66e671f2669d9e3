"""A session for the OpenAI Agents SDK that stores items as entries of a keepstone session."""

from __future__ import annotations

from typing import Any, cast

from keepstone.errors import EntryNotFoundError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_session, write_in_thread
from keepstone.model import Entry, Record
from keepstone.services.memory_repository import Target
from keepstone.text.messages.speakers import said_by

with needs("openai-agents"):
    from agents import SessionSettings, TResponseInputItem
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

_TYPE = "message"
"""The type of the entries that hold items."""


class KeepstoneSession:
    """A conversation of the OpenAI Agents SDK: pass it to ``Runner.run(..., session=...)``.

    Implements ``agents.memory.Session``. Each item is an entry of type ``message`` with the whole item as its
    ``data``, so that recall finds it like any other memory. Safe to share between threads, event loops and
    processes.

    Args:
        session_id: The id of the session, of any length.
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
        session_settings: A ``SessionSettings`` or a dict, such as ``{"limit": 50}``.

    Methods raise ``TimeoutError`` if another process keeps the session locked, ``OSError`` if the disk fails,
    and ``TypeError`` or ``ValueError`` for values that cannot be stored. Nothing was written then.

    Examples:
        >>> import asyncio
        >>> conversation = KeepstoneSession("s1", home=".work-agent")
        >>> asyncio.run(conversation.add_items([{"role": "user", "content": "Use pnpm"}]))
        >>> asyncio.run(conversation.get_items(limit=1))
        [{'role': 'user', 'content': 'Use pnpm'}]
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        *,
        home: Target = None,
        agent: str = DEFAULT_AGENT,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        """Open the home. Nothing is written before the first item."""
        self._session = opened_session(opened_agent(home, agent), session_id)
        self._named = {} if self._session.id == session_id else {"session_id": session_id}
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest ``limit`` items, oldest first; default: ``session_settings.limit``, else all."""
        most = resolve_session_limit(limit, self.session_settings)
        found = await in_thread(self._newest, most)
        return [cast("TResponseInputItem", entry.data) for entry in found]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items with one write: all of them, or none."""
        if items:
            await write_in_thread(self._session.put_many, [self._line_of(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none."""
        return await write_in_thread(self._pop)

    async def clear_session(self) -> None:
        """Remove all items, and every byte of them."""
        await write_in_thread(self._session.clear)

    def _line_of(self, item: Any) -> Record:
        # An entry needs a text or a payload that is not empty.
        text = {} if item else {"text": "{}"}
        origin = {"origin": said_by(item)} if isinstance(item, dict) else {}
        return {"type": _TYPE, "data": item, **text, **self._named, **origin}

    def _newest(self, limit: int | None) -> list[Entry]:
        """Return the newest entries that are items, ignoring other entries of the session."""
        asked = limit
        while True:
            found = self._session.entries(asked, [_TYPE], include_superseded=True)
            items = [entry for entry in found if entry.data or "data" in entry.line]
            if limit is None or asked is None or len(items) >= limit or len(found) < asked:
                return items[-limit:] if limit else items
            # Entries that are not items do not count toward the limit, and their number is unknown.
            asked *= 2

    def _pop(self) -> TResponseInputItem | None:
        while items := self._newest(1):
            try:
                self._session.delete(items[0].id)
            except EntryNotFoundError:
                continue  # Another caller popped it.
            return cast("TResponseInputItem", items[0].data)
        return None
