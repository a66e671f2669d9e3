"""``keepstone entries``: the entries of all sessions of an agent, listed, counted and removed by filters."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, confirm, option
from keepstone.cli.options import (
    SharedOption,
    SinceOption,
    TagsOption,
    TypesOption,
    UntilOption,
    YesOption,
    moment_or_none,
)
from keepstone.cli.screen import table
from keepstone.log.arguments import Filters
from keepstone.model import Entry
from keepstone.operations.documents import entry_document
from keepstone.text.display import clipped, counted, moment, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer(
    name="entries",
    help="List, count, delete and purge the entries of all sessions by filters.",
    no_args_is_help=True,
    epilog="Example: keepstone entries list --type decision",
)

WhereOption = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help="""Only with these values: '{"score": {"gte": 3}}'."""),
]
IdsOption = Annotated[
    list[str] | None, typer.Option("--id", metavar="ID", help="Only this entry; may be repeated.")
]
SupersededOption = Annotated[
    bool | None,
    typer.Option(
        "--include-superseded/--no-include-superseded",
        help="Also entries that are superseded, expired or not valid yet; default: only for purge.",
    ),
]
TrustOption = Annotated[
    str | None,
    typer.Option(
        "--trust", metavar="WHO", help="Only of at least this trust: user, program, model, import or tool."
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of entries.")]
CursorOption = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="`next` of the page before.")
]
NewestOption = Annotated[bool, typer.Option("--newest-first", help="Begin with the newest.")]
FILTERS = (
    option("types", TypesOption, None),
    option("tags", TagsOption, None),
    option("where", WhereOption, None),
    option("since", SinceOption, None),
    option("until", UntilOption, None),
    option("ids", IdsOption, None),
    option("include_superseded", SupersededOption, default=None),
    option("trust", TrustOption, None),
)
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")]


@agent_command(
    app, "keepstone entries list --type decision --limit 20", name="list", needs_home=True, shared=FILTERS
)
def list_entries(
    agent: "Agent",
    *,
    limit: LimitOption = 100,
    cursor: CursorOption = None,
    newest_first: NewestOption = False,
    others: SharedOption = None,
    **filters: Any,
) -> Answer:
    """List the entries of all sessions by time, the oldest first."""
    passing = _filters(**filters)
    page = agent.entries(limit=limit, cursor=cursor, newest_first=newest_first, shared=others, **passing)
    rows = [
        (moment(entry.ts), one_line(_where(entry, agent)), entry.id, entry.type, clipped(entry.text))
        for entry in page
    ]
    columns = ("time (UTC)", "session", "id", "type", "text")
    document = {"entries": [entry_document(entry) for entry in page], "next": page.next}
    return Answer(document, table(columns, rows) if rows else Text("no entries"))


@agent_command(app, """keepstone entries count --where '{"by": "Ada"}'""", needs_home=True, shared=FILTERS)
def count(agent: "Agent", *, others: SharedOption = None, **filters: Any) -> Answer:
    """Count the entries of all sessions."""
    found = agent.count(shared=others, **_filters(**filters))
    return Answer({"count": found}, Text(counted(found, "entry")))


@agent_command(app, "keepstone entries delete --tag draft --dry-run", needs_home=True, shared=FILTERS)
def delete(agent: "Agent", *, dry_run: DryRunOption = False, **filters: Any) -> Answer:
    """Delete all entries that pass the filters, at least one: hide them."""
    return _removed(agent.delete_where(dry_run=dry_run, **_filters(**filters)), "delete", dry_run=dry_run)


@agent_command(app, "keepstone entries purge --until 2020-01-01 --dry-run", needs_home=True, shared=FILTERS)
def purge(agent: "Agent", *, dry_run: DryRunOption = False, yes: YesOption = False, **filters: Any) -> Answer:
    """Remove every byte of all entries that pass the filters, at least one. This cannot be undone."""
    passing = _filters(**filters)
    found = agent.purge_where(dry_run=True, **passing)
    # Count first, as the question names the number; the purge below evaluates the filters again.
    if found and not dry_run:
        confirm(f"Purge {counted(found, 'entry')} for good, with all history?", yes=yes)
        found = agent.purge_where(**passing)
    return _removed(found, "purge", dry_run=dry_run)


def _where(entry: Entry, agent: "Agent") -> str:
    return entry.session if entry.agent == agent.slug else f"{entry.agent}/{entry.session}"


def _removed(count: int, verb: str, *, dry_run: bool) -> Answer:
    words = f"{f'would {verb}' if dry_run else f'{verb}d'} {counted(count, 'entry')}"
    return Answer({"count": count, "dry_run": dry_run}, Text(words))


def _filters(
    types: list[str] | None,
    tags: list[str] | None,
    where: str | None,
    since: str | None,
    until: str | None,
    ids: list[str] | None,
    *,
    include_superseded: bool | None,
    trust: str | None,
) -> Filters:
    # Typer gives an empty list for an option that was not given.
    found = Filters(
        types=types or None,
        tags=tags or None,
        where=_conditions(where),
        since=moment_or_none(since, "--since"),
        until=moment_or_none(until, "--until"),
        ids=ids or None,
        trust=trust,
    )
    return found if include_superseded is None else {**found, "include_superseded": include_superseded}


def _conditions(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    try:
        found = json.loads(where)
    except json.JSONDecodeError as error:
        raise ValueError(f'--where is not JSON ({error}): write \'{{"key": "value"}}\'') from None
    if not isinstance(found, dict):
        raise TypeError(f"--where must be a JSON object, not {clipped(where, 80)}")
    return found
