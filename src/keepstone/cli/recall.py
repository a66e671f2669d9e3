"""``keepstone recall``: search an agent's memory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import (
    ProjectOption,
    SharedOption,
    SinceOption,
    TagsOption,
    TypesOption,
    UntilOption,
    UserFileOption,
    complete_sessions,
    moment_or_none,
    place_options,
)
from keepstone.cli.screen import table
from keepstone.model import Hit, Hits
from keepstone.notes.notes import Notes
from keepstone.operations.documents import hits_document
from keepstone.operations.shown_hits import by_relevance, sureness_of
from keepstone.recall.selection import UNWANTED
from keepstone.text.display import clipped, counted, harmless, moment, one_line
from keepstone.text.passage import marked
from keepstone.text.pasting import placed

if TYPE_CHECKING:
    from keepstone.agent import Agent

_INSTALL = re.compile(r"keepstone model install [a-z0-9]+")

app = typer.Typer()

_WIDE = 120
"""Minimum columns of a screen on which explanations are a table."""
_SHORT = 120
"""Maximum characters of an entry in the table of explanations."""
_BAR = 8
"""Columns of the bar of a hit with relevance 1."""

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A question or some words.", show_default=False)
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of hits.")]
SessionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Only entries of this session; may be repeated.",
        autocompletion=complete_sessions,
    ),
]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="KIND",
        help="Search entries (the default), files or notes; may be repeated.",
    ),
]
SupersededOption = Annotated[
    bool,
    typer.Option(
        "--include-superseded",
        help="Also entries that are not valid now, or at --as-of: superseded, expired and future ones.",
    ),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Show a table of why each hit was found.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="KEY=VALUE", help="Only entries with this payload value; may be repeated."
    ),
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Search the entries as they were at this time.")
]
LeastOption = Annotated[
    float,
    typer.Option("--min-priority", metavar="P", help="Only entries with at least this decayed priority."),
]
RelevanceOption = Annotated[
    float,
    typer.Option(
        "--min-relevance", metavar="R", help="Only hits at least this relevant, from 0 to 1. Try 0.3."
    ),
]
NeighboursOption = Annotated[
    int, typer.Option("--neighbours", metavar="N", help="Show N entries before and after each hit.")
]


TrustOption = Annotated[
    str | None,
    typer.Option(
        "--trust",
        metavar="WHO",
        help="Only entries of at least this trust: user, program, model, import, tool.",
    ),
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
    min_relevance: RelevanceOption = 0.0,
    neighbours: NeighboursOption = 0,
    include_superseded: SupersededOption = False,
    trust: TrustOption = None,
    include: IncludeOption = None,
    shared: SharedOption = None,
    folder: ProjectOption = Path(),
    user_file: UserFileOption = None,
    explain: ExplainOption = False,
) -> Answer:
    """Search the agent's memory. The best hits come first."""
    hits = agent.recall(
        query,
        limit=limit,
        sessions=sessions,
        types=types,
        tags=tags,
        where=None if where is None else dict(_pair(word) for word in where),
        since=moment_or_none(since, "--since"),
        until=moment_or_none(until, "--until"),
        as_of=moment_or_none(as_of, "--as-of"),
        min_priority=min_priority,
        min_relevance=min_relevance,
        neighbours=neighbours,
        include_superseded=include_superseded,
        trust=trust,
        include=include or ["entries"],
        notes=Notes(folder, user_file) if "notes" in (include or ()) else None,
        shared=shared,
    )
    # A mistyped agent or home looks just like an empty memory.
    nothing = "nothing found"
    if not hits and not agent.sessions():
        nothing += f": agent {agent.slug} has no sessions here; check --home and --agent"
    return Answer(hits_document(hits), hits_view(hits, nothing, explain=explain, own=agent.slug))


def _pair(word: str) -> tuple[str, Any]:
    """Return the key and value of a condition; the value is parsed as JSON if possible, else it is text."""
    key, sign, value = word.partition("=")
    if not key or not sign:
        raise typer.BadParameter(f"{word!r} is not KEY=VALUE", param_hint="--where")
    try:
        # Parse the value, so that ``score=3`` is a number, as in the payload.
        return key, json.loads(value)
    except ValueError:
        return key, value


def _words_only(hits: Hits) -> str:
    """Return a line that says that only words were compared, with a command that changes this, or why."""
    reason = one_line(hits.reason)
    found = _INSTALL.search(reason)
    return f"By words only. For meaning: {found[0]}" if found else f"By words only: {reason}"


def hits_view(hits: Hits, nothing: str, *, explain: bool, own: str) -> RenderableType:
    """Return hits for people, or the text ``nothing`` without hits. Agents other than ``own`` are named."""
    shown = (
        [Explained(hits, own)]
        if explain and hits
        else [hit_view(place, hit, own) for place, hit in enumerate(by_relevance(hits), 1)]
    )
    notes = [Text(f"{hits.took_ms:.1f} ms", "dim")] if explain else []
    if hits.lexical_only and (explain or hits.reason != UNWANTED):
        notes.append(
            Text(f"By words only: {one_line(hits.reason)}" if explain else _words_only(hits), "yellow")
        )
    elif explain:
        notes.append(Text(f"By words and vectors: {hits.embedder}, {one_line(hits.reason)}", "dim"))
    if hits and hits.nothing_relevant:
        notes.append(Text("Nothing certain: no hit is clearly about this", "yellow"))
    if hits.pending:
        words = (
            f"{counted(hits.pending, 'entry')} not yet embedded, found by words only. Run: keepstone index"
        )
        notes.append(Text(placed(words, place_options()), "yellow"))
    if hits.skipped:
        words = f"Not searched, too large or not text: {one_line(', '.join(hits.skipped))}"
        notes.append(Text(words, "yellow"))
    if hits.stale:
        words = "The index is behind the logs, hits may be missing. Run: keepstone doctor"
        notes.append(Text(placed(words, place_options()), "yellow"))
    return Group(*(shown or [Text(nothing)]), *notes)


def hit_view(place: int, hit: Hit, own: str | None = None) -> RenderableType:
    """Return one hit: its rank, its relevance as a bar and a word, its text and its neighbours."""
    drawn = "\u2588" * max(1, round(hit.relevance * _BAR))
    bar = (f"{drawn:<{_BAR}} {sureness_of(hit.relevance):<6}  ", "dim")
    if hit.excerpt is not None:
        where = (f"  {one_line(_place(hit))}", "dim")
        head = Text.assemble(f"{place:>2}  ", bar, (hit.kind, "bold cyan"), where)
        return Group(head, Padding(Text(_shown(hit)), (0, 0, 1, 4)))
    entry = hit.entry
    holder = entry.session if own in (None, entry.agent) else f"{entry.agent}/{entry.session}"
    head = Text.assemble(
        f"{place:>2}  ",
        bar,
        (one_line(entry.type), "bold cyan"),
        (f"  {moment(entry.ts)}  {one_line(holder)}  {one_line(entry.id)}", "dim"),
        (f"  from {entry.trust}" if entry.origin is not None else "", "dim"),
        (f"  stale: {one_line(stale)}" if (stale := entry.stale) else "", "yellow"),
    )
    around = [(near, near.ts < entry.ts) for near in hit.neighbours]
    before = [Text(one_line(clipped(near.text)), "dim") for near, earlier in around if earlier]
    after = [Text(one_line(clipped(near.text)), "dim") for near, earlier in around if not earlier]
    return Group(head, Padding(Group(*before, Text(_shown(hit)), *after), (0, 0, 1, 4)))


def _shown(hit: Hit) -> str:
    """Return a hit's text; for a long text, its best passage."""
    return harmless(marked(hit.passage, hit.text))


class Explained:
    """The parts of each hit's score, as a table, or as blocks of lines on a screen too narrow for it."""

    def __init__(self, hits: Hits, own: str) -> None:
        self._hits = hits
        self._own = own

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table or the blocks."""
        # Rich calls this with the width of the screen, which is not known earlier.
        if options.max_width >= _WIDE:
            yield explained(self._hits)
            return
        for place, hit in enumerate(by_relevance(self._hits), 1):
            yield hit_view(place, hit, self._own)
            yield Padding(Text(f"{_sum(hit)}\nrelevance {hit.relevance:.2f}", "dim"), (0, 0, 1, 4))


def _sum(hit: Hit) -> str:
    """Return a score as a sum of its parts, with the reasons."""
    why = hit.why
    parts = [_summand(name, part, why.ranks.get(name)) for name, part in why.parts.items() if part]
    reasons = [f"words: {', '.join(why.words)}"] if why.words else []
    reasons += [f"cosine {why.cosine:.2f}"] if why.cosine is not None else []
    return one_line("; ".join((f"score {hit.score:.2f} = {' + '.join(parts)}", *reasons, *why.boosts)))


def _summand(name: str, part: float, rank: int | None) -> str:
    title = {"vectors": "meaning", "neighbours": "near it"}.get(name, name)
    return f"{title} {part:.2f}" + (f" (#{rank})" if rank is not None else "")


def explained(hits: Hits) -> RenderableType:
    """Return a table of the parts of each hit's score."""
    rows = [_reasons(place, hit) for place, hit in enumerate(by_relevance(hits), 1)]
    return table(
        ("", "score", "words", "meaning", "near it", "relevance", "more", "query words", "entry"), rows
    )


def _reasons(place: int, hit: Hit) -> tuple[str, ...]:
    why, parts = hit.why, dict(hit.why.parts)
    shown = [_part(parts.pop("words", None), why.ranks.get("words"))]
    meaning = _part(parts.pop("vectors", None), why.ranks.get("vectors"))
    shown.append(meaning + (f" cos {why.cosine:.2f}" if why.cosine is not None else ""))
    shown.append(_part(parts.pop("neighbours", None), None))
    more = ", ".join((*why.boosts, *(f"{name} {part:.2f}" for name, part in parts.items())))
    where = _place(hit) if hit.excerpt is not None else f"{hit.entry.ts:%Y-%m-%d} {hit.entry.session}"
    what = f"{where}: {clipped(hit.text, _SHORT)}"
    shown.append(f"{hit.relevance:.2f}")
    return (str(place), f"{hit.score:.2f}", *shown, more, ", ".join(why.words), what)


def _place(hit: Hit) -> str:
    return f"{hit.path}:{hit.line}"


def _part(part: float | None, rank: int | None) -> str:
    if part is None:
        return ""
    return f"{part:.2f}" + (f" #{rank}" if rank is not None else "")
