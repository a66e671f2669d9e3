"""Looking after the home and the server: health, doctor, indexes, metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.requests import Request

from recollect.documents import finding_document
from recollect.errors import EmbedderUnavailableError
from recollect.home import Home
from recollect.server import shapes
from recollect.server.metrics import MEDIA_TYPE
from recollect.server.parts import HomeReading, HomeWriting, answer, responds
from recollect.server.requests import Indexing

router = APIRouter(tags=["upkeep"])


@router.get("/health", openapi_extra={"security": []}, **responds(shapes.Health))
async def health() -> Response:
    """Say that the server answers. This needs no token."""
    return answer({"status": "ok"})


@router.get("/doctor", **responds(shapes.Doctor))
def doctor(home: HomeReading) -> Response:
    """Look for damage and say what to do about it."""
    findings = home.doctor()
    healthy = all(finding.level != "error" for finding in findings)
    return answer({"healthy": healthy, "findings": [finding_document(finding) for finding in findings]})


@router.post("/index", **responds(shapes.Index))
def index(home: HomeWriting, body: Indexing) -> Response:
    """Bring the indexes up to date with the logs, and make the vectors that entries lack."""
    sessions = home.rebuild() if body.rebuild else None
    if not body.rebuild:
        home.sync()
    made = home.reembed(body.re_embed) if body.re_embed is not None else _embedded(home)
    return answer({"rebuilt": body.rebuild, "sessions": sessions, "vectors_made": made})


def _embedded(home: Home) -> int | None:
    try:
        return home.embed()
    except EmbedderUnavailableError:
        return None


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Done."}},
)
async def metrics(request: Request, _: HomeReading) -> Response:
    """Return counts and latencies in the text format of Prometheus; no memory and no ids are in them."""
    state = request.app.state
    return Response(state.metrics.text(state.gate.failures.total), media_type=MEDIA_TYPE)
