"""The work tree of git that a folder lies in."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepstone.filesystem.work_tree import work_tree_of


@pytest.mark.parametrize("is_file", [False, True], ids=["clone", "worktree"])
def test_a_folder_below_git_lies_in_its_work_tree(tmp_path: Path, is_file: bool) -> None:
    inner = tmp_path / "shop/src"
    inner.mkdir(parents=True)
    git = tmp_path / "shop/.git"
    if is_file:
        git.write_text("gitdir: elsewhere\n")
    else:
        git.mkdir()
    assert work_tree_of(inner) == work_tree_of(tmp_path / "shop") == tmp_path / "shop"


def test_a_folder_without_git_above_lies_in_none(tmp_path: Path) -> None:
    assert work_tree_of(tmp_path) is None
