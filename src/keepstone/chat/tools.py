"""What a model may do with memory: look things up, save, and keep files of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.notes import PROJECT, USER, Notes
from keepstone.session import Session

_HITS = 8
"""Entries that a recall of the model's returns."""
_LONGEST = 20_000
"""Characters of a text that go back to the model, about 5,000 tokens."""
_TYPES = ("fact", "decision", "preference", "finding")
_PLACES = ("memory", "project", "user")


@dataclass(frozen=True, slots=True)
class _Tool:
    description: str
    needed: Mapping[str, Mapping[str, Any]]
    optional: Mapping[str, Mapping[str, Any]]


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _one_of(description: str, words: tuple[str, ...]) -> dict[str, Any]:
    return {**_text(description), "enum": [*words]}


_PATH = _text("Relative path of the file, such as plans/today.md.")
_CONTENT = _text("The text; it is kept exactly.")
_TOOLS = {
    "recall": _Tool(
        "Search your memory of all earlier sessions, best entries first.",
        {"query": _text("A question or some words.")},
        {},
    ),
    "save": _Tool(
        "Remember one thing for good: what will matter in later sessions, in a sentence of its own.",
        {"text": _text("What to remember, so that it is clear without this conversation.")},
        {
            "type": _one_of("What kind of thing it is; fact if not given.", _TYPES),
            "where": _one_of(
                "memory (yours, the default), project (AGENTS.md, for all who work on this project) or user "
                "(the user's notes for all projects). Use the last two only when the user asks for it.",
                _PLACES,
            ),
        },
    ),
    "list_files": _Tool("List the files that you keep.", {}, {}),
    "read_file": _Tool("Read one of your files.", {"path": _PATH}, {}),
    "write_file": _Tool(
        "Write one of your files; it replaces what was there.", {"path": _PATH, "content": _CONTENT}, {}
    ),
    "append_file": _Tool(
        "Append to one of your files, or make it.", {"path": _PATH, "content": _CONTENT}, {}
    ),
}
"""Each tool; a method of that name, with an underscore before it, does the work."""


class MemoryTools:
    """The tools of one conversation: they touch the memory of its agent only, and both notes files.

    Example:
        >>> tools = MemoryTools(agent, Notes("."), agent.session("s1"))
        >>> tools.call("save", '{"text": "We use pnpm", "type": "decision"}')
        '{"ok": true, "id": "…"}'
    """

    def __init__(self, agent: Agent, notes: Notes, session: Session) -> None:
        self.agent = agent
        self.notes = notes
        self._session = session

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools for a model: ``name``, ``description`` and ``input_schema`` of each."""
        return [_definition(name, tool) for name, tool in _TOOLS.items()]

    def call(self, name: str, arguments: str) -> str:
        """Use a tool and return its result as JSON: ``{"ok": true, …}`` or ``{"ok": false, "error": …}``.

        It raises for nothing that a model may send.

        Args:
            name: The tool.
            arguments: Its arguments, a JSON object of strings.
        """
        try:
            answer = self._run(name, arguments)
        except (KeepstoneError, ValueError, TypeError) as error:
            return _json({"ok": False, "error": f"{type(error).__name__}: {error}"[:_LONGEST]})
        return _json({"ok": True, **answer})

    def _run(self, name: str, arguments: str) -> dict[str, Any]:
        if name not in _TOOLS:
            raise ValueError(f"{name!r:.80} is no tool; take one of {', '.join(_TOOLS)}")
        answer: dict[str, Any] = getattr(self, f"_{name}")(**_checked(_TOOLS[name], arguments))
        return answer

    def _recall(self, query: str) -> dict[str, Any]:
        hits = self.agent.recall(query, limit=_HITS)
        entries = [
            {
                "id": hit.entry.id,
                "session": hit.entry.session,
                "date": f"{hit.entry.ts:%Y-%m-%d}",
                "type": hit.entry.type,
                "text": _cut(hit.entry.text, _LONGEST // _HITS),
            }
            for hit in hits
        ]
        return {"entries": entries}

    def _save(self, text: str, type: str = _TYPES[0], where: str = _PLACES[0]) -> dict[str, Any]:  # noqa: A002
        if type not in _TYPES or where not in _PLACES:
            raise ValueError(f"type is one of {', '.join(_TYPES)}, where one of {', '.join(_PLACES)}")
        if not text.strip():
            raise ValueError("what is to be remembered must have text")
        if where == _PLACES[0]:
            return {"id": self._session.add(type, {"content": text}).id}
        result = self.notes.add(text, PROJECT if where == _PLACES[1] else USER)
        return {"saved": result.saved, "file": result.entry.source, "line": result.entry.line}

    def _list_files(self) -> dict[str, Any]:
        return {"files": self.agent.files.list()}

    def _read_file(self, path: str) -> dict[str, Any]:
        return {"content": _cut(self.agent.files.read(path), _LONGEST)}

    def _write_file(self, path: str, content: str) -> dict[str, Any]:
        return {"bytes": self.agent.files.write(path, content)}

    def _append_file(self, path: str, content: str) -> dict[str, Any]:
        return {"bytes": self.agent.files.append(path, content)}


def _definition(name: str, tool: _Tool) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {**tool.needed, **tool.optional},
        "required": [*tool.needed],
        "additionalProperties": False,
    }
    return {"name": name, "description": tool.description, "input_schema": schema}


def _checked(tool: _Tool, arguments: str) -> dict[str, str]:
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are no JSON: {error}") from None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise TypeError("the arguments are a JSON object of strings")
    known = {**tool.needed, **tool.optional}
    if not tool.needed.keys() <= given.keys() <= known.keys():
        raise ValueError(
            f"the arguments are {', '.join(known) or 'none'}; these were given: {[*given]!r:.80}"
        )
    return given


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return f"{text[:length]}\n[cut: {len(text) - length:,} more characters]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
