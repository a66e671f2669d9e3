from datetime import UTC, datetime

import pytest

from keepstone import Entry
from keepstone.context.entries_part import AlreadyShown, Filler

MOMENT = datetime(2026, 1, 11, tzinfo=UTC)


def entry(name: str, text: str = "") -> Entry:
    return Entry("a", "s", name, MOMENT, "note", text or f"text of {name}", {}, {})


@pytest.fixture
def filler() -> Filler:
    return Filler(len, AlreadyShown())


def ids(filler: Filler, kind: str, entries: list[Entry], tokens: int) -> list[str]:
    return [line.entry.id for line in filler.fill(kind, entries, tokens).lines]


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("pinned", ["a", "b"]), ("recalled", ["a", "b"]), ("standing", ["b", "c"]), ("newest", ["b", "c"])],
)
def test_of_turns_and_decisions_the_last_are_kept_of_others_the_first(
    filler: Filler, kind: str, kept: list[str]
) -> None:
    entries = [entry(name) for name in "abc"]
    room = len(f"{filler.fill(kind, entries[:1], 0).title}") + 2 * len("- [3] (2026-01-11, note) text of a\n")
    assert ids(filler, kind, entries, room) == kept


def test_an_entry_of_an_earlier_part_is_not_shown_again(filler: Filler) -> None:
    assert ids(filler, "pinned", [entry("a")], 1000) == ["a"]
    assert ids(filler, "newest", [entry("a"), entry("b")], 1000) == ["b"]
    assert filler.left_out() == []


def test_what_an_earlier_part_says_is_left_out_with_the_reason(filler: Filler) -> None:
    filler.fill("pinned", [entry("a", "Never use npm")], 1000)
    filler.fill("recalled", [entry("b", "Never  use\nnpm")], 1000)
    assert [(left.source, left.reason) for left in filler.left_out()] == [("s/b", "the same is in pinned")]


def test_a_turn_that_repeats_another_is_a_turn_of_its_own(filler: Filler) -> None:
    assert ids(filler, "newest", [entry("a", "yes"), entry("b", "yes")], 1000) == ["a", "b"]


def test_what_found_no_room_in_one_part_may_find_it_in_another(filler: Filler) -> None:
    assert ids(filler, "pinned", [entry("a")], 10) == []
    assert ids(filler, "newest", [entry("a")], 1000) == ["a"]
    assert filler.left_out() == []


def test_the_least_wanted_entry_is_taken_out_first(filler: Filler) -> None:
    turns = filler.fill("newest", [entry("a"), entry("b")], 1000)
    filler.drop(turns)
    assert [line.entry.id for line in turns.lines] == ["b"]
    assert [left.source for left in filler.left_out()] == ["s/a"]


def test_turns_that_are_to_be_recalled_need_no_room(filler: Filler) -> None:
    turns = [entry("a"), entry("b")]
    assert filler.need(turns, turns) == 0
    assert 0 < filler.need(turns, turns[:1]) < filler.need(turns, [])


def test_one_of_several_entries_leaves_room_for_others(filler: Filler) -> None:
    long = "Walnut is good. " * 100
    section = filler.fill("recalled", [entry("a", long), entry("b")], 1000)
    assert [(line.entry.id, line.placed.is_cut) for line in section.lines] == [("a", True), ("b", False)]


def test_a_single_entry_may_take_all_the_room(filler: Filler) -> None:
    [line] = filler.fill("recalled", [entry("a", "Walnut is good. " * 50)], 1000).lines
    assert not line.placed.is_cut
