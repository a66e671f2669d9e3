"""Transcripts of Claude Code and Codex: one JSON Lines file for each conversation."""

from __future__ import annotations

from itertools import islice
from typing import Any

from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.json_text import objects
from keepstone.importing.origin import Origin
from keepstone.model import Record

_LINES = (".jsonl",)
_LOOKED_AT = 50
"""Maximum number of files, and of lines in each, read to recognise a transcript."""
_NOT_AN_OBJECT = "the line is not a JSON object, is too long, or nests too deep"


def is_claude_code(origin: Origin) -> bool:
    """Return whether the source has transcripts of Claude Code."""
    return any("sessionId" in line and {"uuid", "leafUuid"} & line.keys() for line in _first_lines(origin))


def is_codex(origin: Origin) -> bool:
    """Return whether the source has transcripts of Codex."""
    return any(line.get("type") == "session_meta" and "payload" in line for line in _first_lines(origin))


def _first_lines(origin: Origin) -> list[Record]:
    names = origin.names(*_LINES)[:_LOOKED_AT]
    found: list[Record] = []
    for name in names:
        # For a single file, ``names`` returns its name whatever the extension is.
        if name.lower().endswith(_LINES):
            with origin.open(name) as file:
                found += [line for _, line in islice(objects(file), _LOOKED_AT) if line is not None]
    return found


def read_claude_code(origin: Origin, _: Options) -> Items:
    """Yield the messages and summaries of each transcript; Claude Code's internal records are left out."""
    for name in origin.names(*_LINES):
        session = name.rpartition("/")[2].removesuffix(".jsonl")
        with origin.open(name) as file:
            for number, line in objects(file):
                place = f"{name}:{number}"
                if line is None:
                    yield Unread(place, _NOT_AN_OBJECT)
                elif (item := _claude_line(line)) is not None:
                    yield Item(session, item, place)
    yield from origin.refused


def _claude_line(line: Record) -> Record | None:
    said = line.get("message")
    if line.get("type") == "summary" and isinstance(line.get("summary"), str):
        return {"id": f"summary-{line.get('leafUuid')}", "type": "summary", "text": line["summary"]}
    if line.get("type") not in ("user", "assistant") or not isinstance(said, dict):
        return None
    item: Record = {"id": named(line.get("uuid")), "ts": time_of(line.get("timestamp"))}
    parent = named(line.get("parentUuid"))
    # Only messages of a subagent get links: in the main chain the order has the same information.
    links = {"links": [{"to": parent, "rel": "reply_to"}]} if parent and line.get("isSidechain") else {}
    return item | {"type": "message", "data": {"role": line["type"]} | said} | links


_ITEMS = frozenset(
    "message function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call "
    "web_search_call reasoning".split()
)


def read_codex(origin: Origin, _: Options) -> Items:
    """Yield the items of each transcript: messages, tool calls and their results, and readable reasoning."""
    for name in origin.names(*_LINES):
        session = name.rpartition("/")[2].removesuffix(".jsonl")
        with origin.open(name) as file:
            for number, line in objects(file):
                place = f"{name}:{number}"
                if line is None:
                    yield Unread(place, _NOT_AN_OBJECT)
                    continue
                payload = line.get("payload")
                if line.get("type") == "session_meta" and isinstance(payload, dict):
                    session = named(payload.get("id")) or session
                elif (item := _codex_line(line, payload)) is not None:
                    # Transcripts are append-only, so line numbers are stable.
                    item = {"id": f"line-{number}", "ts": time_of(line.get("timestamp"))} | item
                    yield Item(session, item, place)
    yield from origin.refused


def _codex_line(line: Record, payload: Any) -> Record | None:
    if line.get("type") == "compacted" and isinstance(payload, dict):
        return {"type": "summary", "text": payload["message"]} if payload.get("message") else None
    # Before version 0.32 of Codex the lines were the items themselves.
    item = payload if line.get("type") == "response_item" else line
    if not isinstance(item, dict) or named(item.get("type")) not in _ITEMS:
        return None
    if item["type"] == "reasoning" and not item.get("summary") and not item.get("content"):
        return None  # The reasoning is only stored encrypted.
    if item["type"] == "message" and isinstance(item.get("content"), str):
        return message(item.get("role"), item["content"])
    # Tool calls and reasoning keep Codex's format, which is that of OpenAI's Responses API.
    return {"type": "message", "data": item}
