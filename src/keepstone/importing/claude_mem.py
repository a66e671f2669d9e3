"""claude-mem: its SQLite database, and the JSON files of its export script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.json_text import whole
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_TABLES = {
    "prompts": "user_prompts",
    "observations": "observations",
    "summaries": "session_summaries",
    "sessions": "sdk_sessions",
}
"""The table of the database for each list of an export."""
_NEEDED = {"observations", "session_summaries"}
_LISTS = ("facts", "concepts", "files_read", "files_modified", "files_edited")
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_MAKERS = ("agent_type", "agent_id", "generated_by_model", "metadata")
_TIMES = ("created_at", "created_at_epoch")


def is_claude_mem(origin: Origin) -> bool:
    """Return whether a file is claude-mem's database, or an export of it."""
    if origin.is_folder or origin.is_zip:
        return False
    if is_sqlite(origin.path):
        with foreign_database(origin.path) as database:
            return database.tables >= _NEEDED and "memory_session_id" in database.columns("observations")
    return _has_mark(origin)


def _has_mark(origin: Origin) -> bool:
    """Return whether a file begins like an export: its first keys are the time and the query."""
    with origin.open(origin.path.name) as file:
        # Only the start is read: an export may have hundreds of megabytes, and ``auto`` checks every file.
        head = file.read(400)
    return b'"exportedAtEpoch"' in head and b'"query"' in head


def read_claude_mem(origin: Origin, _: Options) -> Items:
    """Yield prompts, observations and summaries, with one session for each session of Claude Code."""
    if is_sqlite(origin.path):
        with foreign_database(origin.path) as database:
            yield from _Source(database.name, lambda kind: _rows(database, kind)).items()
            return
    with origin.open(origin.path.name) as file:
        found = whole(file, origin.path.name)
    lists = found if isinstance(found, dict) else {}
    for kind in _TABLES:
        if not isinstance(lists.get(kind) or [], list):
            raise SourceError(f"{origin.path.name} is not an export of claude-mem: {kind} is not a list")
    yield from _Source(origin.path.name, lambda kind: iter(lists.get(kind) or [])).items()


def _rows(database: ForeignDatabase, kind: str) -> Iterator[Any]:
    table = _TABLES[kind]
    return database.records(table, "id") if table in database.tables else iter(())


class _Source:
    def __init__(self, name: str, rows: Any) -> None:
        self._name = name
        self._rows = rows
        self._sessions: dict[str | None, Record] = {
            memory: row
            for row in rows("sessions")
            if isinstance(row, dict) and (memory := named(row.get("memory_session_id")))
        }
        self._projects = {
            named(row.get("content_session_id")): named(row.get("project")) for row in self._sessions.values()
        }
        self._prompts: dict[tuple[str | None, str | None], str] = {}
        """The ids of prompts, by session and prompt number.

        The session is its row id or, in older databases, its name.

        The row id is preferred, as two programs can use the same session name.
        """

    def items(self) -> Items:
        # Prompts come first, as observations and summaries link to them by their number.
        for kind, word, make in (
            ("prompts", "prompt", self._prompt),
            ("observations", "observation", self._observation),
            ("summaries", "summary", self._summary),
        ):
            for row in self._rows(kind):
                # Each of the three tables counts from 1, so an id needs the kind before its number.
                number = named(row.get("id")) if isinstance(row, dict) else None
                place = f"{self._name}: {kind} {number or '?'}"
                if number is None:
                    yield Unread(place, "it has no id")
                    continue
                line = make(row)
                if line is None:
                    yield Unread(place, "it has no text")
                    continue
                line = {"id": f"{word}-{number}", "ts": _first(row, _TIMES)} | line
                yield Item(self._session_of(row), line, place, owner=self._owner(row))

    def _session_of(self, row: Record) -> str:
        known = self._known(row)
        # The content session is Claude Code's session; the memory session is the session of
        # claude-mem's observer.
        found = named(row.get("content_session_id")) or named(known.get("content_session_id"))
        return found or named(row.get("memory_session_id")) or "claude-mem"

    def _known(self, row: Record) -> Record:
        """Return the session that an observation or a summary names."""
        return self._sessions.get(named(row.get("memory_session_id")), {})

    def _owner(self, row: Record) -> Record:
        project = named(row.get("project")) or self._projects.get(self._session_of(row))
        return {"namespace": (project,)} if project else {}

    def _prompt(self, row: Record) -> Record | None:
        if not row.get("prompt_text"):
            return None
        number = row.get("prompt_number")
        session = named(row.get("session_db_id")) or self._session_of(row)
        self._prompts[session, named(number)] = f"prompt-{row['id']}"
        return message("user", row["prompt_text"], prompt_number=number)

    def _observation(self, row: Record) -> Record | None:
        lists = {key: found for key in _LISTS if (found := _list(row.get(key)))}
        said = [row.get("title"), row.get("subtitle"), row.get("narrative") or row.get("text")]
        text = "\n".join([*map(str, filter(None, said)), *(f"- {fact}" for fact in lists.get("facts", ()))])
        kept = ("project", "title", "subtitle", "narrative", "prompt_number", *_MAKERS)
        line = self._line(row, named(row.get("type")) or "observation", text, kept, lists)
        if line is not None and (tags := lists.get("concepts")):
            line["tags"] = tags
        return line

    def _summary(self, row: Record) -> Record | None:
        said = {key: row[key] for key in _SECTIONS if row.get(key)}
        text = "\n".join(f"{key.replace('_', ' ').capitalize()}: {value}" for key, value in said.items())
        lists = {key: found for key in _LISTS if (found := _list(row.get(key)))}
        return self._line(row, "summary", text, ("project", "prompt_number", *said), lists)

    def _line(
        self, row: Record, kind: str, text: str, kept: tuple[str, ...], lists: Mapping[str, Any]
    ) -> Record | None:
        if not text:
            return None
        data = {key: row[key] for key in kept if row.get(key) not in (None, "")} | dict(lists)
        line: Record = {"type": kind, "text": text, "data": data}
        number = named(row.get("prompt_number"))
        sessions = (named(self._known(row).get("id")), self._session_of(row))
        prompt = next(
            (found for session in sessions if (found := self._prompts.get((session, number)))), None
        )
        return line | ({"links": [{"to": prompt, "rel": "derived_from"}]} if prompt else {})


def _first(row: Record, keys: tuple[str, ...]) -> str | None:
    return next((found for key in keys if (found := time_of(row.get(key))) is not None), None)


def _list(value: Any) -> list[str]:
    """Return a list from its JSON text; a list is returned unchanged."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            # The schema does not force the columns to hold JSON: any other text becomes a list of one item.
            return [value] if value else []
    return [str(item) for item in value if item] if isinstance(value, list) else []
