"""What the tests of the store in PostgreSQL write, and wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def note(name: str, **more: Any) -> dict[str, Any]:
    """Return the record of a note."""
    return {"id": name, "ts": "2026-01-11T14:31:00.000000Z", "type": "note", "text": f"walnut {name}", **more}


def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so, a minute at most."""
    for _ in range(6_000):
        if reached():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it was not reached within a minute")
