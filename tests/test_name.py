"""The product has one name, and its hints install our own distribution."""

from __future__ import annotations

import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

from keepstone.errors import install_command

ROOT = Path(__file__).parent.parent
FORMER = bytes.fromhex("7265636f6c6c656374").decode()  # Spelled out, this file would hold it.
CURRENT = "keepstone"


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_former_name_is_only_in_one_line_of_the_changelog() -> None:
    found = [
        (name, line)
        for name in tracked_files()
        for line in [name, *(ROOT / name).read_bytes().decode(errors="replace").splitlines()]
        if FORMER in line.lower()
    ]
    assert [name for name, _ in found] == ["CHANGELOG.md"]


def test_distribution_command_and_npm_package_have_the_name() -> None:
    metadata = distribution(CURRENT)
    assert metadata.name == CURRENT
    assert [script.name for script in metadata.entry_points if script.group == "console_scripts"] == [CURRENT]
    assert f'"name": "{CURRENT}-voltagent"' in (ROOT / "packages/voltagent/package.json").read_text()


@pytest.mark.parametrize("extra", ["minilm", "static", "openai", "chat", "server"])
def test_install_command_names_a_declared_extra_and_the_clone(extra: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extra in declared
    assert (
        install_command(extra) == f"pip install 'keepstone[{extra}]' (in a clone: pip install '.[{extra}]')"
    )
