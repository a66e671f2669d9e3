"""Maintenance of the home and the server: health, doctor, backup, indexes, metrics."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse
from starlette.requests import Request
from starlette.responses import StreamingResponse

from keepstone.errors import EmbedderUnavailableError
from keepstone.home import Home
from keepstone.model import Finding
from keepstone.operations.documents import finding_document
from keepstone.server import shapes
from keepstone.server.metrics import MEDIA_TYPE
from keepstone.server.packing import pack, pieces
from keepstone.server.parts import HomeReading, HomeWriting, answer, responds, responds_with
from keepstone.server.requests import Examination, Indexing

router = APIRouter(tags=["upkeep"])


@router.get("/health", openapi_extra={"security": []}, **responds(shapes.Health))
async def health() -> Response:
    """Report that the server is up. This needs no token."""
    return answer(shapes.Health(status="ok"))


DeepQuery = Annotated[
    bool,
    Query(description="Also compare every row of the indexes with the logs, and scan all lines for secrets."),
]


@router.get("/doctor", **responds(shapes.Doctor))
def doctor(home: HomeReading, deep: DeepQuery = False) -> Response:  # noqa: FBT002  A switch in the query.
    """Check the home for damage. Each finding has a remedy."""
    return _report(home.doctor(deep=deep))


@router.post("/doctor", **responds(shapes.Doctor))
def mend(home: HomeWriting, body: Examination) -> Response:
    """Check the home for damage and, with `fix`, repair what can be repaired. Repairs are listed first."""
    return _report(home.doctor(deep=body.deep, fix=body.fix))


def _report(findings: list[Finding]) -> Response:
    healthy = all(finding.level != "error" for finding in findings)
    return answer(shapes.Doctor(healthy=healthy, findings=[*map(finding_document, findings)]))


VectorsQuery = Annotated[
    bool, Query(description="Also the vectors that were made, so that they need not be made again.")
]


@router.get(
    "/backup",
    response_class=StreamingResponse,
    **responds_with("application/zip", {"type": "string", "format": "binary"}),
)
def backup(home: HomeReading, vectors: VectorsQuery = False) -> Response:  # noqa: FBT002  A switch in the query.
    """Return a consistent and verified copy of the home as a ZIP file; writers need not stop.

    Unpacked, it is a home without tokens, and without indexes, unless `vectors` is set; these are rebuilt.
    The response is always the whole file: `Range` is ignored.
    """
    packed = pack(home, vectors=vectors)
    headers = {
        "Content-Length": str(os.fstat(packed.fileno()).st_size),
        "Content-Disposition": 'attachment; filename="keepstone-home.zip"',
    }
    return StreamingResponse(pieces(packed), media_type="application/zip", headers=headers)


@router.post("/index", **responds(shapes.Index))
def index(home: HomeWriting, body: Indexing) -> Response:
    """Update the indexes from the logs, and embed entries that have no vector."""
    sessions = home.rebuild() if body.rebuild else None
    if not body.rebuild:
        home.sync()
    made = home.reembed(body.re_embed) if body.re_embed is not None else _embed_pending(home)
    return answer(shapes.Index(rebuilt=body.rebuild, sessions=sessions, vectors_made=made))


def _embed_pending(home: Home) -> int | None:
    try:
        return home.embed()
    # Without an embedder there is only the word index, which is up to date.
    except EmbedderUnavailableError:
        return None


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    **responds_with("text/plain", {"type": "string"}),
)
async def metrics(request: Request, _: HomeReading) -> Response:
    """Return counts and latencies in the Prometheus text format. They hold no memory and no ids."""
    state = request.app.state
    return Response(state.metrics.text(state.gate.failed), media_type=MEDIA_TYPE)
