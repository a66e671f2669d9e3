"""``keepstone sessions``: an agent's sessions."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input, confirm
from keepstone.cli.options import SessionArgument, TypesOption, YesOption
from keepstone.cli.screen import is_narrow, table
from keepstone.errors import SessionNotFoundError
from keepstone.model import Entry
from keepstone.operations.documents import entry_document, session_document, summary_document
from keepstone.operations.payload import unindexed
from keepstone.text.display import clipped, counted, harmless, moment, one_line, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepstone.agent import Agent
    from keepstone.model import SessionSummary

app = typer.Typer(
    name="sessions",
    help="List, read, write, rename, copy, clear and delete an agent's sessions.",
    no_args_is_help=True,
    epilog="Example: keepstone sessions list",
)


_NARROW = 72
"""Minimum columns of a screen for the table of sessions; a narrower one would break titles and ids."""

LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Only the newest N entries.", show_default=False)
]


@agent_command(app, "keepstone sessions list --agent coder", name="list")
def list_sessions(agent: "Agent") -> Answer:
    """List the sessions with their titles, the one with the newest entry first."""
    infos = {info.id: info for info in agent.sessions()}
    summaries = [summary for summary in agent.session_summaries() if summary.id in infos]
    rows = [
        (
            summary.id,
            summary.title or "",
            f"{summary.entries:,}",
            moment(summary.changed),
            size(infos[summary.id].size),
        )
        for summary in summaries
    ]
    columns = ("session", "title", "entries", "last change (UTC)", "size")
    document = {
        "sessions": [
            {**summary_document(summary), **session_document(infos[summary.id])} for summary in summaries
        ]
    }
    if not rows:
        return Answer(document, Text("no sessions yet"))
    return Answer(document, _in_lines(summaries) if is_narrow(_NARROW) else table(columns, rows))


def _in_lines(summaries: "Sequence[SessionSummary]") -> Group:
    """Return each session on separate lines, for screens that are too narrow for a table."""
    shown: list[Text] = []
    for summary in summaries:
        about = f"{moment(summary.changed)}  {counted(summary.entries, 'entry')}"
        for place, words in enumerate(filter(None, (summary.title, summary.id, about))):
            line = Text("  " * bool(place), "" if place else "bold", no_wrap=True, overflow="ellipsis")
            shown.append(line.append(one_line(words)))
    return Group(*shown)


NameArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Its id; default: a new one.", show_default=False)
]


TitleOption = Annotated[
    str | None, typer.Option("--title", metavar="TITLE", help="A title for lists.", show_default=False)
]
TitleArgument = Annotated[
    str, typer.Argument(metavar="TITLE", help="The title; '' takes it away.", show_default=False)
]


@agent_command(app, "keepstone sessions title main 'Sign-in and passkeys'")
def title(agent: "Agent", session: SessionArgument, title: TitleArgument) -> Answer:
    """Give a session a title for lists. It is a line of its log, and no entry."""
    agent.session(session).set_title(title or None)
    words = f"titled {session}: {title}" if title else f"took the title of {session} away"
    return Answer({"id": session, "title": title or None}, Text(one_line(words)))


@agent_command(app, "keepstone sessions new 'release plans'")
def new(agent: "Agent", name: NameArgument = None, title: TitleOption = None) -> Answer:
    """Create an empty session with a name or a new id, and print the id.

    A session that has the name already is an error.
    """
    # The library returns an existing session unchanged; a person who names a session expects a new one.
    if name is not None and agent.session(name).info() is not None:
        raise ValueError(f"there is a session {name!r:.80} already: choose another name")
    session = agent.new_session(name, title=title)
    return Answer({"id": session.id}, Text(session.id))


SupersededOption = Annotated[
    bool, typer.Option("--include-superseded", help="Also superseded, expired and future entries.")
]


@agent_command(app, "keepstone sessions show main --limit 20")
def show(
    agent: "Agent",
    session: SessionArgument,
    limit: LimitOption = None,
    types: TypesOption = None,
    *,
    include_superseded: SupersededOption = False,
) -> Answer:
    """Show the entries of a session, oldest first."""
    entries = agent.session(session).entries(limit=limit, types=types, include_superseded=include_superseded)
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
