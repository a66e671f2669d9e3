"""The types of the JSON documents, compared with documents of a real home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")

from pydantic import TypeAdapter

import keepstone
from keepstone import Agent
from keepstone.operations import answers, documents
from keepstone.operations.answers import Schema


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("a")
        agent.add("Use pnpm", id="pnpm", tags=["js"], pinned=True)
        agent.on_behalf("model", "mcp").add("Use npm", id="npm", derived_from=["pnpm"])
        yield agent


def fits(kind: Any, document: Mapping[str, Any]) -> None:
    """Check that a document is of a type, and has no keys that the type does not name."""
    TypeAdapter(kind).validate_python(document, strict=True)
    assert set(document) <= kind.__required_keys__ | kind.__optional_keys__


def test_an_entry_is_of_its_type(agent: Agent) -> None:
    for entry in agent.iter_entries():
        fits(answers.Entry, documents.entry_document(entry))


def test_a_hit_is_of_its_type(agent: Agent) -> None:
    hits = agent.recall("pnpm")
    assert hits
    for hit in hits:
        fits(answers.Hit, documents.hit_document(hit))


def test_a_finding_is_of_its_type(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        findings = home.doctor()
    assert findings
    for finding in findings:
        fits(answers.Finding, documents.finding_document(finding))


def test_keywords_are_added_to_the_schema_of_a_field() -> None:
    def handler(core: Any) -> Mapping[str, Any]:
        return {"type": core}

    found = Schema(format="date-time").__get_pydantic_json_schema__("string", handler)
    assert found == {"type": "string", "format": "date-time"}


def test_a_time_in_a_document_is_what_its_schema_says(agent: Agent) -> None:
    document = documents.entry_document(agent.get("pnpm"))
    moment = datetime.fromisoformat(document["ts"])
    assert moment.tzinfo is not None
    assert document["ts"] == f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
