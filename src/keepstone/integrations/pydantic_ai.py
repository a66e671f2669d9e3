"""Pydantic AI: a conversation store, tools for an agent's memory, and Anthropic's memory tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from keepstone.agent import Agent
from keepstone.errors import EntryNotFoundError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_session, write_in_thread
from keepstone.integrations.texts import STATE, called, returned, said, text_of_blocks
from keepstone.model import Entry, Record, SessionInfo
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.text.messages.speakers import said_by

with needs("pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai import FunctionToolset, Tool, ToolFailed
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

if TYPE_CHECKING:
    from keepstone.store.protocol import LiveSession

_RECORD = "pydantic-ai-conversation"
"""Type and id of the entry that holds a conversation's record."""
_MESSAGE = "message"
_records: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class KeepstoneConversationStore(ConversationStore):
    """Conversations of Pydantic AI: each is a session of the agent, and each message is an entry.

    If another writer, also in another process, saved or deleted a conversation in the meantime, methods raise
    ``ConversationConflict`` and write nothing. ``delete`` removes every byte of the messages, except those
    that forks in other conversations share.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first conversation."""
        self._agent = opened_agent(home, agent)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if it is missing."""
        return await in_thread(self._record, self._session(conversation_id))

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records of all conversations or of a scope, most recently saved first."""
        return await in_thread(self._all_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new messages, all or none; ConversationConflict if the record changed."""
        await write_in_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation, and its unshared messages; ConversationConflict if the record changed."""
        await write_in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return a message with the id of its parent; LookupError if it is missing."""
        return _entry(await in_thread(self._agent.get, entry_id))

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the messages up to and including one, oldest first; with ``limit``, only the last ones."""
        return await in_thread(lambda: [*map(_entry, self._history(head_id, limit))][::-1])

    def _session(self, conversation_id: str) -> Session:
        return opened_session(self._agent, conversation_id)

    def _record(self, session: Session) -> ConversationRecord | None:
        try:
            return _record_of(self._agent.get(_RECORD, session.id))
        except EntryNotFoundError:
            return None

    def _all_records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        found = map(_record_of, self._agent.iter_entries(types=[_RECORD], include_superseded=True))
        records = [record for record in found if scope is None or record.scope == scope]
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    def _write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected: str | None
    ) -> None:
        known = {entry.id for entry in new}
        try:
            if record.head_id is not None and record.head_id not in known:
                # The head may be a message of another conversation, as forks share messages instead of
                # copying them.
                self._agent.get(record.head_id)
        except EntryNotFoundError:
            raise ConversationConflict(record.conversation_id) from None

        def check(live: LiveSession) -> None:
            stored = live.get(_RECORD)
            if (None if stored is None else _record_of(stored).revision) != expected:
                raise ConversationConflict(record.conversation_id)

        data = _records.dump_python(record, mode="json")
        # Write the record and the messages at once: if the process is killed, either all or none are stored.
        items = [*map(_item, new), {"id": _RECORD, "type": _RECORD, "data": data, **STATE}]
        self._session(record.conversation_id).put_many(items, check=check)

    def _delete(self, conversation_id: str, expected: str) -> None:
        def check(entry: Entry) -> None:
            if _record_of(entry).revision != expected:
                raise ConversationConflict(conversation_id)

        session = self._session(conversation_id)
        shared = self._shared(conversation_id)
        own = [
            entry.id
            for entry in session.entries(types=[_MESSAGE], include_superseded=True)
            if entry.id not in shared
        ]
        try:
            # Delete the record first, with the check: another writer's later save finds no record, and fails.
            session.delete(_RECORD, check=check)
        except EntryNotFoundError:
            raise ConversationConflict(conversation_id) from None
        session.purge_many(own)
        self._remove_if_empty(session)

    def _shared(self, conversation_id: str) -> set[str]:
        """Return the ids of all messages that forks in other conversations need."""
        forks = (record for record in self._all_records(None, None) if record.forked_from is not None)
        tips = [
            tip
            for fork in forks
            if fork.conversation_id != conversation_id
            for tip in (fork.head_id, *fork.branches)
        ]
        return {entry.id for tip in tips for entry in self._history(tip, None)}

    def _remove_if_empty(self, session: Session) -> None:
        seen = session.info()

        def check(info: SessionInfo) -> None:
            if info != seen:
                raise ConversationConflict(session.id)

        if session.entry_count() == 0:
            with suppress(ConversationConflict):  # Another writer restarted it.
                session.remove(check=check)

    def _history(self, head_id: str | None, limit: int | None) -> Iterator[Entry]:
        """Yield a message and its ancestors, newest first."""
        read: dict[str, Entry] = {}
        while head_id is not None and (limit is None or limit > 0):
            if head_id not in read:
                # Read each session once as a whole: its messages usually follow one another, and each lookup
                # by id would be a query.
                session = self._agent.session(self._agent.get(head_id).session)
                read |= {
                    entry.id: entry for entry in session.entries(types=[_MESSAGE], include_superseded=True)
                }
            yield read[head_id]
            head_id = read[head_id].data["parent_id"]
            limit = None if limit is None else limit - 1


class KeepstoneToolset(FunctionToolset[Any]):
    """The tools that let a model use an agent's memory: those of ``Agent.tools``.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        session: The session that ``memory_save`` writes to.
        options: Further arguments of ``FunctionToolset``, such as ``requires_approval``.
    """

    def __init__(
        self,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        session: str = "main",
        id: str | None = "keepstone",  # noqa: A002
        **options: Any,
    ) -> None:
        """Open the home. Nothing is written before a tool is called."""
        memory = opened_agent(home, agent)
        tools = [
            Tool.from_schema(
                partial(_call, memory, session, tool["name"]),
                tool["name"],
                tool["description"],
                tool["parameters"],
            )
            for tool in memory.tools()
        ]
        super().__init__(tools, id=id, **options)


async def _call(memory: Agent, session: str, tool: str, /, **arguments: Any) -> Record:
    return await write_in_thread(memory.call, tool, arguments, session)


def memory_tool(home: Target = None, *, agent: str = DEFAULT_AGENT) -> Tool[Any]:
    """Return the backend of Anthropic's memory tool: the agent's own files below ``/memories``.

    Add it to the agent's ``tools``, together with Pydantic AI's native ``MemoryTool``. Models of other
    providers use it as an ordinary tool. It also needs the extra ``anthropic``.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
    """
    from keepstone.integrations.anthropic import AsyncKeepstoneMemoryTool  # It needs another extra.

    backend = AsyncKeepstoneMemoryTool(home, agent=agent)

    async def memory(**command: Any) -> str:
        from anthropic.lib.tools import ToolError

        try:
            return str(await backend.call(command))
        except ToolError as error:
            raise ToolFailed(str(error.content)) from error

    return Tool.from_schema(memory, "memory", _MEMORY_DESCRIPTION, _MEMORY_SCHEMA)


_MEMORY_DESCRIPTION = (
    "Text files that you keep between conversations, all below /memories. View /memories before other work, "
    "and save there what will matter later."
)
_MEMORY_COMMANDS = ["view", "create", "str_replace", "insert", "delete", "rename"]
_TEXT = {"type": "string"}
_MEMORY_SCHEMA: Record = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": _MEMORY_COMMANDS},
        "path": _TEXT | {"description": "Path below /memories; all commands but rename need it."},
        "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last line."},
        "file_text": _TEXT | {"description": "The text of a new file, for create."},
        "old_str": _TEXT | {"description": "The text that str_replace replaces, which must be unique."},
        "new_str": _TEXT | {"description": "The text that str_replace puts in its place."},
        "insert_line": {
            "type": "integer",
            "description": "The line after which insert adds; 0 is the start.",
        },
        "insert_text": _TEXT | {"description": "The text that insert adds."},
        "old_path": _TEXT | {"description": "The path that rename changes."},
        "new_path": _TEXT | {"description": "The path that rename gives."},
    },
    "required": ["command"],
}


def _item(entry: ConversationEntry) -> Record:
    (message,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
    speaker, blocks = _speaker(message), [*map(_block, message["parts"])]
    return {
        "id": entry.id,
        "type": _MESSAGE,
        "text": text_of_blocks(blocks, speaker),
        "data": {"parent_id": entry.parent_id, "kind": entry.kind, "message": message},
        "origin": said_by({"role": speaker, "content": blocks}),
    }


def _speaker(message: Record) -> str:
    if message["kind"] == "response":
        return "assistant"
    kinds = {part["part_kind"] for part in message["parts"]}
    return "user" if "user-prompt" in kinds else "system" if "system-prompt" in kinds else "tool"


def _block(part: Record) -> Record:
    kind, content = part["part_kind"], part.get("content")
    if kind in ("tool-call", "builtin-tool-call"):
        arguments = part["args"]
        return called(part["tool_name"], json.loads(arguments) if _is_object(arguments) else arguments)
    if kind in ("tool-return", "builtin-tool-return"):
        return returned(content)
    if isinstance(content, list):
        content = "\n".join(item for item in content if isinstance(item, str))
    return said(content if isinstance(content, str) else "")


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        return False


def _message_of(data: Record) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(json.dumps([data["message"]]))[0]


def _entry(entry: Entry) -> ConversationEntry:
    data = entry.data
    return ConversationEntry(id=entry.id, parent_id=data["parent_id"], message=_message_of(data))


def _record_of(entry: Entry) -> ConversationRecord:
    return _records.validate_json(json.dumps(entry.data))
