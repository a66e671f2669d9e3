"""Errors, their statuses and their codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keepstone import errors
from keepstone.cli import exit_status
from keepstone.cli.exit_status import code_of, reported, status_of
from keepstone.errors import NoteNotFoundError, SessionNotFoundError

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


def every_error() -> list[type[Exception]]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return [
        kind
        for kind in kinds
        if issubclass(kind, errors.KeepstoneError) and kind is not errors.KeepstoneError
    ]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_has_its_row_in_the_contract(kind: type[Exception]) -> None:
    error = kind.__new__(kind, "something")  # Some take more than a message.
    assert f"| `{code_of(error)}` | {status_of(error)} |" in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (SessionNotFoundError("coder", "s"), "session_not_found", 1),
        (NoteNotFoundError("x"), "note_not_found", 1),
        (exit_status.DeclinedError("no"), "declined", 1),
        (ValueError("x"), "invalid_argument", 2),
        (TypeError("x"), "invalid_argument", 2),
        (OSError("x"), "system", 3),
    ],
)
def test_other_errors_have_their_row_as_well(error: Exception, code: str, status: int) -> None:
    assert (code_of(error), status_of(error)) == (code, status)
    assert re.search(rf"\| `{code}` \| {status} \|", PAGE.read_text("utf-8"))


def test_an_error_of_the_system_is_reported_with_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, reported(as_json=False):
        raise OSError(28, "No space left on device", "/data/x")
    assert left.value.code == 3
    assert capsys.readouterr().err == "error: No space left on device: /data/x\n"


def test_control_characters_in_a_message_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), reported(as_json=False):
        raise ValueError("bad name \x1b[2J")
    assert capsys.readouterr().err == "error: bad name \\x1b[2J\n"


def test_an_error_of_ours_is_not_swallowed() -> None:
    with pytest.raises(KeyError), reported(as_json=False):
        raise KeyError("a mistake in the program")


def test_an_interrupt_ends_with_130() -> None:
    with pytest.raises(SystemExit) as left, reported(as_json=False):
        raise KeyboardInterrupt
    assert left.value.code == 130
