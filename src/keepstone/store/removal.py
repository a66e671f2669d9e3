"""Removing all entries that a scope selects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from keepstone.model import Scope
from keepstone.store.paging import pages
from keepstone.store.protocol import Selected, Store

_PAGE = 1_000


def remove_selected(
    store: Store, scope: Scope, remove: Callable[[str, Selected], int], *, dry_run: bool
) -> int:
    """Remove entries session by session; return how many were removed, or would be (``dry_run``).

    An entry stays if another writer takes it out of the scope before its session is locked.

    Raises:
        ValueError: The scope is the whole agent.
    """
    if replace(scope, valid_at=None) == Scope(scope.agent):
        raise ValueError(
            "removing all entries needs a filter: give types=, tags=, where=, since=, until= or ids="
        )
    if dry_run:
        return store.select_count(scope)
    found: dict[str, list[str]] = {}
    for entry in pages(lambda cursor: store.select(scope, _PAGE, cursor)):
        found.setdefault(entry.session, []).append(entry.id)
    return sum(remove(session, Selected(ids, scope)) for session, ids in found.items())
