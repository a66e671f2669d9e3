"""The journal of erasures: what a line tells, and how two journals come together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ERASED, LAYOUTS, PURGED
from keepstone.model import Record
from keepstone.store.files import purge_digests as journal
from keepstone.store.files.purge_digests import Erased, both, dated, erased, erased_in, line_of, record, take
from keepstone.store.removal_marks import PurgedIds, digest

LAYOUT = LAYOUTS["default"]
ONE, TWO = digest("s", "one"), digest("s", "two")
AT = "2026-01-11T14:31:00.000000Z"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "sessions", create=True) as folder:
        yield folder


def said(*records: Record) -> Erased:
    return erased_in(json.dumps(line).encode() for line in records)


# Lines


def test_a_line_names_no_id_and_no_session(folder: Folder) -> None:
    record(folder, [line_of(digest("secret session", "secret id"), 2), journal.removal_of("secret session")])
    assert b"secret" not in (folder.path / PURGED).read_bytes()


def test_the_first_life_and_an_unknown_time_are_left_out_of_a_line() -> None:
    assert (line_of(ONE, 1), line_of(ONE, 2, AT)) == ({"purged": ONE}, {"purged": ONE, "life": 2, "ts": AT})


def test_lines_of_erased_lives_get_the_present_time() -> None:
    lives, removal = dated([line_of(ONE, 1), journal.removal_of("s")])
    assert abs((datetime.now(UTC) - datetime.fromisoformat(lives["ts"])).total_seconds()) < 60
    assert "ts" not in removal


def test_two_removals_of_one_session_are_told_apart() -> None:
    first, second = journal.removal_of("s"), journal.removal_of("s")
    assert first != second
    assert journal.is_removal_of(first, "s")
    assert not journal.is_removal_of(first, "other")
    assert len(said(first, second, first).removed) == 2


# Reading


def test_without_a_journal_nothing_was_erased(folder: Folder) -> None:
    assert erased(folder) == Erased({}, [], {})


def test_what_is_recorded_is_read_again(folder: Folder) -> None:
    removal = journal.removal_of("s")
    record(folder, [line_of(ONE, 3, AT), removal])
    record(folder, [line_of(TWO, 1)])
    assert erased(folder) == Erased({ONE: 3, TWO: 1}, [removal], {ONE: AT})


def test_an_empty_journal_can_be_made(folder: Folder) -> None:
    record(folder, [])
    assert (folder.path / PURGED).read_bytes() == b""


def test_the_highest_life_of_an_id_counts() -> None:
    assert said(line_of(ONE, 2), line_of(ONE, 3), line_of(ONE, 1)).lives == {ONE: 3}


def test_of_two_times_of_one_erasure_the_first_counts() -> None:
    assert said(line_of(ONE, 1, AT), line_of(ONE, 1, "2027"), line_of(ONE, 1)).times == {ONE: AT}


@pytest.mark.parametrize("line", [b"", b"no line", b"[]", b'{"purged":7}', b'{"removed":null}', b'{"x":1}'])
def test_lines_of_another_form_are_left_out(line: bytes) -> None:
    assert erased_in([line]) == Erased({}, [], {})


def test_a_session_knows_the_erased_lives_of_its_own_ids() -> None:
    purged, other = said(line_of(ONE, 2)).in_session("s"), said(line_of(ONE, 2)).in_session("other")
    assert (purged("one"), purged("none"), other("one")) == (2, 0, 0)


# Two journals


LINES = st.lists(
    st.builds(line_of, st.sampled_from([ONE, TWO]), st.integers(1, 3), st.sampled_from([None, AT, "2026"]))
    | st.sampled_from([{"removed": "x", "mark": mark} for mark in "ab"])
)


@given(LINES, LINES)
def test_two_journals_come_to_the_journal_of_all_their_lines(left: list[Record], right: list[Record]) -> None:
    found, expected = both(said(*left), said(*right)), said(*left, *right)
    assert (found.lives, found.times) == (expected.lives, expected.times)
    assert sorted(map(str, found.removed)) == sorted(map(str, expected.removed))


@given(LINES)
def test_a_journal_is_what_its_own_lines_say(lines: list[Record]) -> None:
    assert said(*said(*lines).lines()) == said(*lines)


def test_only_lines_that_tell_more_are_taken(folder: Folder) -> None:
    known, new = journal.removal_of("s"), journal.removal_of("s")
    record(folder, [line_of(ONE, 2), known])
    more = [line_of(ONE, 3), line_of(TWO, 1), new]
    assert take(folder, [line_of(ONE, 1), line_of(ONE, 2), known, *more]) == more
    assert take(folder, more) == []
    assert erased(folder).lives == {ONE: 3, TWO: 1}


def test_taking_nothing_makes_no_file(folder: Folder) -> None:
    take(folder, [])
    assert not (folder.path / PURGED).exists()


def test_lines_of_an_erasure_that_failed_are_withdrawn(folder: Folder) -> None:
    record(folder, [line_of(ONE, 1), line_of(TWO, 1)])
    journal.withdraw(folder, [line_of(TWO, 1)])
    assert erased(folder).lives == {ONE: 1}


# Agents that were purged whole


def test_a_purged_agent_is_known_by_a_name_that_does_not_say_its_own() -> None:
    name = journal.gone_name("ada")
    assert "ada" not in name
    assert journal.is_gone_name(name)
    assert not journal.is_gone_name("ada")
    assert journal.as_gone_name("ada") == journal.as_gone_name(name) == name


def test_the_digests_of_an_agent_outlive_its_folder(tmp_path: Path) -> None:
    sessions = LAYOUT.sessions_folder(tmp_path, "ada")
    sessions.mkdir(parents=True)
    line = {"id": "one", "ts": AT, "type": "note", "text": "x"}
    (sessions / "s.ndjson").write_text(json.dumps(line) + "\n")
    with Folder(sessions, root=tmp_path) as folder:
        record(folder, [line_of(TWO, 2)])
    journal.record_agent(tmp_path, LAYOUT, "ada")
    assert journal.vanished_agents(tmp_path) == [journal.gone_name("ada")]
    for name in ("ada", journal.gone_name("ada")):
        found = journal.recorded(tmp_path, LAYOUT, "ada")
        assert found.vanished == {ONE: 1, TWO: 2}
        assert journal.was_purged(tmp_path, LAYOUT, name)


def test_an_agent_that_left_only_digests_was_not_purged(tmp_path: Path) -> None:
    journal.record_agent(tmp_path, LAYOUT, "ada", in_journal=False)
    assert journal.vanished_agents(tmp_path) == [] or not journal.was_purged(tmp_path, LAYOUT, "ada")


def test_records_of_another_home_are_added_in_both_places(tmp_path: Path) -> None:
    journal.take_recorded(tmp_path, LAYOUT, "ada", PurgedIds({ONE: 2}, {TWO: 1}))
    assert journal.recorded(tmp_path, LAYOUT, "ada") == PurgedIds({ONE: 2}, {TWO: 1})
    assert (journal.vanished(tmp_path, "ada") / ERASED).exists()
    assert journal.erased_of(tmp_path, LAYOUT, "ada").lives == {ONE: 2, TWO: 1}


def test_removed_suggestions_are_recorded_as_those_of_no_session(folder: Folder) -> None:
    journal.record_suggestions(folder.path, folder.path.parent, ["x"])
    assert erased(folder).lives == {digest(journal.NO_SESSION, "x"): 1}
    journal.record_suggestions(folder.path / "none", folder.path.parent, ["x"])
    assert not (folder.path / "none").exists()
