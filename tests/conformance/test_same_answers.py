"""Files and PostgreSQL give the same answers to the same operations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.conformance.random_operations import differences
from tests.postgres_server import schema_of

import keepstone
from keepstone.testing import ManualClock

COUNT = int(os.environ.get("KEEPSTONE_OPERATIONS", "400"))
"""Operations of a run; ``make same-answers`` asks for 5,000."""


@pytest.mark.parametrize("vectors", [False, True], ids=["words", "vectors"])
def test_random_operations_have_the_same_answers(postgres: str, tmp_path: Path, *, vectors: bool) -> None:
    clock = ManualClock()
    with (
        schema_of(postgres) as dsn,
        keepstone.open(tmp_path, embedder="none", clock=clock) as files,
        keepstone.open(dsn, embedder="none", clock=clock) as database,
    ):
        found, shown = differences((files, database), clock, seed=7, count=COUNT, vectors=vectors)
    assert not found, "\n".join([str(found), *shown[:3]])
