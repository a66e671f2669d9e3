"""How a function becomes a command."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text
from typer.testing import CliRunner, Result

from keepstone import Agent, Home, Notes
from keepstone.cli.command import (
    Answer,
    agent_command,
    argument_or_input,
    confirm,
    home_command,
    notes_command,
    print_document,
    show,
)

SEEN: list[Any] = []
app = typer.Typer()


@agent_command(app, "keepstone greet Ann")
def greet(agent: Agent, name: str, *, loud: bool = False) -> Answer:
    """Say hello to a person."""
    SEEN.append(agent)
    return Answer({"said": name, "agent": agent.slug}, Text(name.upper() if loud else name), status=len(name))


@home_command(app, "keepstone count-agents", name="count-agents")
def count(home: Home) -> Answer:
    """Count the agents."""
    SEEN.append(home)
    return Answer({"agents": home.agents()}, Text(str(len(home.agents()))))


@notes_command(app, "keepstone first")
def first(notes: Notes, text: str) -> Answer:
    """Show what was given, byte for byte."""
    given = argument_or_input(text)
    return Answer({"text": given, "notes": len(notes.entries())}, Text("view"), exact=given.encode("utf-8"))


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")

    def invoked(*words: str, text: bytes | None = None) -> Result:
        SEEN.clear()
        return CliRunner().invoke(app, words, input=text, env={"KEEPSTONE_HOME": str(home), "COLUMNS": None})

    return invoked


def test_a_command_has_its_own_arguments_and_the_shared_options(run: Any) -> None:
    told = run("greet", "Ann", "--loud", "--agent", "coder")
    assert (told.stdout, SEEN[0].slug) == ("ANN\n", "coder")


def test_json_gives_the_document_and_the_same_status(run: Any) -> None:
    told = run("greet", "Ann", "--json")
    assert (json.loads(told.stdout), told.exit_code) == ({"said": "Ann", "agent": "default"}, 3)


def test_a_command_leaves_with_the_status_of_its_answer(run: Any) -> None:
    assert [run("greet", name).exit_code for name in ("", "A", "An")] == [0, 1, 2]


def test_the_help_of_a_command_is_its_docstring_and_its_example(run: Any) -> None:
    told = run("greet", "--help").stdout
    assert "Say hello to a person." in told
    assert "Example: keepstone greet Ann" in told


def test_a_command_of_the_home_may_have_another_name_than_its_function(run: Any) -> None:
    run("greet", "Ann", "--agent", "coder")
    assert run("count-agents").stdout == "0\n"
    assert isinstance(SEEN[0], Home)


def test_a_text_goes_through_a_pipe_byte_for_byte(run: Any) -> None:
    raw = "\ufeffone\r\ntwo\x1b[2J\0 ☃".encode()
    assert run("first", "-", text=raw).stdout_bytes == raw


def test_an_argument_that_is_not_a_dash_is_taken_as_it_is(run: Any) -> None:
    assert run("first", "--", "--", text=b"not read").stdout_bytes == b"--"


def test_input_of_another_encoding_is_refused_with_its_place(run: Any) -> None:
    error = run("first", "-", text=b"ab\xe4").exception
    assert str(error) == "the input is not UTF-8 (byte 2): convert it first"


@given(st.text(alphabet=st.characters(codec=None)))
def test_a_document_of_any_text_is_one_line_of_ascii(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []
        patch.setattr(sys.stdout, "write", written.append)
        print_document({"text": text})
    assert written[0].isascii()
    assert written[0].count("\n") == 1
    assert json.loads(written[0]) == {"text": text}


def on_a_terminal(act: Callable[[], None]) -> bytes:
    """Return what a terminal as standard output is sent."""
    pytest.importorskip("termios")
    keyboard, terminal = os.openpty()
    os.set_blocking(keyboard, False)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(terminal, "w") as stream:
        patch.setattr(sys, "stdout", stream)
        act()
        stream.flush()
        shown = os.read(keyboard, 10_000)
    os.close(keyboard)
    return shown


def test_on_a_terminal_a_text_is_not_shown_byte_for_byte() -> None:
    answer = Answer({}, Text("harmless"), exact=b"\x1b[2Jharmful")
    shown = on_a_terminal(lambda: show(answer, as_json=False))
    assert b"harmless" in shown
    assert b"harmful" not in shown


def test_on_a_terminal_a_document_is_indented() -> None:
    shown = on_a_terminal(lambda: show(Answer({"a": 1}, Text("")), as_json=True))
    assert shown.splitlines() == [b"{", b'  "a": 1', b"}"]


def test_a_question_without_a_terminal_names_the_option() -> None:
    with pytest.raises(
        ValueError, match=r"^Delete it\? Standard input is not a terminal: confirm with --yes$"
    ):
        confirm("Delete it?", yes=False)


def test_who_said_yes_before_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    confirm("Delete it?", yes=True)
    assert capsys.readouterr() == ("", "")
