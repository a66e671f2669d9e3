"""The server does what its description says: tried with requests made up from it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema_rs
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks
from tests.server.operations import SCRIPT

from keepstone.log.line import ENVELOPE, RESERVED
from keepstone.server.routes.changes import SECONDS

EXAMPLES = 10
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


def test_made_up_requests_are_answered_as_described(server: Any, http: Any) -> None:
    document = http.get("/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    bearer = {"Authorization": f"Bearer {server.token}"}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def behaves(case: Any) -> None:
            if case.path.endswith("/changes"):
                _end_at_once(case)
            # This home has no embedder, which is a 503.
            wanted = CHECKS[1:] if case.path.endswith("/embed") else CHECKS
            case.call_and_validate(base_url=server.url, headers=bearer, checks=wanted, timeout=30)

        behaves()


def _end_at_once(case: Any) -> None:
    """Let a stream that would wait for changes end; a timeout that is to be refused stays."""
    query = dict(case.query or {})
    with suppress(TypeError, ValueError):
        if 0 <= float(query.get("timeout", SECONDS)) <= SECONDS:
            case.query = query | {"timeout": 0}


def test_every_route_has_an_example_or_needs_no_body(http: Any) -> None:
    document = http.get("/v1/openapi.json").json()
    shapes = document["components"]["schemas"]
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"]
            assert operation["description"].endswith(".")
            assert "default" in operation["responses"]
            body = json.dumps(operation.get("requestBody", {}))
            for name in [name for name in shapes if f'/{name}"' in body]:
                assert shapes[name].get("examples") or not shapes[name].get("required"), name


def test_the_script_sends_every_operation(http: httpx.Client) -> None:
    document = http.get("/v1/openapi.json").json()
    described = {operation["operationId"] for _, _, operation in operations(document)}
    assert {step.operation for step in SCRIPT} == described


def test_answers_have_just_the_keys_and_values_that_are_described(own_server: Any) -> None:
    (own_server.home.parent / "CLAUDE.md").write_text("- Be brief\n")
    with own_server.client() as http:
        document = http.get("/v1/openapi.json").json()
        found = {operation["operationId"]: (method, path) for method, path, operation in operations(document)}
        closed = {**document, "components": without_other_keys(document["components"])}
        for step in SCRIPT:
            method, template = found[step.operation]
            path = template.format(**{name: quote(value, safe="") for name, value in step.path.items()})
            answer = http.request(method, path, params=step.query, json=step.body)
            assert answer.status_code == step.status, (step, answer.text)
            check(closed, closed["paths"][template][method]["responses"], answer)


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def without_other_keys(schema: Any) -> Any:
    """Return a schema whose objects have no keys but those named, unless it says that there may be others."""
    if isinstance(schema, list):
        return [without_other_keys(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: without_other_keys(item) for name, item in schema.items()}
    is_object = "properties" in schema and "type" in schema
    return {"additionalProperties": False, **closed} if is_object else closed


def check(document: dict[str, Any], responses: dict[str, Any], answer: httpx.Response) -> None:
    """Compare an answer with what is described for its status: media type, headers and every key."""
    described = responses.get(str(answer.status_code), responses["default"])
    media = answer.headers["content-type"].partition(";")[0]
    assert list(described["content"]) == [media]
    assert all(name in answer.headers for name in described["headers"])
    if media in ("application/json", "application/problem+json"):
        assert {"etag", "location"} & {*answer.headers} <= {name.lower() for name in described["headers"]}
        schema = {**described["content"][media]["schema"], "components": document["components"]}
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(answer.json())


def test_an_entry_is_described_with_every_key_of_a_log_line(http: httpx.Client) -> None:
    schema = http.get("/v1/openapi.json").json()["components"]["schemas"]["Entry"]
    of_line = ENVELOPE | RESERVED - {"batch", "deleted", "life"} | {"data", "text", "trust", "stale"}
    assert set(schema["properties"]) == {"agent", "session"} | of_line
    assert schema["properties"]["ts"]["format"] == "date-time"
    assert schema["additionalProperties"] is True  # A flat payload.


def test_every_code_of_a_problem_is_described_and_documented(http: httpx.Client) -> None:
    schemas = http.get("/v1/openapi.json").json()["components"]["schemas"]
    docs = Path(__file__).parents[2] / "docs"
    pages = (docs / "http.md").read_text("utf-8") + (docs / "json.md").read_text("utf-8")
    codes = schemas["Problem"]["properties"]["code"]["enum"]
    assert {"entry_not_found", "unauthorized", "file_changed", "invalid_argument"} <= {*codes}
    assert [code for code in codes if f"`{code}`" not in pages] == []


def test_a_change_takes_an_idempotency_key_and_a_read_does_not(http: httpx.Client) -> None:
    for method, _, operation in operations(http.get("/v1/openapi.json").json()):
        names = [parameter["name"] for parameter in operation.get("parameters", [])]
        assert ("Idempotency-Key" in names) == (method != "get")
