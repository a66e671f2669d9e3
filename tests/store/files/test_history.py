"""History over log and archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Session
from keepstone.log.log_file import Log
from keepstone.log.scan import Scan
from keepstone.store.files import history


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path) as home:
        yield home.agent("a")


def versions(agent: Agent) -> list[tuple[str, object]]:
    return [(version.text, version.line) for version in agent.history("x")]


def lives(session: Session) -> None:
    session.add("note", {"content": "first"}, id="x")
    session.update("x", data={"content": "second"})
    session.update("x", pinned=True)
    session.delete("x")
    session.add("note", {"content": "again"}, id="x")
    session.update("x", tags=["t"])


def killed_before_the_rename(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Log, "replace", killed)
        with pytest.raises(Killed):
            act()


def test_history_is_the_same_after_compactions(agent: Agent) -> None:
    session = agent.session("s")
    lives(session)
    before = versions(agent)
    for text in ("more", "even more"):
        session.compact()
        assert versions(agent) == before
        session.update("x", data={"content": text})
        before = versions(agent)


def test_history_shows_nothing_twice_after_a_compaction_was_killed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.session("s")
    lives(session)
    before = versions(agent)
    killed_before_the_rename(monkeypatch, session.compact)
    assert versions(agent) == before
    session.update("x", data={"content": "more"})
    before = versions(agent)
    session.compact()
    assert versions(agent) == before


def test_history_shows_nothing_twice_after_a_later_compaction_was_killed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.session("s")
    lives(session)
    session.compact()
    session.update("x", data={"content": "more"})
    session.update("x", tags=["u"])
    before = versions(agent)
    killed_before_the_rename(monkeypatch, session.compact)
    assert versions(agent) == before
    session.update("x", pinned=True)
    after = versions(agent)
    assert after[:-1] == before
    assert agent.history("x")[-1].tags == ("u",)  # The new version is based on the archived ones.
    session.compact()
    assert versions(agent) == after


def test_history_shows_nothing_twice_after_compacting_a_deletion_was_killed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.session("s")
    lives(session)
    session.compact()
    session.delete("x")
    before = versions(agent)
    killed_before_the_rename(monkeypatch, session.compact)
    assert versions(agent) == before
    session.add("note", {"content": "back"}, id="x")
    assert versions(agent)[:-1] == before


def overtaken(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen once, when the archive was read to its end and the log was not."""
    reading, left = Log.reading, [act]

    @contextmanager
    def overtaken_reading(log: Log) -> Iterator[int | None]:
        with reading(log) as fd:
            yield fd
        if log.name.startswith(".archive/") and left:
            left.pop()()

    monkeypatch.setattr(Log, "reading", overtaken_reading)


def test_compaction_during_as_of_shows_the_text_of_that_time(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.session("s")
    session.add("note", {"content": "first"}, id="x")
    moment = datetime.now(UTC)
    session.update("x", data={"content": "second"})
    overtaken(monkeypatch, session.compact)
    assert [entry.text for entry in session.entries(as_of=moment)] == ["first"]


def test_compaction_during_history_hides_no_version(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    session = agent.session("s")
    lives(session)
    before = versions(agent)
    overtaken(monkeypatch, session.compact)
    assert versions(agent) == before


def test_history_parses_no_log_that_does_not_mention_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        agent = home.agent("a")
        for name in "stu":
            agent.session(name).add("note", {"content": f"walnut {name}"}, id=f"it-{name}")
        agent.session("t").update("it-t", text="pecan")
        parsed: list[int] = []

        def watched(fd: int, **more: Any) -> Scan:
            parsed.append(fd)
            return Scan(fd, **more)

        monkeypatch.setattr(history, "Scan", watched)
        assert [version.text for version in agent.history("it-t")] == ["walnut t", "pecan"]
    assert len(parsed) == 1
