"""``keepstone watch``: changes of entries and sessions as they happen."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.text import Text

from keepstone.cli.options import HomeOption, HomeOptions, JsonOption, LayoutOption, complete_agents
from keepstone.cli.screen import print_view
from keepstone.operations.documents import change_document
from keepstone.text.display import one_line

app = typer.Typer()

AgentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--agent", metavar="AGENT", help="Only this agent; may be repeated.", autocompletion=complete_agents
    ),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="CURSOR", help="Go on after the change with this cursor.")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="End after this many seconds without a change."),
]


@app.command(epilog="Example: keepstone watch --timeout 60 --json")
def watch(
    *,
    agents: AgentsOption = None,
    since: SinceOption = None,
    timeout: TimeoutOption = None,
    home: HomeOption = None,
    layout: LayoutOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Print changes of entries and sessions as they come, those of other processes too.

    With --json one object a line. Ctrl+C ends it.
    """
    with HomeOptions(home, layout).open() as opened:
        for change in opened.watch(agents, since, timeout):
            if as_json:
                sys.stdout.write(json.dumps(change_document(change)) + "\n")
            else:
                names = filter(None, (change.agent, change.session, change.id))
                print_view(Text("  ".join([f"{change.kind:<6}", *map(one_line, names)])))
            # Python buffers a pipe, but its reader needs each change at once.
            sys.stdout.flush()
