"""Messages in the forms of the supported providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from keepstone.model import Record
from keepstone.text.messages import anthropic, openai
from keepstone.text.messages.converting import converted

Provider = Literal["openai", "anthropic"]


def for_provider(messages: Sequence[Record], provider: Provider) -> list[Record]:
    """Return messages in a form that a provider accepts; accepted messages are returned unchanged.

    Raises:
        ValueError: The provider is unknown.
    """
    if provider not in get_args(Provider):
        names = " or ".join(map(repr, get_args(Provider)))
        raise ValueError(f"provider must be {names}, or None for the messages as given, not {provider!r:.80}")
    if provider == "anthropic":
        return converted(messages, anthropic.MESSAGES)
    # A request has messages of one API only.
    return converted(
        messages, openai.RESPONSES if any(map(openai.is_of_responses, messages)) else openai.CHAT
    )


def as_mapping(message: Any) -> Mapping[str, Any]:
    """Return a message as a mapping: itself, or the result of its ``model_dump()``.

    Raises:
        TypeError: It is neither a mapping nor an object with ``model_dump``.
    """
    if isinstance(message, Mapping):
        return message
    dump = getattr(message, "model_dump", None)
    found = dump() if callable(dump) else None
    if not isinstance(found, Mapping):
        raise TypeError(
            f"a message must be a mapping or have model_dump(), not {type(message).__name__}: {message!r:.80}"
        )
    return found
