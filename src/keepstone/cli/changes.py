"""``keepstone changes``: the changes of an agent's memory, day by day."""

from collections import Counter
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
    """Show what was added, edited, superseded, deleted and purged, by day, the newest first.

    Of a purge only the number of entries is known.
    """
    from keepstone.operations import day_changes

    begin, end = moment_or_none(since or "yesterday", "--since"), moment_or_none(until, "--until")
    assert begin is not None  # noqa: S101  It was given.
    found = day_changes.changes(agent, begin, end)
    purged = Counter(ts.date() for ts in agent.purge_times(begin, end))
    by_day = {day: list(group) for day, group in groupby(found, lambda change: change.ts.date())}
    lines: list[Text] = []
    # A day may have only purges, whose entries no longer exist.
    for day in sorted({*by_day, *purged}, reverse=True):
        of_day = by_day.get(day, [])
        gone = f", {counted(purged[day], 'entry')} purged" if purged[day] else ""
        lines.append(Text(f"{day}: {counted(len(of_day), 'change')}{gone}", "bold underline"))
        for change in of_day:
            way = f" {one_line(way)}" if (way := day_changes.way_in(change)) else ""
            lines.append(Text(f"{change.ts:%H:%M} {change.kind} in session {one_line(change.session)}{way}"))
            lines.append(shown_change(change.id, change.before, change.after))
    document = {
        "changes": [change._asdict() | {"ts": format_time(change.ts)} for change in found],
        "purged": [{"day": str(day), "entries": purged[day]} for day in sorted(purged, reverse=True)],
    }
    return Answer(document, Text("\n").join(lines) if lines else Text("no changes"))
