"""Granting, revoking, and copies of entries for another agent."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepstone.errors import InvalidAgentIdError, StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.line import entry_of
from keepstone.store.files.file_store import FileStore
from keepstone.store.sharing.changes_of_grants import add_grant, copy_of, grants_now, revoke
from keepstone.store.sharing.grants import Grant
from keepstone.testing.clock import START
from keepstone.testing.making import record

DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        yield store


def grant(store: FileStore, **given: Any) -> Grant:
    keys = {"to": "coder", "may": "read", "types": None, "tags": None, "until": None, "by": None} | given
    return add_grant(store, "team", START, **keys)


def damage(store: FileStore, tmp_path: Path) -> None:
    grant(store)
    (file,) = tmp_path.rglob("grants.ndjson")
    file.write_text("no grant\n")


def test_a_grant_is_written_as_it_is_returned(store: FileStore) -> None:
    made = grant(store, may="write", types=["note"], tags=["x"], until="7d", by="Ada")
    assert made == Grant("coder", "write", ("note",), ("x",), START + 7 * DAY, "Ada", ts=START)
    assert grants_now(store, "team", START) == [made]


def test_another_word_than_read_and_write_is_refused(store: FileStore) -> None:
    with pytest.raises(ValueError, match="may must be 'read' or 'write', not 'nothing'; take access away"):
        grant(store, may="nothing")


def test_an_agent_cannot_grant_itself(store: FileStore) -> None:
    with pytest.raises(ValueError, match="agent 'team' cannot grant itself access, which it has"):
        grant(store, to="team")


def test_a_name_that_no_agent_can_have_is_refused(store: FileStore) -> None:
    with pytest.raises(InvalidAgentIdError):
        grant(store, to="../x")
    with pytest.raises(InvalidAgentIdError):
        revoke(store, "team", START, "../x")


def test_a_revocation_ends_what_is_in_force(store: FileStore) -> None:
    grant(store)
    assert revoke(store, "team", START + DAY, "coder")
    assert grants_now(store, "team", START + DAY) == []


def test_revoking_what_is_not_granted_writes_nothing(store: FileStore) -> None:
    grant(store, to="other")
    assert not revoke(store, "team", START, "coder")
    assert len(store.grants("team")) == 1


def test_revoking_takes_a_grant_of_the_future_away(store: FileStore) -> None:
    store.add_grant("team", Grant("coder", "read", ts=START + DAY))
    assert not revoke(store, "team", START, "coder")
    assert grants_now(store, "team", START + 2 * DAY) == []


# Damage


def test_damaged_grants_are_none_with_a_warning(
    store: FileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(store, tmp_path)
    with caplog.at_level(logging.WARNING):
        assert grants_now(store, "team", START) == []
    assert "the grants of agent team are damaged and grant nothing" in caplog.text


@pytest.mark.parametrize("change", [grant, lambda store: revoke(store, "team", START, "coder")])
def test_damaged_grants_are_not_written_to(store: FileStore, tmp_path: Path, change: Any) -> None:
    damage(store, tmp_path)
    with pytest.raises(
        StoreError, match="the grants of agent 'team' are damaged.*that keepstone doctor names"
    ):
        change(store)


# Copies


def test_a_copy_has_the_content_and_a_link_to_the_original() -> None:
    line = record("a", "walnut", tags=["x"], access=7, modified="2026-01-12T00:00:00Z", links=[{"to": "b"}])
    copied = copy_of(entry_of("team", "main", line))
    assert {key: copied[key] for key in ("ts", "type", "data", "tags")} == {
        key: line[key] for key in ("ts", "type", "data", "tags")
    }
    assert copied["links"] == [{"rel": "copy_of", "to": "a", "session": "main", "agent": "team"}]
    assert copied.keys().isdisjoint({"access", "modified"})


def test_two_copies_of_one_entry_have_one_id() -> None:
    entry = entry_of("team", "main", record("a", "walnut"))
    assert copy_of(entry)["id"] == copy_of(entry_of("team", "main", record("a", "pecan")))["id"]
    others = [replace(entry, session="other"), replace(entry, agent="other"), replace(entry, id="b")]
    assert len({copy_of(one)["id"] for one in (entry, *others)}) == 4
