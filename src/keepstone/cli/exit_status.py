"""Errors as messages and exit statuses of the command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from keepstone.operations import error_codes
from keepstone.operations.error_codes import FORESEEN, MISSING, WRONG
from keepstone.text.display import harmless

NOT_FOUND = 1
"""Status if something named does not exist, or a question was answered with no."""
BAD_INPUT = 2
"""Status if an argument, an option or a text is invalid."""
FAILED = 3
"""Status if the store, a lock or the system failed; the same command may work later."""
INTERRUPTED = 130
"""Status if the user pressed Ctrl-C."""


class DeclinedError(Exception):
    """The user answered a question with no. Nothing was changed."""


_REPORTED = (*FORESEEN, DeclinedError, typer.TyperException)


def status_of(error: BaseException) -> int:
    """Return the exit status of an error."""
    if isinstance(error, (*MISSING, DeclinedError)):
        return NOT_FOUND
    return BAD_INPUT if isinstance(error, (*WRONG, typer.TyperException)) else FAILED


def code_of(error: BaseException) -> str:
    """Return the code of an error for ``--json``; docs/json.md lists all codes.

    Examples:
        >>> code_of(keepstone.EntryNotFoundError("no entry 'x'"))
        'entry_not_found'
    """
    if isinstance(error, typer.TyperException):
        return "usage"
    return "declined" if isinstance(error, DeclinedError) else error_codes.code_of(error)


@contextmanager
def reported(*, as_json: bool) -> Iterator[None]:
    """Report errors of the block on standard error, and exit with their status."""
    try:
        with broken_pipe_ignored():
            yield
    # Typer raises Abort for Ctrl-C at a question.
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(INTERRUPTED) from None
    except _REPORTED as error:
        _print(error, as_json=as_json)
        raise SystemExit(status_of(error)) from None


@contextmanager
def broken_pipe_ignored() -> Iterator[None]:
    """Exit with status 0 if the reader of standard output, such as ``head``, has closed the pipe."""
    try:
        yield
        # Flush here: at Python's exit, a closed pipe would print a traceback.
        sys.stdout.flush()
    except BrokenPipeError:
        # Discard the data that is still buffered, also at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


def _print(error: Exception, *, as_json: bool) -> None:
    message = message_of(error)
    if as_json:
        typer.echo(json.dumps({"error": {"code": code_of(error), "message": message}}), err=True)
    elif message:
        # A message may quote memory or a path, whose control characters a terminal would execute.
        typer.echo(f"error: {harmless(message)}", err=True)


def message_of(error: Exception) -> str:
    """Return the message of an error; for a usage error it names the help."""
    if isinstance(error, typer.TyperException):
        return _usage(error)
    return error_codes.message_of(error)


def _usage(error: typer.TyperException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if not message or context is None:
        return message
    sentence = message if message.endswith("?") else f"{message.rstrip('.')}."
    return f"{sentence} See: {context.command_path} --help"
