"""Mean pooling: vectors of texts from the vectors of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from keepstone.embed.bert import Bert
from keepstone.embed.combining import Combined
from keepstone.embed.threads import fitting_threads
from keepstone.vector import Matrix, Vector

_AT_ONCE = 2048
"""Maximum tokens per batch, unless a single text has more."""
_FEW, _MOST = 8, 32
"""Maximum number of texts in a call that is combined with other threads' calls, and in the combined call."""


class MeanVectors:
    """The mean of each text's token vectors, normalized to unit length.

    Calls of several threads with few texts run as one call, which takes a fraction of their total time.
    """

    def __init__(self, bert: Callable[[], Bert], dim: int) -> None:
        self._bert, self._dim = bert, dim
        self._few = Combined[Sequence[int], Vector](self._all, _MOST)

    def __call__(self, tokens: Sequence[Sequence[int]]) -> Matrix:
        """Return the vectors of texts, given by their tokens: float32 of ``dim`` columns."""
        import numpy as np

        # ``stack`` rejects an empty list.
        if 0 < len(tokens) <= _FEW:
            return np.stack(self._few(tokens))
        return mean_vectors(self._bert(), tokens, self._dim)

    def _all(self, tokens: Sequence[Sequence[int]]) -> Sequence[Vector]:
        return [*mean_vectors(self._bert(), tokens, self._dim)]


def mean_vectors(bert: Bert, tokens: Sequence[Sequence[int]], dim: int) -> Matrix:
    """Return the mean of each text's token vectors, normalized to unit length: float32 of ``dim`` columns."""
    import numpy as np

    made = np.empty((len(tokens), dim), np.float32)
    batches = list(_batches([len(ids) for ids in tokens]))
    for batch in batches:
        # The number of threads is chosen per batch, as other programs may start to use the processors.
        with fitting_threads(is_bulk=len(batches) > 1):
            made[batch] = _pooled(bert, [tokens[place] for place in batch])
    return made


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of texts of similar length, as indexes."""
    batch: list[int] = []
    # All texts of a batch are padded to the longest text, and a padding token takes as long to compute as a
    # real one.
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        # The texts are sorted, so the next one is the longest of the batch.
        if batch and (len(batch) + 1) * lengths[place] > _AT_ONCE:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _pooled(bert: Bert, tokens: Sequence[Sequence[int]]) -> Matrix:
    import numpy as np

    lengths = np.array([len(ids) for ids in tokens])
    # The token number of padding does not matter, as the mask hides padding.
    ids = np.zeros((len(tokens), lengths.max()), np.int64)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids[mask] = np.concatenate(tokens)
    sums = np.einsum("btw,bt->bw", bert(ids, mask), mask.astype(np.float32))
    # Mean and sum have the same direction, and so the same unit vector.
    made: Matrix = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return made
