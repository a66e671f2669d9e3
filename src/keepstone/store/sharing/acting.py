"""For which other agent a call reads or writes, so that a database can enforce its grants once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import NamedTuple


class Acting(NamedTuple):
    """The agent that accesses another agent's memory."""

    to: str
    is_writing: bool
    moment: datetime
    """The time at which its grant was checked."""


ACTING: ContextVar[Acting | None] = ContextVar("keepstone.store.sharing.acting", default=None)
"""The agent and grant for which the store is called in this context; None for an agent's own memory."""


@contextmanager
def acting(to: str, moment: datetime, *, is_writing: bool) -> Iterator[None]:
    """Call the store for another agent inside the ``with``."""
    token = ACTING.set(Acting(to, is_writing, moment))
    try:
        yield
    finally:
        ACTING.reset(token)
