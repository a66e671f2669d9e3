"""An agent's own files by paths below ``/memories``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("anthropic.lib.tools")

from anthropic.lib.tools import ToolError

import keepstone
from keepstone import Agent
from keepstone.integrations.anthropic_files import Listed, MemoryFiles, Seen


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


@pytest.fixture
def files(agent: Agent) -> MemoryFiles:
    return MemoryFiles(agent)


@pytest.fixture
def folder(agent: Agent, tmp_path: Path) -> Path:
    """The folder of the agent's files, with a file in it."""
    agent.files.write("d/a.md", "inside")
    (path,) = tmp_path.rglob("d")
    return path.parent


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/memories/d/a.md", "d/a.md"),
        ("/memories//d/./a.md", "d/a.md"),
        ("/memories/d/../d/a.md", "d/a.md"),
        ("/memories/x/../d/a.md", "d/a.md"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_path_leads_to_its_file_through_dots(files: MemoryFiles, path: str, name: str) -> None:
    assert files.look(path) == Seen(name, "file", "inside")


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/.", "/memories/d/.."])
@pytest.mark.usefixtures("folder")
def test_the_root_is_a_folder_without_a_name(files: MemoryFiles, path: str) -> None:
    assert files.look(path) == Seen("", "folder")


def test_nothing_is_there_before_the_first_file(files: MemoryFiles) -> None:
    assert files.look("/memories") == Seen("", "folder")
    assert files.look("/memories/a.md") == Seen("a.md", None)
    assert files.listing("/memories", 2) == [Listed(0, "/memories")]


@pytest.mark.parametrize(
    "path", ["", "memories", "/memoriesx", "/other/a.md", "/memories/../../etc/passwd", "/"]
)
def test_a_path_that_is_not_below_the_root_is_refused(files: MemoryFiles, path: str) -> None:
    with pytest.raises(ToolError, match=r"Path .*(must start with /memories|would escape /memories)"):
        files.look(path)


@pytest.mark.parametrize("path", ["/memories/../memories/a.md", "/memories/d/../../memories/a.md"])
def test_a_way_out_and_back_is_a_way_out(files: MemoryFiles, path: str) -> None:
    with pytest.raises(ToolError, match="would escape"):
        files.look(path)


def test_a_chain_of_links_is_followed_up_to_a_bound(files: MemoryFiles, folder: Path) -> None:
    (folder / "l0").symlink_to("d/a.md")
    for number in range(1, 42):
        (folder / f"l{number}").symlink_to(f"l{number - 1}")
    assert files.look("/memories/l39").text == "inside"
    with pytest.raises(ToolError, match="would escape"):
        files.look("/memories/l40")


def test_dots_after_a_link_are_those_of_its_target(files: MemoryFiles, folder: Path) -> None:
    (folder / "d" / "deep").mkdir()
    (folder / "link").symlink_to("d/deep")
    assert files.look("/memories/link/../a.md").name == "d/a.md"


def test_what_is_neither_file_nor_folder_is_other(files: MemoryFiles, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert files.look("/memories/pipe") == Seen("pipe", "other")


def test_an_edit_is_given_what_is_there_and_keeps_the_mode(files: MemoryFiles, folder: Path) -> None:
    (folder / "d" / "a.md").chmod(0o400)
    files.edit("/memories/d/a.md", lambda seen: seen.text.upper())
    assert files.look("/memories/d/a.md").text == "INSIDE"
    assert (folder / "d" / "a.md").stat().st_mode & 0o777 == 0o400


def test_an_edit_that_raises_changes_nothing(files: MemoryFiles, folder: Path) -> None:
    def refuse(seen: Seen) -> str:
        raise ToolError(f"no {seen.kind}")

    for path, kind in (("/memories/d/a.md", "file"), ("/memories/d", "folder"), ("/memories/no", "None")):
        with pytest.raises(ToolError, match=f"no {kind}"):
            files.edit(path, refuse)
    assert (folder / "d" / "a.md").read_text() == "inside"


def test_a_new_file_takes_nobodys_place(files: MemoryFiles, folder: Path) -> None:
    for path in ("/memories/d/a.md", "/memories/d", "/memories"):
        with pytest.raises(ToolError, match=f"^File {path} already exists$"):
            files.create(path, "x")
    files.create("/memories/new/b.md", "x")
    assert (folder / "new" / "b.md").read_text() == "x"


def test_a_listing_stops_at_its_levels(files: MemoryFiles, agent: Agent) -> None:
    agent.files.write("d/e/f.md", "x")
    for levels, paths in ((1, ["d/"]), (2, ["d/", "d/e/"]), (3, ["d/", "d/e/", "d/e/f.md"])):
        found = [listed.path for listed in files.listing("/memories", levels)]
        assert found == ["/memories", *(f"/memories/{path}" for path in paths)]


def test_a_link_is_removed_and_not_its_target_outside(
    files: MemoryFiles, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x").write_text("kept")
    (folder / "d" / "out").symlink_to(tmp_path / "secret")
    files.delete("/memories/d")
    assert not (folder / "d").exists()
    assert (tmp_path / "secret" / "x").read_text() == "kept"


def test_the_root_can_neither_be_deleted_nor_renamed(files: MemoryFiles, folder: Path) -> None:
    with pytest.raises(ToolError, match="Cannot delete the /memories directory itself"):
        files.delete("/memories")
    with pytest.raises(ToolError, match="Cannot rename the /memories directory itself"):
        files.rename("/memories/", "/memories/x")
    assert (folder / "d" / "a.md").exists()


def test_a_folder_cannot_be_moved_into_itself(files: MemoryFiles, folder: Path) -> None:
    with pytest.raises(ToolError, match="which lies inside it"):
        files.rename("/memories/d", "/memories/d/e/f")
    assert (folder / "d" / "a.md").exists()


def test_a_rename_makes_the_parents_and_replaces_nothing(files: MemoryFiles, folder: Path) -> None:
    files.rename("/memories/d/a.md", "/memories/x/y/a.md")
    assert (folder / "x" / "y" / "a.md").read_text() == "inside"
    files.create("/memories/b.md", "b")
    with pytest.raises(ToolError, match="The destination /memories/b.md already exists"):
        files.rename("/memories/x/y/a.md", "/memories/b.md")


@pytest.mark.usefixtures("folder")
def test_a_missing_path_is_named_as_the_model_gave_it(files: MemoryFiles) -> None:
    with pytest.raises(ToolError, match="^The path /memories/no does not exist$"):
        files.delete("/memories/no")
    with pytest.raises(ToolError, match="^The path /memories/no does not exist$"):
        files.rename("/memories/no", "/memories/x")
    with pytest.raises(ToolError, match=r"^The path /memories/no does not exist\. Please"):
        files.listing("/memories/no", 2)


def test_a_home_in_a_database_has_no_files(dsn: str) -> None:
    with (
        keepstone.open(dsn, embedder="none") as home,
        pytest.raises(ValueError, match="needs a home in a folder"),
    ):
        MemoryFiles(home.agent("a"))
