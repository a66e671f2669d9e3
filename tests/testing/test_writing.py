"""The checks of what is written tell a store that does one thing wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.testing.broken import Broken, Fault, fails

from keepstone.store.paging import Page
from keepstone.testing import Check, writing


def one_by_one(store: Any, agent: str, session: str, records: list[Any]) -> list[Any]:
    return [entry for record in records for entry in store.append(agent, session, [record])]


def giving_back_the_given(store: Any, agent: str, session: str, records: list[Any]) -> Any:
    kept = store.append(agent, session, records)
    return [replace(entry, line=record) for entry, record in zip(kept, records, strict=True)]


def losing_one(store: Any, agent: str, session: str, records: list[Any]) -> Any:
    return store.append(agent, session, [record for record in records if record["id"] != "c7"])


def losing_tags(store: Any, agent: str, session: str, entry_id: str, change: Any) -> Any:
    return store.modify(agent, session, entry_id, lambda entry: change(entry) | {"tags": None})


def from_the_first_version(store: Any, agent: str, session: str, entry_id: str, change: Any) -> Any:
    first = store.history(agent, entry_id, session)[:1]
    return store.modify(agent, session, entry_id, lambda entry: change(*first or [entry]))


def only_the_first_line(store: Any, agent: str, session: str, revision: Any, ids: Any = ()) -> Any:
    return store.revise(agent, session, lambda live: revision(live)[:1], ids)


def oldest_first(store: Any, agent: str, session: str, limit: int | None, types: Any) -> Any:
    return store.entries(agent, session, None, types)[:limit]


def newest(store: Any, agent: str, session: str, *more: Any) -> Any:
    return store.entries(agent, session, 1, *more[1:])


def without_a_cursor(store: Any, agent: str, text: str, session: Any, *page: Any) -> Any:
    return Page(store.matching(agent, text, session, *page))


def from_the_newest(store: Any, *of: Any, cursor: str | None = None) -> Any:
    page = store.entries(*of)
    return Page(page, page.next if cursor is None else None)


def making_sessions(store: Any, agent: str, session: str, *more: Any) -> Any:
    store.create(agent, session)
    return store.entries(agent, session, *more)


def overwriting(store: Any, agent: str) -> Any:
    return Broken(store.files(agent), "append", lambda files, path, text: files.write(path, text))


@pytest.mark.parametrize(
    ("check", "method", "fault", "told"),
    [
        (writing.check_append_and_entries, "entries", newest, "entries returns what was appended"),
        (writing.check_append_is_all_or_nothing, "append", one_by_one, "a refused append makes no session"),
        (
            writing.check_append_of_a_known_id,
            "append",
            giving_back_the_given,
            "the entry as it is comes back",
        ),
        (writing.check_modify, "modify", from_the_first_version, "every change of every thread"),
        (writing.check_puts_and_patches, "modify", losing_tags, "a put keeps time, type and reserved keys"),
        (
            writing.check_put_makes_or_replaces,
            "put",
            lambda store, *to: store.put(*to[:2], to[2][-1:]),
            "put",
        ),
        (writing.check_revise, "revise", only_the_first_line, "live entries in the order of lines"),
        (writing.check_delete, "find", lambda store, *of: store.history(*of), "find without the deleted one"),
        (writing.check_order_and_limits, "entries", oldest_first, "the newest two, oldest first"),
        (writing.check_pages, "matching", without_a_cursor, "pages of what holds a text"),
        (writing.check_pages, "entries", from_the_newest, "pages of entries from the newest on"),
        (writing.check_missing_things, "entries", making_sessions, "nothing to remove"),
        (
            writing.check_sessions,
            "sessions",
            lambda store, of: store.sessions(of)[1:],
            "all sessions are listed",
        ),
        (writing.check_names, "check_agent", lambda _, slug: slug, "expected InvalidAgentIdError"),
        (writing.check_files, "files", overwriting, "append"),
        (writing.check_threads, "append", losing_one, "every entry of every thread"),
    ],
)
def test_a_store_that_writes_something_wrong_is_told_what(
    check: Check, method: str, fault: Fault, told: str, tmp_path: Path
) -> None:
    assert fails(check, method, fault, tmp_path).startswith(told)
