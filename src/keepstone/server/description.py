"""The OpenAPI 3.1 description of the HTTP API."""

from __future__ import annotations

from typing import Any, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from keepstone.operations.error_codes import codes
from keepstone.server import shapes
from keepstone.server.problems import HttpCode
from keepstone.server.request_ids import HEADER

_TEXT = {"type": "string"}
_REQUEST_ID = {"description": "The id of this request, as in the server's log.", "schema": _TEXT}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A unique key that the client makes for this request, such as a UUID. A request repeated "
    "with its key within ten minutes is carried out once, and its response is repeated.",
    "schema": _TEXT | {"maxLength": 255, "pattern": "^[!-~]+$"},
}


def description_of(app: FastAPI) -> dict[str, Any]:
    """Return the description, built at the first call."""
    if app.openapi_schema is None:
        app.openapi_schema = _build(app)
    return app.openapi_schema


def _build(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = schema["components"]
    parts["schemas"] |= _problem()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}]
    operations = (pair for path in schema["paths"].values() for pair in path.items())
    for method, operation in operations:
        if method != "get":
            # Inline the parameter, as several client generators do not follow references.
            operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
        for response in operation["responses"].values():
            response.setdefault("headers", {})[HEADER] = _REQUEST_ID
    return schema


def _problem() -> dict[str, Any]:
    """Return the schema of a problem document and the schemas that it references."""
    made = TypeAdapter(shapes.Problem).json_schema(ref_template="#/components/schemas/{model}")
    inner = made.pop("$defs")
    # List all codes, so that a generated client can name them; a test compares them with docs/http.md and
    # docs/json.md.
    made["properties"]["code"]["enum"] = sorted({*codes(), *get_args(HttpCode)})
    return {"Problem": made, **inner}
