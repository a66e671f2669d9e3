"""BM25, by its formula."""

import math

import numpy as np
import pytest

from keepstone.index.words import bm25
from keepstone.index.words.bm25 import Weighted
from keepstone.index.words.postings import Posting


def posting(held: dict[int, int]) -> Posting:
    return Posting(np.array(list(held), np.int64), np.array(list(held.values()), np.int32))


def test_a_score_is_that_of_the_formula() -> None:
    parts = bm25.together([posting({2: 3})], 10)
    idf = math.log((10 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 8 / 4))
    assert bm25.scores(parts, np.array([0, 0, 8], np.int32), 4.0).tolist() == pytest.approx([0, 0, expected])


def test_a_score_without_the_length_is_no_lower_than_with_it() -> None:
    parts = [Weighted(1.0, posting({1: 1, 2: 5}))]
    with_lengths = bm25.scores(parts, np.array([0, 1, 90], np.int32), 20.0)
    assert (bm25.scores(parts, np.zeros(3, np.int32), 20.0) >= with_lengths).all()


def test_words_that_belong_together_count_only_where_all_are() -> None:
    parts = bm25.together([posting({1: 1, 2: 2, 4: 1}), posting({2: 1, 3: 1, 4: 7})], 10)
    assert [part.posting.eids.tolist() for part in parts] == [[2, 4], [2, 4]]
    assert [part.posting.times.tolist() for part in parts] == [[2, 1], [1, 7]]


def test_a_word_that_most_hold_counts_for_almost_nothing() -> None:
    (part,) = bm25.together([posting({1: 1, 2: 1, 3: 1})], 3)
    assert 0 < part.weight < 1e-5


@pytest.mark.parametrize(("count", "expected"), [(1, [3]), (2, [2, 3, 4]), (9, [1, 2, 3, 4])])
def test_of_equal_scores_all_are_among_the_highest(count: int, expected: list[int]) -> None:
    scores = np.array([0, 1, 2, 3, 2], float)
    parts = [Weighted(1.0, posting({2: 1, 3: 1})), Weighted(1.0, posting({1: 1, 2: 1, 4: 1}))]
    assert bm25.highest(parts, scores, None, count).tolist() == expected
    assert bm25.highest(parts, scores, np.arange(5), count).tolist() == expected


def test_the_best_come_first_and_of_equal_ones_the_older() -> None:
    assert bm25.in_order(np.array([3, 1, 2]), np.array([1.0, 1, 2])) == [(2, 2.0), (1, 1.0), (3, 1.0)]
