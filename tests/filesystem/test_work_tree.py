"""The work tree of git that a folder lies in."""

from __future__ import annotations

from pathlib import Path

from keepstone.filesystem.work_tree import work_tree_of


def test_a_folder_below_git_lies_in_its_work_tree(tmp_path: Path) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/src").mkdir()
    assert work_tree_of(tmp_path / "shop/src") == work_tree_of(tmp_path / "shop") == tmp_path / "shop"


def test_a_work_tree_beside_its_clone_counts_as_one(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert work_tree_of(tmp_path) == tmp_path


def test_a_folder_without_git_above_lies_in_none(tmp_path: Path) -> None:
    assert work_tree_of(tmp_path) is None
