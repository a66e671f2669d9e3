"""Homes of two agents, of which one may have entries of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import pytest

import keepstone
from keepstone import Home

SECRET = "salaries of walnut"  # noqa: S105  A text to look for.


@contextmanager
def filled(target: str) -> Iterator[Home]:
    """Open a home of agents team, with entries of several types and tags, and coder, with one of its own."""
    with keepstone.open(target, embedder="none") as home:
        team = home.agent("team").session("main")
        team.add("decision", "walnut releases on Fridays", id="open", tags=["ops", "web"])
        team.add("note", SECRET, id="note", tags=["ops"])
        team.add("decision", SECRET, id="untagged")
        team.add("message", {"role": "user", "content": "walnut?"}, id="message", tags=["ops", "web"])
        home.agent("coder").add("my walnut", id="own")
        yield home


KeptHome = Callable[[str], Home]
"""Takes what a home is for: the tests of one use share a home, as to make it takes longer than they do."""


@pytest.fixture(scope="module")
def kept_homes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, str], Home]]:
    with ExitStack() as stack:

        @cache
        def kept(place: str, use: str) -> Home:
            target = str(tmp_path_factory.mktemp(use))
            if place == "postgresql":
                from tests.postgres_homes import home_of

                target = stack.enter_context(home_of(request.getfixturevalue("postgres")))
            home = stack.enter_context(filled(target))
            if use == "purged":
                home.purge_agent("team")
            return home

        yield kept


@pytest.fixture(params=["files", "postgresql"])
def kept_home(request: pytest.FixtureRequest, kept_homes: Callable[[str, str], Home]) -> Iterator[KeptHome]:
    """Homes that are as before after each test: grants and entries of coder that it made are taken away."""
    used = list[Home]()

    def kept(use: str) -> Home:
        used.append(kept_homes(request.param, use))
        return used[-1]

    yield kept
    for home in used:
        for agent in map(home.agent, ("team", "coder")):
            for grant in agent.grants():
                agent.revoke(grant.to)
        for entry in home.agent("coder").entries():
            if entry.id != "own":
                home.agent("coder").session(entry.session).purge(entry.id)


@pytest.fixture
def refusing(kept_home: KeptHome) -> Home:
    """A home whose team nothing is changed of but grants."""
    return kept_home("refusing")


@pytest.fixture
def read_home(kept_home: KeptHome) -> Home:
    """A home that is read only."""
    return kept_home("read")
