"""Authorization: which agents a request may access. Denies by default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepstone.errors import AgentNotFoundError
from keepstone.model import PROGRAM
from keepstone.server.problems import ProblemError

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

SCOPE_KEY = "keepstone.access"
AGAIN_KEY = "keepstone.access.again"


@dataclass(frozen=True, slots=True)
class Access:
    """The access of the holder of a token or browser session."""

    agents: frozenset[str] | None = None
    """The agents; None for all, and for the home itself."""
    read_only: bool = False
    origin: str = PROGRAM
    """The most trusted origin that written entries may have."""
    holder: str = field(default="", compare=False)
    """Identifies the browser session or token. A page accepts only WebSockets of its own holder."""
    reader: str = field(default="", compare=False)
    """Identifies the token, or the browser session if a link started it; a reader's pages share threads."""

    def sees(self, agent: str) -> bool:
        """Return whether an agent may be accessed."""
        return self.agents is None or agent in self.agents

    def check_agent(self, agent: str) -> None:
        """Raise if an agent may not be accessed, with the same error as for a missing agent.

        Raises:
            AgentNotFoundError: The agent may not be accessed.
        """
        if not self.sees(agent):
            # Not 403, which would tell the holder of a token which agents exist.
            raise AgentNotFoundError(f"this token has access to no agent {agent!r:.80}")

    def only_agent(self) -> str:
        """Return the agent for a client that cannot name one: the token's, or ``default`` if it is for all.

        Raises:
            ProblemError: The token is for several agents, or for none.
        """
        if self.agents is None:
            return "default"
        if len(self.agents) != 1:
            raise ProblemError(403, "forbidden", "this needs a token for one agent: keepstone token create")
        return next(iter(self.agents))

    def check_home(self) -> None:
        """Raise unless all agents, and thereby the home itself, may be accessed.

        Raises:
            ProblemError: The token is limited to some agents.
        """
        if self.agents is not None:
            raise ProblemError(403, "forbidden", "this needs a token for all agents")

    def check_write(self) -> None:
        """Raise unless changes are allowed.

        Raises:
            ProblemError: The token is read-only.
        """
        if self.read_only:
            raise ProblemError(403, "read_only", "this token is read-only")


def signed_in(connection: HTTPConnection) -> Access | None:
    """Return the access of a request or WebSocket; None if it is not authenticated.

    Pages call this; the routes below ``/v1`` get their agent and home only through it.
    """
    found = connection.scope.get(SCOPE_KEY)
    return found if isinstance(found, Access) else None


async def still_signed_in(connection: HTTPConnection) -> Access | None:
    """Return the current access of a request; pages that stay open call this repeatedly.

    None once the token was revoked or has expired, or the browser session has ended.
    """
    again = connection.scope.get(AGAIN_KEY)
    found = await again() if callable(again) else None
    return found if isinstance(found, Access) else None
