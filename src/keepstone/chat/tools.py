"""The tools of a chat: the agent's memory tools, and notes that the person confirms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keepstone.agent import Agent
from keepstone.errors import AccessDeniedError
from keepstone.notes.notes import PROJECT, USER, Notes
from keepstone.operations.agent_tools import CONTENT, PATH, agent_tools
from keepstone.operations.toolbox import Tool, ToolAnswer, Toolbox, ToolFormat, failure, string
from keepstone.session import Session

_LONGEST_NOTE = 1000
"""Maximum characters of a note, which a person has to read before it is saved."""
_SHORT = 1000
"""Maximum characters of a result that is returned even if more than is left of ``RESULTS``.

Such a result may be the confirmation of a write.
"""
RESULTS = 80_000
"""Maximum characters of tool results returned to the model for one message, about 20,000 tokens."""
Ask = Callable[[str, str], bool]
"""Function that asks a person whether to save a text as a note of a type, ``"Project"`` or ``"User"``."""
_KINDS = {"project": PROJECT, "user": USER}


class MemoryTools:
    """The tools of one conversation: they access only the memory of its agent and both notes files.

    Args:
        agent: The agent whose memory is used.
        notes: The notes of the project and its user.
        session: The session to save entries to.
        ask: Asks the person before a note is saved, as notes are instructions for every later request.
            Without it no note is saved.

    Examples:
        >>> tools = MemoryTools(agent, Notes("."), agent.session("s1"))
        >>> tools.call("remember", '{"text": "We use pnpm", "type": "decision"}')
        'remembered, id …'
    """

    def __init__(self, agent: Agent, notes: Notes, session: Session, ask: Ask | None = None) -> None:
        self.agent = agent
        self.notes = notes
        self._ask = ask
        self._toolbox = Toolbox(
            # The model writes with its own trust, which is lower than the user's.
            [*agent_tools(agent.on_behalf("model", "chat"), session.id), *self._own_tools()]
        )

    def definitions(self, format: ToolFormat) -> list[dict[str, Any]]:  # noqa: A002
        """Return the tools' definitions in the form that a model's API takes."""
        return self._toolbox.definitions(format)

    def call(self, name: str, arguments: str) -> str:
        """Run a tool with the JSON that a model sent, and return the result as text. Never raises."""
        return self._toolbox.call(name, arguments).text

    def _own_tools(self) -> list[Tool]:
        where = string(
            "project (AGENTS.md, for all who work on this project) or user (for all projects of the user)."
        )
        return [
            Tool(
                "save_note",
                "Propose a note, which every later request follows as an instruction. Use it only when the "
                "user asks for a note or a rule; the user confirms it. For everything else use remember.",
                {
                    "text": string("The note: one short instruction or fact.", _LONGEST_NOTE),
                    "where": {**where, "enum": [*_KINDS]},
                },
                ("text", "where"),
                self._save_note,
            ),
            Tool(
                "append_file",
                "Append to one of your text files, or make it.",
                {"path": PATH, "content": CONTENT},
                ("path", "content"),
                self._append_file,
            ),
        ]

    def _save_note(self, text: str, where: str) -> ToolAnswer:
        if self._ask is None:
            raise AccessDeniedError(
                "not saved: the user has to confirm a note, and nobody can be asked here; use remember"
            )
        if not self._ask(text, _KINDS[where]):
            raise AccessDeniedError("not saved: the user was asked and said no")
        result = self.notes.add(text, _KINDS[where])
        place = f"{result.entry.source}:{result.entry.line}"
        return ToolAnswer({}, f"saved as {place}" if result.saved else f"not saved, {place} says it already")

    def _append_file(self, path: str, content: str) -> ToolAnswer:
        return ToolAnswer({}, f"appended {self.agent.files.append(path, content)} bytes to {path}")


class ToolBudget:
    """Runs the tools for one message of the person, and limits the total size of their results.

    A model may call many tools, several times, and each further request contains all results.
    """

    def __init__(self, tools: MemoryTools) -> None:
        self._tools = tools
        self._left = RESULTS

    def call(self, name: str, arguments: str) -> str:
        """Run a tool and return its result, or an error in place of a result that does not fit."""
        if self._left <= 0:
            return _refused("not done: the tool results for this message are used up; answer now")
        result = self._tools.call(name, arguments)
        # A short result is always returned: the model must learn that its write succeeded.
        if len(result) > max(self._left, _SHORT):
            return _refused(
                f"the result has {len(result):,} characters, {self._left:,} are left for this message: "
                "ask for less, or answer now"
            )
        self._left -= len(result)
        return result


def _refused(message: str) -> str:
    return failure("too_large", message).text
