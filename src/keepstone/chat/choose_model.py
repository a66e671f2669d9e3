"""Model selection: the named model, else the environment's, else the offline responder.

A key alone selects no model: memory is sent to a server only if its model was named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit, urlunsplit

from keepstone.chat.anthropic_model import AnthropicModel
from keepstone.chat.endpoint import NO_KEY, Endpoint
from keepstone.chat.messages import ChatModel
from keepstone.chat.offline import OfflineResponder
from keepstone.chat.openai_model import OpenAIModel
from keepstone.errors import ModelError

MODEL_VARIABLE, KEY_VARIABLE = "KEEPSTONE_CHAT_MODEL", "KEEPSTONE_CHAT_KEY"
_FORMS = "openai:NAME, anthropic:NAME, http://HOST:PORT/v1?model=NAME or offline"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and why it was selected."""

    model: ChatModel
    reason: str
    """The reason, in words for people: what selected the model, or how to select one."""


def choose(
    word: str | None = None, environment: Mapping[str, str] | None = None, *, uses_tools: bool = True
) -> ModelChoice:
    """Return the model that ``word`` names.

    Args:
        word: ``openai:NAME`` (key in $OPENAI_API_KEY, optional address in $OPENAI_BASE_URL),
            ``anthropic:NAME`` (key in $ANTHROPIC_API_KEY), ``http://HOST:PORT/v1?model=NAME`` (any
            OpenAI-compatible server, optional key in $KEEPSTONE_CHAT_KEY) or ``offline``. Default:
            $KEEPSTONE_CHAT_MODEL, else $ANTHROPIC_MODEL or $OPENAI_MODEL, else ``offline``.
        environment: The environment variables; default: those of this process.
        uses_tools: Whether the model gets the tools for memory.

    Raises:
        ValueError: ``word`` has another form.
        ModelError: The key or the package that the model needs is missing.

    Examples:
        >>> choose("http://localhost:11434/v1?model=llama3.2").model.name
        'llama3.2 at localhost:11434'
    """
    variables = os.environ if environment is None else environment
    if word is not None:
        return ModelChoice(_named(word, variables, uses_tools=uses_tools), "named by --model")
    for variable, before in (
        (MODEL_VARIABLE, ""),
        ("ANTHROPIC_MODEL", "anthropic:"),
        ("OPENAI_MODEL", "openai:"),
    ):
        if variables.get(variable):
            model = _named(before + variables[variable], variables, uses_tools=uses_tools)
            return ModelChoice(model, f"named by ${variable}")
    return ModelChoice(
        OfflineResponder(), f"no model selected: use --model or ${MODEL_VARIABLE}, with {_FORMS}"
    )


def _named(word: str, variables: Mapping[str, str], *, uses_tools: bool) -> ChatModel:
    kind, _, name = word.partition(":")
    if word == OfflineResponder.name:
        return OfflineResponder()
    if kind in ("http", "https"):
        return OpenAIModel(_server(word, variables), uses_tools=uses_tools)
    if kind == "openai" and name:
        return OpenAIModel(_openai(name, variables), uses_tools=uses_tools)
    if kind == "anthropic" and name:
        return AnthropicModel(_anthropic(name, variables), uses_tools=uses_tools)
    raise ValueError(f"unknown model {word!r:.80}: use {_FORMS}")


def _openai(name: str, variables: Mapping[str, str]) -> Endpoint:
    variable = "OPENAI_API_KEY"
    address = variables.get("OPENAI_BASE_URL")
    # Another server at OPENAI_BASE_URL may need no key, but the package refuses an empty one.
    key = variables.get(variable) or (NO_KEY if address else "")
    return Endpoint(name, f"openai:{name}", _needed(key, variable), variable, address)


def _anthropic(name: str, variables: Mapping[str, str]) -> Endpoint:
    variable = "ANTHROPIC_API_KEY"
    key = _needed(variables.get(variable), variable)
    return Endpoint(name, f"anthropic:{name}", key, variable, variables.get("ANTHROPIC_BASE_URL"))


def _needed(key: str | None, variable: str) -> str:
    if not key:
        raise ModelError(f"the model needs a key: set {variable}, or use --model offline")
    return key


def _server(address: str, variables: Mapping[str, str]) -> Endpoint:
    parts = urlsplit(address)
    wanted = parse_qs(parts.query)
    # A password in the address would be shown with the model's name, and other parameters would be lost
    # silently.
    if not parts.hostname or "@" in parts.netloc or parts.fragment or wanted.keys() != {"model"}:
        raise ValueError(
            f"a model's address must be http://HOST:PORT/v1?model=NAME; put a key into {KEY_VARIABLE}"
        )
    model = wanted["model"][-1]
    url = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    # OPENAI_API_KEY is never sent to a server given by its address.
    return Endpoint(
        model, f"{model} at {parts.netloc}", variables.get(KEY_VARIABLE) or NO_KEY, KEY_VARIABLE, url
    )
