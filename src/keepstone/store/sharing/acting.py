"""The agent for which a call accesses another agent's memory, so that a database can check grants, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import NamedTuple


class Acting(NamedTuple):
    """An agent's access to another agent's memory."""

    to: str
    is_writing: bool
    moment: datetime
    """The time at which the grant was checked."""


ACTING: ContextVar[Acting | None] = ContextVar("keepstone.store.sharing.acting", default=None)
"""The agent for which the store is called in this context; None for access to an agent's own memory."""


@contextmanager
def acting(to: str, moment: datetime, *, is_writing: bool) -> Iterator[None]:
    """Call the store for another agent inside the ``with``."""
    token = ACTING.set(Acting(to, is_writing, moment))
    try:
        yield
    finally:
        ACTING.reset(token)
