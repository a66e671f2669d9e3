"""The merge driver in the configuration of git."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from keepstone.errors import StoreError
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import GIT_ATTRIBUTES
from keepstone.store.files.maintenance.merge_driver import DRIVER, findings, register

KEY = f"merge.{DRIVER}.driver"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / GIT_ATTRIBUTES).write_text("*.ndjson merge=keepstone\n")
    return tmp_path


def configured(clone: Path) -> str:
    return git(clone, "config", "--get-all", KEY).decode().strip()


def test_the_driver_runs_this_python_with_what_git_gives_it(clone: Path) -> None:
    register(clone)
    command = shlex.split(configured(clone))
    assert command == [sys.executable, "-P", "-m", "keepstone", "git", "merge-log", "%O", "%A", "%B", "%P"]


def test_a_second_registration_replaces_the_first(clone: Path) -> None:
    git(clone, "config", "--add", KEY, "old")
    git(clone, "config", "--add", KEY, "older")
    register(clone)
    register(clone)
    assert len(configured(clone).splitlines()) == 1


def test_a_folder_outside_of_a_clone_has_nowhere_to_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(StoreError, match="git config failed"):
        register(tmp_path)


def test_a_driver_that_was_registered_here_is_safe(clone: Path) -> None:
    register(clone)
    assert list(findings(clone)) == []


@pytest.mark.parametrize(
    ("command", "is_safe"),
    [
        ("python -m keepstone git merge-log %O %A %B %P", False),
        ("python -B -m keepstone git merge-log %O %A %B %P", False),
        ("python -I -m keepstone git merge-log %O %A %B %P", True),
        ("python -BP -m keepstone git merge-log %O %A %B %P", True),
        ("/opt/my-Python/bin/python -m keepstone git merge-log", False),
        ("keepstone git merge-log %O %A %B %P", True),
    ],
)
def test_a_driver_that_imports_from_the_work_tree_is_an_error(
    clone: Path,
    command: str,
    is_safe: bool,  # noqa: FBT001
) -> None:
    git(clone, "config", KEY, command)
    assert [finding.level for finding in findings(clone)] == ([] if is_safe else ["error"])


def test_a_home_without_attributes_starts_no_driver(clone: Path) -> None:
    git(clone, "config", KEY, "python -m keepstone")
    (clone / GIT_ATTRIBUTES).unlink()
    assert list(findings(clone)) == []


def test_a_clone_without_a_driver_has_none_to_check(clone: Path) -> None:
    assert list(findings(clone)) == []
