"""The checks of what is found tell a store that does one thing wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.testing.broken import Fault, fails

from keepstone.store.reader import ExpiredError
from keepstone.testing import Check, finding, maintenance


def worst_first(reader: Any, terms: Any, scope: Any, limit: int) -> Any:
    return reader.search(terms, scope, 50)[::-1][:limit]


def of_all_types(reader: Any, terms: Any, scope: Any, limit: int) -> Any:
    return reader.search(terms, replace(scope, types=None), limit)


def of_all_sessions(reader: Any, terms: Any, scope: Any, limit: int) -> Any:
    return reader.search(terms, replace(scope, sessions=None), limit)


def rebuilding_first(store: Any, *of: Any) -> Any:
    store.maintenance.rebuild(None)
    return store.append(*of)


def never_expiring(reader: Any, keys: Any) -> Any:
    try:
        return reader.load(keys)
    except ExpiredError:
        return {}


def changing_nothing(store: Any, agent: str, session: str, entry_id: str, _: object) -> Any:
    return store.find(agent, entry_id, session)[0]


def of_today(store: Any, *of: Any, **how: Any) -> Any:
    how.pop("as_of", None)
    return store.entries(*of, **how)


def into_any_folder(maintenance: Any, folder: Path, progress: Any) -> Any:
    shutil.rmtree(folder, ignore_errors=True)
    return maintenance.backup(folder, progress)


@pytest.mark.parametrize(
    ("check", "method", "fault", "told"),
    [
        (finding.check_search, "search", worst_first, "the best one first"),
        (finding.check_search_in_scope, "search", of_all_types, "a search in {'types': ('note',)}"),
        (finding.check_search_follows_changes, "modify", changing_nothing, "the old words are gone"),
        (
            finding.check_neighbours,
            "neighbours",
            lambda reader, keys, reach, scope: reader.neighbours(keys, reach - 1, scope),
            "neighbours of types None",
        ),
        (
            finding.check_neighbours_of_deleted,
            "neighbours",
            lambda reader, keys, reach, scope: reader.neighbours(keys, reach, scope)[:1],
            "the next live entries, 2 places away at most",
        ),
        (finding.check_counts_and_links, "count", lambda *_, wait: wait, "counts add up"),
        (
            finding.check_pinned_and_standing,
            "standing",
            lambda store, agent, _: store.standing(agent, 9),
            "the newest preferences and decisions",
        ),
        (
            finding.check_history,
            "history",
            lambda store, *of: store.history(*of)[-1:],
            "all versions in order",
        ),
        (finding.check_time_travel_and_archive, "entries", of_today, "entries as they were"),
        (
            finding.check_search_in_the_past,
            "search",
            of_all_sessions,
            "what was there of sessions ('s1',)",
        ),
        (
            finding.check_search_in_the_past,
            "reader",
            lambda store, agent, *_: store.reader(agent),
            "what was there of sessions None",
        ),
        (
            finding.check_matching_and_pinned,
            "matching",
            lambda store, agent, text, _: store.matching(agent, text, None),
            "in one session, in any case",
        ),
        (
            finding.check_keys,
            "heads",
            lambda reader, keys: {key: (text[:63], ts) for key, (text, ts) in reader.heads(keys).items()},
            "how it begins, and when it was made",
        ),
        (
            finding.check_keys,
            "append",
            rebuilding_first,
            "an entry more leaves the keys of others alone",
        ),
        (finding.check_keys, "load", never_expiring, "a key after a rebuild"),
        (finding.check_ask, "load", lambda *_: {}, "the answer, whatever was done to the index"),
        (maintenance.check_backup, "maintenance.backup", into_any_folder, "expected ValueError"),
        (
            maintenance.check_rebuild_and_doctor,
            "maintenance.rebuild",
            lambda sound, _: sound.rebuild(None),
            "progress ends at the end",
        ),
    ],
)
def test_a_store_that_finds_something_wrong_is_told_what(
    check: Check, method: str, fault: Fault, told: str, tmp_path: Path
) -> None:
    assert fails(check, method, fault, tmp_path).startswith(told)
