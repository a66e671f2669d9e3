"""Moving entries and sessions to another agent."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone.operations.agent_moves import move_entry, move_session


@pytest.fixture
def home(tmp_path: Path) -> Iterator[keepstone.Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as opened:
        yield opened


def test_a_moved_entry_keeps_id_time_and_marks_and_is_deleted_here(home: keepstone.Home) -> None:
    one, two = home.agent("one"), home.agent("two")
    made = datetime(2026, 1, 2, tzinfo=UTC)
    entry = one.session("s").add("fact", "The gate closes at nine", ts=made, tags=["gate"], pinned=True)
    moved = move_entry(one.get(entry.id), one, two)
    assert (moved.agent, moved.session, moved.id, moved.ts) == ("two", "s", entry.id, made)
    assert (moved.tags, moved.pinned, moved.text) == (("gate",), True, "The gate closes at nine")
    assert one.entries() == []


def test_an_entry_is_not_moved_over_another_one(home: keepstone.Home) -> None:
    one, two = home.agent("one"), home.agent("two")
    entry = one.session("s").add("fact", "here", id="gate")
    two.session("s").add("fact", "there", id="gate")
    with pytest.raises(ValueError, match="agent 'two' has an entry 'gate' already"):
        move_entry(entry, one, two)
    assert [found.text for agent in (one, two) for found in agent.entries()] == ["here", "there"]


def test_nothing_is_moved_to_the_same_agent(home: keepstone.Home) -> None:
    one = home.agent("one")
    entry = one.session("s").add("fact", "here")
    with pytest.raises(ValueError, match="choose another target"):
        move_entry(entry, one, one)
    with pytest.raises(ValueError, match="choose another target"):
        move_session(one.session("s"), one, one)


def test_a_moved_session_keeps_entries_and_title_and_leaves_nothing(home: keepstone.Home) -> None:
    one, two = home.agent("one"), home.agent("two")
    session = one.session("s")
    ids = [session.add("message", {"role": "user", "content": text}).id for text in ("Hi", "Bye")]
    session.set_title("The talk")
    moved = move_session(session, one, two)
    assert [entry.id for entry in moved.entries()] == ids
    assert two.session_summaries(["s"])[0].title == "The talk"
    assert one.sessions() == []
    assert one.purge_matching("Bye", dry_run=True).entries == ()


def test_a_session_is_not_moved_into_another_one(home: keepstone.Home) -> None:
    one, two = home.agent("one"), home.agent("two")
    one.session("s").add("fact", "here")
    two.session("s").add("fact", "there")
    with pytest.raises(ValueError, match="agent 'two' has a session 's' already"):
        move_session(one.session("s"), one, two)
    assert one.count() == two.count() == 1


def test_a_missing_session_is_not_moved(home: keepstone.Home) -> None:
    with pytest.raises(keepstone.SessionNotFoundError):
        move_session(home.agent("one").session("s"), home.agent("one"), home.agent("two"))


def test_a_session_that_changes_during_the_move_stays(
    home: keepstone.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = home.agent("one"), home.agent("two")
    session = one.session("s")
    session.add("fact", "first")
    read = keepstone.Session.entries

    def entries(self: keepstone.Session, **keys: Any) -> list[keepstone.Entry]:
        found = read(self, **keys)
        self.add("fact", "second")
        return found

    monkeypatch.setattr(keepstone.Session, "entries", entries)
    with pytest.raises(ValueError, match="was changed during the move"):
        move_session(session, one, two)
    assert one.count() == 2
    assert two.sessions() == []
