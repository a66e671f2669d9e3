"""Requests to models, and their responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from keepstone.chat.tools import MemoryTools
from keepstone.model import Entry
from keepstone.recall.echo import QUOTES


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by a model."""

    id: str
    """The model's id for this call, which the result repeats."""
    name: str
    arguments: str
    """A JSON object as the model wrote it, not validated."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call."""

    id: str
    """The id of the call."""
    content: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    """The assistant's tool calls in this message."""
    results: tuple[ToolResult, ...] = ()
    """The results of tool calls; then role is ``"user"`` and text is empty."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt in two parts: a prefix that stays the same between requests, and the rest."""

    stable: str
    varying: str

    @property
    def text(self) -> str:
        """The whole prompt."""
        return self.stable + self.varying


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model."""

    prompt: Prompt
    messages: tuple[Message, ...]
    """The conversation so far, oldest first; the last message is the user's."""
    tools: MemoryTools
    """The tools for memory."""
    question: str
    """The user's last message alone; ``messages`` joins it with earlier unanswered messages."""


class Transient(str):
    """Text of an answer that is shown. An answer that consists only of such text is not stored."""

    __slots__ = ()


class Quote(str):
    """Text of an answer that quotes an entry, to which the stored answer has a link."""

    __slots__ = ("entry_id", "session")

    entry_id: str
    session: str

    def __new__(cls, text: str, entry: Entry) -> Self:
        """Return a quote of an entry."""
        made = super().__new__(cls, text)
        made.entry_id, made.session = entry.id, entry.session
        return made

    @property
    def link(self) -> dict[str, str]:
        """The link of the answer."""
        return {"rel": QUOTES, "to": self.entry_id, "session": self.session}


Piece = str | ToolCall
"""A chunk of an answer: text or a tool call."""


class ChatModel(Protocol):
    """A model that streams answers. Any thread may call, one call at a time."""

    @property
    def name(self) -> str:
        """The model's name for people, such as ``"openai:gpt-5"``; never contains a key."""

    @property
    def uses_tools(self) -> bool:
        """Whether the model gets the tools for memory."""

    def answer(self, request: Request, /) -> Iterator[Piece]:
        """Yield the answer as it is streamed; after tool calls, called again with their results.

        Closing the iterator early releases the connection.

        Raises:
            ModelError: The model cannot be reached, refuses, times out or ends early. Chunks already
                yielded stay valid.
        """
