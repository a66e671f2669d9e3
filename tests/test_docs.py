"""The programs in the documentation run, page by page, in an empty folder. Shown commands exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from keepstone.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/index.md", "docs/tutorial.md", "docs/how-to.md", "docs/coming-from.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*keepstone ([^|>\n]+)", re.MULTILINE)
_WITH_COMMANDS = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if any(_COMMAND.search(block) for block in _SHELL.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", PAGES)
def test_programs_of_a_page_run_and_spare_the_users_notes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = tmp_path / "real" / "memory.md"
    monkeypatch.setenv("KEEPSTONE_USER_MEMORY", str(real))
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": page}
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        exec(compile("\n" * line + block[1], page, "exec"), names)  # noqa: S102  That is what this test is for.
    assert not real.exists()


def test_program_of_the_browser_page_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    (program,) = _BLOCK.findall((ROOT / "docs" / "web.md").read_text(encoding="utf-8"))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


@pytest.mark.parametrize("page", _WITH_COMMANDS)
def test_commands_and_options_of_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line for block in _SHELL.findall(text) for line in _COMMAND.findall(block)]
    assert {line: unknown for line in lines if (unknown := _unknown(shlex.split(line, comments=True)))} == {}


def test_commands_and_options_of_the_makefile_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = dict(re.findall(r"^([\w-]+):[^\n]*\n((?:\t[^\n]*\n)+)", makefile, re.MULTILINE))
    command = re.compile(r"\$\(BIN\)/keepstone ([^|>&\n]+)")
    lines = {target: command.findall(told) for target, told in targets.items()}
    assert lines["serve"]
    commands = [line for found in lines.values() for line in found]
    assert {line: unknown for line in commands if (unknown := _unknown(shlex.split(line)))} == {}


def _unknown(words: list[str]) -> list[str]:
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return words[:1]
        command = command.commands[words.pop(0)]
    options = {"--help"}.union(*(parameter.opts for parameter in command.params))
    return [
        word
        for word in words
        if word.startswith("-") and word != "-" and word.partition("=")[0] not in options
    ]
