"""The parts that all pages share (``Site``), and the agent, access and query of one page (``Place``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Protocol, TypeAlias
from urllib.parse import quote, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import Response

from keepstone.agent import Agent
from keepstone.errors import AccessDeniedError
from keepstone.home import Home
from keepstone.model import TRUST
from keepstone.notes.notes import Notes
from keepstone.server.tokens import Tokens
from keepstone.web.answering import Answerer

WITH_NOTES = frozenset({"chat", "memory"})
"""The pages that show notes or use them in prompts."""


class Permissions(Protocol):
    """The access of a request."""

    @property
    def agents(self) -> frozenset[str] | None:
        """The agents that may be seen; None for all of them."""

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed."""

    @property
    def holder(self) -> str:
        """Identifies the requester, such as a sign-in: a page accepts only its own holder's WebSockets."""

    @property
    def reader(self) -> str:
        """Identifies the reader whose pages share a limit of threads: a sign-in or a shared token."""


@dataclass(frozen=True, slots=True)
class Open:
    """Access to everything, for a single-user machine."""

    agents: frozenset[str] | None = None
    read_only: bool = False
    holder: str = ""
    reader: str = ""


_Answer: TypeAlias = "Permissions | Response | None"
Hook = Callable[[HTTPConnection], "_Answer | Awaitable[_Answer]"]
"""Returns the access of a request or of a page's socket; None denies it.

It may also return a response, such as a redirect to a sign-in page. It runs on the event loop: a hook that
waits, such as for a database, must be a coroutine function.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Common parts of all pages."""

    home: Home
    notes: Notes
    access: Hook
    answerer: Answerer
    sign_out: str | None = None
    place: tuple[str, ...] = ()
    """The command-line options that select this home, for the commands shown on pages."""
    tokens: Tokens | None = None
    """The tokens that the settings page manages."""
    demo: Callable[[Home], str] | None = None
    """Adds a sample to the home, and returns the slug of its agent."""

    async def admit(self, request: HTTPConnection) -> Permissions | Response:
        """Return the access of a request, or a response in place of the page."""
        found = self.access(request)
        access = await found if isawaitable(found) else found
        # None denies access, so that a hook that returns the result of a lookup denies by default.
        return Response("sign in first", 401, media_type="text/plain") if access is None else access

    async def still_holds(self, before: Permissions, request: HTTPConnection) -> bool:
        """Return whether a request comes from the same holder with unchanged access."""
        now = await self.admit(request)
        if isinstance(now, Response):
            return False
        # Do not compare the whole object, which an application may create for each request, nor ``reader``,
        # which does not affect rights.
        same = (before.agents, before.read_only, before.holder)
        return (now.agents, now.read_only, now.holder) == same


@dataclass(frozen=True, slots=True)
class Place:
    """The content of one page: an agent, the reader's access, and the address's query."""

    site: Site
    agent: Agent
    access: Permissions
    query: dict[str, str]
    request: HTTPConnection | None = None
    """The request for the page; its access is checked again before changes of the whole home."""
    exists: bool = True
    """Whether the agent existed when the page was opened."""
    home_was_empty: bool = False
    """Whether the home had no agent when the page was opened; False without access to all agents."""
    trust: str = TRUST[0]
    """The trust of the reader's entries."""

    @property
    def is_admin(self) -> bool:
        """Whether the whole home may be changed: repairs, tokens, and agents as a whole."""
        return self.access.agents is None and not self.read_only

    async def check_admin(self) -> None:
        """Raise unless the whole home may still be changed.

        Raises:
            AccessDeniedError: The home may not be changed, or access has ended or changed since the page was
                opened.
        """
        if not self.is_admin or not (
            self.request is None or await self.site.still_holds(self.access, self.request)
        ):
            raise AccessDeniedError("this needs a sign-in that may change all agents: sign in again")

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed here."""
        return self.access.read_only

    @property
    def sees_notes(self) -> bool:
        """Whether notes may be seen: they belong to the project and its user, so this needs all agents."""
        return self.access.agents is None

    def link(self, page: str, **query: str) -> str:
        """Return the address of one of this agent's pages."""
        return address(self.agent.slug, page, **query)

    def other(self, slug: str) -> Agent:
        """Return another agent that may be changed, with the trust of this page's reader.

        Raises:
            AccessDeniedError: The reader may not change the agent.
        """
        if self.read_only or not (self.access.agents is None or slug in self.access.agents):
            raise AccessDeniedError(f"agent {slug!r:.80} may not be changed with this sign-in")
        return self.site.home.agent(slug).on_behalf(self.trust, "page")

    def is_home_empty(self) -> bool:
        """Return whether the home has no agent; always False for readers without access to all agents."""
        return self.access.agents is None and not self.agents()

    def agents(self) -> list[str]:
        """Return the agents that may be seen."""
        allowed = self.access.agents
        return [slug for slug in self.site.home.agents() if allowed is None or slug in allowed]


def address(agent: str, page: str, **query: str) -> str:
    """Return the address of an agent's page.

    Examples:
        >>> address("coder", "session", id="a/b")
        '/a/coder/session?id=a%2Fb'
    """
    path = f"/a/{quote(agent, safe='')}/{page}"
    # Ids and paths may hold lone surrogates, which ``urlencode`` refuses by default.
    return f"{path}?{urlencode(query, errors='surrogatepass')}" if query else path
