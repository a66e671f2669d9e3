"""Whether anything of a text or a vector is left under a folder, in whatever form."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


def forms_of(text: str) -> Iterator[bytes]:
    """A text as it would be in UTF-8, UTF-16 and JSON, and in base64 of each at each alignment."""
    escaped = json.dumps(text)[1:-1]
    for raw in {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), escaped.encode()}:
        yield raw
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + raw)
            yield encoded[-(-shift * 4 // 3) + (shift > 0) : (shift + len(raw)) // 3 * 4]


def forms_of_vector(vector: Any) -> Iterator[bytes]:
    """A vector of unit length as it would lie in a file: in float32, in base64 of that, and in int8."""
    unit = np.asarray(vector, np.float32) / np.linalg.norm(vector)
    raw = unit.astype("<f4").tobytes()
    yield raw
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + raw)
        yield encoded[-(-shift * 4 // 3) + (shift > 0) : (shift + len(raw)) // 3 * 4]
    yield np.rint(unit / (np.abs(unit).max() / 127)).astype(np.int8).tobytes()


def left(root: Path, *texts: str, vector: Any = None) -> set[str]:
    """Where anything is left: in names, and in the bytes of files. Names are relative to the root."""
    forms = {form for text in texts for form in forms_of(text)}
    forms |= set(forms_of_vector(vector)) if vector is not None else set()
    found = set()
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if any(text in name for text in texts):
            found.add(name)
        if path.is_file() and any(form in data for data in (path.read_bytes(),) for form in forms):
            found.add(name)
    return found
