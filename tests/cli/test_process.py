"""The command as a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.warm import warm

import keepstone

COLD = (sys.executable,)


def command() -> list[str]:
    return [*warm(), "-m", "keepstone"]


def run(
    *words: str, home: Path, python: Sequence[str] = (), **settings: str
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "KEEPSTONE_HOME": str(home), "PYTHONUTF8": "1", **settings}
    return subprocess.run(
        [*(python or warm()), "-m", "keepstone", *words],
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def modules_after(program: str) -> set[str]:
    code = (
        f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())


def test_what_one_process_adds_another_recalls(tmp_path: Path) -> None:
    assert run("add", "passkeys replace passwords", home=tmp_path, python=COLD).returncode == 0
    found = run("recall", "passkeys", "--json", home=tmp_path, python=COLD)
    assert json.loads(found.stdout)["hits"][0]["entry"]["session"] == "main"


def test_help_does_not_load_the_database() -> None:
    program = "from keepstone.cli import main; sys.argv = ['keepstone', '--help']; main()"
    assert "apsw" not in modules_after(program)


@pytest.mark.parametrize("option", ["--version", "--help", "-h"])
def test_version_and_help_load_no_command_and_no_agent(option: str) -> None:
    loaded = modules_after(f"from keepstone.cli import main; sys.argv = ['keepstone', {option!r}]; main()")
    assert (
        loaded & {"keepstone.agent", "keepstone.recall", "keepstone.notes", "keepstone.cli.recall"} == set()
    )


def test_a_command_loads_no_other_command() -> None:
    program = "from keepstone.cli import main; sys.argv = ['keepstone', 'model', 'list', '--json']; main()"
    loaded = modules_after(program)
    assert "keepstone.cli.models" in loaded
    assert loaded & {"keepstone.cli.recall", "keepstone.cli.notes", "keepstone.cli.serve"} == set()


@pytest.mark.parametrize("words", [["nonsense"], []])
def test_what_names_no_command_is_answered_by_all_of_them(words: list[str], tmp_path: Path) -> None:
    done = run(*words, home=tmp_path)
    assert done.returncode == 2
    assert "recall" in done.stdout or "No such command" in done.stderr


def test_the_library_does_not_load_the_command() -> None:
    assert modules_after("import keepstone") & {"typer", "rich", "keepstone.cli"} == set()


def test_a_terminal_without_the_character_shows_its_escape(tmp_path: Path) -> None:
    run("add", "snow ☃", home=tmp_path)
    shown = run(
        "sessions", "show", "main", home=tmp_path, python=COLD, PYTHONUTF8="0", PYTHONIOENCODING="ascii"
    )
    assert (shown.returncode, "snow \\u2603" in shown.stdout) == (0, True)


@pytest.mark.parametrize(
    "words",
    [["files", "read", "long.txt"], ["sessions", "show", "main"], ["sessions", "show", "main", "--json"]],
)
def test_a_reader_that_leaves_early_sees_no_traceback(tmp_path: Path, words: list[str]) -> None:
    run("files", "write", "long.txt", "x" * 100_000, home=tmp_path)
    run("add", "text", home=tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    whole = [*command(), *words, "--home", str(tmp_path)]
    done = subprocess.run(whole, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("answer", "status", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_on_a_terminal_a_deletion_asks_first(tmp_path: Path, answer: bytes, status: int, left: int) -> None:
    run("add", "text", home=tmp_path)
    keyboard, terminal = os.openpty()
    words = [*command(), "sessions", "delete", "main", "--home", str(tmp_path)]
    os.write(keyboard, answer)
    done = subprocess.run(words, stdin=terminal, capture_output=True, timeout=60, check=False)
    os.close(keyboard)
    os.close(terminal)
    assert (done.returncode, b"Delete session 'main' for good?" in done.stderr) == (status, True)
    assert len(list(tmp_path.rglob("main.ndjson"))) == left


def test_a_port_that_is_taken_is_named_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        served = run("serve", "--port", port, home=tmp_path)
    assert served.returncode != 0
    assert f"127.0.0.1 port {port}: Address already in use; choose another port" in served.stderr


def in_a_terminal(*words: str, columns: int) -> str:
    """Return what a command prints in a terminal of some columns, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([*command(), *words], stdout=theirs, stderr=subprocess.DEVNULL, env=variables):
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # Linux ends a terminal that nobody writes to with an error.
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_an_export_to_a_terminal_is_escaped(tmp_path: Path, form: str) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="red\x1b[31m \x9b1m \u202e größe\nnext")
    words = ("export", "--format", form, "--out", "-", "--agent", "a", "--home", str(tmp_path))
    shown = in_a_terminal(*words, columns=80)
    assert "größe" in shown
    assert [letter for letter in shown if letter in "\x1b\x9b\u202e"] == []
    assert "\\x1b[31m" in shown or "\\u001b[31m" in shown
    assert b"\xc2\x9b" in subprocess.run([*command(), *words], capture_output=True, check=True).stdout


@pytest.mark.parametrize("columns", [60, 80, 119])
def test_doctor_wraps_prose_but_no_command_in_a_narrow_terminal(tmp_path: Path, columns: int) -> None:
    home = tmp_path / "a-home-whose-name-is-long"
    run("add", "ghp_" + "a1B2" * 9, "--home", str(home), home=home)
    shown = in_a_terminal("doctor", "--home", str(home), columns=columns)
    lines = [line.strip() for line in shown.splitlines()]
    (command,) = [line for line in lines if line.startswith("keepstone purge")]
    assert len(command) > columns
    assert command.endswith("--session main --agent default")
    assert [line for line in lines if len(line) > columns] == [command]
