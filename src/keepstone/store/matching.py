"""Matching an entry's record against a scope."""

from __future__ import annotations

from keepstone.log.line import read_time
from keepstone.model import Record, Scope
from keepstone.store.validity import is_valid


def matches(scope: Scope, session: str, record: Record) -> bool:
    """Return whether a scope selects an entry, in the shape of its log line."""
    moment, tags = read_time(record["ts"]), record.get("tags")
    return (
        moment is not None
        and (scope.sessions is None or session in scope.sessions)
        and (scope.ids is None or record["id"] in scope.ids)
        and (scope.types is None or record["type"] in scope.types)
        and (scope.since is None or moment >= scope.since)
        and (scope.until is None or moment < scope.until)
        and all(isinstance(tags, list) and tag in tags for tag in scope.tags or ())
        and all(condition.matches(record) for condition in scope.where)
        and (scope.valid_at is None or is_valid(record, scope.valid_at))
    )
