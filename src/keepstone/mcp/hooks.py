"""Hooks of coding agents: context at the start and with prompts, turns stored at compaction and end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keepstone.model import RELEVANT, TRUSTED

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.home import Home

Action = Literal["context", "recall", "store"]
EVENTS: Mapping[str, Mapping[str, Action]] = {
    "claude-code": {
        "SessionStart": "context",
        "UserPromptSubmit": "recall",
        "PreCompact": "store",
        "SessionEnd": "store",
    },
    "codex": {
        "SessionStart": "context",
        "UserPromptSubmit": "recall",
        "PreCompact": "store",
        "Stop": "store",
    },
    "gemini": {
        "SessionStart": "context",
        "BeforeAgent": "recall",
        "PreCompress": "store",
        "SessionEnd": "store",
    },
}
"""The action for each event of each client."""
_BUDGET = 1500
_HITS = 3
_AT_ONCE = 200
"""Maximum turns stored with one write. After a timeout the rest is stored with the next event."""
_LONGEST_TURN = 20_000
_ROLES = {"user": "user", "assistant": "assistant", "gemini": "assistant", "model": "assistant"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a person or a model."""

    id: str
    ts: str | None
    role: str
    text: str


def answer(home: Home, agent: str, client: str, event: str, payload: Mapping[str, Any]) -> str:
    """Handle an event and return the text for the client: JSON, or nothing.

    Raises:
        ValueError: The client or event is unknown, or the payload lacks a key.
    """
    action = EVENTS.get(client, {}).get(event)
    if action is None:
        raise ValueError(f"{client} {event} is not a hook of keepstone")
    memory = home.agent(agent)
    if action == "store":
        _store(memory, f"{client}-{_text(payload, 'session_id')}", Path(_text(payload, "transcript_path")))
        return ""
    text = _context(memory) if action == "context" else _recalled(memory, _text(payload, "prompt"))
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the event has no {key}")
    return value


def _context(memory: Agent) -> str:
    found = memory.context(budget=_BUDGET, ids=True)
    # Without any memory the block would contain only its introduction, at the start of every conversation.
    return found.text if found.sources else ""


def _recalled(memory: Agent, prompt: str) -> str:
    from keepstone.operations.agent_tools import hits_answer
    from keepstone.recall.relevance import worth_telling

    # Leave out hits that are only neighbours of a match in its session, as they are noise here.
    relevant = worth_telling(memory.recall(prompt[:_LONGEST_TURN], limit=_HITS, trust=TRUSTED))
    # A recall that nobody asked for must also leave out stale entries. ``trust`` leaves out entries of tools
    # and imports.
    hits = [
        hit for hit in relevant if (hit.why.words or hit.relevance >= RELEVANT) and hit.entry.stale is None
    ]
    return hits_answer(hits).text if hits else ""


def _store(memory: Agent, session: str, transcript: Path) -> None:
    from keepstone.text.messages.speakers import said_by

    kept = memory.session(session)
    known = {entry.id for entry in kept.entries(include_superseded=True)}
    new = (turn for turn in turns(transcript) if turn.id not in known)
    # Clients stop a hook after some seconds. The batches written before stay, and the next event stores the
    # rest.
    while batch := list(islice(new, _AT_ONCE)):
        kept.add_many(
            {
                "id": turn.id,
                "type": "message",
                "data": {"role": turn.role, "content": turn.text},
                "origin": said_by({"role": turn.role}),
                **({"ts": turn.ts} if turn.ts else {}),
            }
            for turn in batch
        )


def turns(transcript: Path) -> Iterator[Turn]:
    """Yield the messages in a transcript of any client, without tool calls and results."""
    seen: set[str] = set()
    for record in _records(transcript.read_text("utf-8", "replace")):
        # Claude Code's own notes and the messages of subagents are not turns of the conversation.
        if record.get("isMeta") or record.get("isSidechain"):
            continue
        inner = next(
            (record[key] for key in ("message", "payload") if isinstance(record.get(key), dict)), record
        )
        role = _ROLES.get(str(inner.get("role", record.get("type"))))
        text = "\n".join(_texts(inner.get("content"))).strip()[:_LONGEST_TURN]
        if role is None or not text:
            continue
        # Claude Code has ``uuid``, other clients ``id``; a line without either is identified by its content.
        name = record.get("uuid") or record.get("id") or inner.get("id") or _digest(record)
        if isinstance(name, str) and name not in seen:
            seen.add(name)
            ts = record.get("timestamp")
            yield Turn(name, ts if isinstance(ts, str) else None, role, text)


def _records(text: str) -> Iterable[dict[str, Any]]:
    """Return the records of JSON lines, or of one document that holds messages."""
    lines = map(_object, text.splitlines())
    document = _object(text)
    messages = document.get("messages")
    return filter(None, messages if isinstance(messages, list) else lines)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"]
        for block in blocks
        if isinstance(block, dict)
        and isinstance(block.get("text"), str)
        and block.get("type") in {None, "text", "input_text", "output_text"}
    ]


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
