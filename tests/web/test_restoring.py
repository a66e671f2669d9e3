"""What *Restore* does to entries that were superseded, merged or edited, without a browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from nicegui import Client
from tests.web.page import notices, on_a_page, place_of, within

import keepstone
from keepstone import Agent
from keepstone.web.correcting import Correcting
from keepstone.web.site import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield place_of(home, tmp_path)


def done(place: Place, act: Callable[[Correcting], Awaitable[None]]) -> list[str]:
    """Do something with the entries of a place, and return what the page told."""
    told: list[str] = []

    async def reload() -> None:
        pass

    async def steps(page: Client) -> None:
        async def acting() -> None:
            await act(Correcting(place, reload))

        await within(page, acting)
        told.extend(notices(page))

    on_a_page(steps)
    return told


def texts(agent: Agent) -> list[str]:
    return [entry.text for entry in agent.entries()]


def test_an_entry_that_was_merged_with_others_is_restored_by_its_suggestion_only(place: Place) -> None:
    agent, session = place.agent, place.agent.session("main")
    tea, coffee = agent.add("Tea is green"), agent.add("Coffee is black")
    agent.accept(agent.suggest("merge", [tea.id, coffee.id], "Green tea, black coffee", why="both").id)
    told = done(place, lambda correcting: correcting.reinstate(session, tea.id))
    assert "was merged with others: undo that suggestion in the inbox" in " ".join(told)
    assert texts(agent) == ["Green tea, black coffee"]


def test_a_superseded_entry_holds_again_and_the_newer_one_goes(place: Place) -> None:
    session = place.agent.session("main")
    old = session.add("note", text="Use OAuth")
    session.supersede(old.id, "Use passkeys")
    done(place, lambda correcting: correcting.reinstate(session, old.id))
    assert texts(place.agent) == ["Use OAuth"]


def test_a_version_of_when_an_entry_was_superseded_does_not_close_it_again(place: Place) -> None:
    session = place.agent.session("main")
    old = session.add("note", text="Use OAuth")
    session.supersede(old.id, "Use passkeys")
    closed = place.agent.get(old.id, "main").line
    session.reinstate(old.id)
    done(place, lambda correcting: correcting.restore_version(session, old.id, closed))
    assert texts(place.agent) == ["Use OAuth"]
