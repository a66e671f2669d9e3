"""``keepstone context``: the memory block for a system prompt."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import ProjectOption, SharedOption, UserFileOption
from keepstone.cli.screen import table
from keepstone.context import counter_of
from keepstone.context.block import Context
from keepstone.model import TRUSTED
from keepstone.notes.notes import Notes
from keepstone.operations.documents import context_document
from keepstone.text.display import counted, harmless

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY", help="The user's question; without it nothing is recalled.", show_default=False
    ),
]
BudgetOption = Annotated[int, typer.Option("--budget", metavar="TOKENS", help="Maximum number of tokens.")]
CounterOption = Annotated[
    str | None,
    typer.Option(
        "--count-as",
        metavar="MODEL",
        help="Count tokens as openai or openai:MODEL, if its tokenizer is installed.",
    ),
]
OthersOption = Annotated[
    bool, typer.Option("--others", help="Include CLAUDE.md, GEMINI.md and Cursor rules.")
]
IdsOption = Annotated[bool, typer.Option("--ids", help="With the session and id of each entry.")]
TrustOption = Annotated[
    str,
    typer.Option("--trust", metavar="WHO", help="The least trust of entries that are not in the last fence."),
]
UntrustedOption = Annotated[
    str, typer.Option("--untrusted", metavar="HOW", help="Entries below that trust: fence or omit.")
]
StaleOption = Annotated[str, typer.Option("--stale", metavar="HOW", help="Stale entries: omit or mark.")]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show a table of what is included, what is left out, and why.")
]


@agent_command(app, "keepstone context 'the retry policy of payments' > prompt.txt")
def context(
    agent: "Agent",
    query: TopicArgument = None,
    *,
    budget: BudgetOption = 2000,
    folder: ProjectOption = Path(),
    user_file: UserFileOption = None,
    others: OthersOption = False,
    count_as: CounterOption = None,
    ids: IdsOption = False,
    shared: SharedOption = None,
    trust: TrustOption = TRUSTED,
    untrusted: UntrustedOption = "fence",
    stale: StaleOption = "omit",
    explain: ExplainOption = False,
) -> Answer:
    """Print the memory block for a system prompt: notes first, then entries.

    On a terminal, control characters are escaped; elsewhere the text is printed unchanged.
    """
    counter = None if count_as is None else counter_of(count_as)
    notes = Notes(folder, user_file, others=others)
    shown: Any = {"trust": trust, "untrusted": untrusted, "stale": stale}  # The call validates these.
    block = agent.context(query, budget=budget, notes=notes, counter=counter, ids=ids, shared=shared, **shown)
    if explain:
        return Answer(context_document(block), explained(block, budget))
    # In a pipe the text is exact: the block goes into a prompt, and its fences must not change.
    return Answer(context_document(block), Text(harmless(block.text)), exact=block.text.encode("utf-8"))


def explained(block: Context, budget: int) -> RenderableType:
    """Return a table of the items that a context includes, and one of the items that it leaves out."""
    placed = [
        (part.kind, f"{item.tokens:,}", item.source, item.remark)
        for part in block.parts
        for item in part.items
    ]
    within = sum(item.tokens for part in block.parts for item in part.items)
    frame = ("", f"{max(0, block.tokens - within):,}", "instructions, titles and fences", "")
    total = f"{block.tokens:,} of {counted(budget, 'token')}; the first {counted(block.stable, 'character')}"
    left = [(left.kind, f"{left.count:,}", left.source, left.reason) for left in block.left_out]
    shown: list[RenderableType] = [
        table(("part", "tokens", "source", "how much"), [*placed, frame]),
        Text(f"{total} are the same for every query"),
    ]
    if left:
        shown += [Text(), table(("left out of", "count", "source", "reason"), left)]
    return Group(*shown)
