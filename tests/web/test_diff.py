import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.web.diff import line_counts, three_way

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "", "d"]), max_size=12).map("".join)


def merged(base: str, mine: str, theirs: str, choice: str = "both") -> str:
    return "".join(line for change in three_way(base, mine, theirs) for line in change.merged(choice))


@given(TEXTS, TEXTS, TEXTS)
def test_the_changes_hold_every_line_of_all_three_texts(base: str, mine: str, theirs: str) -> None:
    changes = three_way(base, mine, theirs)
    assert "".join(line for change in changes for line in change.base) == base
    assert "".join(line for change in changes for line in change.mine) == mine
    assert "".join(line for change in changes for line in change.theirs) == theirs


@given(TEXTS, TEXTS)
def test_where_one_side_changed_nothing_the_other_is_the_merge(base: str, changed: str) -> None:
    assert merged(base, changed, base) == merged(base, base, changed) == changed
    assert merged(base, changed, changed) == changed


@given(TEXTS, TEXTS, TEXTS)
def test_choosing_a_side_in_every_conflict_keeps_the_other_sides_free_changes(
    base: str, mine: str, theirs: str
) -> None:
    kinds = {change.kind for change in three_way(base, mine, theirs)}
    if "theirs" not in kinds:
        assert merged(base, mine, theirs, "mine") == mine
    if "mine" not in kinds:
        assert merged(base, mine, theirs, "theirs") == theirs


def test_a_conflict_at_the_end_of_a_file_without_newline_keeps_both_lines_apart() -> None:
    assert merged("a\nold", "a\nmine", "a\ntheirs") == "a\nmine\ntheirs"


def test_changes_in_touching_lines_conflict() -> None:
    kinds = [change.kind for change in three_way("a\nb\n", "A\nb\n", "a\nB\n")]
    assert kinds == ["conflict"]


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [("a\nb\n", "a\n", (0, 1)), ("a\n", "x\ny\n", (2, 1)), ("a\n", "a\n", (0, 0)), ("", "a", (1, 0))],
)
def test_added_and_removed_lines_are_counted(old: str, new: str, counts: tuple[int, int]) -> None:
    assert line_counts(old, new) == counts
