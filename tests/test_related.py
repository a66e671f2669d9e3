"""Following links costs what the linked entries cost, however they are linked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Entry
from keepstone.log.arguments import MOST_LINKS
from keepstone.store.related import MOST_RELATED


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path, embedder="none") as home:
        yield home.agent("a")


def save(agent: Agent, links: dict[str, list[str]]) -> None:
    agent.session("s").add_many(
        {"id": name, "type": "note", "text": name, "links": [{"to": to, "rel": "x"} for to in targets]}
        for name, targets in links.items()
    )


def test_repeated_links_are_followed_once(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    save(agent, {"a": ["a", "b"] * 500, "b": ["a", "b"] * 500})
    looked_up: list[tuple[str, str, str | None]] = []
    store = agent._store  # noqa: SLF001  What the store is asked is the cost.
    find = store.find

    def watched(agent: str, entry_id: str, session: str | None) -> list[Entry]:
        looked_up.append((agent, entry_id, session))
        return find(agent, entry_id, session)

    monkeypatch.setattr(store, "find", watched)
    assert [entry.id for entry in agent.related("a", depth=10)] == ["b"]
    assert [asked for asked in looked_up if asked[2] is None] == [("a", "a", None), ("a", "b", None)]


def test_layers_that_link_to_each_other_give_each_entry_once(agent: Agent) -> None:
    layers = [[f"{depth}-{number}" for number in range(4)] for depth in range(7)]
    below = zip(layers, [*layers[1:], []], strict=True)
    save(agent, {name: targets for layer, targets in below for name in layer})
    found = [entry.id for entry in agent.related("0-0", depth=6)]
    assert sorted(found) == sorted(name for layer in layers for name in layer if name != "0-0")


def test_more_outgoing_links_than_the_bound_are_an_error(agent: Agent) -> None:
    hubs = {"hub": ["left", "right"], "left": [], "right": []}
    names: dict[str, list[str]] = {
        f"{side}{number}": [] for side in ("left", "right") for number in range(600)
    }
    targets = {side: [name for name in names if name.startswith(side)] for side in ("left", "right")}
    save(agent, hubs | targets | names)
    assert len(agent.related("left", depth=1)) == 601
    with pytest.raises(ValueError, match="more than 1,000 entries are related to 'hub'; use a smaller depth"):
        agent.related("hub", depth=2)


def test_more_incoming_links_than_the_bound_are_an_error(agent: Agent) -> None:
    save(agent, {"hub": []} | {f"n{number}": ["hub"] for number in range(MOST_RELATED + 1)})
    with pytest.raises(ValueError, match="more than 1,000 entries are related to 'hub'"):
        agent.related("hub")
    assert agent.related("hub", rel="other") == []


def test_an_entry_takes_at_most_1000_links(agent: Agent) -> None:
    links = [{"to": "a", "rel": "x"}] * (MOST_LINKS + 1)
    with pytest.raises(ValueError, match="links has 1,001 values; use at most 1,000"):
        agent.session("s").add("note", text="walnut", links=links)
    assert agent.session("s").entries() == []
