"""Reader of safetensors files: eight bytes of length, a JSON header, and the numbers.

Files are memory-mapped, so unused tensors are never read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}
_LENGTH = 8
# The limit of the safetensors library.
_LONGEST_HEADER = 100_000_000


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file by name: read-only views of float32, float16 or int64.

    Raises:
        ValueError: The file is not safetensors, is truncated, or has tensors of other types.
        OSError: The file cannot be read.
    """
    import numpy as np

    if path.stat().st_size <= _LENGTH:
        raise _invalid(path)
    raw = np.memmap(path, np.uint8, mode="r")
    start = _LENGTH + int.from_bytes(raw[:_LENGTH].tobytes(), "little")
    if start > min(raw.size, _LONGEST_HEADER):
        raise _invalid(path)
    try:
        header = json.loads(raw[_LENGTH:start].tobytes())
        # Besides tensors, the format allows a dict of notes under this name.
        header.pop("__metadata__", None)
        return {name: _view(raw[start:], **entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _invalid(path) from error


def _view(
    raw: NDArray[np.uint8], dtype: str, shape: list[int], data_offsets: tuple[int, int]
) -> NDArray[Any]:
    begin, end = data_offsets
    return raw[begin:end].view(_TYPES[dtype]).reshape(shape)


def _invalid(path: Path) -> ValueError:
    return ValueError(f"{path} is not a safetensors file of float32, float16 or int64, or is truncated")
