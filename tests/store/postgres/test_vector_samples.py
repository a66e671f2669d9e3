"""Sampled vectors of agents that have many are kept for a minute."""

from __future__ import annotations

import numpy as np
import pytest

from keepstone.store.postgres import vector_samples
from keepstone.store.postgres.vector_format import VectorDumper
from keepstone.store.postgres.vector_samples import VectorSamples
from keepstone.vector import Vector

EAST = np.array([1, 0], np.float32)
NORTH = np.array([0, 1], np.float32)


def raw(vector: Vector, count: int) -> tuple[bytes, int]:
    return VectorDumper(np.ndarray).dump(vector), count


def is_asked_for_vectors(samples: VectorSamples, agent: str = "a") -> bool:
    return "vector_send" in samples.query(agent, "space", EAST)[0]


@pytest.fixture
def large() -> VectorSamples:
    """The samples of a large agent, which sent its vectors the second time."""
    samples = VectorSamples()
    samples.take("a", "space", EAST, [(1.0, 1_001)])
    samples.take("a", "space", EAST, [raw(EAST, 1_001), raw(NORTH, 1_001)])
    return samples


def test_cosines_are_asked_of_the_database_at_first() -> None:
    samples = VectorSamples()
    assert samples.cosines("a", "space", EAST) is None
    assert not is_asked_for_vectors(samples)
    assert samples.take("a", "space", EAST, [(0.5, 2), (0.25, 2)]) == [0.5, 0.25]


@pytest.mark.parametrize(("count", "has_many"), [(1_000, False), (1_001, True)])
def test_only_an_agent_with_many_vectors_is_asked_for_a_sample(count: int, *, has_many: bool) -> None:
    samples = VectorSamples()
    samples.take("a", "space", EAST, [(0.5, count)])
    assert is_asked_for_vectors(samples) is has_many
    assert samples.cosines("a", "space", EAST) is None


def test_a_kept_sample_answers_for_any_vector(large: VectorSamples) -> None:
    assert large.cosines("a", "space", EAST) == [1.0, 0.0]
    assert large.cosines("a", "space", NORTH) == [0.0, 1.0]
    assert large.cosines("a", "another space", EAST) is None


def test_a_sample_is_kept_for_a_time(large: VectorSamples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_samples, "_KEPT", -1.0)
    assert large.cosines("a", "space", EAST) is None


def test_purged_vectors_of_an_agent_are_dropped(large: VectorSamples) -> None:
    large.take("b", "space", EAST, [(1.0, 1_001)])
    large.forget("a")
    assert large.cosines("a", "space", EAST) is None
    assert [is_asked_for_vectors(large, agent) for agent in "ab"] == [False, True]
