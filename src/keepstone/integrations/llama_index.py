"""LlamaIndex: a memory block for messages that leave the short-term memory, and a chat store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import (
    clock_of,
    in_thread,
    needs,
    opened_agent,
    opened_session,
    plain_errors,
    revise,
    write_in_thread,
)
from keepstone.integrations.texts import called, said, text_of_blocks
from keepstone.log.arguments import new_id, now
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.store.protocol import LiveSession
from keepstone.text.messages.speakers import said_by

with needs("llama-index"):
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store import BaseChatStore
    from pydantic import PrivateAttr

_SESSION_KEY = "session_id"
"""The key under which ``Memory`` puts the session's id into the messages of a block."""
_WINDOW = 5
"""Number of newest messages that form the query."""
_CHAT = "chat_message"


class KeepstoneMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory for a ``Memory``: messages that left its short-term memory, and all other entries.

    Each session of LlamaIndex is a session of the agent. The block returns the agent's context for the newest
    messages: pinned entries, preferences, decisions and matching entries of all sessions.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        fields: ``budget``, the maximum number of tokens that the block returns, and the fields of
            ``BaseMemoryBlock``.
    """

    name: str = "keepstone"
    budget: int = 2000
    _agent: Agent = PrivateAttr()

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, **fields: Any) -> None:
        """Open the home. Nothing is written before the first message."""
        super().__init__(**fields)
        self._agent = opened_agent(home, agent)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any) -> str:
        """Return the context for the newest messages, without entries that repeat these messages."""
        return await in_thread(self._context, messages or [])

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages in the sessions that they name; for each session, all of its messages or none."""
        await write_in_thread(self._store, messages)

    def _context(self, messages: Sequence[ChatMessage]) -> str:
        asked = [text for message in messages[-_WINDOW:] if (text := message.content)]
        # Use the text form of message entries, so that the context recognizes texts that the prompt already
        # has.
        window = [f"{MessageRole(message.role).value}: {message.content}" for message in messages]
        query = "\n".join(asked) or None
        return self._agent.context(query, budget=self.budget, window=window).text

    def _store(self, messages: Sequence[ChatMessage]) -> None:
        items: dict[str, list[Record]] = {}
        for message in messages:
            name = str(message.additional_kwargs.get(_SESSION_KEY) or self.name)
            item = _item(message)
            # Remove the key: only ``Memory`` added it to the message.
            item["data"]["additional_kwargs"].pop(_SESSION_KEY, None)
            items.setdefault(name, []).append(item)
        for name, group in items.items():
            session = opened_session(self._agent, name)
            named = {} if session.id == name else {"session_id": name}
            session.add_many({**item, **named} for item in group)


class KeepstoneChatStore(BaseChatStore):
    """Messages of conversations by key, for ``ChatMemoryBuffer`` or direct use.

    Each key is a session of the agent, and each message is an entry, which recall finds.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.

    Methods raise ``TimeoutError`` if another process keeps a session locked, and ``OSError`` if the disk
    fails.

    Examples:
        >>> store = KeepstoneChatStore(".work-agent")
        >>> store.add_message("monday", ChatMessage(role="user", content="We use pnpm"))
        >>> store.get_messages("monday")[0].content
        'We use pnpm'
    """

    _agent: Agent = PrivateAttr()

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first message."""
        super().__init__()
        self._agent = opened_agent(home, agent)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class in LlamaIndex."""
        return "KeepstoneChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace all messages of a key in one step."""
        self._change(key, lambda found: [record["id"] for record in found], messages)

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a key, oldest first."""
        with plain_errors():
            return [*map(_message, self._stored(self._session(key)))]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message."""
        self._change(key, lambda _: [], [message])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete the messages of a key, and return them; None if there are none."""
        return self._change(key, lambda found: [record["id"] for record in found]) or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at an index, and return it; None if there is none."""
        return self._delete(key, idx)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message, and return it; None if there is none."""
        return self._delete(key, -1)

    def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        with plain_errors():
            found: dict[str, None] = {}
            for entry in self._agent.iter_entries(types=[_CHAT], include_superseded=True):
                found[str(entry.line.get(_SESSION_KEY, entry.session))] = None
            return [*found]

    def _delete(self, key: str, at: int) -> ChatMessage | None:
        deleted = self._change(key, lambda found: [found[at]["id"]] if -len(found) <= at < len(found) else [])
        return deleted[0] if deleted else None

    def _change(
        self,
        key: str,
        choose: Callable[[Sequence[Record]], Sequence[str]],
        added: Sequence[ChatMessage] = (),
    ) -> list[ChatMessage]:
        """Delete the messages that a function chooses, add others, and return the deleted ones."""
        with plain_errors():
            session = self._session(key)
            named = {} if session.id == key else {_SESSION_KEY: key}
            chosen = choose(self._stored(session))
            ts = now(clock_of(self._agent))
            lines = [
                {"id": new_id(), "ts": ts, **_item(added_message, _CHAT), **named} for added_message in added
            ]
            deleted: list[Record] = []

            def change(live: LiveSession) -> list[Record]:
                # The messages were chosen without the lock, so other callers may have deleted some. Only one
                # caller gets each message.
                present = [entry for entry_id in chosen if (entry := live.get(entry_id)) is not None]
                deleted.extend(entry.line for entry in present)
                return [*({"id": entry.id, "ts": ts, "deleted": True} for entry in present), *lines]

            revise(session, change, chosen, create=bool(lines), lines=lines)
            return [*map(_message, deleted)]

    def _session(self, key: str) -> Session:
        return opened_session(self._agent, key)

    def _stored(self, session: Session) -> list[Record]:
        return [record for record in session.records() if record["type"] == _CHAT]


def _message(record: Record) -> ChatMessage:
    return ChatMessage.model_validate(record["data"])


def _item(message: ChatMessage, kind: str = "message") -> Record:
    data = message.model_dump(mode="json")
    data["role"] = MessageRole(message.role).value
    text = text_of_blocks(map(_block, data["blocks"]))
    return {"type": kind, "text": text, "data": data, "origin": said_by({"role": data["role"]})}


def _block(block: Record) -> Record:
    if block["block_type"] == "tool_call":
        return called(block["tool_name"], block["tool_kwargs"])
    text = block.get("content") if block["block_type"] == "thinking" else block.get("text")
    return said(text if isinstance(text, str) else "")
