"""Regular expressions of the importers: linear on any text, as the texts are strangers'."""

from __future__ import annotations

import ast
import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.warm import warm

import keepstone.importing

IMPORTING = Path(keepstone.importing.__file__).parent
HOSTILE_TEXTS = Path(__file__).with_name("hostile_texts.py")
CPU_SECONDS = 8
"""A linear pattern takes about two on all of its texts, a quadratic one more than an hour."""


def patterns() -> Iterator[tuple[str, str, int]]:
    """Yield place, pattern and flags of each regular expression of the package."""
    for path in sorted(IMPORTING.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                expression = ast.literal_eval(node.args[0])
                names = set(re.findall(r"re\.([A-Z]+)", ast.unparse(node)))
                flags = sum(int(getattr(re, name)) for name in names)
                yield f"{path.name}:{node.lineno}", expression, flags


def run(*command: str, cpu_seconds: int = CPU_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run Python with a limit of its CPU time, which does not depend on the load of the machine."""
    return subprocess.run(
        [*warm(), *command],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds)),
    )


@pytest.mark.parametrize(
    ("expression", "flags"), [pytest.param(*rest, id=place) for place, *rest in patterns()]
)
def test_each_pattern_is_linear_on_hostile_texts(expression: str, flags: int) -> None:
    ended = run(str(HOSTILE_TEXTS), expression, str(flags))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_check_finds_a_quadratic_pattern() -> None:
    quadratic = r"^\s*- +x", str(int(re.MULTILINE))
    assert run(str(HOSTILE_TEXTS), *quadratic, cpu_seconds=1).returncode < 0


NOTES = {
    "blank lines": "x\n" + "\n" * 300_000 + "y\n",
    "a key of spaces": "---\na" + " " * 300_000 + "x\n---\nbody\n",
    "quotes": '---\na: ["' + '\\"' * 150_000 + "]\n---\nbody\n",
    "a dash and spaces": "---\npermalink: x\n---\n- " + " " * 300_000 + "x\n",
    "links": "".join(f"[[m{number}]] " for number in range(30_000)),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in NOTES.items()])
def test_hostile_notes_are_imported_in_bounded_work(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    names = ", ".join(f"m{number}" for number in range(30_000))
    (folder / "named.md").write_text(f"---\naliases: [{names}]\n---\nt\n")
    (folder / "hostile.md").write_text(text)
    command = ("import", "auto", str(folder), "--agent", "a", "--home", str(tmp_path / "home"), "--dry-run")
    ended = run("-m", "keepstone", *command)
    assert (ended.returncode, ended.stderr) == (0, "")
