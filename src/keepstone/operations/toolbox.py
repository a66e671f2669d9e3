"""Tools for a model: schemas, validation of a model's arguments, and errors returned as answers."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from keepstone.errors import (
    AccessDeniedError,
    AgentNotFoundError,
    EntryNotFoundError,
    InvalidAgentIdError,
    IsAFolderError,
    KeepstoneError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
)
from keepstone.text.display import frames_of

logger = logging.getLogger("keepstone.tools")

ToolFormat = Literal["json", "anthropic", "openai", "openai-responses"]
"""The API of a definition: plain JSON schema, Anthropic, OpenAI's Chat Completions or its Responses."""
Refused = Callable[[str, Mapping[str, Any]], None]
"""Function called with a tool's name and arguments that do not fit its schema."""

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (PathEscapeError, "path_escape"),
    (MemoryFileNotFoundError, "file_not_found"),
    (EntryNotFoundError, "entry_not_found"),
    (InvalidAgentIdError, "invalid_agent"),
    (AgentNotFoundError, "agent_not_found"),
    (AccessDeniedError, "permission_denied"),
    (NotTextError, "not_text"),
    (IsAFolderError, "is_a_directory"),
    (ValueError, "invalid_argument"),
    (TypeError, "invalid_argument"),
)
"""Error codes by error class; the first match counts. Any other error is a ``store_error``."""


class ToolAnswer(NamedTuple):
    """The result of a tool, for programs and for a model."""

    data: dict[str, Any]
    """A JSON object. From ``Toolbox.call`` it has ``ok``, and ``error`` if ``ok`` is false."""
    text: str
    """The result as short text for a model, with recalled text fenced."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a model."""

    name: str
    description: str
    """The tool's effect, and when to use the tool."""
    arguments: Mapping[str, Mapping[str, Any]]
    """The JSON schema of each argument, with a description. Its type is string, number, integer, boolean,
    object (all named properties are required) or array, or a list of such types."""
    required: tuple[str, ...]
    run: Callable[..., ToolAnswer]
    """Function called with validated arguments, without optional arguments that the call lacks."""

    def definition(self, format: ToolFormat) -> dict[str, Any]:  # noqa: A002
        """Return the tool's definition in the form that a model's API takes."""
        head = {"name": self.name, "description": self.description}
        schema = {
            "type": "object",
            "properties": deepcopy(dict(self.arguments)),
            "required": [*self.required],
            "additionalProperties": False,
        }
        if format == "anthropic":
            return {**head, "input_schema": schema}
        if format == "openai":
            return {"type": "function", "function": {**head, "parameters": schema}}
        if format == "openai-responses":
            return {"type": "function", **head, "parameters": schema}
        return {**head, "parameters": schema}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and return the arguments for ``run``. An optional argument that is null counts as missing.

        Raises:
            ValueError: Arguments are missing, unknown or do not fit their schemas. The message names each
                problem.
        """
        names = ", ".join(self.arguments) or "none"
        wrong = [
            f"{name!r:.80} is not an argument; they are {names}"
            for name in given
            if name not in self.arguments
        ]
        wrong += [f"{name} is missing" for name in self.required if name not in given]
        arguments = {
            name: value
            for name, value in given.items()
            # Models often send null for an argument that they leave out.
            if name in self.arguments and (value is not None or name in self.required)
        }
        wrong += [
            f"{name} must be {_expected(self.arguments[name])}, not {_shown(value)}"
            for name, value in arguments.items()
            if not _fits(value, self.arguments[name])
        ]
        if wrong:
            raise ValueError(f"{self.name}: {'; '.join(wrong)}")
        # JSON has one kind of number: a model may write 5 as 5.0.
        return {
            name: int(value) if self.arguments[name]["type"] == "integer" else value
            for name, value in arguments.items()
        }


class Toolbox:
    """A set of tools that a model may use.

    Args:
        tools: The tools, in the order in which a model sees them.
        refused: Called, for logs, if the arguments of a call do not fit their schemas.
        unlisted: Tools that can be called but are not listed, such as those with former names.
    """

    def __init__(
        self, tools: Iterable[Tool], refused: Refused | None = None, *, unlisted: Iterable[Tool] = ()
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._unlisted = {tool.name: tool for tool in unlisted}
        self._refused = refused

    def definitions(self, format: ToolFormat = "json") -> list[dict[str, Any]]:  # noqa: A002
        """Return the definitions of all tools in the form that a model's API takes.

        Raises:
            ValueError: There is no such format.
        """
        if format not in get_args(ToolFormat):
            raise ValueError(f"format must be one of {', '.join(get_args(ToolFormat))}, not {format!r:.80}")
        return [tool.definition(format) for tool in self._tools.values()]

    def call(self, name: object, arguments: object) -> ToolAnswer:
        """Run a tool with a model's arguments: a mapping, or its JSON text. Never raises."""
        try:
            tool = self._tool(name)
            if tool is None:
                return failure("unknown_tool", f"there is no tool {name!r:.80}; use {', '.join(self._tools)}")
            data, text = tool.run(**self._checked(tool, _mapping_of(arguments)))
        except (KeepstoneError, ValueError, TypeError) as error:
            return failure(code_of(error), str(error) or type(error).__name__)
        except Exception as error:  # noqa: BLE001  An embedder, a reranker or a caller's mapping may raise anything.
            # The error's message may contain memory or a key, so only its type is shown.
            logger.error("a tool raised %s at\n%s", type(error).__name__, frames_of(error))  # noqa: TRY400
            return failure(code_of(error), f"the tool failed ({type(error).__name__}); answer without it")
        return ToolAnswer({"ok": True, **data}, text)

    def _tool(self, name: object) -> Tool | None:
        # A model may send any value as the name, even a list, which is not hashable.
        return self._tools.get(name, self._unlisted.get(name)) if isinstance(name, str) else None

    def _checked(self, tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return tool.checked(given)
        except ValueError:
            if self._refused is not None:
                self._refused(tool.name, given)
            raise


def failure(code: str, message: str) -> ToolAnswer:
    """Return the answer of a failed call."""
    return ToolAnswer({"ok": False, "error": {"code": code, "message": message}}, f"error {code}: {message}")


def code_of(error: Exception) -> str:
    """Return the code for an error that a tool raised."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "store_error")


def string(description: str, longest: int | None = None) -> dict[str, Any]:
    """Return the schema of a text."""
    return {"type": "string", "description": description} | ({"maxLength": longest} if longest else {})


def _mapping_of(arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, str | bytes):
        try:
            # OpenAI's API gives arguments as JSON text, which models leave empty for a tool without any.
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not JSON: {error}; send one JSON object") from None
    if not isinstance(arguments, Mapping):
        raise TypeError(f"the arguments must be one JSON object, not {_shown(arguments)}")
    return arguments


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if isinstance(kind, list):
        return any(_fits(value, {**schema, "type": alternative}) for alternative in kind)
    if kind == "string":
        return (
            isinstance(value, str)
            and len(value) <= schema.get("maxLength", len(value))
            and value in schema.get("enum", [value])
        )
    if kind == "integer":
        whole = value.is_integer() if isinstance(value, float) else type(value) is int
        return whole and schema["minimum"] <= value <= schema["maximum"]
    if kind == "number":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        return number and math.isfinite(value) and least <= value <= most
    if kind in {"array", "object"}:
        return _parts_fit(value, schema)
    return isinstance(value, bool)


def _parts_fit(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether the items of an array, or the properties of an object, fit their schemas."""
    if schema["type"] == "object":
        return isinstance(value, Mapping) and all(
            name in value and _fits(value[name], inner)
            for name, inner in schema.get("properties", {}).items()
        )
    return (
        isinstance(value, list | tuple)
        and len(value) <= schema.get("maxItems", len(value))
        and all(_fits(item, schema["items"]) for item in value)
    )


def _expected(schema: Mapping[str, Any]) -> str:
    kind = schema["type"]
    if isinstance(kind, list) or "enum" in schema:
        return f"one of {', '.join(schema.get('enum', kind))}"
    if kind == "string":
        return "a string" + (
            f" of at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
        )
    if kind == "number":
        return f"a number from {schema['minimum']} to {schema['maximum']}"
    if kind == "integer":
        return f"an integer from {schema['minimum']} to {schema['maximum']}"
    if kind in {"array", "object"}:
        return _expected_parts(schema)
    return "true or false"


def _expected_parts(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "object":
        parts = [f"{name} ({_expected(inner)})" for name, inner in schema.get("properties", {}).items()]
        return " with ".join(["an object", *filter(None, [", ".join(parts)])])
    most = f" of at most {schema['maxItems']} items" if "maxItems" in schema else ""
    return f"an array{most}, each {_expected(schema['items'])}"


def _shown(value: object) -> str:
    shown = f"{value!r:.80}"
    return f"{len(value):,} characters" if isinstance(value, str) and len(value) > len(shown) else shown
