"""Vectors in the binary format of pgvector."""

from __future__ import annotations

import numpy as np
import psycopg
from hypothesis import given
from hypothesis import strategies as st

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.vector_format import VectorDumper, dumper_of, vector_of

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


@given(NUMBERS)
def test_a_vector_is_read_as_it_was_dumped(numbers: list[float]) -> None:
    vector = np.array(numbers, np.float32)
    found = vector_of(VectorDumper(np.ndarray).dump(vector))
    assert (found.dtype, found.tobytes()) == (vector.dtype, vector.tobytes())


def test_the_bytes_are_dimension_nought_and_big_endian_numbers() -> None:
    assert VectorDumper(np.ndarray).dump(np.array([1, -2], np.float32)).hex() == "000200003f800000c0000000"


def test_pgvector_reads_and_gives_the_same_bytes(connections: Connections) -> None:
    vector = np.array([0.25, -1.5, 3e-38], np.float32)
    [(text, raw)] = connections.read("", "SELECT %s::vector::text, vector_send(%s::vector)", (vector, vector))
    assert text.startswith("[0.25,-1.5,")
    assert vector_of(raw).tobytes() == vector.tobytes()


def test_the_dumper_of_a_database_names_its_number_of_the_type() -> None:
    assert (dumper_of(7).oid, dumper_of(7).format) == (7, psycopg.pq.Format.BINARY)
