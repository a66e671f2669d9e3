"""LangChain: a chat history in an agent's session, a retriever for all of its memory, and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeGuard

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import (
    in_thread,
    needs,
    opened_agent,
    opened_session,
    plain_errors,
    write_in_thread,
)
from keepstone.integrations.langchain_stores import KeepstoneByteStore, KeepstoneVectorStore
from keepstone.model import Hit, Record
from keepstone.services.memory_repository import Target
from keepstone.text.messages.indexed import message_text
from keepstone.text.messages.speakers import said_by

with needs("langchain"):
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from pydantic import PrivateAttr

__all__ = [
    "KeepstoneByteStore",
    "KeepstoneChatMessageHistory",
    "KeepstoneRetriever",
    "KeepstoneVectorStore",
]

_TYPE = "message"
_ROLES = {"human": "user", "ai": "assistant"}


class KeepstoneChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, for ``RunnableWithMessageHistory`` or direct use.

    Args:
        session_id: The id of the conversation, which is a session of the agent.
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
    """

    def __init__(self, session_id: str, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first message."""
        self.session_id = session_id
        self._session = opened_session(opened_agent(home, agent), session_id)
        self._named = {} if self._session.id == session_id else {"session_id": session_id}

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; they are read at each access."""
        with plain_errors():
            records = self._session.records()
        stored = (record.get("data") for record in records if record["type"] == _TYPE)
        # Copy the data: messages keep references to parts of it, and records are shared.
        return messages_from_dict([deepcopy(data) for data in stored if _is_message(data)])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages: all of them, or none."""
        with plain_errors():
            self._session.add_many({**_item(message), **self._named} for message in messages)

    def clear(self) -> None:
        """Remove all messages."""
        with plain_errors():
            self._session.clear()

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return await in_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages: all of them, or none."""
        await write_in_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        """Remove all messages."""
        await write_in_thread(self.clear)


class KeepstoneRetriever(BaseRetriever):
    """Documents from an agent's memory: entries of all sessions, whichever interface wrote them.

    The text of a document is the entry's text. Its metadata are ``session``, ``id``, ``type``, ``ts``,
    ``score`` and the entry's payload as ``data``.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        fields: ``k``, ``filters``, and the fields of ``BaseRetriever``: ``tags``, ``metadata``, ``name``.
    """

    k: int = 10
    """Maximum number of documents."""
    filters: Mapping[str, Any] = {}
    """Filters of ``Agent.recall``, such as ``{"types": ["decision"]}``."""
    _agent: Agent = PrivateAttr()

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, **fields: Any) -> None:
        """Open the home; nothing is written."""
        super().__init__(**fields)
        self._agent = opened_agent(home, agent)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        with plain_errors():
            hits = self._agent.recall(query, limit=self.k if k is None else k, **self.filters)
        return [_document(hit) for hit in hits]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,  # noqa: ARG002
        **keys: Any,
    ) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, **keys)


def _is_message(data: Any) -> TypeGuard[Record]:
    return isinstance(data, dict) and isinstance(data.get("type"), str) and isinstance(data.get("data"), dict)


def _item(message: BaseMessage) -> Record:
    data = message_to_dict(message)
    said = message_text(data["data"], None) or str(message.text)
    return {
        "type": _TYPE,
        "text": f"{_ROLES.get(message.type, message.type)}: {said}",
        "data": data,
        # The role sets the trust of a message: a tool's result is trusted less than a user's message.
        "origin": said_by(data),
    }


def _document(hit: Hit) -> Document:
    entry = hit.entry
    return Document(
        id=entry.id,
        page_content=entry.text,
        metadata={
            "session": entry.session,
            "id": entry.id,
            "type": entry.type,
            "ts": entry.ts.isoformat(),
            "score": hit.score,
            "data": entry.data,
        },
    )
