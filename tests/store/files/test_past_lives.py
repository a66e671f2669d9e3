"""The past lives of a session's ids, followed while its files grow."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from tests.damage import TS, entry, lines, tombstone

from keepstone.filesystem.layout import ARCHIVE, LAYOUTS
from keepstone.log.sides import side_of
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.file_store import FileStore
from keepstone.store.files.purge_digests import line_of, record
from keepstone.store.removal_marks import digest

IDS = ["a", "b", "c"]


def write(logs: AgentLogs, *items: Record | bytes, archived: bool = False) -> None:
    folder = logs.folder.path / ARCHIVE if archived else logs.folder.path
    folder.mkdir(exist_ok=True)
    with (folder / "s.ndjson").open("ab") as file:
        file.write(lines(*items))


def lives(logs: AgentLogs, session: str = "s") -> dict[str, int]:
    return logs.past_lives(session, IDS)


def test_an_id_in_its_first_life_or_none_has_no_past(logs: AgentLogs) -> None:
    assert lives(logs) == {}
    write(logs, entry("a"), entry("a", "later"))
    assert lives(logs) == {}


def test_a_deletion_is_the_end_of_a_life(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"))
    assert lives(logs) == {"a": 1}


def test_a_later_life_counts_while_it_lasts(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"), entry("a", life=2))
    assert lives(logs) == {"a": 2}


def test_a_life_that_no_line_names_is_counted_by_its_deletion(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"), entry("a", "of another program"), tombstone("a"))
    assert lives(logs) == {"a": 2}


def test_what_is_added_later_is_read(logs: AgentLogs) -> None:
    write(logs, entry("a"), entry("b"))
    assert lives(logs) == {}
    write(logs, tombstone("a"))
    assert lives(logs) == {"a": 1}
    write(logs, entry("a", life=2), tombstone("b"), tombstone("a"))
    assert lives(logs) == {"a": 2, "b": 1}


def test_a_log_that_was_rewritten_is_read_again(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"), entry("b"))
    assert lives(logs) == {"a": 1}
    (logs.folder.path / "s.ndjson").write_bytes(lines(entry("b")))
    assert lives(logs) == {}


def test_archived_ids_have_lived(logs: AgentLogs) -> None:
    write(logs, entry("a"), archived=True)
    write(logs, entry("b"), entry("b", "later"), tombstone("b"), archived=True)
    write(logs, entry("c"))
    assert lives(logs) == {"a": 1, "b": 1}


def test_a_journal_tells_of_lives_that_left_no_line(logs: AgentLogs) -> None:
    record(logs.folder, [line_of(digest("s", "a"), 3), line_of(digest("other", "b"), 1)])
    write(logs, entry("b"))
    assert lives(logs) == {"a": 3}
    record(logs.folder, [line_of(digest("s", "b"), 1)])
    assert lives(logs) == {"a": 3, "b": 1}


def test_only_the_most_recently_used_sessions_are_remembered_and_all_are_answered(
    logs: AgentLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.files.past_lives._SESSIONS", 1)
    write(logs, entry("a"), tombstone("a"))
    assert [lives(logs, name) for name in ("s", "other", "s")] == [{"a": 1}, {}, {"a": 1}]


UNNAMED = entry("a", "of another program")


@pytest.mark.parametrize("archived", [False, True])
def test_a_life_that_no_line_names_counts_where_it_is_to_be_erased(logs: AgentLogs, archived: bool) -> None:  # noqa: FBT001
    write(logs, entry("a"), tombstone("a"), UNNAMED, archived=archived)
    assert logs.past_lives.with_unnamed("s", IDS) == {"a": 2}


def test_such_a_life_may_lack_its_newline(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"), entry("b"))
    with (logs.folder.path / "s.ndjson").open("ab") as file:
        file.write(lines(UNNAMED)[:-1])
    assert logs.past_lives.with_unnamed("s", IDS) == {"a": 2}


def test_lines_that_log_and_archive_repeat_begin_no_life(logs: AgentLogs) -> None:
    write(logs, entry("a"), tombstone("a"), archived=True)
    write(logs, entry("a"), tombstone("a"), entry("b"))
    assert logs.past_lives.with_unnamed("s", IDS) == {"a": 1}


@pytest.mark.parametrize("key", ["deleted", "\\u0064eleted"])
def test_keys_may_be_written_with_escapes(logs: AgentLogs, key: str) -> None:
    write(logs, entry("a"), f'{{"id":"a","{key}":true,"ts":"2026-01-11T14:31:00Z"}}'.encode())
    assert lives(logs) == {"a": 1}


@pytest.mark.parametrize("seed", range(5))
def test_following_tells_of_each_ended_life_what_reading_at_once_tells(logs: AgentLogs, seed: int) -> None:
    chance, said = random.Random(seed), list[Record]()
    for number in range(30):
        name = chance.choice(IDS)
        life = side_of(lines(*said)).lives.get(name, 0) + 1
        named = entry(name, life=life) if life > 1 else entry(name)
        step = chance.choice([entry(name, str(number)), tombstone(name), named])
        said.append(step)
        write(logs, step)
        side, found = side_of(lines(*said)), lives(logs)
        ended = side.lives.keys() - side.live
        assert {key: found.get(key) for key in ended} == {key: side.lives[key] for key in ended}


def test_a_purge_names_such_a_life_in_the_journal(tmp_path: Path) -> None:
    with closing(FileStore(tmp_path / "home", LAYOUTS["default"], durable=False)) as store:
        store.append("a", "s", [entry("a")])
        store.delete("a", "s", ["a"], TS)
        (log,) = (tmp_path / "home").rglob("s.ndjson")
        with log.open("ab") as file:
            file.write(lines(UNNAMED))
        store.purge("a", "s", ["a"])
        assert store.purged("a").ids == {digest("s", "a"): 2}
