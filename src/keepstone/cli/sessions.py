"""``keepstone sessions``: an agent's sessions."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input, confirm
from keepstone.cli.options import SessionArgument, TypesOption, YesOption
from keepstone.cli.screen import table
from keepstone.model import Entry
from keepstone.operations.documents import entry_document, session_document
from keepstone.operations.payload import unindexed
from keepstone.store.protocol import SessionNotFoundError
from keepstone.text.display import clipped, counted, harmless, moment, one_line, size

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer(
    name="sessions",
    help="List, read, write, rename, copy, clear and delete an agent's sessions.",
    no_args_is_help=True,
    epilog="Example: keepstone sessions list",
)


LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Only the newest N entries.", show_default=False)
]


@agent_command(app, "keepstone sessions list --agent coder", name="list")
def list_sessions(agent: "Agent") -> Answer:
    """List the sessions, last changed first."""
    infos = sorted(agent.sessions(), key=lambda info: (info.modified, info.id), reverse=True)
    rows = [(info.id, moment(info.modified), size(info.size)) for info in infos]
    view = table(("session", "modified (UTC)", "size"), rows) if rows else Text("no sessions yet")
    return Answer({"sessions": [session_document(info) for info in infos]}, view)


@agent_command(app, "keepstone sessions new")
def new(agent: "Agent") -> Answer:
    """Create a session with a new id, and print the id."""
    session = agent.new_session()
    return Answer({"id": session.id}, Text(session.id))


@agent_command(app, "keepstone sessions show main --limit 20")
def show(
    agent: "Agent", session: SessionArgument, limit: LimitOption = None, types: TypesOption = None
) -> Answer:
    """Show the entries of a session, oldest first."""
    entries = agent.session(session).entries(limit=limit, types=types)
    if not entries and agent.session(session).info() is None:
        raise SessionNotFoundError(agent.slug, session)
    view = Group(*(_entry_view(entry) for entry in entries)) if entries else Text("no entries")
    document = {"id": session, "entries": [entry_document(entry) for entry in entries]}
    return Answer(document, view)


def _entry_view(entry: Entry) -> Group:
    head = Text.assemble(
        (moment(entry.ts), "dim"),
        (f"  {one_line(entry.type)}", "bold cyan"),
        (f"  {one_line(entry.id)}", "dim"),
    )
    rest = [f"{key}: {clipped(value)}" for key, value in unindexed(entry)]
    text = "\n".join((clipped(entry.text), *rest))
    return Group(head, Padding(Text(harmless(text)), (0, 0, 0, 2)))


MessagesArgument = Annotated[
    str,
    typer.Argument(metavar="JSON", help="A list of messages; - reads standard input.", show_default=False),
]
ProviderOption = Annotated[
    Literal["openai", "anthropic"] | None,
    typer.Option("--provider", help="Give what this provider's API takes.", show_default=False),
]


@agent_command(app, "keepstone sessions add-messages main -", name="add-messages")
def add_messages(agent: "Agent", session: SessionArgument, messages: MessagesArgument) -> Answer:
    """Remember chat messages as a provider or framework has them: all of them, or none."""
    try:
        given = json.loads(argument_or_input(messages))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the messages are not JSON: {error}") from None
    added = agent.session(session).add_messages(given)
    document = {"id": session, "entries": [entry_document(entry) for entry in added]}
    return Answer(document, Text(f"added {counted(len(added), 'message')} to {one_line(session)}"))


@agent_command(app, "keepstone sessions messages main --provider anthropic --limit 50 --json")
def messages(
    agent: "Agent", session: SessionArgument, provider: ProviderOption = None, limit: LimitOption = None
) -> Answer:
    """Print the messages of a session, the oldest first; for a provider, tool calls with their results."""
    found = agent.session(session).messages(provider, limit)
    if not found and agent.session(session).info() is None:
        raise SessionNotFoundError(agent.slug, session)
    lines = (json.dumps(message, ensure_ascii=False) for message in found)
    return Answer({"id": session, "messages": found}, Text(harmless("\n".join(lines) or "no messages")))


NewIdArgument = Annotated[
    str, typer.Argument(metavar="NEW_ID", help="An id that no session has yet.", show_default=False)
]
UntilOption = Annotated[
    str, typer.Option("--until", metavar="ID", help="The last entry to copy.", show_default=False)
]


@agent_command(app, "keepstone sessions rename scratch plans/2026")
def rename(agent: "Agent", session: SessionArgument, new_id: NewIdArgument) -> Answer:
    """Give a session another id. Nothing is left under the old one."""
    return _now(agent.session(session).rename(new_id).id, f"renamed {session} to")


@agent_command(app, "keepstone sessions copy main main/backup")
def copy(agent: "Agent", session: SessionArgument, new_id: NewIdArgument) -> Answer:
    """Copy a session with its history into a new one. Entries keep their ids."""
    return _now(agent.session(session).copy(new_id).id, f"copied {session} to")


@agent_command(app, "keepstone sessions fork main main/retry --until retry-policy")
def fork(agent: "Agent", session: SessionArgument, new_id: NewIdArgument, *, until: UntilOption) -> Answer:
    """Copy the entries of a session up to one, and including it, into a new session."""
    return _now(agent.session(session).fork(new_id, until).id, f"forked {session} to")


def _now(session: str, words: str) -> Answer:
    return Answer({"id": session}, Text(one_line(f"{words} {session}")))


@agent_command(app, "keepstone sessions export main > main.ndjson")
def export(agent: "Agent", session: SessionArgument) -> Answer:
    """Print the lines of a session's log, one JSON object a line: entries, changes and deletions."""
    if agent.session(session).info() is None:
        raise SessionNotFoundError(agent.slug, session)
    lines = list(agent.session(session).export())
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return Answer({"id": session, "lines": lines}, Text(harmless(text.rstrip("\n"))), exact=text.encode())


@agent_command(app, "keepstone sessions clear scratch --yes")
def clear(agent: "Agent", session: SessionArgument, yes: YesOption = False) -> Answer:
    """Empty a session to zero bytes, archive included. This cannot be undone."""
    confirm(f"Empty session {one_line(session)!r} for good?", yes=yes)
    if not agent.session(session).clear():
        raise SessionNotFoundError(agent.slug, session)
    return Answer({"id": session, "cleared": True}, Text(f"cleared {one_line(session)}"))


@agent_command(app, "keepstone sessions delete scratch --yes")
def delete(agent: "Agent", session: SessionArgument, yes: YesOption = False) -> Answer:
    """Delete a session with all its entries, archive included. This cannot be undone."""
    confirm(f"Delete session {one_line(session)!r} for good?", yes=yes)
    if not agent.session(session).remove():
        raise SessionNotFoundError(agent.slug, session)
    return Answer({"id": session, "removed": True}, Text(f"deleted session {one_line(session)}"))
