"""What ``keepstone demo`` tells people to type next."""

import os
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keepstone.cli.app import app

BEFORE = "python -m keepstone "


def told(place: str) -> list[str]:
    """Run the demo and return the lines of its last part."""
    done = CliRunner().invoke(app, ["demo", "--home", place], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    return done.stdout.partition("Next steps")[2].splitlines()


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, "me")  # A short one, so that no command is longer than a line.
    monkeypatch.setenv("PATH", os.devnull)  # Where the command is not installed, python -m calls it.


@pytest.mark.parametrize("place", ["my demo", "~/d'x; false"])
def test_every_command_that_the_demo_names_works_unchanged(place: str) -> None:
    lines = told(place)
    [home] = [shlex.split(line)[1] for line in lines if line.startswith("export ")]
    name, _, value = home.partition("=")
    commands = [shlex.split(line.removeprefix(BEFORE)) for line in lines if line.startswith(BEFORE)]
    answers = [CliRunner().invoke(app, command, env={name: value}) for command in commands]
    assert [answer.exit_code for answer in answers] == [0] * 5
    assert [answer.stdout for answer in answers if "Fridays" in answer.stdout] == [answers[3].stdout]


def test_a_folder_of_the_demo_cannot_act_on_the_terminal() -> None:
    assert r"All of this is text in d\x1b[2J/: open it." in " ".join(told("d\x1b[2J"))
