"""``keepstone vouch``, ``why`` and ``verify``: where an entry comes from, and whether it still holds."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import EntryArgument, SessionOption
from keepstone.cli.screen import table
from keepstone.model import Entry
from keepstone.operations.documents import entry_document
from keepstone.store.citations import BROKEN
from keepstone.text.display import clipped, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

AcceptOption = Annotated[
    str | None,
    typer.Option("--accept", metavar="ID", help="Take the new text of what this entry cites."),
]
_DEEPEST = 20
"""Levels of sources, and of derived entries, that are shown."""


@agent_command(app, "keepstone vouch retry-policy")
def vouch(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Confirm an entry as a person: its trust is user until it, or one of its sources, changes."""
    entry = agent.vouch(entry_id, session)
    return Answer(
        entry_document(entry), Text(f"vouched for {one_line(entry.id)}: its trust is {entry.trust}")
    )


@agent_command(app, "keepstone why retry-policy")
def why(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Show who said an entry, what it was derived from, and what was derived from it."""
    entry = agent.get(entry_id, session)
    tree = Tree(_line(entry))
    document: dict[str, Any] = entry_document(entry) | {"sources": [], "derived": []}
    branches = {"sources": ("derived from", agent.sources), "derived": ("from it was derived", agent.derived)}
    for name, (title, find) in branches.items():
        seen = {(entry.session, entry.id)}
        found = [*find(entry.id, entry.session)]
        if found:
            branch = tree.add(Text(title, "dim"))
            document[name] = [_walked(branch, one, find, seen, 1) for one in found]
    gone = [name for name in (entry.origin or {}).get("from", ()) if name not in _ids(document["sources"])]
    for name in gone:
        tree.add(Text(f"derived from {one_line(name)}, which is gone", "yellow"))
    return Answer(document | {"gone": gone}, tree)


@agent_command(app, "keepstone verify --json")
def verify(agent: "Agent", accept: AcceptOption = None) -> Answer:
    """Compare all citations with their files. The status is 1 if any cited text has changed or is gone.

    With --accept the entry's citations take the text that their files have now.
    """
    found = agent.verify(accept=accept)
    broken = sum(one.state in BROKEN for one in found)
    rows = [
        (
            one.state,
            f"{one.to.removeprefix('file:')}{f' now {one.lines}' if one.lines else ''}",
            f"{one.session}/{one.id}",
            (one.commit or "")[:12],
        )
        for one in found
    ]
    view = table(("state", "cited", "entry", "changed by"), [tuple(map(one_line, row)) for row in rows])
    document = {"citations": [asdict(one) for one in found], "broken": broken}
    return Answer(document, view if found else Text("no citations"), status=1 if broken else 0)


def _walked(tree: Tree, entry: Entry, find: Any, seen: set[tuple[str, str]], depth: int) -> dict[str, Any]:
    branch = tree.add(_line(entry))
    key = (entry.session, entry.id)
    found = [] if key in seen or depth >= _DEEPEST else [*find(entry.id, entry.session)]
    seen.add(key)
    below = [_walked(branch, one, find, seen, depth + 1) for one in found]
    name = "sources" if find.__name__ == "sources" else "derived"
    return {**entry_document(entry), name: below}


def _ids(documents: list[dict[str, Any]]) -> set[str]:
    return {document["id"] for document in documents}


def _line(entry: Entry) -> Text:
    via = (entry.origin or {}).get("via")
    said = f"said by {own}" if (own := (entry.origin or {}).get("by", "program")) else ""
    said += f" via {one_line(str(via))}" if via else ""
    stale = f", stale: {one_line(reason)}" if (reason := entry.stale) else ""
    head = f"{one_line(entry.id)}  trust {entry.trust}, {said}{stale}"
    return Text(f"{head}  {clipped(entry.text, 80)}")
