"""``recollect doctor``, ``index`` and ``compact``: looking after a home."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from recollect.cli.command import Answer, agent_command, home_command
from recollect.cli.options import complete_sessions
from recollect.cli.screen import counted, progress, size, table
from recollect.decay import Faded
from recollect.documents import finding_document
from recollect.errors import EmbedderUnavailableError
from recollect.failures import SessionNotFoundError
from recollect.model import Finding

if TYPE_CHECKING:
    from recollect.agent import Agent
    from recollect.home import Home

app = typer.Typer()


@home_command(app, "recollect doctor")
def doctor(home: "Home") -> Answer:
    """Look for damage and say what to do about it. The status is 1 if there is an error."""
    findings = home.doctor()
    healthy = all(finding.level != "error" for finding in findings)
    document = {"healthy": healthy, "findings": [finding_document(finding) for finding in findings]}
    return Answer(document, _findings_view(findings), status=0 if healthy else 1)


def _findings_view(findings: list[Finding]) -> RenderableType:
    if not findings:
        return Text("nothing to look at yet")
    rows = [(finding.level, finding.subject, finding.message, finding.remedy) for finding in findings]
    return table(("level", "subject", "message", "remedy"), rows)


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


@home_command(app, "recollect index --re-embed --embedder minilm")
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


@agent_command(app, "recollect compact --session main --archive")
def compact(agent: "Agent", session: OnlyOption = None, archive: ArchiveOption = False) -> Answer:
    """Shorten the agent's logs: old versions and deleted entries move to the archive.

    Entries fade with age and grow with use, each type at its own rate. Archived ones are not recalled.
    """
    known = [info.id for info in agent.sessions()]
    if session is not None and session not in known:
        raise SessionNotFoundError(agent.slug, session)
    chosen = known if session is None else [session]
    faded = Faded(datetime.now(UTC)) if archive else None
    saved = _compact(agent, chosen, faded)
    words = f"compacted {counted(len(chosen), 'session')}, saved {size(saved)}"
    archived = faded.count if faded else 0
    words += f", archived {counted(archived, 'entry')}" if archive else ""
    return Answer({"sessions": len(chosen), "saved_bytes": saved, "archived": archived}, Text(words))


def _compact(agent: "Agent", sessions: list[str], faded: Faded | None) -> int:
    with progress("compacting") as bar:
        names = bar.track(sessions, task_id=bar.task_ids[0])
        return sum(agent.session(name).compact(faded) for name in names)
