"""The schemas of tools, the check of a model's arguments, and answers in place of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone import errors
from keepstone.operations.toolbox import Tool, ToolAnswer, Toolbox, ToolFormat, code_of, string

ARGUMENTS = {
    "text": string("Words.", 5),
    "kind": {**string("A kind."), "enum": ["a", "b"]},
    "limit": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9},
    "tags": {
        "type": "array",
        "description": "Tags.",
        "items": {"type": "string", "maxLength": 3},
        "maxItems": 2,
    },
    "pinned": {"type": "boolean", "description": "Whether."},
}
TOOL = Tool("try", "Try it.", ARGUMENTS, ("text",), lambda **given: ToolAnswer({"given": given}, "tried"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.floats() | st.sampled_from(["a", "b"]) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=2),
    max_leaves=4,
)


def raising(error: Exception) -> Toolbox:
    def run(**_: Any) -> ToolAnswer:
        raise error

    return Toolbox([Tool("fail", "Fail.", {}, (), run)])


def error_of(answer: ToolAnswer) -> tuple[str, str]:
    assert answer.data["ok"] is False
    assert set(answer.data) == {"ok", "error"}
    error = answer.data["error"]
    assert answer.text == f"error {error['code']}: {error['message']}"
    return error["code"], error["message"]


@given(st.fixed_dictionaries({}, optional={**dict.fromkeys(ARGUMENTS, JSON), "other": JSON}))
def test_arguments_are_taken_exactly_if_they_fit_the_schema(arguments: dict[str, Any]) -> None:
    schema = TOOL.definition("json")["parameters"]
    # A null stands for an optional argument that is not given: strict modes send every argument.
    sent = {key: value for key, value in arguments.items() if value is not None or key in ("text", "other")}
    try:
        TOOL.checked(arguments)
    except ValueError:
        assert not jsonschema_rs.is_valid(schema, sent)
    else:
        assert jsonschema_rs.is_valid(schema, sent)


def test_all_wrong_arguments_are_named_with_what_they_must_be() -> None:
    code, message = error_of(Toolbox([TOOL]).call("try", {"limit": "5", "kind": "c", "agent": "x"}))
    assert code == "invalid_argument"
    assert "'agent' is not an argument; they are text, kind, limit, tags, pinned" in message
    assert "text is missing" in message
    assert "limit must be an integer from 1 to 9, not '5'" in message
    assert "kind must be one of a, b, not 'c'" in message


def test_a_whole_float_counts_as_an_integer() -> None:
    answer = Toolbox([TOOL]).call("try", '{"text": "x", "limit": 5.0, "kind": null}')
    assert json.dumps(answer.data) == '{"ok": true, "given": {"text": "x", "limit": 5}}'


def test_a_long_argument_is_told_by_its_length() -> None:
    assert "not 300 characters" in error_of(Toolbox([TOOL]).call("try", {"text": "x" * 300}))[1]


@pytest.mark.parametrize(
    "arguments", ["{", "[]", "[" * 100_000, "9" * 5000, "null", b"\xff", None, 7, [], {1: 2}, object()]
)
def test_arguments_that_are_no_object_are_an_answer(arguments: object) -> None:
    assert error_of(Toolbox([TOOL]).call("try", arguments))[0] == "invalid_argument"


@pytest.mark.parametrize("name", ["", "run", "__init__", None, 7, ["try"], {}])
def test_an_unknown_tool_names_those_there_are(name: object) -> None:
    assert error_of(Toolbox([TOOL]).call(name, {})) == ("unknown_tool", f"there is no tool {name!r}; use try")


@given(JSON, JSON | st.text())
def test_no_call_raises(name: Any, arguments: Any) -> None:
    assert set(Toolbox([TOOL]).call(name, arguments).data) in ({"ok", "given"}, {"ok", "error"})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.PathEscapeError("x"), "path_escape"),
        (errors.MemoryFileNotFoundError("x"), "file_not_found"),
        (errors.EntryNotFoundError("x"), "entry_not_found"),
        (errors.AccessDeniedError("x"), "permission_denied"),
        (errors.SecretError("x"), "invalid_argument"),
        (errors.LockTimeoutError("x"), "store_error"),
        (errors.StoreError("x"), "store_error"),
        (errors.EmbedderUnavailableError("x"), "store_error"),
    ],
)
def test_an_error_is_an_answer_with_its_code(error: Exception, code: str) -> None:
    assert error_of(raising(error).call("fail", {})) == (code, "x") == (code_of(error), "x")


def test_a_foreign_error_is_logged_and_answered_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    answer = raising(OSError("/home/ada/key")).call("fail", {})
    assert error_of(answer) == ("store_error", "the tool failed (OSError); answer without it")
    assert "OSError" in caplog.text
    assert "ada" not in caplog.text


def test_a_call_whose_arguments_do_not_fit_is_told_of() -> None:
    told: list[tuple[str, Mapping[str, Any]]] = []
    box = Toolbox([TOOL], lambda name, given: told.append((name, given)))
    box.call("try", {"text": "x"})
    box.call("try", {"text": 7})
    assert told == [("try", {"text": 7})]


@pytest.mark.parametrize("form", ["json", "anthropic", "openai", "openai-responses"])
def test_a_changed_definition_changes_no_later_one(form: ToolFormat) -> None:
    box = Toolbox([TOOL])
    sent = json.dumps(box.definitions(form))
    (definition,) = box.definitions(form)
    inner = definition.get("function", definition)
    schema = inner["input_schema" if form == "anthropic" else "parameters"]
    schema["properties"]["text"]["type"] = "integer"
    schema["properties"]["kind"]["enum"].append("c")
    schema["required"].append("tags")
    assert json.dumps(box.definitions(form)) == sent
