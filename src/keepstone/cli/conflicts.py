"""``keepstone conflicts``: entries that repeat or contradict one another."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import SinceOption, moment_or_none
from keepstone.operations.documents import pair_document
from keepstone.text.display import clipped, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

KindsOption = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="contradiction or duplicate; may be repeated."),
]


@agent_command(app, "keepstone conflicts --kind contradiction --since 7d", needs_home=True)
def conflicts(agent: "Agent", *, since: SinceOption = None, kinds: KindsOption = None) -> Answer:
    """List the pairs of entries that repeat or contradict one another.

    With --since only those with an entry made since then.
    """
    found = list(agent.conflicts(moment_or_none(since, "--since"), kinds))
    lines = [
        f"{pair.kind}\n" + "\n".join(f"  {one_line(entry.id)}  {clipped(entry.text)}" for entry in pair)
        for pair in found
    ]
    document = {"conflicts": [pair_document(pair) for pair in found]}
    return Answer(document, Text("\n".join(lines) or "no entries repeat or contradict one another"))
