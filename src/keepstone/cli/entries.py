"""``keepstone add``, ``update``, ``supersede``, ``delete``, ``purge`` and so on: one entry at a time."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input, confirm
from keepstone.cli.options import EntryArgument, SessionOption, YesOption, complete_sessions
from keepstone.cli.screen import table
from keepstone.errors import EntryNotFoundError
from keepstone.model import Entry, Purged, Record, Version
from keepstone.operations.documents import added_document, entry_document, purged_document, version_document
from keepstone.operations.erasing import counts_of
from keepstone.text.display import clipped, harmless, in_words, moment, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

_UNTOLD = frozenset({"id", "ts", "batch", "origin", "embedding", "access", "deleted", "modified"})
"""Keys whose changes are not shown, as they do not change the memory itself."""
_SHORT = 40
"""Maximum characters of a value that is shown."""
_SHAPE = """'{"key": "value"}'"""

NewText = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="The text to remember; - reads standard input.", show_default=False),
]
TextOption = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="The new text; - reads standard input.")
]
TypeOption = Annotated[str, typer.Option("--type", metavar="TYPE", help="The type of the entry.")]
NewTypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="The new type.")]
IntoOption = Annotated[
    str,
    typer.Option(
        "--session", metavar="SESSION", help="The session to add to.", autocompletion=complete_sessions
    ),
]
TagsOption = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated.")]
PriorityOption = Annotated[
    float | None, typer.Option("--priority", metavar="NUMBER", help="The priority, from 0 to 1.")
]
ValidFromOption = Annotated[
    str | None,
    typer.Option("--valid-from", metavar="TIME", help="When the new one begins to hold; without it, now."),
]
PurgedArgument = Annotated[
    str | None, typer.Argument(metavar="ID", help="The id of the entry.", show_default=False)
]
MatchOption = Annotated[
    str | None, typer.Option("--match", metavar="TEXT", help="Purge all entries that contain this text.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what --match would purge.")]
DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="JSON", help="The payload, a JSON object; - reads standard input."),
]
MergeOption = Annotated[
    str | None,
    typer.Option("--merge", metavar="JSON", help="Single keys of the payload to set; null removes one."),
]


DerivedOption = Annotated[
    list[str] | None,
    typer.Option("--derived-from", metavar="ID", help="An entry that it was derived from; may be repeated."),
]
CitesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cites", metavar="FILE#L1-L9", help="A file of the project that it is about; may be repeated."
    ),
]
FollowOption = Annotated[
    bool, typer.Option("--follow", help="Also purge all that was derived from the entry.")
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
    derived_from: DerivedOption = None,
    cites: CitesOption = None,
) -> Answer:
    """Add an entry to a session, which is created if it does not exist."""
    if text is None and data is None:
        raise ValueError("nothing to add: give TEXT, - or --data JSON")
    keys = _keys(
        text=text, tags=tags, priority=priority, derived_from=derived_from or None, cites=cites or None
    )
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
    merge: MergeOption = None,
) -> Answer:
    """Change an entry. Keys that are not named stay; previous versions stay in its history."""
    payload = {"data": _payload(data), "data_merge": _payload(merge, "--merge")}
    keys = _keys(text=text, type=entry_type, tags=tags, priority=priority, **payload)
    if not keys:
        raise ValueError("nothing to change: give --text, --data, --merge, --type, --tag or --priority")
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
        raise ValueError("nothing to add: give TEXT, - or --data JSON")
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
    """Delete an entry: hide it. Its history keeps it; purge removes its bytes."""
    agent.delete(entry_id, session=session)
    return Answer({"id": entry_id, "deleted": True}, Text(f"deleted {one_line(entry_id)}"))


@agent_command(app, "keepstone restore retry-policy")
def restore(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """Give a deleted entry back, with its text, payload and tags, at the time of now."""
    return _changed(agent.restore(entry_id, session), "restored")


@agent_command(app, "keepstone purge retry-policy --yes")
def purge(
    agent: "Agent",
    entry_id: PurgedArgument = None,
    *,
    match: MatchOption = None,
    session: SessionOption = None,
    dry_run: DryRunOption = False,
    follow: FollowOption = False,
    yes: YesOption = False,
) -> Answer:
    """Remove every byte of an entry, history and index included. This cannot be undone.

    With --match, of everything that contains a text, ignoring case: entries with all their versions,
    deleted and archived ones too, sessions whose id contains it, and files. Try --dry-run first.
    """
    if match is not None and entry_id is None and not follow:
        return _purge_matching(agent, match, session, dry_run=dry_run, yes=yes)
    if entry_id is None or match is not None or dry_run:
        raise ValueError("give either ID or --match TEXT; --dry-run needs --match, and --follow an ID")
    more = " and all that was derived from it" if follow else ""
    confirm(f"Purge {entry_id!r}{more} for good, with its history?", yes=yes)
    found = agent.purge(entry_id, session=session, follow=follow)
    document: dict[str, Any] = {"id": entry_id, "purged": True}
    if not follow:
        return Answer(document, Text(f"purged {one_line(entry_id)}"))
    return Answer({**document, **purged_document(found, dry_run=False)}, _purged_view(found, dry_run=False))


def _purge_matching(agent: "Agent", text: str, session: str | None, *, dry_run: bool, yes: bool) -> Answer:
    # Search first, as the question says how much is lost; the purge searches again under its locks.
    found = agent.purge_matching(text, session, dry_run=True)
    if found and not dry_run:
        confirm(f"Purge {counts_of(found)} for good, with all history?", yes=yes)
        found = agent.purge_matching(text, session)
    return Answer(purged_document(found, dry_run=dry_run), _purged_view(found, dry_run=dry_run))


def _purged_view(found: Purged, *, dry_run: bool) -> RenderableType:
    if not found:
        return Text("nothing contains this text")
    lines = [f"{'would purge' if dry_run else 'purged'} {counts_of(found)}"]
    lines += [f"  {one_line(entry_id)} in session {one_line(session)}" for session, entry_id in found.entries]
    lines += [f"  session {one_line(name)}, with all its entries" for name in found.sessions]
    lines += [f"  file {one_line(path)}" for path in found.files]
    lines += [f"  suggestion {one_line(name)}" for name in found.suggestions]
    return Text("\n".join(lines))


@agent_command(app, "keepstone history retry-policy")
def history(agent: "Agent", entry_id: EntryArgument, session: SessionOption = None) -> Answer:
    """List the versions of an entry, oldest first, and what each changed."""
    versions = agent.history(entry_id, session=session)
    rows = [
        (moment(version.written), _change(before, version, agent), version.type, _text_of(version))
        # Pair each version with the one before it; the first version has none.
        for before, version in zip((None, *versions), versions, strict=False)
    ]
    document = {"versions": [version_document(version) for version in versions]}
    return Answer(document, table(("written (UTC)", "change", "type", "text"), rows))


def _text_of(version: Version) -> str:
    return "(deleted)" if version.deleted else clipped(version.text)


def _change(before: Version | None, version: Version, agent: "Agent") -> str:
    """Return the changes of a version in words."""
    if before is None:
        return "added"
    if version.deleted:
        return "deleted"
    if before.deleted:
        return "restored"
    old, new = before.line, version.line
    keys = sorted(key for key in {*old, *new} - _UNTOLD if old.get(key) != new.get(key))
    changes = [_told(key, new.get(key)) for key in keys]
    if "valid_to" in keys and (newer := _newer(version, agent)):
        changes[keys.index("valid_to")] = f"superseded by {newer}"
    return ", ".join(changes) or "written again"


def _told(key: str, value: object) -> str:
    """Return the change of a key: short values are shown, texts and payloads are in the next column."""
    if value is None:
        return f"{key} taken away"
    is_short = isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _SHORT)
    # "pinned" reads better than "pinned: True".
    if value is True:
        return key
    return f"{key}: {in_words(value)}" if is_short and key != "text" else f"{key} edited"


def _newer(version: Version, agent: "Agent") -> str:
    """Return the ids of the entries that supersede an entry."""
    link = {"rel": "supersedes", "to": version.id}
    found: list[Entry] = []
    with suppress(EntryNotFoundError):  # The entry was deleted later, so its links are no longer found.
        found = agent.related(version.id, "supersedes")
    return ", ".join(
        entry.id
        for entry in found
        if any(link.items() <= dict(candidate).items() for candidate in entry.links)
    )


def _added(entry: Entry, verb: str) -> Answer:
    answer = _changed(entry, verb)
    verbs = {"duplicate": "repeats", "contradiction": "contradicts"}
    lines = [
        f"{verbs[conflict.kind]} {conflict.id} in session {conflict.session}" for conflict in entry.conflicts
    ]
    view = Group(answer.view, *(Text(harmless(line), "yellow") for line in lines))
    return Answer(added_document(entry), view)


def _changed(entry: Entry, verb: str) -> Answer:
    words = f"{verb} {entry.type} {entry.id} in session {entry.session}"
    return Answer(entry_document(entry), Text(harmless(words)))


def _keys(text: str | None = None, **keys: Any) -> Record:
    given = {"text": None if text is None else argument_or_input(text), **keys}
    # Typer passes None for an option that was not given, which must not remove the key.
    return {key: value for key, value in given.items() if value is not None}


def _payload(data: str | None, option: str = "--data") -> Record | None:
    if data is None:
        return None
    try:
        payload = json.loads(argument_or_input(data))
    except json.JSONDecodeError as error:
        raise ValueError(f"{option} is not valid JSON ({error}): write {_SHAPE}") from None
    if not isinstance(payload, dict):
        raise TypeError(f"{option} must be a JSON object, not {clipped(data, 80)}: write {_SHAPE}")
    return payload
