"""The root command, which runs all commands and reports their errors."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from keepstone.cli.command_table import COMMANDS
from keepstone.cli.exit_status import reported


class Frame(TyperGroup):
    """The root command, which reports every error in one place."""

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        """Run a command line and exit with its status."""
        words = list(sys.argv[1:] if args is None else args)
        _print_anything()
        _hide_types_of_flags(self, self.make_context("keepstone", [], resilient_parsing=True), words)
        with reported(as_json=_wants_json(words)):
            # In standalone mode Typer prints errors itself, and exits with its own status.
            settings["standalone_mode"] = False
            status = super().main(args=words, **settings)
        raise SystemExit(status if isinstance(status, int) else 0)


def _wants_json(words: Sequence[str]) -> bool:
    # Search the words themselves, as a usage error is raised before the options are parsed.
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def _print_anything() -> None:
    # A character that the terminal's encoding lacks is printed as an escape, without a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _hide_types_of_flags(command: Any, context: Any, words: Sequence[str]) -> None:
    """Remove ``<bool>`` from the help of the command that these words call, as a flag takes no value."""
    for option in (*command.params, command.get_help_option(context)):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    inner = getattr(command, "commands", {}).get(words[0]) if words else None
    if inner is not None:
        _hide_types_of_flags(inner, typer.Context(inner, parent=context, info_name=words[0]), words[1:])


def command_line(modules: Iterable[str]) -> typer.Typer:
    """Return the root command with the commands of these modules of ``keepstone.cli``, in this order."""
    app = _root()
    for module in modules:
        app.add_typer(import_module(f"keepstone.cli.{module}").app)
    return app


def outline() -> typer.Typer:
    """Return the root command for its help, with only the summaries of its commands."""
    app = _root()
    for name, (_, summary) in COMMANDS.items():
        app.command(name, help=summary)(_not_loaded)
    return app


def _not_loaded() -> None:
    raise NotImplementedError("this command is only shown")


def _root() -> typer.Typer:
    app = typer.Typer(
        cls=Frame,
        name="keepstone",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
        epilog="Example: keepstone demo",
    )
    app.callback()(keepstone)
    return app


def _version(context: typer.Context, value: bool) -> None:
    if not value:
        return
    from keepstone.cli.version import library_version, versions

    if context.params["as_json"]:
        typer.echo(json.dumps(versions()))
    else:
        typer.echo(f"keepstone {library_version() or '(run from its source, not installed)'}")
    raise typer.Exit


def keepstone(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version, with --json all versions.", callback=_version)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --version only.", is_eager=True, hidden=True)
    ] = False,
) -> None:
    """Memory for AI agents, in files that you can read.

    Options follow the command's name: --home (where memory lives) and --agent
    (which agent), for notes --dir (the project's folder), and everywhere --json
    (one JSON document instead of text). Exit status: 0 success, also of a search or
    list without results, 1 something named was not found, 2 invalid input, 3 the
    store or the system failed.
    """
    # The option exists at the root only for ``--version --json``.
    if as_json:
        raise typer.BadParameter("it follows the command's name", param_hint="--json")
