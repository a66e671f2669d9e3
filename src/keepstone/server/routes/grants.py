"""``/v1/agents/{agent}/grants``: an agent's grants to others, and copies for others."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import AfterValidator, ConfigDict, Field

from keepstone.operations import answers
from keepstone.operations.documents import entry_document, grant_document
from keepstone.server import shapes
from keepstone.server.parts import (
    EntryName,
    HolderQuery,
    Reading,
    Writing,
    access_of,
    answer,
    decoded,
    responds,
)
from keepstone.server.requests import Body, Many, Moment
from keepstone.server.retries import keep_no_response

router = APIRouter(prefix="/agents/{agent}", tags=["grants"])


class NewGrant(Body):
    """A grant to another agent."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"may": "read", "types": ["decision"]}]})

    may: Literal["read", "write"] = Field("read", description="What it may; write includes reading.")
    types: Many[str] | None = Field(None, description="Only entries of these types.")
    tags: Many[str] | None = Field(None, description="Only entries with all of these tags.")
    until: Moment | None = Field(None, description="When the grant expires; `7d` is in seven days.")
    by: str | None = Field(None, min_length=1, description="Who grants it, in words.")


class Sharing(Body):
    """An agent to copy an entry to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "team"}]})

    to: str = Field(description="The slug of the other agent.")


ToName = Annotated[
    str, Path(description="The slug of the other agent.", examples=["coder"]), AfterValidator(decoded)
]


@router.get("/grants", **responds(shapes.Grants))
def list_grants(memory: Reading) -> Response:
    """List the grants that are in force."""
    return answer(shapes.Grants(grants=[grant_document(grant) for grant in memory.grants()]))


@router.put("/grants/{to}", **responds(answers.Grant))
def grant(request: Request, memory: Writing, to: ToName, body: NewGrant) -> Response:
    """Let another agent read, or also write, the agent's entries. Needs a token for all agents."""
    # A token for one agent must not open this agent's memory to agents of other tokens.
    access_of(request).check_home()
    return answer(grant_document(memory.grant(to, **dict(body))))


@router.delete("/grants/{to}", **responds(shapes.Revoked))
def revoke(request: Request, memory: Writing, to: ToName) -> Response:
    """Withdraw a grant, from the next request on. Needs a token for all agents."""
    access_of(request).check_home()
    return answer(shapes.Revoked(to=to, revoked=memory.revoke(to)))


@router.post("/entries/{entry}/share", **responds(answers.Entry))
def share_entry(memory: Writing, entry: EntryName, body: Sharing, holder: HolderQuery = None) -> Response:
    """Copy an entry to another agent, which granted writing; again: return the copy that is there."""
    keep_no_response(is_reading=False)
    return answer(entry_document(memory.share(entry, body.to, holder)))
