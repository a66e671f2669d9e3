"""The options that commands share, and what the shell may complete in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepstone.errors import KeepstoneError

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.notes.notes import Notes


@dataclass(frozen=True, slots=True)
class HomeOptions:
    """Where a command works: the shared options, as they were given."""

    home: str | None = None
    layout: str = "default"
    agent: str = "default"
    json: bool = False

    @contextmanager
    def open(self) -> Iterator[Home]:
        """Open the home, and close it after the block."""
        # The engine brings SQLite with it; the help and the completion of options need neither.
        import keepstone

        with keepstone.open(self.home, layout=self.layout) as home:
            yield home


@dataclass(frozen=True, slots=True)
class NotesOptions:
    """Where a command finds notes: the shared options, as they were given."""

    folder: Path = Path()
    user_file: str | None = None
    json: bool = False

    def open(self) -> Notes:
        """Return the notes of the project and of its user; nothing is read or written yet."""
        import keepstone

        return keepstone.Notes(self.folder, self.user_file)


def _completed(context: typer.Context) -> HomeOptions:
    given: dict[str, Any] = {name: context.params.get(name) for name in ("home", "layout", "agent")}
    return HomeOptions(**{name: value for name, value in given.items() if value is not None})


def _offered(names: Iterator[str] | list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def complete_agents(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the slugs of the home's agents."""
    try:
        with _completed(context).open() as home:
            return _offered(home.agents(), incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of the agent's sessions."""
    place = _completed(context)
    try:
        with place.open() as home:
            return _offered([info.id for info in home.agent(place.agent).sessions()], incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_files(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the paths of the agent's files."""
    place = _completed(context)
    try:
        with place.open() as home:
            return _offered(home.agent(place.agent).files.list(), incomplete)
    except (KeepstoneError, ValueError, OSError):
        return []


def complete_layouts(incomplete: str) -> list[str]:
    """Offer the names of the layouts."""
    from keepstone.filesystem.layout import LAYOUTS

    return _offered(list(LAYOUTS), incomplete)


HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Where memory lives; without it $KEEPSTONE_HOME, else your data folder.",
        rich_help_panel="Place",
    ),
]
LayoutOption = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="How the home is laid out: default, bmad or cache.",
        autocompletion=complete_layouts,
        rich_help_panel="Place",
    ),
]
AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SLUG",
        help="Whose memory.",
        autocompletion=complete_agents,
        rich_help_panel="Place",
    ),
]


def folder_option(*names: str) -> Any:
    """Return the option for a project's folder, under these names."""
    return typer.Option(
        *names,
        metavar="DIR",
        help="The project's folder, which holds AGENTS.md.",
        exists=True,
        file_okay=False,
        rich_help_panel="Place",
    )


FolderOption = Annotated[Path, folder_option("--dir")]
UserFileOption = Annotated[
    str | None,
    typer.Option(
        "--user-file",
        metavar="FILE",
        help="The user's notes; without it $KEEPSTONE_USER_MEMORY, else ~/.wave/memory.md.",
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
        help="The session that holds the entry, where several have its id.",
        autocompletion=complete_sessions,
    ),
]
TypesOption = Annotated[
    list[str] | None, typer.Option("--type", metavar="TYPE", help="Only of this type; may be repeated.")
]
PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="The path below the agent's folder of files.",
        autocompletion=complete_files,
        show_default=False,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
