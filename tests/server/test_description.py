"""The server does what its description says: tried with requests made up from it."""

import json
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

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
            case.call_and_validate(base_url=server.url, headers=bearer, checks=CHECKS, timeout=30)

        behaves()


def test_every_route_has_an_example_or_needs_no_body(http: Any) -> None:
    document = http.get("/v1/openapi.json").json()
    shapes = document["components"]["schemas"]
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"]
            assert operation["description"].endswith(".")
            assert {"default"} <= set(operation["responses"]) or operation["operationId"] == "metrics"
            body = json.dumps(operation.get("requestBody", {}))
            for name in [name for name in shapes if f'/{name}"' in body]:
                assert shapes[name].get("examples") or not shapes[name].get("required"), name
