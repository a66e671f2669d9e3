"""Options that commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepstone.errors import KeepstoneError

if TYPE_CHECKING:
    from datetime import datetime

    from keepstone.home import Home
    from keepstone.notes.notes import Notes


@dataclass(frozen=True, slots=True)
class HomeOptions:
    """The shared options of a command on a home."""

    home: str | None = None
    layout: str = "default"
    language: str | None = None
    agent: str = "default"
    json: bool = False

    @contextmanager
    def open(self) -> Iterator[Home]:
        """Open the home for a block, in which ``place_options`` returns this home's options."""
        # Imported late: the engine imports SQLite, which help and completion do not need.
        import keepstone

        with keepstone.open(self.home, layout=self.layout, language=self.language) as home:
            before = _PLACE.set(self._named(home))
            try:
                yield home
            finally:
                _PLACE.reset(before)

    def _named(self, home: Home) -> tuple[str, ...]:
        # Only options that were given, so that printed commands stay short for the default home.
        place = () if self.home is None else ("--home", str(home.root))
        return place if self.layout == "default" else (*place, "--layout", self.layout)


_PLACE: ContextVar[tuple[str, ...]] = ContextVar("place", default=())


def place_options() -> tuple[str, ...]:
    """Return the options that make another command use the same home, from any folder."""
    return _PLACE.get()


@dataclass(frozen=True, slots=True)
class NotesOptions:
    """The shared options of a command on notes."""

    folder: Path = Path()
    user_file: str | None = None
    json: bool = False

    def open(self) -> Notes:
        """Return the notes of the project and its user. Nothing is read or written yet."""
        import keepstone

        return keepstone.Notes(self.folder, self.user_file)


def moment_or_none(text: str | None, option: str) -> datetime | None:
    """Return the time that an option's text means, such as ``7d`` or ``yesterday``; None without a text."""
    from keepstone.log.arguments import system_clock
    from keepstone.log.time_words import moment_of

    return None if text is None else moment_of(text, system_clock(), option)


def _place_of(context: typer.Context) -> HomeOptions:
    given: dict[str, Any] = {name: context.params.get(name) for name in ("home", "layout", "agent")}
    return HomeOptions(**{name: value for name, value in given.items() if value is not None})


def _matching(names: Iterator[str] | list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def complete_agents(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the slugs of the home's agents."""
    try:
        with _place_of(context).open() as home:
            return _matching(home.agents(), incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of the agent's sessions."""
    place = _place_of(context)
    try:
        with place.open() as home:
            return _matching([info.id for info in home.agent(place.agent).sessions()], incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_files(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the paths of the agent's files."""
    place = _place_of(context)
    try:
        with place.open() as home:
            return _matching(home.agent(place.agent).files.list(), incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_layouts(incomplete: str) -> list[str]:
    """Offer the names of the layouts."""
    from keepstone.filesystem.layout import LAYOUTS

    return _matching(list(LAYOUTS), incomplete)


def complete_languages(incomplete: str) -> list[str]:
    """Offer the codes of the languages that have a stemmer."""
    from keepstone.text.tokenizer import LANGUAGES

    return _matching(list(LANGUAGES), incomplete)


HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="HOME",
        help="Where memory lives: a folder, or a postgresql: URL; default: $KEEPSTONE_HOME, else your data "
        "folder.",
        rich_help_panel="Place",
    ),
]
LayoutOption = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="The home's layout: default, bmad or cache.",
        autocompletion=complete_layouts,
        rich_help_panel="Place",
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help="The language of words in Latin letters, such as de; the home remembers it.",
        autocompletion=complete_languages,
        rich_help_panel="Place",
    ),
]
AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SLUG",
        help="The agent.",
        autocompletion=complete_agents,
        rich_help_panel="Place",
    ),
]


def folder_option(*names: str) -> Any:
    """Return the option for a project's folder, under these names."""
    return typer.Option(
        *names,
        metavar="DIR",
        help="The project's folder, which contains AGENTS.md.",
        exists=True,
        file_okay=False,
        rich_help_panel="Place",
    )


ProjectOption = Annotated[Path, folder_option("--dir", "--project")]
FolderOption = Annotated[Path, folder_option("--dir")]
"""The folder option of commands in which ``--project`` is a flag."""
UserFileOption = Annotated[
    str | None,
    typer.Option(
        "--user-file",
        metavar="FILE",
        help="The user's notes; default: $KEEPSTONE_USER_MEMORY, else ~/.wave/memory.md.",
        rich_help_panel="Place",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document (docs/json.md).", rich_help_panel="Place"),
]

EntryArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.", show_default=False)]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="The id of the session.",
        autocompletion=complete_sessions,
        show_default=False,
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="The entry's session; needed if several sessions have its id.",
        autocompletion=complete_sessions,
    ),
]
TypesOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only entries of this type; may be repeated."),
]
SharedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shared",
        metavar="AGENT",
        help="Also what this other agent shares; may be repeated.",
        autocompletion=complete_agents,
    ),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only entries with this tag; may be repeated."),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Made then or later: 7d, yesterday, 2026-03-01, or RFC 3339."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="TIME", help="Made before then: 12h, last week, 2026-04-01, or RFC 3339."
    ),
]
PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="The path below the agent's files folder.",
        autocompletion=complete_files,
        show_default=False,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
