"""The command git."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepstone.errors import StoreError
from keepstone.filesystem.git_command import git


def test_git_runs_in_the_folder_and_its_output_comes_back(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert git(tmp_path, "rev-parse", "--show-prefix") == b"\n"
    assert (tmp_path / ".git").is_dir()


def test_a_failure_says_what_git_said(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(StoreError, match="git checkout failed: .*none"):
        git(tmp_path, "checkout", "none")


def test_a_missing_git_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="git is not installed: install it, then try again"):
        git(tmp_path, "status")
