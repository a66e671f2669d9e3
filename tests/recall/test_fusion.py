import math
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.recall.fusion import (
    DATE,
    LONG_SHARES,
    LONG_TIME,
    LONG_VECTORS,
    NEXT_DAY,
    SHARES,
    SHARES_ALONE,
    SPEAKER,
    USER,
    VECTORS,
    WORDS,
    Parts,
    boosts,
    fuse,
    in_blocks,
    in_order,
    lifted,
    weight_of,
)
from keepstone.recall.query import Period

NOON = datetime(2026, 1, 11, 12, tzinfo=UTC)
Scores = dict[int, float]
Links = list[tuple[int, int, int]]

scores_by_words = st.dictionaries(st.integers(0, 30), st.floats(1e-6, 50), max_size=20)
cosines_of_some = st.dictionaries(
    st.integers(0, 30), st.integers(-100, 100).map(lambda n: n / 100), max_size=20
)


def order(words: Scores, cosines: Scores, links: Links | None = None) -> list[int]:
    found = in_order(fuse(words, cosines, words.keys() | cosines.keys(), links or []))
    return [key for key, _ in found]


def both_ways(keys: list[int]) -> Links:
    """Link consecutive entries."""
    pairs = list(pairwise(keys))
    return [(a, b, 1) for a, b in pairs] + [(b, a, 1) for a, b in pairs]


def test_words_alone_count_as_shares_of_the_best() -> None:
    assert fuse({1: 8.0, 2: 2.0}, {}, [1, 2], []) == {"words": {1: 1.0, 2: 0.25}}


def test_cosines_alone_are_stretched_between_the_candidates() -> None:
    assert fuse({}, {1: 0.75, 2: 0.25, 3: 0.5}, [1, 2, 3], []) == {"vectors": {1: 1.0, 2: 0.0, 3: 0.5}}


def test_nothing_found_gives_no_scores() -> None:
    assert in_order(fuse({}, {}, [], [])) == []


def test_the_best_of_both_lists_has_a_score_of_one() -> None:
    key, score = in_order(fuse({1: 5.0, 2: 1.0}, {1: 0.9, 2: 0.1}, [1, 2], []))[0]
    assert key == 1
    assert score == pytest.approx(1.0)


def test_an_entry_in_both_lists_beats_those_in_one() -> None:
    assert order({1: 4.0, 2: 4.0}, {2: 0.8, 3: 0.8, 1: 0.0})[0] == 2


def test_vectors_weigh_more_than_words() -> None:
    assert VECTORS > WORDS
    assert order({1: 4.0}, {1: 0.1, 2: 0.9}) == [2, 1]


@pytest.mark.parametrize(("length", "part"), [(0, 0.0), (50, 0.0), (125, 0.5), (200, 1.0), (5_000, 1.0)])
def test_vectors_weigh_more_and_neighbours_less_where_entries_are_long(length: float, part: float) -> None:
    words, cosines, links = {1: 4.0, 2: 1.0}, {1: 0.1, 2: 0.9, 3: 0.5}, [(2, 3, 1)]
    short, found = (fuse(words, cosines, [1, 2], links, VECTORS, mean) for mean in (20, length))
    ratio = found["vectors"][2] / found["words"][1]
    assert ratio == pytest.approx(VECTORS / WORDS * (1 + (LONG_VECTORS - 1) * part))
    offers = [given["words"][2] + given["vectors"][2] / 2 for given in (short, found)]
    shares = [given["neighbours"][3] / offer for given, offer in zip((short, found), offers, strict=True)]
    assert shares[1] == pytest.approx(shares[0] * (1 - (1 - LONG_SHARES) * part))


def test_the_length_of_entries_changes_nothing_by_words_alone() -> None:
    words, links = {1: 4.0, 2: 1.0}, [(1, 7, 1)]
    assert fuse(words, {}, [1, 2], links, length=500) == fuse(words, {}, [1, 2], links)


def parts_of(parts: Parts, key: int) -> dict[str, float]:
    return {name: given[key] for name, given in parts.items() if key in given}


def test_the_parts_of_an_entry_add_up_to_its_score() -> None:
    parts = fuse({1: 4.0, 2: 1.0}, {1: 0.3, 3: 0.9}, [1, 2, 3], both_ways([1, 2, 3]))
    assert all(score == pytest.approx(sum(parts_of(parts, key).values())) for key, score in in_order(parts))
    assert set(parts_of(parts, 1)) == {"words", "vectors", "neighbours"}


def test_an_entry_is_found_through_its_neighbours_alone() -> None:
    parts = fuse({1: 4.0}, {}, [1], [(1, 2, 1), (1, 3, 2)])
    assert parts["neighbours"] == {2: SHARES_ALONE[0], 3: SHARES_ALONE[1]}
    assert [key for key, _ in in_order(parts)] == [1, 2, 3]


@given(
    st.lists(st.dictionaries(st.integers(0, 30), st.sampled_from([0.1, 0.2, 0.5, -0.3])), max_size=3),
    st.integers(1, 12),
)
def test_the_best_keys_are_the_first_of_all(given: list[dict[int, float]], most: int) -> None:
    parts: Parts = {str(number): values for number, values in enumerate(given)}
    assert in_order(parts, most) == in_order(parts)[:most]
    blocks = list(in_blocks(parts, most))
    assert [one for block in blocks for one in block] == in_order(parts)
    assert all(len(block) == most * 4**number for number, block in enumerate(blocks[:-1]))


def test_the_middle_of_two_hits_gets_a_share_of_both() -> None:
    assert fuse({1: 4.0, 3: 4.0}, {}, [1, 3], [(1, 2, 1), (3, 2, 1)])["neighbours"] == {
        2: 2 * SHARES_ALONE[0]
    }


def test_a_neighbour_counts_with_its_own_cosine_too() -> None:
    parts = fuse({}, {1: 0.8, 2: 0.4, 3: 0.6}, [1, 2], [(1, 3, 1)])
    assert parts["vectors"][3] == pytest.approx(0.5)
    assert parts["neighbours"] == {3: pytest.approx(SHARES[0] / 2)}


def test_a_neighbour_whose_cosine_is_lower_than_all_gets_nothing_for_it() -> None:
    assert fuse({}, {1: 0.8, 2: 0.4, 3: -0.9}, [1, 2], [(1, 3, 1)])["vectors"][3] == 0.0


def test_neighbours_that_fit_badly_take_something_off() -> None:
    parts = fuse({}, {1: 0.9, 2: 0.1}, [1, 2], both_ways([1, 2]))
    assert parts["neighbours"][1] < 0 < parts["neighbours"][2]


def test_words_alone_have_the_full_scale_without_a_vector() -> None:
    parts = fuse({1: 4.0, 2: 2.0, 3: 4.0, 4: 2.0}, {1: 0.9, 2: 0.5}, [1, 2, 3, 4], [])
    whole = {key: parts["words"][key] + parts["vectors"][key] for key in (1, 3, 4)}
    assert whole == {1: pytest.approx(1.0), 3: pytest.approx(1.0), 4: pytest.approx(0.5)}


def test_vectors_of_neighbours_alone_do_not_count() -> None:
    assert fuse({1: 4.0}, {2: 0.9}, [1], [(1, 2, 1)]) == {
        "words": {1: 1.0},
        "neighbours": {2: SHARES_ALONE[0]},
    }


def test_one_candidate_is_better_than_its_neighbours() -> None:
    assert order({}, {5: 0.2}, [(5, 4, 1), (5, 6, 1)])[0] == 5


def test_equal_cosines_are_all_the_best() -> None:
    assert fuse({}, {1: 0.5, 2: 0.5}, [1, 2], []) == {"vectors": {1: 1.0, 2: 1.0}}


def test_words_that_tell_nothing_give_nothing() -> None:
    assert fuse({1: 0.0, 2: 0.0}, {}, [1, 2], []) == {"words": {1: 0.0, 2: 0.0}}


def test_of_equal_scores_the_lower_key_comes_first() -> None:
    assert order({3: 2.0, 1: 2.0, 2: 2.0}, {}) == [1, 2, 3]


@given(scores_by_words, cosines_of_some, st.integers(-8, 8))
def test_where_the_cosines_of_an_embedder_lie_changes_no_order(
    words: Scores, cosines: Scores, shift: int
) -> None:
    moved = {key: cosine + shift for key, cosine in cosines.items()}
    before, after = (in_order(fuse(words, each, words.keys() | each.keys(), [])) for each in (cosines, moved))
    assert dict(after) == pytest.approx(dict(before), abs=1e-9)


@given(scores_by_words, cosines_of_some, st.floats(0.001, 1000))
def test_how_large_scores_by_words_are_changes_no_order(
    words: Scores, cosines: Scores, factor: float
) -> None:
    larger = {key: score * factor for key, score in words.items()}
    before, after = (
        in_order(fuse(each, cosines, each.keys() | cosines.keys(), [])) for each in (words, larger)
    )
    assert dict(after) == pytest.approx(dict(before), abs=1e-9)


@given(scores_by_words, cosines_of_some)
def test_every_entry_gets_a_finite_score_once_and_best_first(words: Scores, cosines: Scores) -> None:
    keys = sorted(words.keys() | cosines.keys())
    found = in_order(fuse(words, cosines, keys, both_ways(keys)))
    assert sorted(key for key, _ in found) == keys
    assert all(math.isfinite(score) for _, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@given(scores_by_words, cosines_of_some, st.integers(0, 30))
def test_a_higher_cosine_never_costs_an_entry_its_place(words: Scores, cosines: Scores, key: int) -> None:
    better = {**cosines, key: 1.0}
    before, after = order(words, {**cosines, key: 0.0}), order(words, better)
    assert after.index(key) <= before.index(key)


def test_entries_of_a_named_speaker_or_date_are_boosted() -> None:
    may, june = datetime(2023, 5, 3, tzinfo=UTC), datetime(2023, 6, 3, tzinfo=UTC)
    heads = {1: ("Ann: hello", may), 2: ("Ann: bye", june), 3: ("Bob: hello", may), 4: ("hello", june)}
    given_ = boosts(heads, {"Ann"}, [Period(2023, 5)])
    assert given_ == {"speaker": {1: SPEAKER, 2: SPEAKER}, "date": {1: DATE, 3: DATE}}


def test_a_query_without_speaker_or_date_boosts_nothing() -> None:
    assert boosts({1: ("Ann: hello", datetime(2023, 5, 3, tzinfo=UTC))}, set(), []) == {}


def test_a_boost_is_a_part_of_the_score() -> None:
    parts = fuse({1: 4.0, 2: 3.9}, {}, [1, 2], []) | {"speaker": {2: SPEAKER}}
    assert dict(in_order(parts)) == pytest.approx({2: 0.975 + SPEAKER, 1: 1.0})
    assert in_order(parts)[0][0] == 2
    assert parts_of(parts, 2) == {"words": pytest.approx(0.975), "speaker": SPEAKER}


def test_a_question_about_who_asks_raises_what_the_user_said() -> None:
    heads = {1: ("user: I bought a bicycle", NOON), 2: ("assistant: Bicycles need oil", NOON)}
    assert boosts(heads, (), (), is_of_user=True) == {"user": {1: USER}}
    assert boosts(heads, (), ()) == {}


def test_averaged_word_vectors_weigh_less_than_those_of_a_model() -> None:
    assert WORDS == weight_of("static:words") < weight_of("minilm:all-MiniLM-L6-v2") == weight_of(None)


def test_a_named_time_makes_relevant_but_no_surer() -> None:
    assert [lifted(value, DATE) > value for value in (0.1, 0.3, 0.6, 0.9)] == [True, True, False, False]
    assert [lifted(0.2, given) for given in (0.0, LONG_TIME, NEXT_DAY)] == [0.2] * 3
    assert lifted(0.4, DATE) == 0.5
