"""Identification of embedders by their answer to a fixed text.

The name of a bound method or a lambda does not identify a model, and neither does the address of a server.
The vector that such an embedder returns for ``PROBE`` is stored with a home's space. An embedder that returns
almost the same vector counts as the same embedder.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from contextlib import suppress
from dataclasses import dataclass

from keepstone.embed.embedder import LOADING_SECONDS, Embedder, ask_within, embed_query
from keepstone.vector import F32, Matrix, Space, Vector

PROBE = "Seven grey herons waited by the river while the ferry carried letters to the northern villages."
"""The fixed text. If it changed, embedders without an id would not match the homes that recorded them."""
SAME = 0.99
"""Cosine above which two answers are from the same embedder; quantization and hardware change less."""

_UNNAMED = "unnamed:"
_DECIMALS = 2
"""Number of decimals of the answer that go into the id of an unnamed embedder's space."""


def probed(embedder: Embedder) -> str:
    """Return an embedder's answer to the text, encoded for storage.

    Raises:
        EmbedderUnavailableError: The embedder failed or timed out.
        EmbeddingDimMismatchError, InvalidEmbeddingError: It did not return a vector.
    """
    vector = ask_within(LOADING_SECONDS, embedder.id, lambda: embed_query(embedder, PROBE))
    return base64.b64encode(vector.astype(F32).tobytes()).decode()


def cosine(left: str, right: str) -> float:
    """Return the cosine of two answers, from -1 to 1; 0 if they cannot be compared."""
    a, b = _vector(left), _vector(right)
    # Both are of unit length, so this is their cosine.
    return 0.0 if a is None or b is None or a.shape != b.shape else float(a @ b)


def unnamed(answer: str) -> str:
    """Return the id of a new space for an embedder without an id, derived from its answer."""
    import numpy as np

    # The numbers are rounded, as their last digits differ between machines and would change the id.
    rounded = np.round(np.frombuffer(base64.b64decode(answer), F32), _DECIMALS) + 0.0  # Never -0.0.
    return _UNNAMED + hashlib.sha256(rounded.astype(F32).tobytes()).hexdigest()[:16]


def is_unnamed(space: str) -> bool:
    """Return whether a space belongs to an embedder without an id."""
    return space.startswith(_UNNAMED)


def _vector(answer: str) -> Vector | None:
    import numpy as np

    # A home's files can be damaged: an answer that cannot be decoded is similar to none.
    with suppress(binascii.Error, ValueError):
        return np.frombuffer(base64.b64decode(answer, validate=True), F32)
    return None


@dataclass(slots=True)
class Identified:
    """An embedder with the id of its space and, if it was requested, its answer to the text."""

    embedder: Embedder
    id: str
    probe: str = ""

    @property
    def dim(self) -> int:
        """The dimension of its vectors."""
        return self.embedder.dim

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of documents."""
        return self.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        return self.embedder.embed_query(text)


def identified(embedder: Embedder, recorded: Space | None) -> Identified:
    """Return an embedder with the recorded space's id if the answers match, else with a new id.

    Raises:
        EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``probed``.
    """
    answer = probed(embedder)
    is_same = recorded is not None and cosine(answer, recorded.probe) > SAME
    return Identified(embedder, recorded.id if recorded and is_same else unnamed(answer), answer)
