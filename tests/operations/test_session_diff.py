"""Differences of a session between times and revisions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.operations.test_git_home import commit
from typer.testing import CliRunner

import keepstone
from keepstone.cli.app import app
from keepstone.errors import SessionNotFoundError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.home import Home
from keepstone.operations.git_home import init
from keepstone.operations.session_diff import session_diff


class Clock:
    day = 1

    def __call__(self) -> datetime:
        return datetime(2026, 1, self.day, tzinfo=UTC)


def made(folder: Path) -> tuple[Home, Clock]:
    clock = Clock()
    home = keepstone.open(folder, embedder="none", clock=clock)
    home.agent("a").session("main").add_many([{"type": "note", "text": f"{n} old", "id": n} for n in "abc"])
    return home, clock


def changed(home: Home) -> None:
    agent = home.agent("a")
    agent.update("a", text="a new")
    agent.delete("b")
    agent.session("main").add("note", text="d new", id="d")


def diff(home: Home, start: str | None, end: str | None) -> list[tuple[str, str]]:
    found = session_diff(home, LAYOUTS["default"], "a", "main", start, end)
    return sorted((change.kind, change.id) for change in found)


CHANGES = [("added", "d"), ("changed", "a"), ("removed", "b")]


def test_two_times_are_compared(tmp_path: Path) -> None:
    home, clock = made(tmp_path)
    clock.day = 5
    changed(home)
    assert diff(home, "2026-01-02", "2026-01-06") == CHANGES
    assert diff(home, "2026-01-02", "2026-01-03") == []
    assert diff(home, "2026-01-02", None) == CHANGES


def test_two_revisions_are_compared(tmp_path: Path) -> None:
    home, _ = made(tmp_path)
    init(tmp_path, LAYOUTS["default"])
    commit(tmp_path)
    changed(home)
    assert diff(home, None, None) == CHANGES
    commit(tmp_path)
    assert diff(home, "HEAD~1", "HEAD") == CHANGES
    assert diff(home, None, None) == []


@pytest.mark.parametrize("under_git", [False, True])
def test_without_a_commit_a_time_is_asked_for(tmp_path: Path, *, under_git: bool) -> None:
    home, _ = made(tmp_path)
    if under_git:
        init(tmp_path, LAYOUTS["default"])
    with pytest.raises(ValueError, match="nothing of .* is committed to git yet: give a time"):
        diff(home, None, None)


@pytest.mark.parametrize("start", ["no-such-revision", "--output=x"])
def test_what_is_neither_time_nor_revision_is_refused(tmp_path: Path, start: str) -> None:
    home, _ = made(tmp_path)
    with pytest.raises(ValueError, match="neither a time nor a revision"):
        diff(home, start, None)


def test_a_missing_session_is_an_error(tmp_path: Path) -> None:
    home, _ = made(tmp_path)
    with pytest.raises(SessionNotFoundError):
        session_diff(home, LAYOUTS["default"], "a", "other", "2026-01-01", None)


def test_the_command_shows_what_was_said_before_and_after(tmp_path: Path) -> None:
    home, _ = made(tmp_path)
    init(tmp_path, LAYOUTS["default"])
    commit(tmp_path)
    home.agent("a").update("a", text="a new", tags=["x"])
    done = CliRunner().invoke(app, ["diff", "main", "--agent", "a", "--home", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0].startswith("~ a ")
    assert lines[1:] == ["- a old", "+ a new", "tags: none -> x"]
