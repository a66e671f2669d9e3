"""The checks of copies, names and restored entries tell a store that does one thing wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.testing.broken import Fault, fails

from keepstone.testing import Check, lifecycle


def at_its_old_time(store: Any, agent: str, session: str, entry_id: str, _: Any) -> Any:
    return store.restore(agent, session, entry_id, lambda entry: entry.line | {"ts": entry.line["ts"]})


def without_titles(store: Any, *of: Any, **how: Any) -> Any:
    return [replace(summary, title=None) for summary in store.summaries(*of, **how)]


def over_any_session(store: Any, agent: str, session: str, new: str) -> Any:
    if store.session(agent, new) is not None and new != session:
        store.remove(agent, new)
    return store.rename(agent, session, new)


def without_a_life(store: Any, agent: str, session: str, *more: Any) -> Any:
    found = store.entries(agent, session, *more)
    return [
        replace(entry, line={key: value for key, value in entry.line.items() if key != "life"})
        for entry in found
    ]


def whole(store: Any, agent: str, session: str, new: str, _: str | None = None) -> Any:
    return store.copy(agent, session, new)


def without_deletions(store: Any, *of: Any) -> Any:
    return [line for line in store.lines(*of) if "deleted" not in line]


def told_twice(store: Any, *of: Any) -> Any:
    poll = store.changes(*of)
    return lambda: poll() * 2


@pytest.mark.parametrize(
    ("check", "method", "fault", "told"),
    [
        (lifecycle.check_restore, "restore", at_its_old_time, "the entry as it was before"),
        (lifecycle.check_titles, "summaries", without_titles, "titles from messages"),
        (lifecycle.check_rename, "rename", over_any_session, "expected ValueError"),
        (
            lifecycle.check_rename_over_ended_lives,
            "entries",
            without_a_life,
            "the life of an entry in new",
        ),
        (lifecycle.check_copy_and_fork, "copy", whole, "expected EntryNotFoundError"),
        (lifecycle.check_lines, "lines", without_deletions, "the lines"),
        (lifecycle.check_changes, "changes", told_twice, "the changes of an entry"),
    ],
)
def test_a_store_that_changes_a_session_wrongly_is_told_what(
    check: Check, method: str, fault: Fault, told: str, tmp_path: Path
) -> None:
    assert fails(check, method, fault, tmp_path).startswith(told)
