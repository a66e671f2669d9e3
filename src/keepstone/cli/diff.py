"""``keepstone diff``: the changes of a session, for people."""

from difflib import unified_diff
from typing import Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, show
from keepstone.cli.options import (
    AgentOption,
    HomeOption,
    HomeOptions,
    JsonOption,
    LayoutOption,
    SessionArgument,
)
from keepstone.log.line import text_of
from keepstone.model import Record
from keepstone.text.display import harmless, in_words, one_line

app = typer.Typer()

_STYLES = {"+": "green", "-": "red"}
_SHOWN_ELSEWHERE = frozenset({"id", "ts", "type", "text", "data", "access", "modified", "embedding"})

FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="STATE", help="A time or a git revision; default: the newest commit."),
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="STATE", help="A time or a git revision; default: now.")
]


@app.command(epilog="Example: keepstone diff main --from 2026-01-11 --to 2026-01-12")
def diff(
    session: SessionArgument,
    *,
    start: FromOption = None,
    end: ToOption = None,
    home: HomeOption = None,
    layout: LayoutOption = "default",
    agent: AgentOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show which entries of a session were added, removed or changed between two times or git revisions."""
    from keepstone.filesystem.layout import layout_of
    from keepstone.operations.session_diff import session_diff

    with HomeOptions(home, layout).open() as opened:
        changes = session_diff(opened, layout_of(layout), agent, session, start, end)
    document = {
        "session": session,
        "changes": [
            {"kind": change.kind, "id": change.id, "before": change.before, "after": change.after}
            for change in changes
        ],
    }
    view = Text("\n").join(shown_change(change.id, change.before, change.after) for change in changes)
    show(Answer(document, view if changes else Text("no changes")), as_json=as_json)


def shown_change(name: str, before: Record | None, after: Record | None) -> Text:
    """Return a heading, and the removed and added lines of the text."""
    sign = "~" if before and after else "+" if after else "-"
    line = after or before or {}
    lines = [
        Text(
            f"{sign} {one_line(name)}  {line['ts'][:16].replace('T', ' ')}  {one_line(line['type'])}", "bold"
        )
    ]
    old, new = (harmless(text_of(record)).split("\n") if record else [] for record in (before, after))
    # Leave out the headings with files and line numbers, which mean nothing for an entry.
    said = [part for part in unified_diff(old, new, lineterm="", n=2) if part[:2] not in ("--", "++", "@@")]
    lines += [Text(f"  {part[0]} {part[1:]}", _STYLES.get(part[0], "")) for part in said]
    keys = sorted({*(before or {}), *(after or {})} - _SHOWN_ELSEWHERE) if before and after else []
    for key in keys:
        was, now = (before or {}).get(key), (after or {}).get(key)
        if was != now:
            lines.append(Text(f"  {one_line(key)}: {one_line(in_words(was))} -> {one_line(in_words(now))}"))
    return Text("\n").join(lines)
