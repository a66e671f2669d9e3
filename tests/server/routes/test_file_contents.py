"""The texts of a folder's files, many in one response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.server.problems import ProblemError
from keepstone.server.routes.file_contents import list_file_contents


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


def listed(agent: Agent, folder: str = "p", limit: int = 100, cursor: str | None = None) -> Any:
    return json.loads(bytes(list_file_contents(agent, folder, limit, cursor).body))


def paths(found: Any) -> list[str]:
    return [file["path"] for file in found["files"]]


def write(agent: Agent, *names: str) -> None:
    for name in names:
        agent.files.write(name, f"text of {name}")


@pytest.mark.parametrize("folder", ["plans", "plans/"])
def test_only_files_below_the_folder_are_read(agent: Agent, folder: str) -> None:
    write(agent, "plans/a.md", "plans/deep/b.md", "plansbeside.md", "other/c.md")
    found = listed(agent, folder)
    assert (paths(found), found["next"]) == (["plans/a.md", "plans/deep/b.md"], None)
    assert found["files"][0]["content"] == "text of plans/a.md"


def test_a_page_goes_on_behind_a_file_that_was_deleted(agent: Agent) -> None:
    write(agent, "p/a", "p/b", "p/c")
    first = listed(agent, limit=2)
    agent.files.delete("p/b")
    second = listed(agent, limit=2, cursor=first["next"])
    assert (paths(first), paths(second), second["next"]) == (["p/a", "p/b"], ["p/c"], None)


def test_a_page_ends_before_its_bytes_are_too_many(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.server.routes.file_contents.MAX_LINE", 1000)
    for name in "abc":
        agent.files.write(f"p/{name}", name * 600)
    first = listed(agent)
    assert paths(first) == ["p/a"]
    assert paths(listed(agent, cursor=first["next"])) == ["p/b"]


def test_a_file_that_is_not_text_has_no_content(agent: Agent, tmp_path: Path) -> None:
    write(agent, "p/a")
    (file,) = tmp_path.rglob("p/a")
    file.write_bytes(b"\xff")
    assert listed(agent)["files"] == [{"path": "p/a", "content": None}]


def test_a_folder_that_is_not_there_has_no_files(agent: Agent) -> None:
    assert listed(agent, "none") == {"files": [], "next": None}


def test_a_cursor_of_another_list_is_refused(agent: Agent) -> None:
    with pytest.raises((ValueError, ProblemError)):
        listed(agent, cursor="x")


@pytest.mark.parametrize("folder", ["..", "/etc", "p/../../x"])
def test_a_folder_that_leaves_the_agents_files_is_refused(agent: Agent, folder: str) -> None:
    with pytest.raises(keepstone.PathEscapeError):
        listed(agent, folder)
