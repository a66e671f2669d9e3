"""The parts of the contracts of HTTP and of JSON that scripts/contract_reference.py makes from the code."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scripts import script

contract = script("contract_reference")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    described: dict[str, Any] = contract.description()
    return described


def test_the_pages_have_what_the_code_says() -> None:
    for path, wanted in contract.pages():
        assert path.read_text("utf-8") == wanted, "run python scripts/contract_reference.py"


def test_every_route_has_a_row(document: dict[str, Any]) -> None:
    rows = [line for line in contract.routes(document) if line.startswith("| `")]
    operations = [method for path in document["paths"].values() for method in path if method != "parameters"]
    assert len(rows) == len(operations)


def test_a_row_has_what_a_request_takes_and_what_is_answered(document: dict[str, Any]) -> None:
    [row] = [line for line in contract.routes(document) if line.startswith("| `PUT A/facts/{key}`")]
    assert "| `session`; `value` |" in row
    assert row.endswith("and its `conflicts` |")


def test_a_created_resource_is_answered_with_201(document: dict[str, Any]) -> None:
    [row] = [line for line in contract.routes(document) if line.startswith("| `POST A/sessions` ")]
    assert row.endswith("| `id`, `title` | `id` (201) |")
