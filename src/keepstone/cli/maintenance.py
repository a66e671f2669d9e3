"""``keepstone doctor``, ``backup``, ``index`` and ``compact``: looking after a home."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, home_command
from keepstone.cli.options import complete_sessions
from keepstone.cli.screen import progress
from keepstone.errors import EmbedderUnavailableError, KeepstoneError
from keepstone.model import Finding
from keepstone.notes.notes import PROJECT_FILE, Notes
from keepstone.operations.documents import backup_document, finding_document
from keepstone.store.protocol import Compacted, SessionNotFoundError
from keepstone.text.display import counted, harmless, one_line, size

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
        "--deep", help="Compare every row and vector with the logs, and look for secrets in all lines."
    ),
]
FixOption = Annotated[
    bool,
    typer.Option("--fix", help="Mend what can be mended; a log that is changed keeps its original."),
]


@home_command(app, "keepstone doctor --deep")
def doctor(home: "Home", deep: DeepOption = False, fix: FixOption = False) -> Answer:
    """Look for damage and say what it costs and what to do about it.

    The status is 1 if there is an error; warnings do not count. Without --fix nothing that is
    remembered is changed. Secrets are looked for in the newest MiB of each log, with --deep in all of it.
    """
    with progress("looking") as bar:
        findings = home.doctor(deep=deep, fix=fix, progress=_telling(bar)) + _of_notes()
    healthy = all(finding.level != "error" for finding in findings)
    document = {"healthy": healthy, "findings": [finding_document(finding) for finding in findings]}
    return Answer(document, _findings_view(findings), status=0 if healthy else 1)


def _of_notes() -> list[Finding]:
    """Return what to know of the notes of the project in this folder."""
    try:
        words = Notes().warning()
    except KeepstoneError as error:
        words = str(error)
    remedy, cost = "remove notes, or keepstone notes dedupe", "agents do not know all of the notes"
    return [Finding("warning", PROJECT_FILE, words, remedy, cost)] if words else []


def _telling(bar: "Progress") -> Callable[[int, int], None]:
    """Return what moves a bar to so many of so many."""
    task = bar.task_ids[0]
    return lambda done, total: bar.update(task, completed=done, total=total)


def _findings_view(findings: list[Finding]) -> RenderableType:
    if not findings:
        return Text("nothing to look at yet")
    return Group(*(_finding_view(finding) for finding in findings))


def _finding_view(finding: Finding) -> RenderableType:
    """Return a finding as a block of at most 100 columns. Its remedy is not wrapped, to be copied whole."""
    what = Text.assemble(
        (f"{finding.level:<9}", _STYLES.get(finding.level, "")), (one_line(finding.subject), "bold")
    )
    said = [one_line(finding.message)] + ([f"if left so: {one_line(finding.cost)}"] if finding.cost else [])
    lines = [Text(line) for words in said for line in textwrap.wrap(words, _WIDTH - _INDENT)]
    if finding.remedy:
        lines.append(Text(one_line(finding.remedy), "cyan", no_wrap=True, overflow="ignore"))
    return Group(what, Padding(Group(*lines), (0, 0, 0, _INDENT)))


FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A new or empty folder for the copy.", show_default=False)
]


VectorsOption = Annotated[
    bool, typer.Option("--vectors", help="Also copy vectors, so that they need not be made again.")
]


@home_command(app, "keepstone backup ~/backups/2026-01-11 --vectors")
def backup(home: "Home", folder: FolderArgument, vectors: VectorsOption = False) -> Answer:
    """Copy the home while others may go on writing, and check the copy.

    The copy is a home itself: to go back to it, use it with --home. Indexes are left out unless --vectors is
    given; they are made from the logs. The status is 1 if the copy has damage, which the home has then, too.
    """
    with progress("copying") as bar:
        info = home.backup(folder, _telling(bar), vectors=vectors)
    counts = (counted(info.agents, "agent"), counted(info.sessions, "session"))
    words = f"copied {', '.join(counts)}, {counted(info.entries, 'entry')} and {counted(info.files, 'file')}"
    view = Text(f"{words} ({size(info.size)}) to {harmless(str(info.folder))}")
    damaged = bool(info.findings)
    shown = Group(view, _findings_view(list(info.findings))) if damaged else view
    return Answer(backup_document(info), shown, status=int(damaged))


RebuildOption = Annotated[
    bool, typer.Option("--rebuild", help="Drop the indexes and make them anew from the logs.")
]
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
        help="Make all vectors anew with --embedder, the home's from then on. May be stopped and taken up.",
    ),
]
EmbedderOption = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="For --re-embed: auto, minilm, static, openai:MODEL or http://HOST:PORT/v1?model=MODEL.",
    ),
]


@home_command(app, "keepstone index --re-embed --embedder minilm")
def index(
    home: "Home",
    rebuild: RebuildOption = False,
    re_embed: ReembedOption = False,
    embedder: EmbedderOption = "auto",
) -> Answer:
    """Bring the indexes up to date with the logs, which always hold everything.

    Entries that have no vector yet get theirs, where an embedder is installed.
    """
    sessions = _rebuild(home) if rebuild else None
    if not rebuild:
        home.sync()
    made = _embed(home, embedder if re_embed else None)
    document = {"rebuilt": rebuild, "sessions": sessions, "vectors_made": made}
    words = "the index is up to date" if sessions is None else f"read {counted(sessions, 'session')} anew"
    return Answer(document, Text(words + (f", made {counted(made, 'vector')}" if made else "")))


def _rebuild(home: "Home") -> int:
    with progress("indexing") as bar:
        task = bar.task_ids[0]
        return home.rebuild(lambda done, total: bar.update(task, completed=done, total=total))


def _embed(home: "Home", embedder: str | None) -> int | None:
    """Make vectors: all anew if an embedder is named, else what is missing; None without any embedder."""
    with progress("embedding") as bar:
        task = bar.task_ids[0]

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if embedder is not None:
            return home.reembed(embedder, tell)
        try:
            return home.embed(tell)
        except EmbedderUnavailableError:
            return None


ArchiveOption = Annotated[
    bool, typer.Option("--archive", help="Archive faded entries, too: of priority 0.3 or less, not pinned.")
]


@agent_command(app, "keepstone compact --session main --archive")
def compact(agent: "Agent", session: OnlyOption = None, archive: ArchiveOption = False) -> Answer:
    """Shorten the agent's logs: old versions and deleted entries move to the archive.

    Entries fade with age and grow with use, each type at its own rate. Archived ones are not recalled.
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
    """Compact sessions; return the bytes saved and how many entries were archived."""
    saved = archived = 0
    with progress("compacting") as bar:
        for name in bar.track(sessions, task_id=bar.task_ids[0]):
            session = agent.session(name)
            done = session.archive_faded() if archive else Compacted(session.compact())
            saved, archived = saved + done.saved, archived + done.archived
    return saved, archived
