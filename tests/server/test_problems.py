"""What goes wrong, as an app that raises it answers."""

import inspect
import json
import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Body, FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from tests.server.asgi import scope_of, sent_by

from keepstone import errors
from keepstone.errors import NoteNotFoundError, SessionNotFoundError
from keepstone.server.problems import ProblemError, install, problem, status_of

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")


class Told(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limits: list[int] = Field([], description="Numbers.")


def app_that_raises(error: Exception) -> FastAPI:
    app = FastAPI()
    install(app)

    @app.get("/")
    async def fail() -> None:
        raise error

    @app.post("/")
    async def take(_: Annotated[Told, Body()]) -> None: ...

    return app


def answer_to(error: Exception) -> tuple[dict[str, str], Any]:
    return read(sent_by(app_that_raises(error), scope_of("/")))


def answer_to_body(document: object) -> Any:
    raw = json.dumps(document).encode()
    scope = scope_of("/", method="POST", content_type="application/json", content_length=str(len(raw)))
    return read(sent_by(app_that_raises(ValueError()), scope, raw))[1]


def read(sent: list[Any]) -> tuple[dict[str, str], Any]:
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert headers["content-type"] == "application/problem+json"
    document = json.loads(sent[1]["body"])
    assert document["status"] == sent[0]["status"]
    return headers, document


def test_a_problem_says_its_kind_its_status_and_what_happened() -> None:
    made = problem(404, "not_found", "no route ☂", {"X-More": "1"}, errors=[])
    assert json.loads(bytes(made.body)) == {
        "type": "urn:keepstone:not_found", "title": "Not Found", "status": 404, "detail": "no route ☂",
        "code": "not_found", "errors": [],
    }  # fmt: skip
    assert bytes(made.body).isascii()
    assert made.headers["x-more"] == "1"


STATUSES: dict[int, list[Exception]] = {
    400: [
        ValueError("x"), TypeError("x"), NotADirectoryError("x"), errors.InvalidAgentIdError("x"),
        errors.InvalidSessionIdError("x"), errors.PathEscapeError("x"), errors.NotTextError("x"),
        errors.SourceError("x"), errors.SecretError("x"),
        errors.EmbeddingDimMismatchError("x"), errors.InvalidEmbeddingError("x"),
    ],
    404: [
        errors.AgentNotFoundError("x"), errors.EntryNotFoundError("x"), errors.MemoryFileNotFoundError("x"),
        SessionNotFoundError("a", "s"), NoteNotFoundError("x"), errors.HomeNotFoundError("x"),
    ],
    409: [
        errors.EntryExistsError("x"), errors.AmbiguousIdError("x"), errors.SpaceMismatchError("x"),
        errors.IsAFolderError("x"), errors.AlreadySupersededError("x"), errors.SuggestionOutdatedError("x"),
    ],
    403: [errors.NotGrantedError("x")],
    500: [
        OSError("x"), PermissionError("x"), FileNotFoundError("x"), errors.AccessDeniedError("x"),
        errors.CorruptLogError("x"), errors.StoreError("x"), errors.ModelError("x"),
    ],
    503: [errors.LockTimeoutError("x"), errors.PurgePendingError("x"), errors.EmbedderUnavailableError("x")],
}  # fmt: skip
CASES = [(error, status) for status, found in STATUSES.items() for error in found]


@pytest.mark.parametrize(("error", "status"), CASES, ids=lambda case: type(case).__name__)
def test_every_foreseen_error_has_its_status(error: Exception, status: int) -> None:
    assert status_of(error) == answer_to(error)[1]["status"] == status


def test_no_error_of_ours_is_without_a_status() -> None:
    own = {kind for _, kind in inspect.getmembers(errors, inspect.isclass)} - {errors.KeepstoneError}
    assert own <= {type(error) for error, _ in CASES}


@pytest.mark.parametrize("status", [409, 503])
def test_the_documentation_has_the_codes_that_are_conflicts_or_to_be_retried(status: int) -> None:
    row = next(line for line in PAGE.splitlines() if f"| {status} |" in line)
    assert set(re.findall(r"`(\w+)`", row)) == {answer_to(error)[1]["code"] for error in STATUSES[status]}


def test_a_foreseen_error_is_reported_in_its_own_words() -> None:
    error = errors.EntryNotFoundError("no entry 'x' in agent 'coder'")
    assert answer_to(error)[1]["detail"] == "no entry 'x' in agent 'coder'"


@pytest.mark.parametrize(("error", "wait"), [(error, "1") for error in STATUSES[503][:2]])
def test_what_will_pass_says_when_to_come_again(error: Exception, wait: str) -> None:
    assert answer_to(error)[0]["retry-after"] == wait
    assert "retry-after" not in answer_to(errors.StoreError("x"))[0]


def test_an_error_that_only_http_knows_brings_its_own_status_code_and_headers() -> None:
    headers, document = answer_to(ProblemError(401, "unauthorized", "say who", {"WWW-Authenticate": "B"}))
    assert (document["code"], document["detail"], headers["www-authenticate"]) == (
        "unauthorized", "say who", "B"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "invalid_argument"), (404, "not_found"), (405, "method_not_allowed"), (418, "http")],
)
def test_an_error_of_the_framework_is_a_problem_too(status: int, code: str) -> None:
    headers, document = answer_to(HTTPException(status, "what it says", {"Allow": "GET"}))
    assert (document["status"], document["code"], document["detail"]) == (status, code, "what it says")
    assert headers["allow"] == "GET"


def test_of_a_mistake_of_ours_only_the_log_says_more() -> None:
    document = answer_to(RuntimeError("a secret of the code"))[1]
    assert (document["status"], document["code"]) == (500, "internal")
    assert "secret" not in json.dumps(document)


def test_of_many_mistakes_in_a_body_the_first_are_named() -> None:
    document = answer_to_body({"limits": ["ten"] * 30})
    assert (document["status"], document["code"]) == (400, "invalid_argument")
    assert [error["at"] for error in document["errors"]] == [f"body/limits/{at}" for at in range(20)]
    assert document["detail"].count("body/limits/") == 3


def test_a_long_unknown_key_is_shortened_in_the_error() -> None:
    error = answer_to_body({"k" * 100_000: 1})["errors"][0]
    assert error["at"] == "body/" + "k" * 79 + "…"
    assert "Extra inputs" in error["message"]
