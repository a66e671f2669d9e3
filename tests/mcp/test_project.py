"""Which agent a project has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from keepstone.filesystem.layout import layout_of
from keepstone.mcp.project import agent_of


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)  # noqa: S607


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "My Shop"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def test_the_agent_has_the_name_of_the_repository_and_a_digest(repository: Path) -> None:
    assert agent_of(repository).startswith("my-shop-")
    assert len(agent_of(repository)) == len("my-shop-") + 8


def test_folders_of_a_repository_share_its_agent(repository: Path) -> None:
    (repository / "src/deep").mkdir(parents=True)
    assert agent_of(repository / "src/deep") == agent_of(repository)


def test_worktrees_share_an_agent_unless_asked_otherwise(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    assert agent_of(tmp_path / "feature") == agent_of(repository)
    assert agent_of(tmp_path / "feature", worktree=True).startswith("feature-")
    assert agent_of(repository, worktree=True) == agent_of(repository)


def test_a_folder_names_no_other_repository_as_its_own(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "g").mkdir(parents=True)
    (other / ".git").write_text("gitdir: g\n")
    (other / "g" / "commondir").write_text(f"{repository}/.git\n")
    assert agent_of(other).startswith("other-")


def test_worktrees_of_a_bare_repository_share_an_agent(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "--quiet", str(tmp_path / name), "-b", name)
    assert agent_of(tmp_path / "one") == agent_of(tmp_path / "two")
    assert agent_of(tmp_path / "one").startswith("shop-")


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(tmp_path, "clone", "--quiet", str(repository), str(library))
    git(repository, "submodule", "--quiet", "add", str(library), "vendored")
    assert agent_of(repository / "vendored").startswith("vendored-")


def test_projects_of_one_name_have_different_agents(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "shop").mkdir(parents=True)
    assert agent_of(tmp_path / "a/shop") != agent_of(tmp_path / "b/shop")


def test_the_home_folder_and_the_root_are_no_project(user_folder: Path) -> None:
    assert agent_of(user_folder) == agent_of(Path("/")) == "default"


@pytest.mark.parametrize("name", ["日本", "...", "x" * 200, "UPPER case", "a_b.c"])
def test_every_folder_gives_a_valid_slug(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert layout_of("default").check_agent(agent_of(tmp_path / name))


@pytest.mark.parametrize("content", ["", "garbage", "gitdir: /nowhere"])
def test_a_damaged_git_file_leaves_the_folder_itself(tmp_path: Path, content: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/.git").write_text(content)
    assert agent_of(tmp_path / "shop").startswith("shop-")
