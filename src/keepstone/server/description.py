"""The description of the HTTP API (OpenAPI 3.1), from the routes and the types of their answers."""

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
_REQUEST_ID = {"description": "Names this request; it stands in the server's log, too.", "schema": _TEXT}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name that the client makes for this request, such as a UUID. Sent again with it within "
    "ten minutes, the request is carried out once and answered as before.",
    "schema": _TEXT | {"maxLength": 255, "pattern": "^[!-~]+$"},
}


def description_of(app: FastAPI) -> dict[str, Any]:
    """Return the description, which is made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _made(app)
    return app.openapi_schema


def _made(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = schema["components"]
    parts["schemas"] |= _problem()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}]
    operations = (pair for path in schema["paths"].values() for pair in path.items())
    for method, operation in operations:
        if method != "get":
            # Not by reference, which several generators of clients do not follow.
            operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
        for response in operation["responses"].values():
            response.setdefault("headers", {})[HEADER] = _REQUEST_ID
    return schema


def _problem() -> dict[str, Any]:
    """Return the schemas of a problem and of what it consists of."""
    made = TypeAdapter(shapes.Problem).json_schema(ref_template="#/components/schemas/{model}")
    inner = made.pop("$defs")
    made["properties"]["code"]["enum"] = sorted({*codes(), *get_args(HttpCode)})
    return {"Problem": made, **inner}
