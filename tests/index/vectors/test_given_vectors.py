"""A vector given with an entry is kept once, in the table of vectors, and its entry says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.index.test_database import index_of

import keepstone
from keepstone import Session
from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.vector import encode, unit

VECTOR = unit(np.arange(1, 33))
SPACE = "given:32"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("note", text="walnut", id="it", embedding=VECTOR)
        yield session


def said(session: Session) -> Any:
    (record,) = session.records()
    return record.get("embedding")


def test_an_entry_says_the_vector_that_it_was_given(session: Session, tmp_path: Path) -> None:
    assert said(session) == encode(SPACE, VECTOR)
    written = b"".join(path.read_bytes() for path in index_of(tmp_path).parent.glob("index.db*"))
    assert VECTOR.tobytes() in written
    assert encode(SPACE, VECTOR)["f32"].encode() not in written


def test_an_entry_says_its_vector_after_a_change_of_other_keys(session: Session) -> None:
    session.update("it", tags=["x"])
    session.update("it", aliases=["hickory"])
    assert said(session) == encode(SPACE, VECTOR)


def test_an_entry_says_its_vector_when_the_space_is_forgotten(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert said(session) == encode(SPACE, VECTOR)
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        assert store.forget_vectors("a", SPACE) == 1
        assert not store.vectors("a", "s", SPACE, ["it"])
    assert said(session) == encode(SPACE, VECTOR)
    assert not caplog.text  # The index is not made again for that.


def test_another_vector_replaces_the_one_before(session: Session) -> None:
    other = unit(np.arange(33, 1, -1))
    session.update("it", embedding=other)
    assert said(session) == encode(SPACE, other)
    session.update("it", text="pecan")
    assert said(session) is None
