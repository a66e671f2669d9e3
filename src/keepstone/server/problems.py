"""Errors as problem documents (RFC 9457), with the codes of docs/json.md and some codes only for HTTP."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from keepstone.errors import KeepstoneError, LockTimeoutError
from keepstone.operations.error_codes import FORESEEN, MISSING, WRONG, code_of, message_of
from keepstone.server.request_ids import HEADER, request_id_of
from keepstone.text.display import clipped

logger = logging.getLogger("keepstone.server")

MEDIA_TYPE = "application/problem+json"
_STATUSES: Mapping[str, int] = {
    "already_superseded": 409,
    "suggestion_outdated": 409,
    "entry_exists": 409,
    "ambiguous_id": 409,
    "space_mismatch": 409,
    "is_a_folder": 409,
    "not_granted": 403,
    "lock_timeout": 503,
    "purge_pending": 503,
    "embedder_unavailable": 503,
}
"""HTTP statuses of single codes; ``status_of`` sets the statuses of whole classes of errors."""
_KEY = 80
"""Maximum characters of a key in a problem."""
_RETRIED = frozenset({"lock_timeout", "purge_pending"})


HttpCode = Literal[
    "answer_forgotten",
    "busy",
    "cross_origin",
    "file_changed",
    "forbidden",
    "http",
    "idempotency_key_reused",
    "internal",
    "invalid_argument",
    "method_not_allowed",
    "not_found",
    "read_only",
    "session_changed",
    "store",
    "too_large",
    "too_many_failures",
    "too_slow",
    "unauthorized",
    "unsupported_media_type",
    "wrong_host",
]
"""Codes that only HTTP uses, and two that the library uses, too. docs/http.md describes them."""


class ProblemError(Exception):
    """An error that only exists over HTTP, such as a missing token."""

    def __init__(
        self, status: int, code: HttpCode, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return the error as a response."""
        return problem(self.status, self.code, str(self), self.headers)


def problem(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Return a problem document as a response."""
    document = {
        "type": f"urn:keepstone:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }
    return Response(json.dumps(document), status, dict(headers or {}), MEDIA_TYPE)


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error.

    Examples:
        >>> status_of(ValueError("limit must not be negative"))
        400
    """
    if isinstance(error, MISSING):
        return 404
    return _STATUSES.get(code_of(error), 400 if isinstance(error, WRONG) else 500)


def problem_of(error: KeepstoneError) -> ProblemError:
    """Return a library error as a problem, for middleware, whose errors do not reach the app's handlers."""
    if isinstance(error, LockTimeoutError):
        return ProblemError(503, "busy", message_of(error), {"Retry-After": "1"})
    return ProblemError(status_of(error), "store", message_of(error))


def install(app: FastAPI) -> None:
    """Make an app respond to every error with a problem document."""
    for kind in FORESEEN:
        app.add_exception_handler(kind, _foreseen)
    app.add_exception_handler(ProblemError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _unforeseen)


async def _foreseen(request: Request, error: Exception) -> Response:
    code, status = code_of(error), status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # Log only the code: messages may quote memory, which must not reach a log.
        logger.warning("request %s: %s", request_id_of(request.scope), code)
    return problem(status, code, message_of(error), {"Retry-After": "1"} if code in _RETRIED else {})


async def _own(_: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101  It is registered for this class.
    return error.response()


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  It is registered for this class.
    # FastAPI treats a body of another media type as a string, and would report its value instead of its type.
    if _is_other_media(request) and any(found["loc"][:1] == ("body",) for found in error.errors()):
        return problem(415, "unsupported_media_type", "the body must be JSON: Content-Type: application/json")
    # The problem does not repeat the input, which may be long or contain memory; keys are clipped.
    errors = [{"at": _place(found["loc"]), "message": found["msg"]} for found in error.errors()]
    detail = "; ".join(f"{found['at']}: {found['message']}" for found in errors[:3])
    return problem(400, "invalid_argument", detail, errors=errors[:20])


def _is_other_media(request: Request) -> bool:
    """Return whether a request has a body that is not declared as JSON."""
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        return False
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return not re.fullmatch(r"application/(.+\+)?json", media)


def _place(keys: Iterable[object]) -> str:
    return "/".join(clipped(str(key), _KEY) for key in keys)


_CODES: Mapping[int, HttpCode] = {
    400: "invalid_argument",
    404: "not_found",
    405: "method_not_allowed",
    415: "unsupported_media_type",
}


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  It is registered for this class.
    code = _CODES.get(error.status_code, "http")
    return problem(error.status_code, code, str(error.detail), error.headers)


async def _unforeseen(request: Request, _: Exception) -> Response:
    # The response has no details; they are only in the server's log.
    name = request_id_of(request.scope)
    logger.error("request %s: internal", name)
    detail = f"internal server error; the server's log has the details under request {name}"
    # Starlette calls the handler of ``Exception`` outside of all other middleware, so the header with the
    # request id is set here.
    return problem(500, "internal", detail, {HEADER: name})
