"""``/v1/agents/{agent}/facts``: values by key."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator

from keepstone.errors import EntryNotFoundError
from keepstone.operations import answers
from keepstone.operations.documents import added_document
from keepstone.server import shapes
from keepstone.server.parts import Reading, Writing, answer, decoded, responds
from keepstone.server.requests import FactValue, Moment
from keepstone.store.facts import DEFAULT_SESSION

router = APIRouter(prefix="/agents/{agent}/facts", tags=["facts"])

KeyName = Annotated[
    str,
    Path(description="The key of the fact; encode a slash as %2F.", examples=["plan"]),
    AfterValidator(decoded),
]
SessionQuery = Annotated[str, Query(alias="session", description="The session of the facts.")]
AsOfQuery = Annotated[Moment | None, Query(description="The values that were valid at this time.")]


@router.get("", **responds(shapes.Facts))
def list_facts(memory: Reading, holder: SessionQuery = DEFAULT_SESSION, as_of: AsOfQuery = None) -> Response:
    """Show all keys with their values."""
    return answer(shapes.Facts(facts=memory.values(holder, as_of)))


@router.get("/{key}", **responds(answers.Fact))
def get_fact(
    memory: Reading, key: KeyName, holder: SessionQuery = DEFAULT_SESSION, as_of: AsOfQuery = None
) -> Response:
    """Show the value of a key."""
    value = memory.value(key, None, holder, as_of)
    if value is None:
        raise EntryNotFoundError(f"session {holder!r:.80} has no fact {key!r:.80}")
    return answer(answers.Fact(key=key, value=value))


@router.put("/{key}", **responds(answers.AddedEntry))
def set_fact(
    memory: Writing, key: KeyName, body: FactValue, holder: SessionQuery = DEFAULT_SESSION
) -> Response:
    """Set the value of a key. The entry with the former value is superseded."""
    return answer(added_document(memory.set(key, body.value, holder)))


@router.delete("/{key}", **responds(answers.UnsetFact))
def unset_fact(memory: Writing, key: KeyName, holder: SessionQuery = DEFAULT_SESSION) -> Response:
    """Delete the value of a key, which its history keeps."""
    return answer(answers.UnsetFact(key=key, unset=memory.unset(key, holder)))
