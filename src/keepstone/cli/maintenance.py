"""``keepstone doctor``, ``backup``, ``index`` and ``compact``: maintenance of a home."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, home_command
from keepstone.cli.options import complete_sessions, place_options
from keepstone.cli.screen import progress
from keepstone.errors import EmbedderUnavailableError, KeepstoneError, SessionNotFoundError
from keepstone.model import Finding
from keepstone.notes.notes import PROJECT_FILE, Notes
from keepstone.operations.documents import backup_document, finding_document
from keepstone.store.protocol import Compacted
from keepstone.text.display import counted, harmless, one_line, size
from keepstone.text.pasting import placed, split_commands

if TYPE_CHECKING:
    from rich.progress import Progress

    from keepstone.agent import Agent
    from keepstone.home import Home

app = typer.Typer()

_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}
_WIDTH, _INDENT = 100, 9


DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep", help="Compare every row and vector with the logs, and scan all lines for secrets."
    ),
]
FixOption = Annotated[
    bool,
    typer.Option("--fix", help="Repair what can be repaired; the original of a changed log is kept."),
]


@home_command(app, "keepstone doctor --deep")
def doctor(home: "Home", deep: DeepOption = False, fix: FixOption = False) -> Answer:
    """Check the home for damage; each finding has its cost and remedy.

    The status is 1 if there is an error; warnings do not count. Without --fix no memory is changed. The
    newest MiB of each log is scanned for secrets, with --deep all of it.
    """
    return checked(home, deep=deep, fix=fix)


def checked(home: "Home", *, deep: bool, fix: bool) -> Answer:
    """Return the answer of a check of a home."""
    with progress("checking") as bar:
        findings = home.doctor(deep=deep, fix=fix, progress=_updater(bar)) + _notes_findings()
    # Remedies name commands, which must work on this home wherever they are pasted.
    findings = [replace(finding, remedy=placed(finding.remedy, place_options())) for finding in findings]
    healthy = all(finding.level != "error" for finding in findings)
    document = {"healthy": healthy, "findings": [finding_document(finding) for finding in findings]}
    return Answer(document, _findings_view(findings), status=0 if healthy else 1)


def _notes_findings() -> list[Finding]:
    """Return findings about the notes of the project in the working directory."""
    try:
        words = Notes().warning()
    except KeepstoneError as error:
        words = str(error)
    remedy, cost = "remove notes, or keepstone notes dedupe", "some agents do not see all notes"
    return [Finding("warning", PROJECT_FILE, words, remedy, cost)] if words else []


def _updater(bar: "Progress") -> Callable[[int, int], None]:
    """Return a function that sets a bar's progress to ``done`` of ``total``."""
    task = bar.task_ids[0]
    return lambda done, total: bar.update(task, completed=done, total=total)


def _findings_view(findings: list[Finding]) -> RenderableType:
    if not findings:
        return Text("nothing to check yet")
    return Group(*(_finding_view(finding) for finding in findings))


def _finding_view(finding: Finding) -> RenderableType:
    """Return a finding as a block of at most 100 columns. Commands are not wrapped, for copying."""
    what = Text.assemble(
        (f"{finding.level:<9}", _STYLES.get(finding.level, "")), (one_line(finding.subject), "bold")
    )
    cost = [f"if ignored: {one_line(finding.cost)}"] if finding.cost else []
    lines: list[RenderableType] = []
    for words in (one_line(finding.message), *cost, one_line(finding.remedy)):
        for kind, piece in split_commands(words):
            if kind == "command":
                lines.append(Text(" " * _INDENT + piece, "cyan", no_wrap=True, overflow="ignore"))
            else:
                lines.append(Constrain(Padding(Text(piece), (0, 0, 0, _INDENT)), _WIDTH))
    return Group(what, *lines)


FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A new or empty folder for the copy.", show_default=False)
]


VectorsOption = Annotated[
    bool, typer.Option("--vectors", help="Also copy vectors, so that they need not be made again.")
]


@home_command(app, "keepstone backup ~/backups/2026-01-11 --vectors")
def backup(home: "Home", folder: FolderArgument, vectors: VectorsOption = False) -> Answer:
    """Copy the home, and check the copy. Writers need not stop.

    The copy is a home: to restore it, use it with --home. Indexes are left out unless --vectors is given, as
    they are rebuilt. The status is 1 if the copy has damage, which the home then has, too.
    """
    with progress("copying") as bar:
        info = home.backup(folder, _updater(bar), vectors=vectors)
    counts = (counted(info.agents, "agent"), counted(info.sessions, "session"))
    words = f"copied {', '.join(counts)}, {counted(info.entries, 'entry')} and {counted(info.files, 'file')}"
    view = Text(f"{words} ({size(info.size)}) to {harmless(str(info.folder))}")
    damaged = bool(info.findings)
    shown = Group(view, _findings_view(list(info.findings))) if damaged else view
    return Answer(backup_document(info), shown, status=int(damaged))


RebuildOption = Annotated[bool, typer.Option("--rebuild", help="Rebuild the indexes from the logs.")]
OnlyOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Only this session.",
        autocompletion=complete_sessions,
        show_default=False,
    ),
]


ReembedOption = Annotated[
    bool,
    typer.Option(
        "--re-embed",
        help="Re-embed all entries with --embedder, the home's from then on. Can be interrupted and resumed.",
    ),
]
EmbedderOption = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="For --re-embed: auto, minilm, e5, static, openai:MODEL or http://HOST:PORT/v1?model=MODEL.",
    ),
]


@home_command(app, "keepstone index --re-embed --embedder minilm")
def index(
    home: "Home",
    rebuild: RebuildOption = False,
    re_embed: ReembedOption = False,
    embedder: EmbedderOption = "auto",
) -> Answer:
    """Update the indexes from the logs.

    If an embedder is installed, entries without a vector are embedded. A server that --re-embed
    names is allowed for later commands, too (keepstone model allow).
    """
    sessions = _indexed(home, rebuild=rebuild)
    made = _embed(home, embedder if re_embed else None)
    document = {"rebuilt": rebuild, "sessions": sessions, "vectors_made": made}
    words = "the index is up to date" if sessions is None else f"rebuilt from {counted(sessions, 'session')}"
    return Answer(document, Text(words + (f", made {counted(made, 'vector')}" if made else "")))


def _indexed(home: "Home", *, rebuild: bool) -> int | None:
    """Update or rebuild the indexes; return the number of sessions that a rebuild read, else None."""
    with progress("indexing") as bar:
        task = bar.task_ids[0]

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if rebuild:
            return home.rebuild(tell)
        home.sync(tell)
        return None


def _embed(home: "Home", embedder: str | None) -> int | None:
    """Embed all entries if an embedder is named, else the pending ones; return None without an embedder."""
    with progress("embedding") as bar:
        task = bar.task_ids[0]

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if embedder is not None:
            return _reembed(home, embedder, tell)
        try:
            return home.embed(tell)
        except EmbedderUnavailableError:
            return None


def _reembed(home: "Home", embedder: str, tell: Callable[[int, int], None]) -> int:
    from keepstone.embed import servers

    made = home.reembed(embedder, tell)
    if servers.server_of(embedder) is not None:
        # The person has just named the server. Later commands read its name from the home, which cannot
        # allow a server.
        servers.allow(embedder)
    return made


ArchiveOption = Annotated[
    bool, typer.Option("--archive", help="Archive entries of priority 0.3 or less, too, unless pinned.")
]


@agent_command(app, "keepstone compact --session main --archive")
def compact(agent: "Agent", session: OnlyOption = None, archive: ArchiveOption = False) -> Answer:
    """Shorten the agent's logs: old versions and deleted entries move to the archive.

    Priorities fade with age and grow with use, each type at its own rate. Archived entries are not recalled.
    """
    known = [info.id for info in agent.sessions()]
    if session is not None and session not in known:
        raise SessionNotFoundError(agent.slug, session)
    chosen = known if session is None else [session]
    saved, archived = _compact(agent, chosen, archive=archive)
    words = f"compacted {counted(len(chosen), 'session')}, saved {size(saved)}"
    words += f", archived {counted(archived, 'entry')}" if archive else ""
    return Answer({"sessions": len(chosen), "saved_bytes": saved, "archived": archived}, Text(words))


def _compact(agent: "Agent", sessions: list[str], *, archive: bool) -> tuple[int, int]:
    """Compact sessions; return the bytes saved and the number of entries archived."""
    saved = archived = 0
    with progress("compacting") as bar:
        for name in bar.track(sessions, task_id=bar.task_ids[0]):
            session = agent.session(name)
            done = session.archive_faded() if archive else Compacted(session.compact())
            saved, archived = saved + done.saved, archived + done.archived
    return saved, archived
