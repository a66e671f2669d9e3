"""``keepstone git``: the setup of a home, and the driver that git calls."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def home(cli: Command) -> Path:
    """A home in a git repository."""
    cli.json("add", "walnut")
    subprocess.run(["git", "init", "-q", str(cli.home)], check=True)  # noqa: S607  The user's own git.
    return cli.home


def test_init_writes_its_files_once(cli: Command, home: Path) -> None:
    first, second = cli.json("git", "init"), cli.json("git", "init")
    assert first["home"] == str(home)
    assert first["written"] != []
    assert second["written"] == []
    assert all((home / name).exists() for name in first["written"])


def test_init_says_what_it_wrote(cli: Command, home: Path) -> None:
    assert home.exists()
    assert ".gitattributes" in cli("git", "init").stdout
    assert cli("git", "init").stdout == "nothing to write\nthe merge driver is registered\n"


def test_merge_log_writes_the_merged_log_to_ours(cli: Command, tmp_path: Path) -> None:
    line = '{{"id": "{0}", "ts": "2026-01-01T00:00:00.000000Z", "type": "note", "text": "{0}"}}\n'
    base, ours, theirs = (tmp_path / name for name in ("base", "ours", "theirs"))
    base.write_text(line.format("a"))
    ours.write_text(line.format("a") + line.format("b"))
    theirs.write_text(line.format("a") + line.format("c"))
    assert cli("git", "merge-log", *map(str, (base, ours, theirs))).exit_code == 0
    assert sorted(ours.read_text().splitlines()) == [line.format(name).strip() for name in "abc"]
