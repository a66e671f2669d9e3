"""What a model is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from keepstone.chat.tools import MemoryTools
from keepstone.errors import KeepstoneError


class ModelError(KeepstoneError, RuntimeError):
    """A model cannot be asked, or failed while it answered. What was said before is kept; ask again."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to use a tool."""

    id: str
    """The model's own name for this call, which the result has to carry."""
    name: str
    arguments: str
    """A JSON object, as the model wrote it: it may be wrong in every way."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    id: str
    """The id of the call."""
    content: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation as a model sees it."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    """The tools that the assistant asked for in this message."""
    results: tuple[ToolResult, ...] = ()
    """What these tools answered; then role is ``"user"`` and there is no text."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt in two parts: what stays the same from request to request, and the rest."""

    stable: str
    varying: str

    @property
    def text(self) -> str:
        """The whole prompt, as it is sent."""
        return self.stable + self.varying


@dataclass(frozen=True, slots=True)
class Request:
    """All that a model is given to answer."""

    prompt: Prompt
    messages: tuple[Message, ...]
    """The conversation so far, oldest first; the last message is the user's."""
    tools: MemoryTools
    """What it may do with memory."""


Piece = str | ToolCall
"""A part of an answer: some of its text, or a tool that the model wants used."""


class ChatModel(Protocol):
    """Answers a conversation, piece by piece. Any thread may call, one call at a time."""

    @property
    def name(self) -> str:
        """What people call it, such as ``"openai:gpt-5"``; it never holds a key."""

    @property
    def uses_tools(self) -> bool:
        """Whether it is offered the tools of memory."""

    def answer(self, request: Request, /) -> Iterator[Piece]:
        """Yield the answer as it comes; after tool calls it is asked again, with their results.

        Closing the iterator early gives the connection back.

        Raises:
            ModelError: It cannot be reached, refuses, keeps silent or stops half-way. What was
                yielded counts.
        """
