"""A fact that changed is replaced by a newer one in one step, and the change can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, AlreadySupersededError, Entry, EntryExistsError, EntryNotFoundError, Home
from keepstone.testing import START, ManualClock

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def home(tmp_path: Path, clock: ManualClock) -> Iterator[Home]:
    with keepstone.open(tmp_path, clock=clock, embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def paris(agent: Agent, **keys: Any) -> Entry:
    return agent.session("s").add("fact", text="Ada lives in Paris", id="paris", **keys)


def moved(agent: Agent, clock: ManualClock, *places: str) -> None:
    """Let each place supersede the one before, a day later, after Paris."""
    before = "paris"
    for place in places:
        clock.advance(DAY)
        agent.supersede(before, {"id": place.lower(), "text": f"Ada lives in {place}"})
        before = place.lower()


def found(agent: Agent, **choice: object) -> set[str]:
    return {hit.entry.id for hit in agent.recall("Ada lives", **choice)}  # type: ignore[arg-type]


def log_of(home: Home) -> Path:
    return home.root / "agents/a/memory/sessions/s.ndjson"


def test_the_new_entry_links_the_old_one_and_takes_its_type(agent: Agent) -> None:
    paris(agent)
    new = agent.supersede("paris", {"text": "Ada lives in Rome"})
    assert (new.session, new.type, new.supersedes) == ("s", "fact", ("paris",))
    assert new.links == ({"to": "paris", "rel": "supersedes"},)
    assert agent.get(new.id) == new


def test_the_old_entry_holds_until_the_new_one_was_made(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome")
    assert agent.get("paris").valid_to == START + DAY
    assert found(agent) == {"rome"}


def test_the_old_entry_holds_until_the_new_one_is_valid(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    agent.supersede("paris", {"id": "rome", "text": "Ada lives in Rome", "valid_from": START + DAY})
    assert found(agent) == {"paris"}
    clock.advance(DAY)
    assert found(agent) == {"rome"}


def test_only_the_end_of_a_chain_is_recalled(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo", "Bonn")
    assert found(agent) == {"bonn"}
    assert found(agent, include_superseded=True) == {"paris", "rome", "oslo", "bonn"}


def test_each_moment_shows_what_was_valid_then(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo")
    shown = [found(agent, as_of=START + days * DAY) for days in range(3)]
    assert shown == [{"paris"}, {"rome"}, {"oslo"}]


def test_one_of_old_and_new_holds_at_each_time_where_the_new_is_dated_back(
    agent: Agent, clock: ManualClock
) -> None:
    paris(agent)
    clock.advance(9 * DAY)
    agent.supersede("paris", {"id": "rome", "text": "Ada lives in Rome", "ts": START + 3 * DAY})
    assert [found(agent, as_of=START + day * DAY) for day in (1, 2)] == [{"paris"}] * 2
    assert [found(agent, as_of=START + day * DAY) for day in (3, 5, 9)] == [{"rome"}] * 3


def test_a_recall_during_a_supersede_finds_one_of_both(
    agent: Agent, home: Home, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    paris(agent)
    reader = home._store.reader  # noqa: SLF001

    def superseded(*args: Any) -> Any:
        monkeypatch.undo()
        moved(agent, clock, "Rome")
        return reader(*args)

    monkeypatch.setattr(home._store, "reader", superseded)  # noqa: SLF001
    assert found(agent) == {"rome"}


def test_a_hit_says_what_it_replaced(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome")
    [hit] = agent.recall("Ada lives")
    assert hit.entry.supersedes == hit.why.supersedes == ("paris",)
    assert str(hit.why).endswith("supersedes paris")


def test_superseding_twice_names_the_one_valid_now(agent: Agent, home: Home, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo")
    before = log_of(home).read_bytes()
    with pytest.raises(AlreadySupersededError, match="'oslo'"):
        agent.supersede("paris", {"text": "Ada lives in Bonn"})
    assert log_of(home).read_bytes() == before


def test_an_entry_cannot_supersede_its_successor(agent: Agent, home: Home, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo")
    agent.delete("rome")
    agent.delete("paris")
    before = log_of(home).read_bytes()
    for taken in ("oslo", "rome"):
        with pytest.raises(ValueError, match="choose another id"):
            agent.supersede("oslo", {"id": taken, "text": "x"})
    assert log_of(home).read_bytes() == before


def test_an_id_that_is_taken_is_refused(agent: Agent) -> None:
    paris(agent)
    agent.session("s").add("fact", text="other", id="other")
    with pytest.raises(EntryExistsError):
        agent.supersede("paris", {"id": "other", "text": "x"})
    assert agent.get("paris").valid_to is None


def test_a_missing_entry_cannot_be_superseded(agent: Agent) -> None:
    for session in (None, "s", "none"):
        with pytest.raises(EntryNotFoundError):
            agent.supersede("paris", {"text": "x"}, session)
    assert agent.sessions() == []


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"tags": ["x"]},
        {"text": ""},
        {"text": "x", "deleted": True},
        {"text": "x", "links": [{"to": "y", "rel": "supersedes"}]},
        ["text"],
    ],
)
def test_an_item_that_cannot_be_stored_changes_nothing(agent: Agent, home: Home, item: object) -> None:
    paris(agent)
    before = log_of(home).read_bytes()
    with pytest.raises((ValueError, TypeError)):
        agent.supersede("paris", item)  # type: ignore[arg-type]
    assert log_of(home).read_bytes() == before


def test_a_link_supersedes_by_hand_is_refused(agent: Agent) -> None:
    paris(agent)
    agent.session("s").add("fact", text="Ada lives in Rome", id="rome")
    with pytest.raises(ValueError, match="supersede"):
        agent.link("rome", "paris", "supersedes")
    assert agent.get("rome").links == ()


def test_other_links_of_the_item_are_kept(agent: Agent) -> None:
    paris(agent)
    why = {"to": "letter", "rel": "because"}
    new = agent.supersede("paris", {"text": "Ada lives in Rome", "links": [why]})
    assert new.links == (why, {"to": "paris", "rel": "supersedes"})


def test_reinstating_opens_the_old_entry_and_deletes_the_newer(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome")
    assert agent.reinstate("paris").valid_to is None
    assert found(agent, include_superseded=True) == found(agent) == {"paris"}


def test_reinstating_within_a_chain_deletes_all_after_it(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo", "Bonn")
    agent.reinstate("rome")
    assert found(agent, include_superseded=True) == {"paris", "rome"}
    assert found(agent) == {"rome"}


def test_reinstating_gives_back_the_end_an_entry_had(agent: Agent, clock: ManualClock) -> None:
    paris(agent, valid_to=START + 9 * DAY)
    moved(agent, clock, "Rome")
    assert agent.reinstate("paris").valid_to == START + 9 * DAY


def test_reinstating_gives_back_an_end_set_by_an_update(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    clock.advance(DAY)
    agent.update("paris", valid_to=START + 9 * DAY)
    moved(agent, clock, "Rome")
    clock.advance(DAY)
    agent.update("paris", tags=["x"])
    assert agent.reinstate("paris").valid_to == START + 9 * DAY


def test_reinstating_gives_back_the_end_of_an_entry_added_again(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    agent.delete("paris")
    paris(agent, valid_to=START + 9 * DAY)
    moved(agent, clock, "Rome")
    assert agent.reinstate("paris").valid_to == START + 9 * DAY


def test_reinstating_keeps_an_end_that_superseding_did_not_change(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    clock.advance(DAY)
    agent.update("paris", valid_to=START + 9 * DAY)
    clock.advance(DAY)
    agent.supersede("paris", {"text": "Ada lives in Rome", "valid_from": START + 9 * DAY})
    assert agent.reinstate("paris").valid_to == START + 9 * DAY


@pytest.mark.parametrize("keys", [{}, {"valid_to": START + DAY}])
def test_what_nothing_replaced_cannot_be_reinstated(
    agent: Agent, home: Home, keys: dict[str, object]
) -> None:
    paris(agent, **keys)
    before = log_of(home).read_bytes()
    with pytest.raises(ValueError, match="nothing supersedes"):
        agent.reinstate("paris")
    assert log_of(home).read_bytes() == before


@pytest.mark.parametrize("gone", ["delete", "purge"])
def test_without_its_successor_an_entry_stays_closed(agent: Agent, clock: ManualClock, gone: str) -> None:
    paris(agent)
    moved(agent, clock, "Rome")
    getattr(agent, gone)("rome")
    assert found(agent) == set()
    agent.reinstate("paris")
    assert found(agent) == {"paris"}


def test_without_its_successor_an_entry_is_superseded_again(agent: Agent, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome")
    agent.delete("rome")
    moved(agent, clock, "Oslo")
    assert found(agent) == {"oslo"}
    agent.reinstate("paris")
    assert found(agent) == {"paris"}


def test_a_chain_survives_compaction_and_a_lost_index(agent: Agent, home: Home, clock: ManualClock) -> None:
    paris(agent)
    moved(agent, clock, "Rome", "Oslo")
    agent.session("s").compact()
    home.rebuild()
    with pytest.raises(AlreadySupersededError):
        agent.supersede("rome", {"text": "x"})
    agent.reinstate("paris")
    assert found(agent) == {"paris"}


def test_a_chain_made_while_the_index_is_unusable_is_seen(tmp_path: Path, clock: ManualClock) -> None:
    with keepstone.open(tmp_path, clock=clock, embedder="none") as home:
        paris(home.agent("a"))
        moved(home.agent("a"), clock, "Rome")
        with log_of(home).open("ab") as log:
            log.write(b'{"id":"unfinished"')  # The index does not hold all of such a log.
        with pytest.raises(AlreadySupersededError):
            home.agent("a").supersede("paris", {"text": "x"})
        assert home.agent("a").reinstate("paris").valid_to is None


def test_a_circle_of_links_by_another_program_ends(agent: Agent) -> None:
    session = agent.session("s")
    for source, target in (("x", "y"), ("y", "x")):
        session.add("fact", text=source, id=source, links=[{"to": target, "rel": "supersedes"}])
    with pytest.raises(AlreadySupersededError, match="'y'"):
        agent.supersede("x", {"text": "z"})
    agent.reinstate("x")
    assert [entry.id for entry in session.entries()] == ["x"]


def test_a_vector_of_the_new_entry_is_found(agent: Agent) -> None:
    paris(agent, embedding=[1, 0])
    new = agent.supersede("paris", {"text": "Ada lives in Rome", "embedding": [0, 1]})
    assert [hit.entry.id for hit in agent.recall(None, vector=[1, 1])] == [new.id]
    assert list(new.line)[-1] == "embedding"
