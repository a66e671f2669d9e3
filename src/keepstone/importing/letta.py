"""Letta agent files (``.af``): messages and memory blocks."""

from __future__ import annotations

from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.json_text import whole
from keepstone.importing.origin import Origin
from keepstone.model import Record

_EXTENSION = ".af"


def is_letta(origin: Origin) -> bool:
    """Return whether the source has agent files."""
    return any(name.lower().endswith(_EXTENSION) for name in origin.names())


def read_letta(origin: Origin, _: Options) -> Items:
    """Yield the messages and the pinned memory blocks of each agent, with one session for each agent."""
    for name in origin.names(_EXTENSION):
        with origin.open(name) as file:
            found = whole(file, name)
        if not isinstance(found, dict):
            raise SourceError(f"{name} is not a Letta agent file: it is not an object")
        # Since version 2 of the format agents share blocks by id; before, each agent has its own blocks.
        shared = {named(block.get("id")): block for block in _objects(found.get("blocks"))}
        # Before version 2 the whole file is one agent.
        agents = _objects(found.get("agents")) or [found]
        for agent in agents:
            session = named(agent.get("name")) or named(agent.get("id")) or origin.name
            blocks = _objects(agent.get("core_memory")) + _objects(agent.get("memory_blocks"))
            blocks += [
                shared[block_id]
                for block_id in _list(agent.get("block_ids"))
                if isinstance(block_id, str) and block_id in shared
            ]
            for block in blocks:
                yield _block(block, session, f"{name}: {session}")
            messages = agent.get("messages") or []
            if not isinstance(messages, list):
                yield Unread(f"{name}: {session}", "its messages are not a list")
            for number, said in enumerate(_list(messages), 1):
                yield _message(said, number, session, f"{name}: {session}, message {number}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Record]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _block(block: Record, session: str, place: str) -> Item | Unread:
    label, value = named(block.get("label")), block.get("value")
    if label is None or not isinstance(value, str) or not value:
        return Unread(f"{place}, block {label}", "the block has no label, or no text")
    data = {"label": label} | ({"description": block["description"]} if block.get("description") else {})
    line: Record = {"id": f"block-{label}", "ts": time_of(block.get("created_at")), "type": "block"}
    return Item(session, line | {"text": value, "data": data, "pinned": True}, f"{place}, block {label}")


def _message(said: Any, number: int, session: str, place: str) -> Item | Unread:
    if not isinstance(said, dict) or not isinstance(said.get("role"), str):
        return Unread(place, "it is not a message with a role")
    content = said.get("content", said.get("text"))
    # Join a list of text blocks into one text, which is easier to read and search.
    blocks = _objects(content)
    if blocks and all(block.get("type") == "text" for block in blocks):
        content = "\n".join(str(block.get("text") or "") for block in blocks)
    more = {key: said.get(key) or None for key in ("tool_calls", "tool_call_id", "name")}
    if not content and not more["tool_calls"]:
        return Unread(place, "the message is empty")
    line = {"id": named(said.get("id")) or f"message-{number}", "ts": time_of(said.get("created_at"))}
    return Item(session, line | message(said["role"], content or "", **more), place)
