"""Who asks, and what they may touch: decided once, at the top, and closed where nothing says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepstone.errors import AgentNotFoundError
from keepstone.server.problems import ProblemError

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

SCOPE_KEY = "keepstone.access"
AGAIN_KEY = "keepstone.access.again"


@dataclass(frozen=True, slots=True)
class Access:
    """What the holder of a token, or of a browser's session, may touch."""

    agents: frozenset[str] | None = None
    """The agents; None for all, and for what belongs to the whole home."""
    read_only: bool = False
    holder: str = field(default="", compare=False)
    """Names the browser's session or the token; a page's socket must come from the holder of the page."""

    def sees(self, agent: str) -> bool:
        """Tell whether an agent is in reach."""
        return self.agents is None or agent in self.agents

    def check_agent(self, agent: str) -> None:
        """Refuse an agent that is out of reach, in the words for one that does not exist.

        Raises:
            AgentNotFoundError: It is.
        """
        if not self.sees(agent):
            raise AgentNotFoundError(f"there is no agent {agent!r:.80} that this token is for")

    def check_home(self) -> None:
        """Refuse what belongs to the whole home to those who have some agents only.

        Raises:
            ProblemError: The token is for some agents.
        """
        if self.agents is not None:
            raise ProblemError(403, "forbidden", "this needs a token that is for all agents")

    def check_write(self) -> None:
        """Refuse a change to those who may only read.

        Raises:
            ProblemError: The token is read-only.
        """
        if self.read_only:
            raise ProblemError(403, "read_only", "this token may only read")


def signed_in(connection: HTTPConnection) -> Access | None:
    """Return what the sender of a request, or of a WebSocket, may touch; None if they are not signed in.

    Pages ask this; the routes below ``/v1`` get their agent and home only through it.
    """
    found = connection.scope.get(SCOPE_KEY)
    return found if isinstance(found, Access) else None


def still_signed_in(connection: HTTPConnection) -> Access | None:
    """Return what the sender may touch by now: pages that stay open ask this again and again.

    None once their token has been revoked or has expired, or they have signed out.
    """
    again = connection.scope.get(AGAIN_KEY)
    found = again() if callable(again) else None
    return found if isinstance(found, Access) else None
