"""The types of responses, as the description of the API is generated from them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from keepstone.operations import answers
from keepstone.server import shapes

SHAPES = [
    kind
    for module in (answers, shapes)
    for kind in vars(module).values()
    if is_typeddict(kind) and kind.__module__ == module.__name__
]
ENTRY = {"agent": "a", "session": "main", "id": "i", "ts": "2026-01-11T14:31:00.120000Z", "type": "note"}


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_each_type_has_a_schema_with_a_sentence(kind: Any) -> None:
    schema = TypeAdapter(kind).json_schema()
    assert schema["type"] == "object"
    assert schema["description"].endswith(".")


def test_no_two_types_have_one_name() -> None:
    names = [kind.__name__ for kind in SHAPES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("kind", [answers.Entry, answers.Version])
def test_an_entry_may_have_a_flat_payload_beside_its_envelope(kind: Any) -> None:
    line = ENTRY | {"written": ENTRY["ts"], "deleted": False, "decision": "Use pnpm"}
    assert TypeAdapter(kind).validate_python(line)["decision"] == "Use pnpm"
    assert TypeAdapter(kind).json_schema()["additionalProperties"] is True


def test_an_entry_without_its_envelope_is_none() -> None:
    with pytest.raises(ValidationError, match="session"):
        TypeAdapter(answers.Entry).validate_python({key: ENTRY[key] for key in ENTRY if key != "session"})


def test_the_schema_of_a_time_says_its_format() -> None:
    field = TypeAdapter(answers.Entry).json_schema()["properties"]["ts"]
    assert (field["type"], field["format"]) == ("string", "date-time")
    assert field["examples"]


def test_the_error_of_every_route_is_a_problem_document() -> None:
    content = shapes.PROBLEM["default"]["content"]
    assert list(content) == ["application/problem+json"]
    problem = TypeAdapter(shapes.Problem).json_schema()
    assert set(problem["required"]) == {"type", "title", "status", "detail", "code"}
