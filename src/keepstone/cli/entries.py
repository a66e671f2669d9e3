"""``keepstone add``, ``update``, ``supersede``, ``delete``, ``purge`` and so on: one entry at a time."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input, confirm
from keepstone.cli.options import EntryArgument, SessionOption, YesOption, complete_sessions
from keepstone.cli.screen import table
from keepstone.model import Entry, Purged, Record, Version
from keepstone.operations.documents import added_document, entry_document, purged_document, version_document
from keepstone.text.display import clipped, counted, harmless, moment, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

_SHAPE = """'{"key": "value"}'"""

NewText = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.", show_default=False),
]
TextOption = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="The new text; - reads standard input.")
]
TypeOption = Annotated[str, typer.Option("--type", metavar="TYPE", help="What kind of entry it is.")]
NewTypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="The new type.")]
IntoOption = Annotated[
    str,
    typer.Option(
        "--session", metavar="SESSION", help="The session to add to.", autocompletion=complete_sessions
    ),
]
TagsOption = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated.")]
PriorityOption = Annotated[
    float | None, typer.Option("--priority", metavar="NUMBER", help="How much it matters, from 0 to 1.")
]
ValidFromOption = Annotated[
    str | None,
    typer.Option("--valid-from", metavar="TIME", help="When the new one begins to hold; without it, now."),
]
PurgedArgument = Annotated[
    str | None, typer.Argument(metavar="ID", help="The id of the entry.", show_default=False)
]
MatchOption = Annotated[
    str | None, typer.Option("--match", metavar="TEXT", help="Purge all entries that hold this text.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what --match would purge.")]
DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="JSON", help="The payload, a JSON object; - reads standard input."),
]


@agent_command(app, "keepstone add 'Maya prefers short answers' --type preference --tag style")
def add(
    agent: "Agent",
    text: NewText = None,
    *,
    entry_type: TypeOption = "note",
    session: IntoOption = "main",
    tags: TagsOption = None,
    priority: PriorityOption = None,
    data: DataOption = None,
) -> Answer:
    """Remember something: add an entry to a session, which is made if it is new."""
    if text is None and data is None:
        raise ValueError("there is nothing to add: give TEXT, - or --data JSON")
    keys = _keys(text=text, tags=tags, priority=priority)
    entry = agent.session(session).add(entry_type, _payload(data), **keys)
    return _added(entry, "added")


@agent_command(app, "keepstone update retry-policy --tag payment --tag reviewed")
def update(
    agent: "Agent",
    entry_id: EntryArgument,
    *,
    text: TextOption = None,
    entry_type: NewTypeOption = None,
    session: SessionOption = None,
    tags: TagsOption = None,
    priority: PriorityOption = None,
    data: DataOption = None,
) -> Answer:
    """Change an entry. What it was before stays in its history.

    A new text or payload replaces the old text and payload; tags and priority change on their own.
    """
    keys = _keys(text=text, type=entry_type, tags=tags, priority=priority, data=_payload(data))
    if not keys:
        raise ValueError("there is nothing to change: give --text, --data, --type, --tag or --priority")
    return _changed(agent.update(entry_id, session=session, **keys), "updated")


@agent_command(app, "keepstone supersede retry-policy 'Retry five times, with jitter'")
def supersede(
    agent: "Agent",
    entry_id: EntryArgument,
    text: NewText = None,
    *,
    entry_type: NewTypeOption = None,
    session: SessionOption = None,
    tags: TagsOption = None,
    priority: PriorityOption = None,
    valid_from: ValidFromOption = None,
    data: DataOption = None,
) -> Answer:
    """Replace an entry with a new one. The old one stays, and holds until then."""
    if text is None and data is None:
        raise ValueError("there is nothing to add: give TEXT, - or --data JSON")
    keys = _keys(
        text=text,
        type=entry_type,
        tags=tags,
        priority=priority,
        valid_from=valid_from,
        data=_payload(data),
    )
    return _added(agent.supersede(entry_id, keys, session), f"superseded {entry_id} with")


@agent_command(app, "keepstone reinstate retry-policy")
def reinstate(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Undo supersede: delete what replaced an entry, and let that entry hold again."""
    return _changed(agent.reinstate(entry_id, session), "reinstated")


@agent_command(app, "keepstone delete retry-policy")
def delete(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Delete an entry: hide it. Its history keeps it; purge removes its bytes as well."""
    agent.delete(entry_id, session=session)
    return Answer({"id": entry_id, "deleted": True}, Text(f"deleted {one_line(entry_id)}"))


@agent_command(app, "keepstone purge retry-policy --yes")
def purge(
    agent: "Agent",
    entry_id: PurgedArgument = None,
    *,
    match: MatchOption = None,
    session: SessionOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Remove every byte of an entry, history and index included. This cannot be undone.

    With --match of everything that holds a text, in any case: entries, also deleted and archived ones
    and what they said before, sessions of that name, and files. Look with --dry-run first.
    """
    if match is not None and entry_id is None:
        return _purge_matching(agent, match, session, dry_run=dry_run, yes=yes)
    if entry_id is None or match is not None or dry_run:
        raise ValueError("give ID, or --match TEXT, which --dry-run goes with")
    confirm(f"Purge {entry_id!r} for good, with its history?", yes=yes)
    agent.purge(entry_id, session=session)
    return Answer({"id": entry_id, "purged": True}, Text(f"purged {one_line(entry_id)}"))


def _purge_matching(agent: "Agent", text: str, session: str | None, *, dry_run: bool, yes: bool) -> Answer:
    found = agent.purge_matching(text, session, dry_run=True)
    if found and not dry_run:
        confirm(f"Purge {_counts(found)} for good, with all history?", yes=yes)
        found = agent.purge_matching(text, session)
    return Answer(purged_document(found, dry_run=dry_run), _purged_view(found, dry_run=dry_run))


def _counts(found: Purged) -> str:
    held = ((found.entries, "entry"), (found.sessions, "whole session"), (found.files, "file"))
    return ", ".join(counted(len(some), what) for some, what in held if some)


def _purged_view(found: Purged, *, dry_run: bool) -> RenderableType:
    if not found:
        return Text("nothing holds this text")
    lines = [f"{'would purge' if dry_run else 'purged'} {_counts(found)}"]
    lines += [f"  {one_line(entry_id)} in session {one_line(session)}" for session, entry_id in found.entries]
    lines += [f"  session {one_line(name)}, with all its entries" for name in found.sessions]
    lines += [f"  file {one_line(path)}" for path in found.files]
    return Text("\n".join(lines))


@agent_command(app, "keepstone history retry-policy")
def history(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Show what an entry was over time, the oldest version first."""
    versions = agent.history(entry_id, session=session)
    rows = [(moment(version.written), version.type, _told(version)) for version in versions]
    document = {"versions": [version_document(version) for version in versions]}
    return Answer(document, table(("written (UTC)", "type", "text"), rows))


def _told(version: Version) -> str:
    return "(deleted)" if version.deleted else clipped(version.text)


def _added(entry: Entry, verb: str) -> Answer:
    answer = _changed(entry, verb)
    verbs = {"duplicate": "repeats", "contradiction": "contradicts"}
    lines = [f"{verbs[one.kind]} {one.id} in session {one.session}" for one in entry.conflicts]
    view = Group(answer.view, *(Text(harmless(line), "yellow") for line in lines))
    return Answer(added_document(entry), view)


def _changed(entry: Entry, verb: str) -> Answer:
    words = f"{verb} {entry.type} {entry.id} in session {entry.session}"
    return Answer(entry_document(entry), Text(harmless(words)))


def _keys(text: str | None = None, **keys: Any) -> Record:
    given = {"text": None if text is None else argument_or_input(text), **keys}
    return {key: value for key, value in given.items() if value is not None}


def _payload(data: str | None) -> Record | None:
    if data is None:
        return None
    try:
        payload = json.loads(argument_or_input(data))
    except json.JSONDecodeError as error:
        raise ValueError(f"--data is no JSON ({error}): write {_SHAPE}") from None
    if not isinstance(payload, dict):
        raise TypeError(f"--data must be a JSON object, not {clipped(data, 80)}: write {_SHAPE}")
    return payload
