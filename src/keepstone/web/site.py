"""What all pages have in common: the home, the notes, who may see what, and the one who answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import Response

from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.notes.notes import Notes
from keepstone.web.answering import Answerer


class Permissions(Protocol):
    """What whoever asks may do."""

    @property
    def agents(self) -> frozenset[str] | None:
        """The agents that may be seen; None for all of them."""

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed."""

    @property
    def holder(self) -> str:
        """Who asks, such as a sign-in's id: the socket of a page must come from the one who opened it."""


@dataclass(frozen=True, slots=True)
class Open:
    """Access to everything, as on a computer of one's own."""

    agents: frozenset[str] | None = None
    read_only: bool = False
    holder: str = ""


Hook = Callable[[HTTPConnection], Permissions | Response | None]
"""Says what a request, or the socket of a page, may do; None is nothing.

It may also answer the request, as with the way to a sign-in page.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """What the pages show, and for whom."""

    home: Home
    notes: Notes
    access: Hook
    answerer: Answerer
    sign_out: str | None = None

    def admit(self, request: HTTPConnection) -> Permissions | Response:
        """Return what a request may do, or the answer that it gets in place of a page."""
        access = self.access(request)
        return Response("sign in first", 401, media_type="text/plain") if access is None else access

    def still_holds(self, before: Permissions, request: HTTPConnection) -> bool:
        """Tell whether a request comes from the same holder and may now do the same as before."""
        now = self.admit(request)
        if isinstance(now, Response):
            return False
        same = (before.agents, before.read_only, before.holder)
        return (now.agents, now.read_only, now.holder) == same


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody is: in an agent, with what the address asks for."""

    site: Site
    agent: Agent
    access: Permissions
    query: dict[str, str]

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed here."""
        return self.access.read_only

    @property
    def sees_notes(self) -> bool:
        """Whether notes may be seen: they belong to the project and its user, not to some agents."""
        return self.access.agents is None

    def link(self, page: str, **query: str) -> str:
        """Return the address of one of this agent's pages."""
        return address(self.agent.slug, page, **query)

    def agents(self) -> list[str]:
        """Return the agents that may be seen."""
        allowed = self.access.agents
        return [slug for slug in self.site.home.agents() if allowed is None or slug in allowed]


def address(agent: str, page: str, **query: str) -> str:
    """Return the address of an agent's page.

    Example:
        >>> address("coder", "session", id="a/b")
        '/a/coder/session?id=a%2Fb'
    """
    path = f"/a/{quote(agent, safe='')}/{page}"
    return f"{path}?{urlencode(query, errors='surrogatepass')}" if query else path
