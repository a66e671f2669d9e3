"""Grants in every layout, in backups, in migrations and in git."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import keepstone
from keepstone import Layout, NotGrantedError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.git_home import init
from keepstone.store.files.file_store import FileStore
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.transfer import move

PLACES = {
    "default": "agents/team/memory/grants.ndjson",
    "cache": "agent_sessions/team/.grants.ndjson",
}


def shared_home(root: Path | str, layout: str | Layout = "default") -> keepstone.Home:
    home = keepstone.open(root, layout=layout, embedder="none")
    home.agent("team").add("walnut", id="one")
    home.agent("team").grant("coder", "write")
    return home


@pytest.mark.parametrize("layout", PLACES)
def test_the_file_lies_beside_the_sessions(tmp_path: Path, layout: str) -> None:
    with shared_home(tmp_path, layout) as home:
        assert json.loads((tmp_path / PLACES[layout]).read_text("utf-8"))["to"] == "coder"
        assert home.agent("coder").get("one", of="team").text == "walnut"
        assert [info.id for info in home.agent("team").sessions()] == ["main"]
        assert [found for found in home.doctor() if found.level != "ok"] == []


def test_a_layout_of_ones_own_has_the_file_among_its_logs(tmp_path: Path) -> None:
    with shared_home(tmp_path, Layout("a/{agent}/log", "a/{agent}/files")):
        assert (tmp_path / "a/team/log/.grants.ndjson").is_file()


def test_a_layout_with_one_agent_grants_nothing(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        agent = home.agent("default")
        agent.add("walnut")
        for act in (lambda: agent.grant("coder"), lambda: agent.revoke("coder"), agent.grants):
            with pytest.raises(ValueError, match="one agent|only the agent"):
                act()
        with pytest.raises(keepstone.InvalidAgentIdError):
            agent.entries(shared=["team"])
        assert [found for found in home.doctor() if found.level != "ok"] == []


@pytest.mark.parametrize("layout", PLACES)
def test_a_backup_has_the_grants(tmp_path: Path, layout: str) -> None:
    with shared_home(tmp_path / "home", layout) as home:
        home.backup(tmp_path / "copy")
    with keepstone.open(tmp_path / "copy", layout=layout, embedder="none") as copy:
        assert copy.agent("coder").get("one", of="team").text == "walnut"


def test_a_backup_leaves_a_link_behind(tmp_path: Path) -> None:
    with shared_home(tmp_path / "home") as home:
        path = tmp_path / "home" / PLACES["default"]
        path.rename(tmp_path / "outside")
        path.symlink_to(tmp_path / "outside")
        home.backup(tmp_path / "copy")
    assert not (tmp_path / "copy" / PLACES["default"]).exists()


@pytest.mark.parametrize("layout", PLACES)
def test_purging_the_granting_agent_removes_the_file(tmp_path: Path, layout: str) -> None:
    with shared_home(tmp_path, layout) as home:
        home.purge_agent("team")
        assert list(tmp_path.rglob("*grants*")) == []
        with pytest.raises(NotGrantedError):
            home.agent("coder").entries(shared=["team"])


def test_purging_leaves_damage_as_it_is(tmp_path: Path) -> None:
    with shared_home(tmp_path) as home:
        path = tmp_path / PLACES["default"]
        path.write_text(path.read_text("utf-8") + '{"to": "coder", "may": "all"}\n' + "{\n", "utf-8")
        home.agent("coder").add("x")
        home.purge_agent("coder")
        assert path.read_text("utf-8") == '{"to": "coder", "may": "all"}\n{\n'
        assert home.agent("team").grants() == []


def test_a_migration_takes_the_grants_along(tmp_path: Path, dsn: str) -> None:
    with shared_home(tmp_path) as home:
        home.agent("team").grant("other", types=["note"], until="2099-01-01")
        granted = home.agent("team").grants()
    source, target = FileStore(tmp_path, LAYOUTS["default"]), PostgresStore(dsn)
    move(source, target)
    move(source, target, merge=True)
    assert target.grants("team") == source.grants("team")
    target.close()
    source.close()
    with keepstone.open(dsn, embedder="none") as moved:
        assert moved.agent("team").grants() == granted


def test_git_merges_grants_by_line(tmp_path: Path) -> None:
    init(tmp_path, LAYOUTS["default"])
    assert "/agents/*/memory/grants.ndjson merge=union -text" in (tmp_path / ".gitattributes").read_text()
    assert "/agents/*/memory/grants.ndjson.lock" in (tmp_path / ".gitignore").read_text()
