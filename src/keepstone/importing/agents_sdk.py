"""Sessions of the OpenAI Agents SDK: SQLite files of its ``SQLiteSession`` and ``AdvancedSQLiteSession``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_MESSAGES, _STRUCTURE = "agent_messages", "message_structure"
_COLUMNS = {"id", "session_id", "message_data"}


def is_agents_sdk(origin: Origin) -> bool:
    """Return whether a file is a database of the SDK's sessions."""
    if origin.is_folder or not is_sqlite(origin.path):
        return False
    with foreign_database(origin.path) as database:
        return bool(_tables(database))


def read_agents_sdk(origin: Origin, options: Options) -> Items:
    """Yield the messages of all sessions as items.

    An ``AdvancedSQLiteSession`` can have several branches. Only the branch written to last is read, unless
    ``branches`` is set: then each further branch becomes a separate session.
    """
    with foreign_database(origin.path) as database:
        table = _table(database, options.mapping)
        branched = _branched(database)
        for row in database.records(table, "session_id, id"):
            if row["session_id"] not in branched:
                yield _item(database, table, row, str(row["session_id"]))
        for session, branches in branched.items():
            # The branch that was written to last keeps the name of the session, so that an import with
            # ``branches`` finds the entries of one without.
            for branch in branches if options.branches else branches[:1]:
                name = str(session) if branch == branches[0] else f"{session}/{branch}"
                for row in _rows_of(database, table, session, branch):
                    yield _item(database, table, row, name)


def _tables(database: ForeignDatabase) -> list[str]:
    """Return the tables that may hold messages.

    Virtual tables are left out: they cannot be read without their module.
    """
    statement = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%message_data%' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    # The text of the schema only preselects tables, as a comment in it may also contain the word.
    names = [str(name) for (name,) in database.rows(statement)]
    return sorted(name for name in names if set(database.columns(name)) >= _COLUMNS)


def _table(database: ForeignDatabase, mapping: Mapping[str, str]) -> str:
    """Return the table of messages: the SDK's default, or the table that the caller named."""
    if unknown := mapping.keys() - {"messages"}:
        raise ValueError(f"unknown field {min(unknown)!r:.80}; of openai-agents only messages can be mapped")
    table = mapping.get("messages", _MESSAGES)
    if table not in database.tables:
        found = ", ".join(_tables(database)) or "none"
        raise SourceError(
            f"{database.name} has no table {table!r:.80}; tables that could hold the messages: {found}; "
            "choose one with --map messages=TABLE"
        )
    return table


def _branched(database: ForeignDatabase) -> dict[Any, list[Any]]:
    """Return the branches of each session that has branches, the branch written to last first."""
    found: dict[Any, list[Any]] = {}
    if _STRUCTURE in database.tables:
        # The SDK does not store which branch is current; only the object in the running program has this.
        statement = f"SELECT session_id, branch_id FROM {_STRUCTURE} GROUP BY 1, 2 ORDER BY 1, MAX(id) DESC"  # noqa: S608
        for session, branch in database.rows(statement):
            found.setdefault(session, []).append(branch)
    return found


def _rows_of(database: ForeignDatabase, table: str, session: object, branch: object) -> Iterator[Record]:
    """Yield the messages of a branch in its order."""
    quoted = table.replace('"', '""')
    statement = (
        f'SELECT m.id, m.message_data, m.created_at FROM "{quoted}" m JOIN {_STRUCTURE} s '  # noqa: S608
        "ON m.id = s.message_id WHERE m.session_id = ? AND s.branch_id = ? ORDER BY s.sequence_number"
    )
    for number, data, created in database.rows(statement, (session, branch)):
        yield {"id": number, "message_data": data, "created_at": created}


def _item(database: ForeignDatabase, table: str, row: Record, session: str) -> Item | Unread:
    place = f"{database.name}: {table} {row['id']}"
    try:
        data = json.loads(row["message_data"])
    except (ValueError, TypeError, RecursionError) as error:
        return Unread(place, f"message_data is not JSON: {error}")
    if not isinstance(data, dict):
        return Unread(place, "message_data is not a JSON object")
    moment = time_of(row.get("created_at"))
    # Row numbers begin at 1 in each file; adding the time keeps ids unique across several files of one
    # session.
    stamp = "".join(filter(str.isdigit, str(row.get("created_at") or "")))
    line = {"id": f"{stamp}-{row['id']}".lstrip("-"), "ts": moment, "type": "message", "data": data}
    return Item(session, line, place)
