"""``/v1/agents/{agent}/recall``, ``…/context`` and ``…/embed``: search, prompts, vectors."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from keepstone.context import counter_of
from keepstone.notes.notes import Notes
from keepstone.operations import answers
from keepstone.operations.documents import (
    context_document,
    hit_document,
    pair_document,
    recall_state_document,
)
from keepstone.server import shapes
from keepstone.server.cursors import DEFAULT
from keepstone.server.paging import all_fitting, listed
from keepstone.server.parts import LimitQuery, Reading, access_of, answer, responds, shared_by
from keepstone.server.requests import ContextQuery, RecallQuery, Texts

router = APIRouter(prefix="/agents/{agent}", tags=["recall"])


@router.post("/recall", **responds(answers.Recall))
def recall(request: Request, memory: Reading, body: RecallQuery) -> Response:
    """Search the agent's memory. The best hits come first, each with an explanation."""
    notes = _notes_of(request) if "notes" in body.include else None
    hits = memory.recall(**dict(body) | {"shared": shared_by(body.shared)}, notes=notes)
    found = all_fitting([*map(hit_document, hits)], "hits", "limit or neighbours")
    return listed("hits", found, **recall_state_document(hits))


SinceQuery = Annotated[
    str | None, Query(alias="since", description="Only pairs with an entry made then or later, RFC 3339.")
]
KindsQuery = Annotated[
    list[Literal["contradiction", "duplicate"]] | None,
    Query(alias="kind", description="Only conflicts of this kind; may be repeated."),
]


@router.get("/conflicts", **responds(shapes.Conflicts))
def conflicts(
    memory: Reading, since: SinceQuery = None, kinds: KindsQuery = None, limit: LimitQuery = DEFAULT
) -> Response:
    """List pairs of entries that repeat or contradict one another, the newest first."""
    pairs = map(pair_document, islice(memory.conflicts(since, kinds), limit))
    return listed("conflicts", all_fitting([*pairs], "pairs", "limit or since"))


@router.post("/context", **responds(answers.Context))
def context(request: Request, memory: Reading, body: ContextQuery) -> Response:
    """Return the memory block for a system prompt."""
    notes = _notes_of(request) if body.notes else None
    counter = None if body.count_as is None else counter_of(body.count_as)
    block = memory.context(
        body.query,
        budget=body.budget,
        notes=notes,
        counter=counter,
        window=body.window,
        ids=body.ids,
        shared=shared_by(body.shared),
        trust=body.trust,
        untrusted=body.untrusted,
        stale=body.stale,
    )
    return answer(context_document(block))


@router.post("/embed", **responds(shapes.Embedded))
def embed(memory: Reading, body: Texts) -> Response:
    """Return the vectors that the home's embedder makes of texts. Nothing is stored."""
    vectors = memory.vectors()
    made = vectors.embed(body.texts)
    space = vectors.space()
    name = space.id if space is not None else ""
    return answer({"space": name, "dim": len(made[0]), "vectors": [vector.tolist() for vector in made]})


def _notes_of(request: Request) -> Notes:
    # Notes belong to the project and its user, and not to the agent of a token.
    access_of(request).check_home()
    notes = request.app.state.notes
    if not isinstance(notes, Notes):
        raise ValueError("this server has no notes: leave notes out")  # noqa: TRY004  The request is invalid.
    return notes
