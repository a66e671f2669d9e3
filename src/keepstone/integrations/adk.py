"""Google ADK: a memory service and a session service that store in the agent's sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from keepstone.errors import EntryNotFoundError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.adk_sessions import KeepstoneSessionService
from keepstone.integrations.adk_texts import blocks_of, content_text
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_session, write_in_thread
from keepstone.model import RELEVANT, Entry, Record
from keepstone.recall.relevance import WEAK
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.text.messages.speakers import said_by

with needs("adk"):
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session as AdkSession

__all__ = ["KeepstoneMemoryService", "KeepstoneSessionService"]


class KeepstoneMemoryService(BaseMemoryService):
    """Long-term memory of an ADK runner: events of its sessions, and memories added directly.

    Each ADK session is a session of the agent. A search covers all sessions of one app and user, and no
    others. Services in other threads and processes may share the home.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
        limit: Maximum number of memories that a search returns.
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, limit: int = 10) -> None:
        """Open the home. Nothing is written before the first event."""
        self._agent = opened_agent(home, agent)
        self._limit = limit

    async def add_session_to_memory(self, session: AdkSession) -> None:
        """Add the events of a session that have content: all of them, or none.

        Events that are already stored are replaced. Events that ``delete_memory`` removed stay removed.
        """
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add some events of a session; see ``add_session_to_memory``."""
        scope = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        items = [
            {
                "id": event.id,
                "ts": datetime.fromtimestamp(event.timestamp, UTC),
                **_item("event", scope, event.content, event.author, custom_metadata),
            }
            for event in events
            if event.content and event.content.parts
        ]
        await write_in_thread(self._put, scope, items)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories: all of them, or none. A memory with the id of a stored memory replaces it."""
        scope = {"app_name": app_name, "user_id": user_id, "session_id": None}
        items = []
        for memory in memories:
            metadata = {**(custom_metadata or {}), **memory.custom_metadata}
            item = _item("memory", scope, memory.content, memory.author, metadata)
            item["data"]["timestamp"] = memory.timestamp
            items.append({"id": memory.id, **item})
        await write_in_thread(self._put, scope, items)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the best matches for a question in the memory of one app and user, best first."""
        return await in_thread(self._search, {"app_name": app_name, "user_id": user_id}, query)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete the memory with an id that a search returned; do nothing if it is missing.

        No search returns the memory again, even if its session is added again. Its lines stay in the log
        until ``Agent.purge`` removes them.
        """
        if memory_id:
            scope = {"app_name": app_name, "user_id": user_id}
            await write_in_thread(self._agent.delete_where, ids=[memory_id], where=scope)

    def _put(self, scope: Record, items: Sequence[Record]) -> None:
        parts = [scope["app_name"], scope["user_id"], scope["session_id"]]
        session = opened_session(self._agent, *(part for part in parts if part is not None))
        # A session without a log has no deleted events, so its history need not be read.
        is_new = session.info() is None
        live = {record["id"]: record.get("data") for record in session.records()}
        changed = [item for item in items if item["id"] not in live or item["data"] != live[item["id"]]]
        session.put_many(
            item
            for item in changed
            # A memory is added on purpose, even after a deletion. The runner adds the events of a session
            # repeatedly.
            if is_new or item["type"] == "memory" or not self._was_deleted(session, item["id"])
        )

    def _was_deleted(self, session: Session, event_id: str) -> bool:
        try:
            return self._agent.history(event_id, session.id)[-1].deleted
        except EntryNotFoundError:
            return False

    def _search(self, scope: Record, query: str) -> SearchMemoryResponse:
        # Recall twice as many, as hits that are only neighbours of a match are left out below.
        hits = self._agent.recall(query, limit=2 * self._limit, where=scope) if query.strip() else ()
        # Keep only hits that match a word or are relevant; the others are neighbours of a match in the same
        # session. If none remain, keep the few best hits.
        found = [hit for hit in hits if hit.why.words or hit.relevance >= RELEVANT] or hits[:WEAK]
        return SearchMemoryResponse(memories=[_memory(hit.entry) for hit in found[: self._limit]])


def _item(
    kind: str, scope: Record, content: Content, author: str | None, metadata: Mapping[str, Any] | None
) -> Record:
    """Return an entry for a content: the whole content as the payload, and its text for the search."""
    data = {
        **scope,
        "author": author,
        "content": content.model_dump(mode="json", exclude_none=True),
        "custom_metadata": dict(metadata or {}),
    }
    return {
        "type": kind,
        "text": content_text(content, author),
        "data": data,
        "origin": said_by({"role": content.role, "content": blocks_of(content)}),
    }


def _memory(entry: Entry) -> MemoryEntry:
    data = entry.data
    author, metadata = data.get("author"), data.get("custom_metadata")
    return MemoryEntry(
        id=entry.id,
        content=_content(entry, author),
        author=author,
        timestamp=data.get("timestamp") or entry.ts.isoformat(),
        custom_metadata=metadata or {},
    )


def _content(entry: Entry, author: str | None) -> Content:
    """Return the content as it was added, or with the entry's text if that was changed later."""
    try:
        content = Content.model_validate(entry.data.get("content"))
    except ValidationError:
        return Content(parts=[Part(text=entry.text)])
    # A person who corrects an entry changes its text, not the content in its payload.
    if entry.line.get("text") == content_text(content, author):
        return content
    return Content(role=content.role, parts=[Part(text=entry.text)])
