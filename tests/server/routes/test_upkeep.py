"""Maintenance of a home over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import Response
from starlette.responses import StreamingResponse
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone import Home
from keepstone.server import create_app
from keepstone.server.requests import Examination, Indexing
from keepstone.server.routes import upkeep
from keepstone.server.tokens import tokens_of


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("a").add("x")
        yield home


def said(response: Response) -> Any:
    return json.loads(bytes(response.body))


def levels(found: Any) -> set[str]:
    return {finding["level"] for finding in found["findings"]}


def log_of(home: Home) -> Path:
    (log,) = home.root.rglob("main.ndjson")
    return log


def test_only_health_needs_no_token(home: Home) -> None:
    app = create_app(home, tokens=tokens_of(home))
    start, body = sent_by(app, scope_of("/v1/health"))
    assert (start["status"], json.loads(body["body"])) == (200, {"status": "ok"})
    for path in ("/doctor", "/backup", "/metrics"):
        assert sent_by(app, scope_of(f"/v1{path}"))[0]["status"] == 401


def test_a_home_with_a_warning_alone_is_healthy(home: Home) -> None:
    log_of(home).chmod(0o644)
    found = said(upkeep.doctor(home))
    assert (found["healthy"], "warning" in levels(found)) == (True, True)


def test_a_home_with_an_error_is_not(home: Home) -> None:
    log_of(home).write_bytes(b"{damaged\n" + log_of(home).read_bytes())
    found = said(upkeep.doctor(home))
    assert (found["healthy"], "error" in levels(found)) == (False, True)


def test_looking_mends_nothing_and_mending_does(home: Home) -> None:
    log_of(home).chmod(0o644)
    upkeep.doctor(home, deep=True)
    upkeep.mend(home, Examination())
    assert log_of(home).stat().st_mode & 0o777 == 0o644
    upkeep.mend(home, Examination(fix=True))
    assert log_of(home).stat().st_mode & 0o777 == 0o600


def test_an_update_of_the_index_says_what_was_done(home: Home) -> None:
    updated = {"rebuilt": False, "sessions": None, "vectors_made": None}
    assert said(upkeep.index(home, Indexing.model_validate({}))) == updated
    assert said(upkeep.index(home, Indexing.model_validate({"rebuild": True}))) == updated | {
        "rebuilt": True,
        "sessions": 1,
    }


def test_an_update_of_the_index_reads_lines_that_another_program_wrote(home: Home) -> None:
    line = {"id": "new", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": "written beside"}
    with log_of(home).open("a") as log:
        log.write(json.dumps(line) + "\n")
    upkeep.index(home, Indexing.model_validate({}))
    assert home.agent("a").recall("written beside")[0].entry.id == "new"


def test_a_backup_says_its_length_and_its_name(home: Home) -> None:
    response = upkeep.backup(home)
    assert isinstance(response, StreamingResponse)

    async def whole() -> bytes:
        return b"".join([bytes(piece) async for piece in response.body_iterator])  # type: ignore[arg-type]

    raw = asyncio.run(whole())
    assert int(response.headers["content-length"]) == len(raw)
    assert response.headers["content-disposition"] == 'attachment; filename="keepstone-home.zip"'
    assert raw.startswith(b"PK")
