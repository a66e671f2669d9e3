"""``keepstone changes``: what changed in an agent's memory, day by day."""

from itertools import groupby
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.diff import shown_change
from keepstone.cli.options import SinceOption, UntilOption, moment_or_none
from keepstone.log.line import format_time
from keepstone.text.display import counted, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()


@agent_command(app, "keepstone changes --since yesterday", needs_home=True)
def changes(agent: "Agent", *, since: SinceOption = "yesterday", until: UntilOption = None) -> Answer:
    """Show what was added, edited, superseded and deleted, by day, the newest first."""
    from keepstone.operations import day_changes

    begin, end = moment_or_none(since or "yesterday", "--since"), moment_or_none(until, "--until")
    assert begin is not None  # noqa: S101  It was given.
    found = day_changes.changes(agent, begin, end)
    lines: list[Text] = []
    for day, group in groupby(found, lambda change: change.ts.date()):
        of_day = list(group)
        lines.append(Text(f"{day}: {counted(len(of_day), 'change')}", "bold underline"))
        for change in of_day:
            lines.append(Text(f"{change.ts:%H:%M} {change.kind} in session {one_line(change.session)}"))
            lines.append(shown_change(change.id, change.before, change.after))
    document = {"changes": [change._asdict() | {"ts": format_time(change.ts)} for change in found]}
    return Answer(document, Text("\n").join(lines) if found else Text("no changes"))
