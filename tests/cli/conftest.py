"""The command as a test calls it: in this process, on a home of its own."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keepstone.cli.app import app


@dataclass(frozen=True)
class Command:
    home: Path

    def __call__(self, *words: str, text: str | bytes | None = None) -> Result:
        """Run a command line with ``text`` as its standard input."""
        # Without a width of the caller's terminal, as through a pipe: nothing is wrapped.
        settings = {"KEEPSTONE_HOME": str(self.home), "COLUMNS": None}
        return CliRunner().invoke(app, words, input=text, env=settings)

    def json(self, *words: str, text: str | None = None) -> dict[str, Any]:
        """Run a command line with ``--json`` and return its document; it must succeed in silence."""
        result = self(*words, "--json", text=text)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        document = json.loads(result.stdout)
        assert isinstance(document, dict)
        return document

    def error(self, *words: str) -> tuple[int, str]:
        """Run a command line that must fail, and return its status and the error's code."""
        result = self(*words, "--json")
        assert result.stdout == ""
        return result.exit_code, json.loads(result.stderr)["error"]["code"]

    def sessions(self, agent: str = "default") -> Path:
        """Return the folder of an agent's logs."""
        folder = self.home / "agents" / agent / "memory" / "sessions"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@pytest.fixture
def cli(tmp_path: Path) -> Command:
    return Command(tmp_path / "home")
