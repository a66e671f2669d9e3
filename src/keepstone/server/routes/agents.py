"""``/v1/agents``: whose memory the home holds."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from keepstone.server import shapes
from keepstone.server.parts import AgentName, HomeWriting, Reading, access_of, answer, responds

router = APIRouter(tags=["agents"])


@router.get("/agents", **responds(shapes.Agents))
def list_agents(request: Request) -> Response:
    """List the agents that the token is for."""
    access = access_of(request)
    slugs = [slug for slug in request.app.state.home.agents() if access.sees(slug)]
    return answer(shapes.Agents(agents=slugs))


@router.delete("/agents/{agent}", **responds(shapes.PurgedAgent))
def purge_agent(home: HomeWriting, agent: AgentName) -> Response:
    """Remove everything of an agent: sessions, files and index. This cannot be undone."""
    home.purge_agent(agent)
    return answer(shapes.PurgedAgent(agent=agent, purged=True))


@router.get("/agents/{agent}/dropped-sessions", **responds(shapes.DroppedSessions))  # noqa: FAST003
def list_dropped_sessions(memory: Reading) -> Response:
    """List the sessions that were dropped, those too that began again since."""
    return answer(shapes.DroppedSessions(sessions=memory.dropped_sessions()))


@router.get("/agents/{agent}/entry-counts", **responds(shapes.EntryCounts))  # noqa: FAST003  Reading takes it.
def count_entries(memory: Reading) -> Response:
    """Count the entries of each session; sessions without any are left out."""
    return answer(shapes.EntryCounts(counts=memory.entry_counts()))
