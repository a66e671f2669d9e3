"""Tool calls and their results, brought together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.messages.pairing import calls_of, paired
from keepstone.text.messages.parts import Part
from keepstone.text.messages.turns import Turn


def text(words: str = "x") -> Part:
    return Part("text", words)


def call(name: str) -> Part:
    return Part("call", call=name)


def result(name: str) -> Part:
    return Part("result", call=name)


def says(*parts: Part) -> Turn:
    return Turn("assistant", parts, 0)


def asks(words: str = "?") -> Turn:
    return Turn("user", (text(words),), 0)


def returns(*names: str) -> Turn:
    return Turn("tool", tuple(map(result, names)), 0)


def shown(turns: list[Turn]) -> list[tuple[str, list[str]]]:
    """Return the role of each turn with its parts: calls and results by their id, others by their kind."""
    return [(turn.role, [part.call or part.kind for part in turn.parts]) for turn in turns]


def test_a_conversation_that_is_complete_keeps_its_very_turns() -> None:
    turns = [asks(), says(text(), call("a")), returns("a"), says(text())]
    assert all(old is new for old, new in zip(turns, paired(turns, merge=True), strict=True))


def test_results_move_behind_their_calls() -> None:
    turns = [says(call("a"), call("b")), returns("a"), asks(), returns("b")]
    assert shown(paired(turns, merge=True)) == [
        ("assistant", ["a", "b"]),
        ("tool", ["a"]),
        ("tool", ["b"]),
        ("user", ["text"]),
    ]


def test_a_call_without_its_result_is_left_out() -> None:
    assert shown(paired([says(text(), call("a"), call("b")), returns("b")], merge=True)) == [
        ("assistant", ["text", "b"]),
        ("tool", ["b"]),
    ]


def test_a_result_without_its_call_is_left_out() -> None:
    assert shown(paired([asks(), returns("a")], merge=True)) == [("user", ["text"])]


def test_a_result_before_its_call_counts_as_without() -> None:
    assert paired([returns("a"), says(call("a"))], merge=True) == []


def test_a_second_result_of_one_call_is_left_out() -> None:
    turns = [says(call("a")), returns("a"), returns("a")]
    assert paired(turns, merge=True) == turns[:2]


def test_a_call_of_a_user_is_no_call_of_a_tool() -> None:
    assert paired([Turn("user", (call("a"),), 0), returns("a")], merge=True) == []


def test_the_reasoning_that_led_to_a_call_goes_with_it() -> None:
    thought = says(Part("reasoning", "Hm"))
    assert paired([thought, says(call("a"))], merge=True) == []


def test_reasoning_before_a_call_that_stays_is_kept() -> None:
    thought = says(Part("reasoning", "Hm"))
    assert paired([thought, says(call("a")), returns("a")], merge=False)[0] is thought


def test_reasoning_beside_a_text_stays_though_the_call_goes() -> None:
    turns = [says(Part("reasoning", "Hm"), text(), call("a"))]
    assert shown(paired(turns, merge=True)) == [("assistant", ["reasoning", "text"])]


# Providers that want all calls of a run in one message


def test_turns_with_calls_are_merged_and_the_calls_come_last() -> None:
    turns = [says(call("a")), says(text(), call("b")), returns("a", "b")]
    found = paired(turns, merge=True)
    assert shown(found) == [("assistant", ["text", "a", "b"]), ("tool", ["a", "b"])]
    assert found[0].source is None


def test_other_providers_keep_their_turns_apart() -> None:
    turns = [says(call("a")), says(text(), call("b")), returns("a", "b")]
    assert shown(paired(turns, merge=False)) == [
        ("assistant", ["a"]),
        ("assistant", ["text", "b"]),
        ("tool", ["a", "b"]),
    ]


def test_turns_whose_last_alone_has_calls_are_not_merged() -> None:
    turns = [says(text()), says(call("a")), returns("a")]
    assert shown(paired(turns, merge=True))[:2] == [("assistant", ["text"]), ("assistant", ["a"])]


NAMES = st.sampled_from("ab")
PARTS = st.builds(call, NAMES) | st.builds(text)
TURNS = (
    st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: says(*parts))
    | st.builds(asks)
    | st.lists(NAMES, min_size=1, max_size=2).map(lambda names: returns(*names))
)


@given(st.lists(TURNS, max_size=8), st.booleans())
def test_calls_and_results_come_in_pairs_whatever_was_given(turns: list[Turn], merge: bool) -> None:  # noqa: FBT001
    open_calls: list[str] = []
    for turn in paired(turns, merge=merge):
        if turn.role == "tool":
            for part in turn.parts:
                open_calls.remove(part.call)
        open_calls += [part.call for part in calls_of(turn)]
    assert open_calls == []
