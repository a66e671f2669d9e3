"""The fold of suggestion lines: a merge may put them in any order."""

from hypothesis import given
from hypothesis import strategies as st

from keepstone.log.line import dump_read
from keepstone.model import Record
from keepstone.store.suggestion_lines import fold, signed

_SUGGESTION = {
    "id": "s",
    "do": "add",
    "entries": [],
    "item": {"text": "Ada likes tea"},
    "why": "she said so",
    "ts": "2026-01-01T00:00:00Z",
}
_TIMES = st.integers(1, 4).map("2026-01-0{}T00:00:00Z".format)


@st.composite
def decided(draw: st.DrawFn) -> tuple[list[Record], str]:
    """Return a suggestion with decisions of several devices, and the state that they amount to."""
    people = draw(st.lists(st.sampled_from(["Ada", "Bo", "Eve"]), unique=True))
    rejections = [signed({"id": "s", "state": "rejected", "by": by, "ts": draw(_TIMES)}) for by in people]
    sums = [line["sum"] for line in rejections]
    named = draw(st.lists(st.lists(st.sampled_from(sums), min_size=1), max_size=2)) if sums else []
    others = draw(st.sets(st.sampled_from(["outdated", "accepted"])))
    lines = [signed({"id": "s", "state": state, "by": None, "ts": draw(_TIMES)}) for state in others]
    lines += [
        signed({"id": "s", "state": "open", "by": None, "ts": draw(_TIMES), "undoes": undoes})
        for undoes in named
    ]
    is_rejected = bool({*sums} - {name for undoes in named for name in undoes})
    found = {"accepted": "accepted" in others, "rejected": is_rejected, "outdated": "outdated" in others}
    state = next((state for state, is_true in found.items() if is_true), "open")
    return [_SUGGESTION, *rejections, *lines], state


def folded(lines: list[Record]) -> tuple[str, Record]:
    found = fold([dump_read(line) for line in lines])["s"]
    return found.state, found.decision


@given(decided(), st.data())
def test_suggestions_fold_alike_in_any_order_of_lines(
    given_lines: tuple[list[Record], str], data: st.DataObject
) -> None:
    lines, state = given_lines
    found = folded(data.draw(st.permutations(lines)))
    assert found == folded(lines)
    assert found[0] == state


def test_an_undo_takes_back_no_rejection_of_another_suggestion() -> None:
    other = _SUGGESTION | {"id": "t"}
    rejection = signed({"id": "s", "state": "rejected", "by": "Ada", "ts": "2026-01-02T00:00:00Z"})
    undo = {"id": "t", "state": "open", "by": "Ada", "ts": "2026-01-03T00:00:00Z"}
    assert folded([_SUGGESTION, other, rejection, signed(undo | {"undoes": [rejection["sum"]]})])[0] == (
        "rejected"
    )
