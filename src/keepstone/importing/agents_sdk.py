"""Sessions of the OpenAI Agents SDK: SQLite files of its ``SQLiteSession``."""

from __future__ import annotations

import json

from keepstone.importing.item import Item, Items, Options, Unread, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import foreign_database, is_sqlite

_MESSAGES = "agent_messages"


def is_agents_sdk(origin: Origin) -> bool:
    """Tell whether a file is a database of the SDK's sessions."""
    if origin.is_folder or not is_sqlite(origin.path):
        return False
    with foreign_database(origin.path) as database:
        return {_MESSAGES, "agent_sessions"} <= database.tables


def read_agents_sdk(origin: Origin, _: Options) -> Items:
    """Yield the items of all sessions; each is the payload of a message."""
    with foreign_database(origin.path) as database:
        for row in database.records(_MESSAGES, "session_id, id"):
            place = f"{database.name}: {_MESSAGES} {row['id']}"
            try:
                data = json.loads(row["message_data"])
            except (ValueError, TypeError, RecursionError) as error:
                yield Unread(place, f"message_data is not JSON: {error}")
                continue
            if not isinstance(data, dict):
                yield Unread(place, "message_data is not a JSON object")
                continue
            moment = time_of(row.get("created_at"))
            # Row numbers begin at 1 in each file; with their time they tell files of one session apart.
            stamp = "".join(filter(str.isdigit, str(row.get("created_at") or "")))
            line = {"id": f"{stamp}-{row['id']}".lstrip("-"), "ts": moment, "type": "message", "data": data}
            yield Item(str(row["session_id"]), line, place)
