"""``/v1/agents/{agent}/suggestions``: changes that programs propose.

To accept, reject or undo them needs a write token for all agents.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator, ConfigDict, Field

from keepstone.errors import EntryNotFoundError
from keepstone.operations import answers
from keepstone.operations.documents import suggestion_document
from keepstone.server import shapes
from keepstone.server.parts import (
    AgentName,
    HomeWriting,
    Reading,
    Writing,
    answer,
    decoded,
    path_of,
    responds,
)
from keepstone.server.requests import Body, Many, Values

router = APIRouter(prefix="/agents/{agent}/suggestions", tags=["suggestions"])

SuggestionName = Annotated[str, Path(description="The id of the suggestion."), AfterValidator(decoded)]
StateQuery = Annotated[
    str, Query(description="`open`, `accepted`, `rejected`, `undone`, `outdated`, or `all`.")
]


class NewSuggestion(Body):
    """A change of memory to propose."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"do": "pin", "entries": ["retry-policy"], "why": "used daily"}]}
    )

    do: Literal["merge", "supersede", "delete", "tag", "pin", "add"]
    entries: Many[str] = Field([], description="Ids of the entries to change; none for `add`.")
    item: Values[Any] | None = Field(None, description="The new entry; for `tag` its `tags`.")
    why: str = Field(min_length=1, description="The reason.")
    evidence: Many[str] = Field([], description="Ids of entries, or other references.")
    by: str | None = Field(None, min_length=1, description="Who proposes it.")


class Decision(Body):
    """A person's decision about a suggestion."""

    by: str | None = Field(None, min_length=1, description="Who decides; default: user.")


@router.get("", **responds(shapes.Suggestions))
def list_suggestions(memory: Reading, state: StateQuery = "open") -> Response:
    """List the suggestions in a state, oldest first."""
    found = memory.suggestions(None if state == "all" else state)
    return answer(shapes.Suggestions(suggestions=[*map(suggestion_document, found)]))


@router.post("", **responds(answers.Suggestion, 201, location=True))
def suggest(memory: Writing, body: NewSuggestion) -> Response:
    """Propose a change of memory. No entry is changed: a person accepts or rejects it."""
    made = memory.suggest(body.do, body.entries, body.item, why=body.why, evidence=body.evidence, by=body.by)
    return answer(suggestion_document(made), 201, {"Location": path_of(memory, "suggestions", made.id)})


@router.get("/{suggestion}", **responds(answers.Suggestion))
def get_suggestion(memory: Reading, suggestion: SuggestionName) -> Response:
    """Show a suggestion in whatever state."""
    for found in memory.suggestions(None):
        if found.id == suggestion:
            return answer(suggestion_document(found))
    raise EntryNotFoundError(f"agent {memory.slug!r} has no suggestion {suggestion!r:.80}")


@router.post("/{suggestion}/accept", **responds(answers.Suggestion))
def accept_suggestion(
    home: HomeWriting, agent: AgentName, suggestion: SuggestionName, body: Decision | None = None
) -> Response:
    """Carry a suggestion out in one step. Only a person should decide this."""
    return answer(suggestion_document(home.agent(agent).accept(suggestion, _person(body))))


@router.post("/{suggestion}/reject", **responds(answers.Suggestion))
def reject_suggestion(
    home: HomeWriting, agent: AgentName, suggestion: SuggestionName, body: Decision | None = None
) -> Response:
    """Keep that a suggestion is not wanted."""
    return answer(suggestion_document(home.agent(agent).reject(suggestion, _person(body))))


@router.post("/{suggestion}/undo", **responds(answers.Suggestion))
def undo_suggestion(
    home: HomeWriting, agent: AgentName, suggestion: SuggestionName, body: Decision | None = None
) -> Response:
    """Take back in one step what an accepted suggestion changed; a rejected one is open again."""
    return answer(suggestion_document(home.agent(agent).undo(suggestion, _person(body))))


def _person(body: Decision | None) -> str | None:
    return None if body is None else body.by
