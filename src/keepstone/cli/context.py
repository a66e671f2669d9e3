"""``keepstone context``: the block of memory that goes into a system prompt."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import FolderOption, UserFileOption
from keepstone.cli.screen import table
from keepstone.context import counter_of
from keepstone.context.block import Context
from keepstone.notes.notes import Notes
from keepstone.operations.documents import context_document
from keepstone.text.display import counted, harmless

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY", help="What the prompt is about; without it the newest.", show_default=False
    ),
]
BudgetOption = Annotated[int, typer.Option("--budget", metavar="TOKENS", help="The most tokens it may have.")]
CounterOption = Annotated[
    str | None,
    typer.Option(
        "--count-as", metavar="MODEL", help="Count tokens as openai or openai:MODEL does, if it is installed."
    ),
]
OthersOption = Annotated[
    bool, typer.Option("--others", help="With CLAUDE.md, GEMINI.md and the rules of Cursor.")
]
IdsOption = Annotated[bool, typer.Option("--ids", help="With the session and id of each entry.")]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show as a table what went in, what did not, and why.")
]


@agent_command(app, "keepstone context 'the retry policy of payments' > prompt.txt")
def context(
    agent: "Agent",
    query: TopicArgument = None,
    *,
    budget: BudgetOption = 2000,
    folder: FolderOption = Path(),
    user_file: UserFileOption = None,
    others: OthersOption = False,
    count_as: CounterOption = None,
    ids: IdsOption = False,
    explain: ExplainOption = False,
) -> Answer:
    """Print the block of memory that goes into a system prompt: notes first, then entries.

    Away from a terminal it goes out exactly as it is; on one, control characters are shown as escapes.
    """
    counter = None if count_as is None else counter_of(count_as)
    notes = Notes(folder, user_file, others=others)
    block = agent.context(query, budget=budget, notes=notes, counter=counter, ids=ids)
    if explain:
        return Answer(context_document(block), explained(block, budget))
    return Answer(context_document(block), Text(harmless(block.text)), exact=block.text.encode("utf-8"))


def explained(block: Context, budget: int) -> RenderableType:
    """Return a context as a table of what is in it, and one of what is not."""
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
        shown += [Text(), table(("left out of", "count", "source", "why"), left)]
    return Group(*shown)
