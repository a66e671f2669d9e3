"""``keepstone recall``: finding what was remembered."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import TypesOption, complete_sessions
from keepstone.cli.screen import table
from keepstone.log.arguments import system_clock
from keepstone.model import Hit, Hits
from keepstone.operations.documents import hits_document
from keepstone.recall.embedder import UNWANTED
from keepstone.recall.time_words import moment_of
from keepstone.text.display import clipped, counted, harmless, moment, one_line

if TYPE_CHECKING:
    from datetime import datetime

    from keepstone.agent import Agent

app = typer.Typer()

_SHORT = 120
"""Characters of an entry that a table of reasons shows."""

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A question or some words.", show_default=False)
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
ExplainOption = Annotated[bool, typer.Option("--explain", help="Show as a table why each hit was found.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="KEY=VALUE", help="Only with this value in the payload; may be repeated."
    ),
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Search the entries as they were then.")
]
LeastOption = Annotated[
    float, typer.Option("--min-priority", metavar="P", help="Only entries that have not faded below this.")
]
NeighboursOption = Annotated[
    int, typer.Option("--neighbours", metavar="N", help="Show so many entries before and after each hit.")
]


@agent_command(
    app, "keepstone recall 'why did we choose passkeys' --type decision --limit 3", needs_home=True
)
def recall(
    agent: "Agent",
    query: QueryArgument,
    *,
    limit: LimitOption = 10,
    sessions: SessionsOption = None,
    types: TypesOption = None,
    tags: TagsOption = None,
    where: WhereOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    as_of: AsOfOption = None,
    min_priority: LeastOption = 0.0,
    neighbours: NeighboursOption = 0,
    explain: ExplainOption = False,
) -> Answer:
    """Search the agent's memory, the best hits first."""
    hits = agent.recall(
        query,
        limit=limit,
        sessions=sessions,
        types=types,
        tags=tags,
        where=None if where is None else dict(_pair(word) for word in where),
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        as_of=_moment(as_of, "--as-of"),
        min_priority=min_priority,
        neighbours=neighbours,
    )
    nothing = "nothing found"
    if not hits and not agent.sessions():
        nothing += f": agent {agent.slug} has no sessions here; --home and --agent say where to look"
    return Answer(hits_document(hits), hits_view(hits, nothing, explain=explain))


def _moment(text: str | None, option: str) -> "datetime | None":
    return None if text is None else moment_of(text, system_clock(), option)


def _pair(word: str) -> tuple[str, Any]:
    """Return key and value of a condition; a value that is JSON counts as such, any other as text."""
    key, sign, value = word.partition("=")
    if not key or not sign:
        raise typer.BadParameter(f"{word!r} is not KEY=VALUE", param_hint="--where")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def hits_view(hits: Hits, nothing: str, *, explain: bool) -> RenderableType:
    """Return hits as people read them, or what to say where there are none."""
    shown = (
        [explained(hits)] if explain and hits else [hit_view(place, hit) for place, hit in enumerate(hits, 1)]
    )
    notes = [Text(f"{hits.took_ms:.1f} ms", "dim")] if explain else []
    if hits.lexical_only and (explain or hits.reason != UNWANTED):
        notes.append(Text(f"By words only: {one_line(hits.reason)}", "yellow"))
    elif explain:
        notes.append(Text(f"By words and by meaning: {hits.embedder}, {one_line(hits.reason)}", "dim"))
    if hits.pending:
        words = f"{counted(hits.pending, 'entry')} without a vector yet, found by words. Run: keepstone index"
        notes.append(Text(words, "yellow"))
    if hits.stale:
        notes.append(
            Text("The index is behind the logs, hits may be missing. Run: keepstone doctor", "yellow")
        )
    return Group(*(shown or [Text(nothing)]), *notes)


def hit_view(place: int, hit: Hit) -> RenderableType:
    """Return one hit: where it stands, what it says, and what stands around it."""
    entry = hit.entry
    head = Text.assemble(
        f"{place:>2}  ",
        (one_line(entry.type), "bold cyan"),
        (f"  {moment(entry.ts)}  {one_line(entry.session)}  {one_line(entry.id)}", "dim"),
    )
    around = [(near, near.ts < entry.ts) for near in hit.neighbours]
    before = [Text(one_line(clipped(near.text)), "dim") for near, earlier in around if earlier]
    after = [Text(one_line(clipped(near.text)), "dim") for near, earlier in around if not earlier]
    return Group(head, Padding(Group(*before, Text(harmless(clipped(entry.text))), *after), (0, 0, 1, 4)))


def explained(hits: Hits) -> RenderableType:
    """Return hits as a table of what each score is the sum of."""
    rows = [_reasons(place, hit) for place, hit in enumerate(hits, 1)]
    return table(("", "score", "words", "meaning", "near it", "more", "query words", "entry"), rows)


def _reasons(place: int, hit: Hit) -> tuple[str, ...]:
    why, parts = hit.why, dict(hit.why.parts)
    shown = [_part(parts.pop("words", None), why.ranks.get("words"))]
    meaning = _part(parts.pop("vectors", None), why.ranks.get("vectors"))
    shown.append(meaning + (f" cos {why.cosine:.2f}" if why.cosine is not None else ""))
    shown.append(_part(parts.pop("neighbours", None), None))
    more = ", ".join((*why.boosts, *(f"{name} {part:.2f}" for name, part in parts.items())))
    entry = hit.entry
    what = f"{entry.ts:%Y-%m-%d} {entry.session}: {clipped(entry.text, _SHORT)}"
    return (str(place), f"{hit.score:.2f}", *shown, more, ", ".join(why.words), what)


def _part(part: float | None, rank: int | None) -> str:
    if part is None:
        return ""
    return f"{part:.2f}" + (f" #{rank}" if rank is not None else "")
