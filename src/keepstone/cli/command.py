"""Registration of commands: functions that take a home, an agent or notes and return an ``Answer``.

This module opens homes and prints answers for them.

    @agent_command(app, "keepstone history retry-policy")
    def history(agent: "Agent", entry: EntryArgument) -> Answer:
        ...
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import RenderableType

from keepstone.cli.exit_status import DeclinedError, broken_pipe_ignored
from keepstone.cli.options import (
    AgentOption,
    FolderOption,
    HomeOption,
    HomeOptions,
    JsonOption,
    LanguageOption,
    LayoutOption,
    NotesOptions,
    UserFileOption,
)
from keepstone.cli.screen import print_view
from keepstone.errors import HomeNotFoundError
from keepstone.operations.documents import Document
from keepstone.store.opening import is_database
from keepstone.text.display import harmless


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command."""

    document: Document
    """The document that ``--json`` prints."""
    view: RenderableType
    """The output for people."""
    exact: bytes | None = None
    """Bytes to print unchanged if standard output is not a terminal."""
    status: int = 0
    """The exit status."""


Command = TypeVar("Command", bound=Callable[..., Answer])


def agent_command(
    app: typer.Typer,
    example: str,
    name: str | None = None,
    *,
    needs_home: bool = False,
    shared: tuple[Parameter, ...] = (),
) -> Callable[[Command], Command]:
    """Register a function whose first argument is an Agent, with the options of a place and ``--json``.

    With ``needs_home``, a home that does not exist is an error. ``shared`` are options that several commands
    have; the function gets them as ``**``.
    """

    def register(function: Command) -> Command:
        def answer(place: HomeOptions, **given: Any) -> Answer:
            with place.open() as home:
                agent = home.agent(place.agent)
                if sys.stdin.isatty():  # A person. Otherwise a program, which a model may run.
                    agent = agent.on_behalf("user", "terminal")
                found = function(agent, **given)
                # Check after the function, which reads a missing home as an empty one; its own errors
                # come first.
                if needs_home and not is_database(home.root) and not home.root.exists():
                    raise HomeNotFoundError(home.root)
                return found

        _register(app, function, answer, HomeOptions, _AGENT_OPTIONS, shared, name=name, example=example)
        return function

    return register


def home_command(app: typer.Typer, example: str, name: str | None = None) -> Callable[[Command], Command]:
    """Register a function whose first argument is a Home, with the options of a home and ``--json``."""

    def register(function: Command) -> Command:
        def answer(place: HomeOptions, **given: Any) -> Answer:
            with place.open() as home:
                return function(home, **given)

        _register(app, function, answer, HomeOptions, _HOME_OPTIONS, (), name=name, example=example)
        return function

    return register


def notes_command(app: typer.Typer, example: str, name: str | None = None) -> Callable[[Command], Command]:
    """Register a function whose first argument is a Notes, with ``--dir --user-file --json``."""

    def register(function: Command) -> Command:
        def answer(place: NotesOptions, **given: Any) -> Answer:
            return function(place.open(), **given)

        _register(app, function, answer, NotesOptions, _NOTES_OPTIONS, (), name=name, example=example)
        return function

    return register


def option(name: str, annotation: object, default: object) -> Parameter:
    """Return an option that several commands have."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_HOME_OPTIONS = (
    option("home", HomeOption, None),
    option("layout", LayoutOption, "default"),
    option("language", LanguageOption, None),
    option("json", JsonOption, default=False),
)
_AGENT_OPTIONS = (*_HOME_OPTIONS[:3], option("agent", AgentOption, "default"), _HOME_OPTIONS[3])
_NOTES_OPTIONS = (
    option("folder", FolderOption, Path()),
    option("user_file", UserFileOption, None),
    _HOME_OPTIONS[3],
)


def _register(
    app: typer.Typer,
    function: Callable[..., Answer],
    answer: Callable[..., Answer],
    make_place: type[HomeOptions | NotesOptions],
    options: tuple[Parameter, ...],
    shared: tuple[Parameter, ...],
    **settings: str | None,
) -> None:
    def run(**given: Any) -> None:
        place = make_place(**{option.name: given.pop(option.name) for option in options})
        show(answer(place, **given), as_json=place.json)

    run.__doc__ = function.__doc__
    # Typer reads the signature: the shared options, and the function's own parameters except the first.
    own = list(inspect.signature(function).parameters.values())[1:]
    # They are keyword-only: shared options with defaults come first in the signature, and after these
    # Python allows no positional parameter without a default.
    own = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in own
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]
    run.__signature__ = Signature([*shared, *own, *options])  # type: ignore[attr-defined]
    app.command(settings["name"] or function.__name__, epilog=f"Example: {settings['example']}")(run)


def show(answer: Answer, *, as_json: bool) -> None:
    """Print an answer as text or JSON, and exit with its status if that is not 0."""
    with broken_pipe_ignored():
        _print(answer, as_json=as_json)
    if answer.status:
        raise typer.Exit(answer.status)


def _print(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_document(answer.document)
    # A pipe or a file gets the stored bytes unchanged; a terminal would execute escape sequences in them.
    elif answer.exact is not None and not sys.stdout.isatty():
        typer.get_binary_stream("stdout").write(answer.exact)
    else:
        print_view(answer.view)


def print_document(document: Document) -> None:
    """Print one JSON document on standard output.

    The output is pure ASCII, so that it prints in any encoding, lone surrogates included.
    """
    # Programs read one document per line; a person gets an indented one.
    sys.stdout.write(json.dumps(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation.

    Raises:
        DeclinedError: The user answered no.
        ValueError: Standard input is not a terminal, and ``--yes`` was not given.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(f"{question} Standard input is not a terminal: confirm with --yes")
    # Ask on standard error, so that the output of the command can be redirected.
    if not typer.confirm(harmless(question), err=True):
        raise DeclinedError("nothing was changed")


def argument_or_input(text: str) -> str:
    """Return an argument, or all of standard input if the argument is ``-``.

    Raises:
        ValueError: The input is not UTF-8.
    """
    if text != "-":
        return text
    # Read bytes: Python would decode standard input by the locale, but memory is always UTF-8.
    raw = typer.get_binary_stream("stdin").read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the input is not UTF-8 (byte {error.start}): convert it first") from None
