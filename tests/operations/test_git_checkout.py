"""Checkouts under an open home: what is shown is the branch, and the doctor knows git's modes."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.operations.test_git_home import commit, git

import keepstone
from keepstone import Finding, Home
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.git_home import init
from keepstone.store.files.last_refresh import LastRefresh

SESSIONS = "agents/a/memory/sessions"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home with a branch ``more``, on which the agent knows of coffee, too."""
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.add("Ada likes tea")
        init(tmp_path, LAYOUTS["default"])
        commit(tmp_path)
        git(tmp_path, "checkout", "-q", "-b", "more")
        agent.add("Ada likes coffee")
        agent.add("Bob likes coffee", session="other")
        commit(tmp_path)
        yield home


def shown(home: Home) -> tuple[list[str], int, int]:
    agent = home.agent("a")
    hits = agent.recall("coffee")
    assert not hits.stale
    found = sum("coffee" in hit.text for hit in hits)
    return [entry.text for entry in agent.entries()], agent.count(), found


def test_a_checkout_is_shown_at_once(home: Home) -> None:
    every = ["Ada likes tea", "Ada likes coffee", "Bob likes coffee"]
    for branch, expected in (("-", every[:1]), ("more", every), ("-", every[:1]), ("more", every)):
        git(home.root, "checkout", "-q", branch)
        assert shown(home) == (expected, len(expected), len(expected) - 1)


def test_recall_is_stale_while_a_long_look_is_not_repeated(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.files.last_refresh._LONG", -1.0)
    monkeypatch.setattr("keepstone.store.files.last_refresh.AT_ONCE", 0.4)
    home.agent("a").recall("coffee")
    git(home.root, "checkout", "-q", "-")
    assert home.agent("a").recall("coffee").stale


def test_a_look_is_outdated_when_files_come_or_go(tmp_path: Path) -> None:
    look = LastRefresh(tmp_path, time.monotonic)
    look.end(look.begin())
    assert look.is_within(60)
    (tmp_path / "new").touch()
    os.utime(tmp_path, ns=(1, 1))
    assert look.is_outdated
    assert not look.is_within(60)


def warnings(found: list[Finding]) -> list[str]:
    return [finding.message for finding in found if finding.level == "warning"]


def test_doctor_leaves_modes_of_a_checkout_alone(home: Home) -> None:
    log = home.root / SESSIONS / "main.ndjson"
    for mode in (0o644, 0o664):
        log.chmod(mode)
        assert warnings(home.doctor()) == []
    assert any("can only be read by you" in finding.message for finding in home.doctor(fix=True))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize(("path", "mode"), [(f"{SESSIONS}/main.ndjson", 0o646), (".index/a", 0o755)])
def test_doctor_warns_of_modes_that_git_does_not_set(home: Home, path: str, mode: int) -> None:
    (home.root / path).chmod(mode)
    assert any("may be read by others" in message for message in warnings(home.doctor()))


def test_doctor_warns_of_open_modes_without_git(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").add("Ada likes tea")
        (tmp_path / SESSIONS / "main.ndjson").chmod(0o644)
        assert any("may be read by others" in message for message in warnings(home.doctor()))
