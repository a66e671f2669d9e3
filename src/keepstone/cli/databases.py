"""``keepstone postgres`` and ``keepstone migrate``: homes in PostgreSQL, and copying homes there and back."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Group
from rich.text import Text

from keepstone.cli.command import Answer, show
from keepstone.cli.maintenance import DeepOption, FixOption, checked
from keepstone.cli.options import HomeOption, HomeOptions, JsonOption
from keepstone.cli.screen import progress, table
from keepstone.errors import install_command
from keepstone.text.display import counted, one_line, size

if TYPE_CHECKING:
    from types import ModuleType

    from keepstone.store.transfer import MovableStore

app = typer.Typer()
postgres = typer.Typer(
    name="postgres",
    help="Look after a home in PostgreSQL.",
    no_args_is_help=True,
    epilog="Example: keepstone postgres status --home postgresql://ada@db/memory",
)
app.add_typer(postgres)

RoleOption = Annotated[
    str | None,
    typer.Option("--role", metavar="ROLE", help="Let this role use the home; it owns nothing."),
]
FromOption = Annotated[
    str, typer.Option("--from", metavar="HOME", help="The home to read.", show_default=False)
]
ToOption = Annotated[str, typer.Option("--to", metavar="HOME", help="The home to write.", show_default=False)]
MergeOption = Annotated[
    bool, typer.Option("--merge", help="Write also where there are entries: add what they lack.")
]


def _target(home: str | None) -> str:
    found = home or os.environ.get("KEEPSTONE_HOME", "")
    if not found.startswith(("postgresql:", "postgres:")):
        raise ValueError("the home is not a database: give --home postgresql://user@host/database")
    return found


def _administration() -> ModuleType:
    from keepstone.errors import StoreError

    # The driver is an extra, and only these commands need it.
    try:
        from keepstone.store.postgres import administration
    except ImportError as error:
        raise StoreError(f"the extra 'postgres' is missing: {install_command('postgres')}") from error
    return administration


@postgres.command(epilog="Example: keepstone postgres init --home postgresql://owner@db/memory --role app")
def init(*, role: RoleOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make the tables of a home, or bring them up to date.

    Run it as the role that shall own them. Row-level security binds the role that is named with --role, so
    that it sees one agent at a time.
    """
    version = _administration().init(_target(home), role)
    words = f"The schema has version {version}." + (f" {role} may use it." if role else "")
    show(Answer({"schema": version, "role": role}, Text(one_line(words))), as_json=as_json)


@postgres.command(epilog="Example: keepstone postgres status --home postgresql://ada@db/memory")
def status(*, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what a home holds, and the versions of its schema and its server."""
    found: dict[str, Any] = _administration().status(_target(home))
    rows = [
        ("home", found["home"]),
        ("schema", f"version {found['schema']}"),
        ("server", f"PostgreSQL {found['server']}"),
        *((name, version) for name, version in found["extensions"].items()),
        *((name, f"{found[name]:,}") for name in ("agents", "sessions", "entries", "vectors")),
        ("size", size(found["size"])),
    ]
    show(Answer(found, table(("", ""), rows)), as_json=as_json)


@postgres.command(epilog="Example: keepstone postgres doctor --deep --home postgresql://ada@db/memory")
def doctor(
    *,
    deep: DeepOption = False,
    fix: FixOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the schema and the sessions; with --deep compare each entry with its lines."""
    with HomeOptions(_target(home)).open() as opened:
        show(checked(opened, deep=deep, fix=fix), as_json=as_json)


@postgres.command(epilog="Example: keepstone postgres scrub --home postgresql://owner@db/memory")
def scrub(*, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Rewrite all tables (VACUUM FULL), so that no byte of what was purged is left in them.

    Readers and writers wait for it. What the server's log, its replicas and backups keep is
    described in docs/reliability.md.
    """
    tables: list[str] = _administration().scrub(_target(home))
    show(Answer({"scrubbed": tables}, Text(f"{counted(len(tables), 'table')} rewritten.")), as_json=as_json)


@postgres.command(epilog="Example: keepstone postgres citus --home postgresql://owner@coordinator/memory")
def citus(*, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Distribute the tables over the nodes of a Citus cluster, by agent."""
    tables: list[str] = _administration().distribute(_target(home))
    show(
        Answer({"distributed": tables}, Text(f"{counted(len(tables), 'table')} distributed.")),
        as_json=as_json,
    )


@app.command(epilog="Example: keepstone migrate --from ~/memory --to postgresql://ada@db/memory")
def migrate(
    *, source: FromOption, target: ToOption, merge: MergeOption = False, as_json: JsonOption = False
) -> None:
    """Copy a home to another one: from files to PostgreSQL, or back. The source is not changed.

    Every session is compared with what arrived. What was interrupted goes on with --merge. Stop writers
    first: what is written during the migration may be missing.
    """
    from keepstone.filesystem.layout import layout_of
    from keepstone.store.opening import is_database, open_store
    from keepstone.store.transfer import move

    layout = layout_of("default")
    # Open stores, not homes: a move reads and writes lines, to which homes give no access.
    source_store, root = open_store(source, layout, durable=True)
    if not is_database(root) and not root.is_dir():
        raise ValueError(f"there is no home at {root}: --from names the home to copy")
    with closing(source_store):
        target_store, _ = open_store(target, layout, durable=True)
        with closing(target_store), progress("migrating") as bar:
            task = bar.task_ids[0]
            moved = move(
                cast("MovableStore", source_store),
                cast("MovableStore", target_store),
                merge=merge,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    said = f"{counted(moved.entries, 'entry')} in {counted(moved.sessions, 'session')}, {moved.files:,} files"
    left_out = [f"left out, not text: {path}" for path in moved.skipped]
    left_out += [f"left as the target has it, with another text: {path}" for path in moved.differing]
    view = Group(
        Text(f"Migrated and verified: {said}."), *(Text(one_line(line), "yellow") for line in left_out)
    )
    show(Answer(vars(moved), view, status=1 if left_out else 0), as_json=as_json)
