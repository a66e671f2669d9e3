from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.web import diff
from keepstone.web.diff import Budget, line_counts, three_way, word_diff

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


class Counted(str):
    """A text that counts how often it is compared."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


HOSTILE = ("a\n" * 20_000, ("a\n" * 3 + "b\n") * 5_000)


def test_comparing_ends_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "compared", 0)
    old, new = ([Counted(line) for line in text.splitlines()] for text in HOSTILE)
    diff._blocks(old, new, Budget(10_000))  # noqa: SLF001
    ends = len(old) + len(new)
    assert 10_000 <= Counted.compared <= 10_000 + 2 * ends


def test_texts_beyond_the_budget_count_as_changed_completely() -> None:
    old, new = "begin " + "a b " * 400 + "end", "begin " + "b c a " * 400 + "end"
    parts = word_diff(old, new, Budget(1_000))
    assert [kind for kind, _ in parts] == ["", "del", "ins", ""]
    assert "".join(text for kind, text in parts if kind != "ins") == old
    assert "".join(text for kind, text in parts if kind != "del") == new


@pytest.mark.parametrize("call", [lambda: word_diff(*HOSTILE), lambda: line_counts(*HOSTILE)])
def test_hostile_texts_are_compared_within_the_limit(
    call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[Budget] = []

    def noted() -> Budget:
        budgets.append(Budget())
        return budgets[-1]

    monkeypatch.setattr(diff, "Budget", noted)
    call()
    assert [-len(HOSTILE[0]) < budget.steps < 0 for budget in budgets] == [True]


def test_a_hundred_scattered_changes_are_all_shown() -> None:
    words = [f"word{at}" for at in range(700)]
    changed = [f"{word}!" if at % 7 == 0 else word for at, word in enumerate(words)]
    parts = word_diff(" ".join(words), " ".join(changed))
    assert [text for kind, text in parts if kind == "ins"] == ["!"] * 100
