from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.damage import TS, Damaged, entry, lines, patch, tombstone

from keepstone.log.line import dump


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "sessions")
    yield session
    session.close()


def test_a_session_without_a_log_has_no_entries(session: Damaged) -> None:
    assert session.ids() == []


def test_the_worked_example_of_the_format_page_folds_as_it_says(session: Damaged) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats" / "log.md").read_text()
    written, folded = page.split("## A worked example")[1].split("```text\n")[1:3]
    session.write_raw(written.split("```")[0].encode())
    assert b"".join(map(dump, session.records())).decode() == folded.split("```")[0]
    assert (session.fold().unreadable, session.fold().ignored) == (1, 1)


def test_a_put_stays_at_the_place_of_its_entry(session: Damaged) -> None:
    session.write(entry("a"), entry("b"), entry("a", "new"))
    folded = session.fold().entries["a"]
    assert session.ids() == ["a", "b"]
    assert (folded.place, folded.pristine) == (0, False)


def test_a_patched_entry_says_no_longer_all_in_its_line(session: Damaged) -> None:
    session.write(entry("a"), entry("b"), patch("a", pinned=True))
    folded = session.fold().entries
    assert (folded["a"].pristine, folded["b"].pristine) == (False, True)


def test_a_tombstone_ends_the_life_of_an_entry(session: Damaged) -> None:
    session.write(entry("a"), entry("b"), tombstone("a"))
    assert session.ids() == ["b"]


def test_a_put_of_a_deleted_id_makes_a_new_entry_at_its_own_place(session: Damaged) -> None:
    later = "2026-02-02T00:00:00.000000Z"
    session.write(entry("a", pinned=True), tombstone("a"), entry("b"), entry("a", ts=later))
    assert session.ids() == ["b", "a"]
    assert session.records()[1] == entry("a", ts=later)


@pytest.mark.parametrize("late", [{"access": 3}, {"deleted": False}, {"deleted": None}, {"priority": None}])
def test_a_patch_never_revives_a_deleted_entry(session: Damaged, late: dict[str, object]) -> None:
    session.write(entry("a"), tombstone("a"), patch("a", **late))
    assert session.ids() == []
    assert session.fold().ignored == 1


def test_patches_without_an_entry_are_ignored_and_counted(session: Damaged) -> None:
    session.write(patch("a", access=1), b'{"priority":1}', tombstone("a"), entry("a"))
    assert session.records() == [entry("a")]
    assert session.fold().ignored == 3


def test_unreadable_lines_are_counted_and_hide_nothing(session: Damaged) -> None:
    session.write(entry("a"), b"damaged", b"[]", entry("b"))
    assert session.ids() == ["a", "b"]
    assert session.fold().unreadable == 2


def test_a_flipped_byte_loses_one_line_at_most(session: Damaged) -> None:
    data = lines(entry("a"), entry("b"), entry("c"))
    session.write_raw(data)
    session.flip(len(data) // 2)
    assert session.ids() == ["a", "c"]


def test_a_lost_newline_loses_the_lines_it_parted(session: Damaged) -> None:
    session.write(entry("a"), entry("b"), entry("c"))
    session.flip(len(dump(entry("a"))) - 1)
    assert session.ids() == ["c"]


def test_a_derived_entry_can_be_changed_and_deleted_by_its_id(session: Damaged) -> None:
    session.write(b'{"k":1}', b'{"k":1}')
    first, second = session.ids()
    session.write(patch(first, pinned=True), tombstone(second))
    assert [record["pinned"] for record in session.records()] == [True]
    assert not session.fold().entries[first].pristine


def test_a_put_without_a_time_changes_the_entry_and_not_its_time(session: Damaged) -> None:
    session.write(entry("a"), b'{"id":"a","text":"new"}')
    assert session.records() == [entry("a", "new", ts=TS) | {"modified": TS}]
