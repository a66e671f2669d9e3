"""Vectors in pgvector's binary format, which saves both sides formatting and parsing decimals."""

from __future__ import annotations

import struct

from psycopg.adapt import Dumper
from psycopg.pq import Format

from keepstone.vector import Vector

# The binary format of pgvector: the number of dimensions, an unused number, then floats, the highest byte
# first.
_HEAD = struct.Struct(">HH")


class VectorDumper(Dumper):
    """Dumper of NumPy vectors for ``%s::vector`` and for columns of that type."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> bytes:
        """Return the bytes that pgvector receives."""
        return _HEAD.pack(len(obj), 0) + obj.astype(">f4").tobytes()


def dumper_of(vector_oid: int) -> type[VectorDumper]:
    """Return the dumper for this OID of the type ``vector``, which arrays of vectors need."""
    return type("VectorDumper", (VectorDumper,), {"oid": vector_oid})


def vector_of(raw: bytes) -> Vector:
    """Return the vector in the bytes of ``vector_send``."""
    import numpy as np

    return np.frombuffer(raw, ">f4", offset=_HEAD.size).astype(np.float32)
