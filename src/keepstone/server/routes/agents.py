"""``/v1/agents``: the agents of the home."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from keepstone.filesystem.slug import slug as slug_of
from keepstone.operations.documents import summary_document
from keepstone.server import shapes
from keepstone.server.parts import AgentName, HomeWriting, Reading, access_of, answer, responds

router = APIRouter(tags=["agents"])


@router.get("/agents", **responds(shapes.Agents))
def list_agents(request: Request) -> Response:
    """List the agents that the token grants access to."""
    access = access_of(request)
    slugs = [slug for slug in request.app.state.home.agents() if access.sees(slug)]
    return answer(shapes.Agents(agents=slugs))


TextQuery = Annotated[str, Query(min_length=1, description="A name, such as an email address.")]


@router.get("/slug", **responds(shapes.Slug))
def slug(request: Request, text: TextQuery) -> Response:
    """Return the slug of an agent for any text: the same one for the same text."""
    access_of(request)
    return answer(shapes.Slug(text=text, slug=slug_of(text)))


@router.delete("/agents/{agent}", **responds(shapes.PurgedAgent))
def purge_agent(home: HomeWriting, agent: AgentName) -> Response:
    """Remove everything of an agent: sessions, files and index. This cannot be undone."""
    home.purge_agent(agent)
    return answer(shapes.PurgedAgent(agent=agent, purged=True))


IdsQuery = Annotated[list[str] | None, Query(alias="id", description="Only these sessions.", max_length=1000)]
TextsQuery = Annotated[bool, Query(description="False leaves out previews and titles from messages.")]


@router.get("/agents/{agent}/session-summaries", **responds(shapes.SessionSummaries))  # noqa: FAST003
def list_session_summaries(memory: Reading, ids: IdsQuery = None, texts: TextsQuery = True) -> Response:  # noqa: FBT002
    """List titles, counts and previews of sessions, the one with the newest entry first."""
    found = memory.session_summaries(ids, texts=texts)
    return answer(shapes.SessionSummaries(sessions=[summary_document(summary) for summary in found]))


@router.get("/agents/{agent}/dropped-sessions", **responds(shapes.DroppedSessions))  # noqa: FAST003
def list_dropped_sessions(memory: Reading) -> Response:
    """List the sessions that were dropped, those too that began again since."""
    return answer(shapes.DroppedSessions(sessions=memory.dropped_sessions()))


@router.get("/agents/{agent}/entry-counts", **responds(shapes.EntryCounts))  # noqa: FAST003  Reading takes it.
def count_entries(memory: Reading) -> Response:
    """Count the entries of each session. Empty sessions are left out."""
    return answer(shapes.EntryCounts(counts=memory.entry_counts()))
