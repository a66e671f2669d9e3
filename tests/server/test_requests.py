"""What requests carry, in its shape: what it means is the library's to say."""

import inspect
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from keepstone.server import requests
from keepstone.server.requests import Change, Keys, NamedNote, NewEntries, NewEntry

KINDS = [
    kind for _, kind in inspect.getmembers(requests, inspect.isclass) if kind.__module__ == requests.__name__
]
FREE = st.text().filter(
    lambda key: key not in Keys.model_fields and key not in {"id", "ts", "session", "self"}
)
PAYLOAD = st.dictionaries(
    FREE | st.sampled_from(["keys", "model_dump", "__class__"]), st.integers() | st.text()
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_of_the_description_is_a_body_that_is_taken(kind: type[BaseModel]) -> None:
    for example in kind.model_json_schema().get("examples", []):
        assert kind.model_validate(example).model_dump(exclude_unset=True) == example


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, requests.Body)])
def test_a_body_has_no_field_that_the_description_does_not_name(kind: type[BaseModel]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.model_validate({"unheard_of": 1})


@pytest.mark.parametrize("kind", [Change, NewEntry])
@given(payload=PAYLOAD)
def test_keys_of_any_name_are_payload_as_they_were_given(kind: type[Keys], payload: dict[str, Any]) -> None:
    assert kind.model_validate(payload).keys() == payload


def test_an_omitted_key_is_absent_and_null_is_present() -> None:
    assert Change.model_validate({}).keys() == {}
    assert Change.model_validate({"tags": None}).keys() == {"tags": None}


@pytest.mark.parametrize("key", ["id", "session", "self"])
def test_a_change_cannot_rename_the_entry(key: str) -> None:
    with pytest.raises(ValueError, match=f"'{key}' cannot be changed.*put it in data"):
        Change.model_validate({key: "x", "text": "y"}).keys()
    assert Change.model_validate({"data": {key: "x"}}).keys() == {"data": {key: "x"}}


@pytest.mark.parametrize(
    ("kind", "field", "wrong"),
    [
        ("NewEntry", "id", ""),
        ("NewEntry", "type", 5),
        ("NewEntry", "tags", "auth"),
        ("NewEntry", "pinned", 1),
        ("NewEntry", "priority", "0.5"),
        ("NewEntry", "data", []),
        ("RecallQuery", "limit", -1),
        ("RecallQuery", "limit", 1001),
        ("RecallQuery", "limit", "10"),
        ("RecallQuery", "min_priority", float("nan")),
        ("RecallQuery", "neighbours", 101),
        ("ContextQuery", "budget", -1),
        ("ContextQuery", "budget", 1_000_001),
        ("Increments", "increments", {"x": -1}),
        ("Increments", "increments", {"x": 1_000_001}),
        ("Increments", "increments", {"x": True}),
        ("Indexing", "re_embed", ""),
        ("Indexing", "re_embed", "minilm\n"),
        ("Indexing", "re_embed", "../x"),
        ("Purging", "text", ""),
        ("NewNote", "type", "project"),
        ("NewNote", "line", 0),
        ("Link", "to", ""),
        ("Link", "rel", ""),
    ],
)
def test_what_has_the_wrong_type_or_size_is_named_by_its_field(kind: str, field: str, wrong: object) -> None:
    with pytest.raises(ValidationError) as refused:
        getattr(requests, kind).model_validate({field: wrong})
    assert field in {error["loc"][0] for error in refused.value.errors() if error["type"] != "missing"}


def test_a_note_is_taken_as_a_list_of_notes_has_it() -> None:
    listed = {"content": "Use pnpm", "type": "Project", "source": "/p/AGENTS.md", "line": 3}
    assert NamedNote.model_validate(listed) == NamedNote(content="Use pnpm", type="Project", line=3)


def collections_in(schema: Any) -> list[dict[str, Any]]:
    """Return every list and every free object that a schema names."""
    if isinstance(schema, list):
        return [found for each in schema for found in collections_in(each)]
    if not isinstance(schema, dict):
        return []
    is_free = schema.get("type") == "object" and "properties" not in schema
    own = [schema] if is_free or schema.get("type") == "array" else []
    return own + collections_in(list(schema.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_and_object_in_a_body_is_bounded(kind: type[BaseModel]) -> None:
    for found in collections_in(kind.model_json_schema()):
        assert 0 < found.get("maxItems", found.get("maxProperties", 0)) <= 10_000


def test_one_item_too_many_is_refused() -> None:
    assert len(NewEntries.model_validate({"items": [{}] * 10_000}).items) == 10_000
    with pytest.raises(ValidationError, match="at most 10000 items"):
        NewEntries.model_validate({"items": [{}] * 10_001})


def test_a_list_of_wrong_items_is_one_error() -> None:
    with pytest.raises(ValidationError) as refused:
        NewEntry.model_validate({"tags": [1] * 1000})
    assert refused.value.error_count() == 1


@pytest.mark.parametrize(
    "path", ["recall", "entries/list", "entries/count", "entries/delete", "entries/purge"]
)
def test_a_where_of_more_than_100_keys_is_refused_with_the_number(http: httpx.Client, path: str) -> None:
    asked = {"where": {f"key{number}": number for number in range(101)}}
    answer = http.post(f"/v1/agents/finder/{path}", json=asked | ({"query": "x"} if path == "recall" else {}))
    assert answer.status_code == 400
    assert "at most 100" in answer.json()["detail"]
