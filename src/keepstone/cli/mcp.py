"""``keepstone mcp``: an agent's memory for MCP clients."""

import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepstone.cli.options import (
    AgentOption,
    FolderOption,
    HomeOption,
    HomeOptions,
    JsonOption,
    LayoutOption,
    ProjectOption,
    SharedOption,
    YesOption,
)
from keepstone.errors import install_command
from keepstone.filesystem.open_files import allow_more_files

if TYPE_CHECKING:
    from keepstone.mcp.clients import ClientKind
    from keepstone.mcp.configuration import Change
    from keepstone.mcp.memory_tools import Profile

app = typer.Typer(
    name="mcp",
    help="Serve an agent's memory to MCP clients over stdio, or install that in a client.",
    invoke_without_command=True,
    epilog="Example: keepstone mcp --agent auto",
)

ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Leave out the tools that write.")]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile", metavar="NAME", help="reference: the tools of the reference memory server, as a drop-in."
    ),
]
WorktreeOption = Annotated[
    bool, typer.Option("--worktree", help="With --agent auto: each worktree has a memory of its own.")
]

ClientsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CLIENT...",
        help="claude-code, claude-desktop, cursor, vscode, codex, gemini, zed or windsurf.",
        show_default=False,
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="All clients that are found on this machine.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
RepositoryOption = Annotated[
    bool, typer.Option("--project", help="The file in the repository, which all who work on it share.")
]
StartOption = Annotated[
    bool, typer.Option("--start", help="Start also commands that keepstone mcp install did not write.")
]
HooksOption = Annotated[
    bool,
    typer.Option("--hooks", help="Also hooks that add context and store turns: claude-code, codex, gemini."),
]
SkillOption = Annotated[
    bool,
    typer.Option(
        "--skill", help="Also a skill: when to recall, save, supersede, forget: claude-code, codex, cursor."
    ),
]
NamedOption = Annotated[
    str | None,
    typer.Option(
        "--agent", metavar="SLUG", help="Whose memory; auto (one a project) where the client has projects."
    ),
]


@app.callback()
def mcp(
    context: typer.Context,
    home: HomeOption = None,
    layout: LayoutOption = "default",
    agent: AgentOption = "default",
    folder: ProjectOption = Path(),
    *,
    worktree: WorktreeOption = False,
    read_only: ReadOnlyOption = False,
    profile: ProfileOption = "keepstone",
    others: SharedOption = None,
) -> None:
    """Serve an agent's memory over stdio until standard input ends.

    With --agent auto the project names the agent: its folder's name and a digest of its path.
    """
    if context.invoked_subcommand is not None:
        return
    if find_spec("mcp") is None:
        raise ValueError(f"mcp is missing: {install_command('mcp')}")
    from keepstone.mcp.project import AUTO, UserNotes, agent_of

    chosen = _profile(profile)
    # Each open session holds file descriptors, and macOS allows 256 by default.
    allow_more_files()
    is_auto = agent == AUTO
    with HomeOptions(home, layout).open() as opened:
        slug = opened.agent(agent_of(folder, worktree=worktree) if is_auto else agent).slug
        from keepstone.mcp.stdio import serve

        # A coding agent reads the project's own notes itself.
        notes = UserNotes(folder) if is_auto else None
        serve(opened, slug, read_only=read_only, notes=notes, profile=chosen, shared=others or ())


def _profile(name: str) -> "Profile":
    if name == "reference":
        return "reference"
    if name == "keepstone":
        return "keepstone"
    raise ValueError(f"unknown profile {name!r:.80}; use keepstone or reference")


@app.command(epilog="Example: keepstone mcp install claude-code cursor")
def install(
    clients: ClientsArgument = None,
    *,
    everything: AllOption = False,
    shared: RepositoryOption = False,
    folder: FolderOption = Path(),
    home: HomeOption = None,
    agent: NamedOption = None,
    read_only: ReadOnlyOption = False,
    profile: ProfileOption = "keepstone",
    hooks: HooksOption = False,
    skill: SkillOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Add keepstone to the configuration of MCP clients.

    The change is shown first, and the file is backed up. Comments and order stay.
    On a terminal you are asked.
    """
    from keepstone.mcp.clients import command_of
    from keepstone.mcp.project import AUTO, DEFAULT

    # The path is absolute, as clients start the server in another folder.
    place = [] if home is None else ["--home", str(Path(home).expanduser().absolute())]

    def entry_of(client: "ClientKind") -> dict[str, Any]:
        options = ["--agent", agent or (AUTO if client.has_project else DEFAULT), *place]
        options += ["--read-only"] if read_only else []
        options += ["--profile", _profile(profile)] if profile != "keepstone" else []
        return client.entry(command_of(["mcp", *options], shared=shared))

    hook = (
        command_of(["hook", *place, *(["--agent", agent] if agent else [])], shared=shared) if hooks else None
    )
    chosen = _chosen(clients, everything=everything, shared=shared)
    changes = _changes(chosen, entry_of, folder if shared else None, hook=hook, skill=skill)
    _write(changes, dry_run=dry_run, yes=yes)


@app.command(epilog="Example: keepstone mcp uninstall --all")
def uninstall(
    clients: ClientsArgument = None,
    *,
    everything: AllOption = False,
    shared: RepositoryOption = False,
    folder: FolderOption = Path(),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Take keepstone out of the configuration of MCP clients. Memory stays."""
    chosen = _chosen(clients, everything=everything, shared=shared)
    changes = _changes(chosen, lambda _: None, folder if shared else None, hook=None, skill=False)
    _write(changes, dry_run=dry_run, yes=yes)


@app.command(epilog="Example: keepstone mcp status")
def status(
    shared: RepositoryOption = False,
    start: StartOption = False,
    folder: FolderOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Show in which clients keepstone is installed, and start each server to see whether it answers.

    A command that install does not write is shown, not started. The status is 1 if something is wrong.
    """
    from keepstone.cli.command import Answer, show
    from keepstone.cli.screen import table
    from keepstone.mcp.clients import CLIENTS

    clients = [client for client in CLIENTS if not shared or client.project_file]
    rows = [_state_of(client, folder if shared else None, start=start) for client in clients]
    document = {"clients": rows}
    view = table(
        ("client", "state", "file", "trouble"),
        [tuple(str(cell or "") for cell in row.values()) for row in rows],
    )
    show(Answer(document, view, status=int(any(row["trouble"] for row in rows))), as_json=as_json)


def _state_of(client: "ClientKind", folder: Path | None, *, start: bool) -> dict[str, str | None]:
    from keepstone.mcp.clients import is_present
    from keepstone.mcp.configuration import installed
    from keepstone.mcp.status import trouble_of

    path, trouble = _file_of(client, folder), None
    try:
        _check_inside(path, folder)
        entry = installed(client, path)
    except (ValueError, OSError) as error:
        state, trouble = "unreadable", str(error)
    else:
        if entry is not None:
            state = "installed"
            trouble = trouble_of(entry, shared=folder is not None, start=start)
        else:
            state = "not installed" if folder is not None or is_present(client) else "not found"
    return {"client": client.name, "state": state, "file": str(path), "trouble": trouble}


def _chosen(names: Iterable[str] | None, *, everything: bool, shared: bool) -> list["ClientKind"]:
    """Return the clients that were named.

    Raises:
        ValueError: No client was named, a name is unknown, or a client has no shared file.
    """
    from keepstone.mcp.clients import CLIENTS, client_of, is_present

    if everything:
        return [client for client in CLIENTS if is_present(client) and (client.project_file or not shared)]
    chosen = [client_of(name) for name in names or ()]
    if not chosen:
        raise ValueError(f"name a client, or use --all: {', '.join(client.name for client in CLIENTS)}")
    without = [client.title for client in chosen if shared and client.project_file is None]
    if without:
        raise ValueError(f"{without[0]} has no file in a repository: leave out --project")
    return chosen


def _file_of(client: "ClientKind", folder: Path | None) -> Path:
    if folder is None:
        return client.user_file()
    return folder.resolve() / str(client.project_file)


def _check_inside(path: Path, folder: Path | None) -> None:
    """Raise ValueError if a link leads out of the project, as a stranger may have made the project."""
    if folder is not None and not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} leads to {path.resolve()}, outside the project: remove the link")


def _changes(
    clients: Iterable["ClientKind"],
    entry_of: Callable[["ClientKind"], dict[str, Any] | None],
    folder: Path | None,
    *,
    hook: list[str] | None,
    skill: bool,
) -> list[tuple[str, "Change"]]:
    """Return the changes of all files, each with its client's title. Writes nothing."""
    from keepstone.mcp.configuration import Change, with_hooks, with_server, with_skill

    changes = []
    for client in clients:
        entry = entry_of(client)
        edits = {(path := _file_of(client, folder)): [with_server(client, path, entry)]}
        hooks_file = _hooks_file_of(client, folder)
        # Gemini has hooks and servers in one file: make one change with both edits, as a second change
        # would overwrite the first.
        if hooks_file is not None and (hook is not None or entry is None):
            edits.setdefault(hooks_file, []).append(with_hooks(client, hooks_file, hook))
        skill_file = _skill_file_of(client, folder)
        if skill_file is not None and (skill or (entry is None and skill_file.exists())):
            edits[skill_file] = [with_skill(skill_file, wanted=skill)]
        for path, file_edits in edits.items():
            _check_inside(path, folder)
            changes.append((client.title, Change.of(path, *file_edits, removes=path == skill_file)))
    return changes


def _skill_file_of(client: "ClientKind", folder: Path | None) -> Path | None:
    if client.skills_folder is None:
        return None
    skills = (
        client.skills_folder() if folder is None else folder.resolve() / str(client.project_skills_folder)
    )
    return skills / "keepstone" / "SKILL.md"


def _hooks_file_of(client: "ClientKind", folder: Path | None) -> Path | None:
    if client.hooks_file is None:
        return None
    return client.hooks_file() if folder is None else folder.resolve() / str(client.project_hooks_file)


def _write(changes: Iterable[tuple[str, "Change"]], *, dry_run: bool, yes: bool) -> None:
    for title, change in changes:
        _show_and_write(title, change, dry_run=dry_run, yes=yes)


def _show_and_write(title: str, change: "Change", *, dry_run: bool, yes: bool) -> None:
    from keepstone.cli.command import confirm
    from keepstone.mcp.configuration import ChangedError
    from keepstone.text.display import harmless

    while change.is_needed:
        typer.echo(harmless(change.diff()), nl=False)
        if dry_run:
            return
        confirm(f"Change {change.path}?", yes=yes or not sys.stdin.isatty())
        try:
            backup = change.write()
        except ChangedError:
            typer.echo(f"{title}: another program wrote {change.path}; this is the change of what it wrote")
            # The client may write its file at any time. The person agreed to another change, so ask again.
            change = change.again()
        else:
            kept = f", the file before is {backup}" if backup else ""
            typer.echo(f"{title}: changed {change.path}{kept}")
            return
    typer.echo(f"{title}: nothing to change in {change.path}")
