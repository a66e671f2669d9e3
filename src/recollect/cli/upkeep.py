"""``recollect doctor``, ``index`` and ``compact``: looking after a home."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from recollect.cli.command import Answer, agent_command, home_command
from recollect.cli.documents import finding_document
from recollect.cli.failures import SessionNotFoundError
from recollect.cli.options import complete_sessions
from recollect.cli.screen import counted, progress, size, table
from recollect.model import Finding

if TYPE_CHECKING:
    from recollect.home import Agent, Home

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


@home_command(app, "recollect index --rebuild")
def index(home: "Home", rebuild: RebuildOption = False) -> Answer:
    """Bring the indexes up to date with the logs, which always hold everything."""
    if not rebuild:
        _catch_up(home)
        return Answer({"rebuilt": False}, Text("the index is up to date"))
    count = _rebuild(home)
    return Answer({"rebuilt": True, "sessions": count}, Text(f"read {counted(count, 'session')} anew"))


def _catch_up(home: "Home") -> None:
    # A home catches up with the agents in use; asking for its sessions takes an agent into use.
    for slug in home.agents():
        home.agent(slug).sessions()
        home.sync()


def _rebuild(home: "Home") -> int:
    with progress("indexing") as bar:
        task = bar.task_ids[0]
        return home.rebuild(lambda done, total: bar.update(task, completed=done, total=total))


@agent_command(app, "recollect compact --session main")
def compact(agent: "Agent", session: OnlyOption = None) -> Answer:
    """Shorten the agent's logs: old versions and deleted entries move to the archive."""
    known = [info.id for info in agent.sessions()]
    if session is not None and session not in known:
        raise SessionNotFoundError(agent.slug, session)
    chosen = known if session is None else [session]
    saved = _compact(agent, chosen)
    words = f"compacted {counted(len(chosen), 'session')}, saved {size(saved)}"
    return Answer({"sessions": len(chosen), "saved_bytes": saved}, Text(words))


def _compact(agent: "Agent", sessions: list[str]) -> int:
    with progress("compacting") as bar:
        return sum(agent.session(name).compact() for name in bar.track(sessions, task_id=bar.task_ids[0]))
