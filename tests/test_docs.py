"""The programs in the documentation run, page by page, in an empty folder. Shown commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.warm import warm

from keepstone.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("index", "tutorial", "coming-from"))]
PAGES += [f"docs/{name}.md" for name in ("services", "embedders", "processes", "recall")]
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/guides/*.md"))
WIDTH = 88
_WRAPPED = ("python", "py", "sh", "ts", "yaml", "toml")
"""Languages whose lines can be broken anywhere; what a command or a file shows cannot."""
_FENCE = re.compile(r"^```(\w*)[^`\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASKED = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
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


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_prints_what_it_shows(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEEPSTONE_USER_MEMORY", str(tmp_path / "user.md"))
    names: dict[str, Any] = {"__name__": guide}
    printed, wrong = "", []
    for language, block in _FENCE.findall((ROOT / guide).read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(block, guide, "exec"), names)  # noqa: S102  That is what this test is for.
            printed = capsys.readouterr().out
        shown = [(printed, block)] if language == "text" else []
        if language == "console":
            shown = [(_answer(command), answer) for command, answer in _ASKED.findall(block)]
        wrong += [(was, expected) for was, expected in shown if not _fits(was, expected)]
    assert wrong == []


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_is_one_page_with_the_same_parts(guide: str) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    title, purpose = text.split("\n\n")[:2]
    assert re.fullmatch(r"# \S.*", title)
    assert len(re.findall(r"[.?](?=\s|$)", purpose)) == 2, "say what it is for in two sentences"
    assert "```python" in text
    assert "```text" in text or "```console" in text
    assert text.rstrip().rpartition("\n## ")[2].startswith("Where to go next\n")
    assert len(text.splitlines()) <= 120


def test_there_are_ten_to_fifteen_guides() -> None:
    assert 10 <= len(GUIDES) <= 15


def test_pages_are_grouped_by_purpose() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    groups = re.findall(
        r"^  - (\w+):", settings.partition("\nnav:\n")[2].partition("\nmarkdown")[0], re.MULTILINE
    )
    assert groups == ["Home", "Tutorial", "Guides", "Reference", "Background"]


def test_the_readme_shows_how_to_run_and_test_in_its_first_screen() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    assert {"make run", "make test"} <= {line.partition("   ")[0].rstrip() for line in lines[:20]}


def test_no_line_of_code_is_wider_than_the_page() -> None:
    pages = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob("docs/**/*.md")}
    wide = [
        (page, line)
        for page, path in {"README.md": ROOT / "README.md", **pages}.items()
        for language, block in _FENCE.findall(path.read_text(encoding="utf-8"))
        if language in _WRAPPED or page in GUIDES
        for line in block.splitlines()
        if len(line) > WIDTH
    ]
    assert wide == []


def test_every_test_that_a_promise_names_exists() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*test_\w+\.py)`", page)
    assert len(named) > 40
    assert [path for path in named if not (ROOT / "tests" / path).exists()] == []


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


def _answer(command: str) -> str:
    environment = os.environ | {"KEEPSTONE_HOME": "memory", "COLUMNS": "300"}
    start = f'keepstone() {{ {shlex.join(warm())} -m keepstone "$@"; }}; exec 2>&1; '
    shell = ["bash", "-c", start + command]
    return subprocess.run(shell, check=False, env=environment, capture_output=True, text=True).stdout


def _fits(printed: str, shown: str) -> bool:
    """Whether an output is the one that a page shows, where ``…`` stands for any text.

    White space and the length of rules do not count: paths have other lengths elsewhere.
    """
    was, expected = (re.sub(r"─+", "─", " ".join(text.split())) for text in (printed, shown))
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, was) is not None


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
