"""What a model may do with memory: look things up, save, and keep files of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keepstone.agent import Agent
from keepstone.errors import AccessDeniedError, KeepstoneError
from keepstone.notes.notes import PROJECT, USER, Notes, SaveResult
from keepstone.session import Session
from keepstone.text.display import frames_of

logger = logging.getLogger("keepstone.chat")

_HITS = 8
"""Entries that a recall of the model's returns."""
_LONGEST = 20_000
"""Characters of a text that go back to the model, about 5,000 tokens."""
_LONGEST_NOTE = 1000
"""Characters of a note: a person has to read it before it is saved."""
_SHORT = 1000
"""Characters of a result that always fits, such as that of something written."""
RESULTS = 80_000
"""Characters of tool results that go back to the model for one message, about 20,000 tokens."""
Ask = Callable[[str, str], bool]
"""Asks a person whether a text is saved as a note of a type, ``"Project"`` or ``"User"``."""
_FILES = 500
"""Names of files in a list."""
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
                "(the user's notes for all projects). Use the last two only when the user asks for it; "
                "the user confirms each note.",
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

    Args:
        agent: Whose memory it is.
        notes: The notes of the project and its user.
        session: Where entries are saved.
        ask: Asks the person before a note is saved: notes are instructions for every later request.
            Without it none is.

    Example:
        >>> tools = MemoryTools(agent, Notes("."), session)
        >>> tools.call("save", '{"text": "We use pnpm", "type": "decision"}')
        '{"ok": true, "id": "…"}'
    """

    def __init__(self, agent: Agent, notes: Notes, session: Session, ask: Ask | None = None) -> None:
        self.agent = agent
        self.notes = notes
        self._session = session
        self._ask = ask

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
            return _refused(f"{type(error).__name__}: {error}"[:_LONGEST])
        except Exception as error:  # noqa: BLE001  An embedder or reranker may raise anything.
            logger.error("a tool raised %s at\n%s", type(error).__name__, frames_of(error))  # noqa: TRY400
            return _refused(f"the tool failed ({type(error).__name__}); answer without it")
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
        result = self._save_note(text, PROJECT if where == _PLACES[1] else USER)
        return {"saved": result.saved, "file": result.entry.source, "line": result.entry.line}

    def _save_note(self, text: str, kind: str) -> SaveResult:
        if len(text) > _LONGEST_NOTE:
            raise ValueError(f"a note has at most {_LONGEST_NOTE:,} characters, not {len(text):,}")
        if self._ask is None:
            raise AccessDeniedError(
                "not saved: the user has to confirm a note, and nobody can be asked here; use where=memory"
            )
        if not self._ask(text, kind):
            raise AccessDeniedError("not saved: the user was asked and said no")
        return self.notes.add(text, kind)

    def _list_files(self) -> dict[str, Any]:
        files = self.agent.files.list()
        shown = files[:_FILES]
        return {"files": shown} | ({"left_out": len(files) - len(shown)} if len(files) > len(shown) else {})

    def _read_file(self, path: str) -> dict[str, Any]:
        return {"content": _cut(self.agent.files.read(path), _LONGEST)}

    def _write_file(self, path: str, content: str) -> dict[str, Any]:
        return {"bytes": self.agent.files.write(path, content)}

    def _append_file(self, path: str, content: str) -> dict[str, Any]:
        return {"bytes": self.agent.files.append(path, content)}


class ToolBudget:
    """Uses tools for one message of the person, and bounds what their results come to.

    A model may ask for many tools at once, several times, and all results go with each further request.
    """

    def __init__(self, tools: MemoryTools) -> None:
        self._tools = tools
        self._left = RESULTS

    def call(self, name: str, arguments: str) -> str:
        """Use a tool and return its result; what does not fit is an error that says so."""
        if self._left <= 0:
            return _refused("not done: the tool results for this message are used up; answer now")
        result = self._tools.call(name, arguments)
        if len(result) > max(self._left, _SHORT):
            return _refused(
                f"the result has {len(result):,} characters, {self._left:,} are left for this message: "
                "ask for less, or answer now"
            )
        self._left -= len(result)
        return result


def _refused(error: str) -> str:
    return _json({"ok": False, "error": error})


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
