"""``keepstone grant``, ``revoke``, ``grants`` and ``share``: memory that agents share."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.options import complete_agents, complete_sessions
from keepstone.cli.screen import table
from keepstone.operations.documents import entry_document, grant_document
from keepstone.text.display import moment, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.store.sharing.grants import Grant

app = typer.Typer()

ToArgument = Annotated[
    str,
    typer.Argument(
        metavar="AGENT", help="The other agent's slug.", autocompletion=complete_agents, show_default=False
    ),
]
MayOption = Annotated[
    Literal["read", "write"], typer.Option("--may", help="What it may; write includes reading.")
]
GrantedTypesOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only entries of this type; may be repeated."),
]
GrantedTagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only entries with this tag; may be repeated."),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="When the grant expires: 7d, 2026-03-01, or RFC 3339."),
]
ByOption = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who grants it, in words.")]


@agent_command(app, "keepstone grant coder --agent team --may read --type decision")
def grant(
    agent: "Agent",
    to: ToArgument,
    *,
    may: MayOption = "read",
    types: GrantedTypesOption = None,
    tags: GrantedTagsOption = None,
    until: UntilOption = None,
    by: ByOption = None,
) -> Answer:
    """Let another agent read, or also write, entries of the agent that --agent names."""
    found = agent.grant(to, may, types=types or None, tags=tags or None, until=until, by=by)
    words = f"agent {one_line(to)} may {found.may} {_what(found)} of agent {one_line(agent.slug)}"
    return Answer(grant_document(found), Text(words))


@agent_command(app, "keepstone revoke coder --agent team")
def revoke(agent: "Agent", to: ToArgument) -> Answer:
    """Withdraw what was granted to another agent, for the next call of every process and server."""
    revoked = agent.revoke(to)
    words = "withdrew the grant" if revoked else "nothing was granted"
    return Answer({"to": to, "revoked": revoked}, Text(f"{words} to agent {one_line(to)}"))


@agent_command(app, "keepstone grants --agent team")
def grants(agent: "Agent") -> Answer:
    """List which agents may access the agent's memory, and what of it."""
    found = agent.grants()
    rows = [
        (
            one_line(grant.to),
            grant.may,
            _what(grant),
            "" if grant.until is None else moment(grant.until),
            one_line(grant.by or ""),
        )
        for grant in found
    ]
    view = table(("agent", "may", "what", "until (UTC)", "by"), rows) if rows else Text("nothing is granted")
    return Answer({"grants": [grant_document(grant) for grant in found]}, view)


EntryArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.", show_default=False)]
TargetOption = Annotated[
    str,
    typer.Option("--to", metavar="AGENT", help="The agent to copy it to.", autocompletion=complete_agents),
]
HolderOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Its session, where several have the id.",
        autocompletion=complete_sessions,
    ),
]


@agent_command(app, "keepstone share retry-policy --to team", needs_home=True)
def share(agent: "Agent", entry: EntryArgument, *, to: TargetOption, session: HolderOption = None) -> Answer:
    """Copy an entry to another agent, which granted writing."""
    copied = agent.share(entry, to, session)
    words = f"copied to agent {one_line(to)}, entry {copied.id} in session {one_line(copied.session)}"
    return Answer(entry_document(copied), Text(words))


def _what(grant: "Grant") -> str:
    kinds = "entries" if grant.types is None else f"entries of type {' or '.join(grant.types) or 'none'}"
    return one_line(kinds + (f" with tag {' and '.join(grant.tags)}" if grant.tags else ""))
