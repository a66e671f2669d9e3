"""``recollect recall`` and ``context``: finding what was remembered."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from recollect.cli.command import Answer, agent_command
from recollect.cli.documents import context_document, hits_document
from recollect.cli.options import FolderOption, TypesOption, complete_sessions
from recollect.cli.screen import clipped, harmless, moment, one_line
from recollect.model import Hit, Hits
from recollect.notes import Notes

if TYPE_CHECKING:
    from recollect.agent import Agent

app = typer.Typer()


QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A question or some words.", show_default=False)
]
TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY", help="What the prompt is about; without it the newest.", show_default=False
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="At most so many hits.")]
SessionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Only in this session; may be repeated.",
        autocompletion=complete_sessions,
    ),
]
TagsOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only with this tag; may be repeated.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Made then or later: 2026-03-01, or RFC 3339.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Made before then: 2026-04-01, or RFC 3339.")
]
BudgetOption = Annotated[int, typer.Option("--budget", metavar="TOKENS", help="The most tokens it may have.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Say why each hit was found.")]


@agent_command(app, "recollect recall 'why did we choose passkeys' --type decision --limit 3")
def recall(
    agent: "Agent",
    query: QueryArgument,
    *,
    limit: LimitOption = 10,
    sessions: SessionsOption = None,
    types: TypesOption = None,
    tags: TagsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    explain: ExplainOption = False,
) -> Answer:
    """Search the agent's memory, the best hits first."""
    hits = agent.recall(
        query, limit=limit, sessions=sessions, types=types, tags=tags, since=since, until=until
    )
    return Answer(hits_document(hits), hits_view(hits, explain=explain))


def hits_view(hits: Hits, *, explain: bool) -> RenderableType:
    """Return hits as people read them."""
    if not hits:
        return Text("nothing found")
    shown = [hit_view(number, hit, explain=explain) for number, hit in enumerate(hits, 1)]
    notes = []
    if explain:
        notes.append(Text(f"{hits.took_ms:.1f} ms" + (", by words only" if hits.lexical_only else ""), "dim"))
    if hits.stale:
        notes.append(
            Text("The index is behind the logs, hits may be missing. Run: recollect doctor", "yellow")
        )
    return Group(*shown, *notes)


def hit_view(number: int, hit: Hit, *, explain: bool) -> RenderableType:
    """Return one hit: where it stands, what it says, and if asked why it was found."""
    entry = hit.entry
    head = Text.assemble(
        f"{number:>2}  ",
        (one_line(entry.type), "bold cyan"),
        (f"  {moment(entry.ts)}  {one_line(entry.session)}  {one_line(entry.id)}", "dim"),
    )
    lines = [Text(harmless(clipped(entry.text)))]
    if explain:
        lines.append(Text(harmless(_reason(hit)), "green"))
    return Group(head, Padding(Group(*lines), (0, 0, 1, 4)))


def _reason(hit: Hit) -> str:
    parts = " + ".join(f"{name} {part:.3f}" for name, part in hit.why.parts.items())
    return f"{hit.why}; score {hit.score:.3f}" + (f" = {parts}" if parts else "")


@agent_command(app, "recollect context 'the retry policy of payments' > prompt.txt")
def context(
    agent: "Agent", query: TopicArgument = None, budget: BudgetOption = 2000, folder: FolderOption = Path()
) -> Answer:
    """Print the block of memory that goes into a system prompt: notes first, then entries.

    Away from a terminal it goes out exactly as it is; on one, control characters are shown as escapes.
    """
    block = agent.context(query, budget=budget, notes=Notes(folder))
    return Answer(context_document(block), Text(harmless(block.text)), exact=block.text.encode("utf-8"))
