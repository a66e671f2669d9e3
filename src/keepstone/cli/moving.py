"""``keepstone import``, ``export`` and ``sync``: memory between tools, formats and homes."""

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Group
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, home_command, show
from keepstone.cli.exit_status import BAD_INPUT
from keepstone.cli.options import HomeOption, HomeOptions, JsonOption, LayoutOption, complete_agents
from keepstone.cli.screen import HarmlessStream, progress, table
from keepstone.importing import SOURCES, import_memory
from keepstone.operations.exporting import FORMATS, export_memory
from keepstone.text.display import counted, harmless, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.home import Home

app = typer.Typer()

_MOST = 1_000
"""Default maximum of megabytes that the other machine may send in a sync."""
_SHOWN = 20
"""Maximum number of failures shown to people; ``--json`` has all of them."""

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help=f"One of {' '.join(SOURCES)}.",
        autocompletion=lambda incomplete: [name for name in SOURCES if name.startswith(incomplete)],
        show_default=False,
    ),
]
PathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="The file, folder or zip archive.", show_default=False)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only count what would be imported.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Skip records that are here already without comparing them.")
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN,…",
        help="For csv and jsonl: the columns of text, ts, role, id, session, type and tags. "
        "For openai-agents: messages=TABLE.",
    ),
]
SecretsOption = Annotated[
    str, typer.Option("--secrets", metavar="POLICY", help="For keys and tokens: keep, mask or refuse.")
]
VectorsOption = Annotated[
    bool,
    typer.Option(
        "--vectors", help="Take along vectors that do not name their model: the home's embedder made them."
    ),
]
BranchesOption = Annotated[
    bool, typer.Option("--branches", help="All branches of a conversation, not only the current one.")
]
KeepOriginOption = Annotated[
    bool,
    typer.Option("--keep-origin", help="Keep who said each record; else it has no more trust than import."),
]
AgentFromOption = Annotated[
    str | None,
    typer.Option(
        "--agent-from",
        metavar="FIELD",
        help="An agent for each user: user_id, or of a LangGraph store namespace or namespace.0, its first "
        "label. Records without it go to --agent.",
    ),
]


@agent_command(app, "keepstone import chatgpt ~/Downloads/export.zip --agent me", name="import")
def import_(
    agent: "Agent",
    source: SourceArgument,
    path: PathArgument,
    *,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    mapping: MapOption = None,
    secrets: SecretsOption = "keep",
    branches: BranchesOption = False,
    agent_from: AgentFromOption = None,
    vectors: VectorsOption = False,
    keep_origin: KeepOriginOption = False,
) -> Answer:
    """Import the memory of another tool; auto recognises which.

    A second run adds nothing: changed records replace their entries, and what was deleted here stays deleted.
    The source is never changed, and nothing of it is executed. Status 0 also when single records failed; 2
    when all of them did, or there were none.
    """
    with progress("importing") as bar:
        task = bar.task_ids[0]
        result = import_memory(
            agent,
            source,
            path,
            dry_run=dry_run,
            resume=resume,
            mapping=_columns(mapping),
            branches=branches,
            vectors=vectors,
            secrets=secrets,
            agent_from=agent_from,
            keep_origin=keep_origin,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    document = {
        "source": result.source,
        "imported": result.imported,
        "unchanged": result.unchanged,
        "failed": [{"place": failure.place, "reason": failure.reason} for failure in result.failed],
    } | ({"notes": result.notes} if result.notes else {})
    verb = "would import" if dry_run else "imported"
    words = f"{verb} {counted(result.imported, 'entry')} from {result.source}, {result.unchanged:,} unchanged"
    shown: list[Any] = [Text(words + (f", {len(result.failed):,} failed" if result.failed else ""))]
    if result.failed:
        rows = [(failure.place, failure.reason) for failure in result.failed[:_SHOWN]]
        shown.append(table(("not imported", "reason"), rows))
        if len(result.failed) > _SHOWN:
            shown.append(Text(f"and {len(result.failed) - _SHOWN:,} more: see --json"))
    shown += [Text(one_line(note)) for note in result.notes]
    if not (result.imported or result.unchanged or result.failed):
        shown.append(Text(f"{one_line(str(path))} has nothing to import: it is empty, or of another source"))
    status = 0 if result.imported or result.unchanged else BAD_INPUT
    return Answer(document, Group(*shown), status=status)


def _columns(mapping: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in (mapping or "").split(","):
        field, equals, column = pair.strip().partition("=")
        if pair.strip() and not (field and equals and column):
            raise ValueError(f"--map takes field=column pairs, not {pair.strip()!r:.80}: text=body,ts=date")
        if pair.strip():
            found[field.strip()] = column.strip()
    return found


OnlyAgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", metavar="SLUG", help="Only this agent; default: all, each in its folder.",
        autocompletion=complete_agents, rich_help_panel="Place",
    ),
]  # fmt: skip
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Made then or later: 2026-03-01, or RFC 3339.")
]
FormatOption = Annotated[str, typer.Option("--format", metavar="NAME", help=f"One of {' '.join(FORMATS)}.")]
OutOption = Annotated[
    str,
    typer.Option(
        "--out", metavar="PATH", help="Where to write to; - is standard output.", show_default=False
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]


@home_command(app, "keepstone export --agent coder --format md --out coder-memory", name="export")
def export(
    home: "Home",
    *,
    out: OutOption,
    agent: OnlyAgentOption = None,
    format_: FormatOption = "ndjson",
    since: SinceOption = None,
    force: ForceOption = False,
) -> Answer:
    """Export memory in an open format: lines, Markdown, an OKF bundle, SQLite or CSV.

    keepstone import reads all of them, and gives the same memory. Deleted and archived entries are left out.
    """
    with progress("exporting") as bar:
        task = bar.task_ids[0]
        count = export_memory(
            home,
            out,
            agent=agent,
            format=format_,
            since=since,
            force=force,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            # Escape sequences in memory must not reach a terminal; in a pipe the bytes are exact.
            stream=cast("IO[bytes]", HarmlessStream(sys.stdout)) if sys.stdout.isatty() else None,
        )
    document = {"entries": count, "format": format_, "out": out}
    if out == "-":  # Only the entries are printed.
        raise typer.Exit
    return Answer(document, Text(f"exported {counted(count, 'entry')} to {harmless(out)}"))


TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DIR|HOST:PATH",
        help="A folder that the homes share, outside of each; or a home on a machine that ssh reaches.",
        show_default=False,
    ),
]
SshOption = Annotated[
    str, typer.Option("--ssh", metavar="COMMAND", help='What reaches the other machine: "ssh -p 2222".')
]
RemoteCommandOption = Annotated[
    str, typer.Option("--remote-command", metavar="COMMAND", help="What runs keepstone on that machine.")
]
MaxOption = Annotated[
    int,
    typer.Option(
        "--max", metavar="MB", min=1, help="Most that the other machine may send, in megabytes, unpacked."
    ),
]


@app.command(epilog="Example: keepstone sync ~/Dropbox/keepstone")
def sync(
    target: TargetArgument,
    *,
    ssh: SshOption = "ssh",
    remote_command: RemoteCommandOption = "keepstone",
    max_size: MaxOption = _MOST,
    home: HomeOption = None,
    layout: LayoutOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Exchange entries, files, grants and purges with other homes, over a shared folder or ssh.

    In a folder each home writes only files of its own; what has not arrived whole is left for the next time.
    Over ssh (keepstone sync ada@laptop:agents) both homes end in the same state at once. Of two edits of one
    file the later stays, and the other is kept beside it.
    """
    from keepstone.filesystem.layout import layout_of
    from keepstone.operations.syncing import sync as exchange
    from keepstone.operations.syncing.ssh import answer_over_ssh, is_remote, sync_over_ssh

    most = max_size * 1_000_000
    if target == "-":  # The other side of sync_over_ssh: only the files go to standard output.
        if home is not None and not Path(home).is_dir():
            raise ValueError(f"{home} is not a folder there: give the path of the home, or make the folder")
        with HomeOptions(home, layout).open() as opened:
            answer_over_ssh(opened, layout_of(layout), sys.stdin.buffer, sys.stdout.buffer, most=most)
        return
    with HomeOptions(home, layout).open() as opened:
        # An existing folder takes precedence, even if its name looks like HOST:PATH.
        if is_remote(target) and not Path(target).exists():
            options: tuple[str, ...] = () if layout == "default" else ("--layout", layout)
            options += () if max_size == _MOST else ("--max", str(max_size))
            place = layout_of(layout)
            result = sync_over_ssh(
                opened, place, target, ssh=ssh, command=remote_command, options=options, most=most
            )
        else:
            result = exchange(opened, layout_of(layout), _shared_folder(target))
    document = {
        "devices": result.devices,
        "changed": result.changed,
        "files": result.files,
        "purged": result.purged,
        "pending": result.pending,
        "skipped": result.skipped,
        "merged_copies": result.merged_copies,
    }
    words = f"read {counted(result.devices, 'other home')}: {counted(len(result.changed), 'session')} changed"
    words += f", {counted(len(result.files), 'file')} written or deleted" if result.files else ""
    words += f", {counted(result.purged, 'entry')} purged"
    lines = [words, *(f"merged the conflicting copy {name}" for name in result.merged_copies)]
    lines += [f"left for the next time: {name}" for name in result.pending]
    lines += [f"left out: {name}" for name in result.skipped]
    show(Answer(document, Text("\n".join(map(one_line, lines)))), as_json=as_json)


def _shared_folder(target: str) -> Path:
    """Return the folder that a target names; refuse a new folder whose name looks like HOST:PATH."""
    folder = Path(target)
    if ":" in target.partition("/")[0] and not folder.exists():
        raise ValueError(
            f"{target!r:.80} is neither a folder nor HOST:PATH, such as ada@host:agents; for a new folder of "
            f"this name write ./{target:.80}"
        )
    return folder
