"""``keepstone vouch``, ``why`` and ``verify``: the sources of an entry, and whether it is still valid."""

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
from keepstone.operations.provenance import Branch, origins_of, said_by
from keepstone.store.citations import BROKEN
from keepstone.text.display import clipped, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

AcceptOption = Annotated[
    str | None,
    typer.Option("--accept", metavar="ID", help="Take the new text of what this entry cites."),
]


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
    origins = origins_of(agent, entry)
    tree = Tree(_line(entry))
    document: dict[str, Any] = {**entry_document(entry)}
    for name, title in (("sources", "derived from"), ("derived", "from it was derived")):
        found = getattr(origins, name)
        branch = tree.add(Text(title, "dim")) if found else tree
        document[name] = [_grown(branch, related, name) for related in found]
    for gone in origins.gone:
        tree.add(Text(f"derived from {one_line(gone)}, which is gone", "yellow"))
    return Answer(document | {"gone": origins.gone}, tree)


@agent_command(app, "keepstone verify --json")
def verify(agent: "Agent", accept: AcceptOption = None) -> Answer:
    """Compare all citations with their files. The status is 1 if any cited text has changed or is gone.

    With --accept the entry's citations take the text that their files have now.
    """
    citations = agent.verify(accept=accept)
    broken = sum(citation.state in BROKEN for citation in citations)
    rows = [
        (
            citation.state,
            f"{citation.to.removeprefix('file:')}{f' now {citation.lines}' if citation.lines else ''}",
            f"{citation.session}/{citation.id}",
            (citation.commit or "")[:12],
        )
        for citation in citations
    ]
    view = table(("state", "cited", "entry", "changed by"), [tuple(map(one_line, row)) for row in rows])
    document = {"citations": [asdict(citation) for citation in citations], "broken": broken}
    return Answer(document, view if citations else Text("no citations"), status=1 if broken else 0)


def _grown(tree: Tree, branch: Branch, name: str) -> dict[str, Any]:
    grown = tree.add(_line(branch.entry))
    return {**entry_document(branch.entry), name: [_grown(grown, child, name) for child in branch.below]}


def _line(entry: Entry) -> Text:
    return Text(f"{one_line(entry.id)}  {one_line(said_by(entry))}  {clipped(entry.text, 80)}")
