"""Read access to the whole memory of an agent through a LangGraph store.

Each valid entry is an item of the namespace ``("keepstone", session)``, with the entry's id as the key and
its payload, or else its text, as the value. A search in this namespace with a query is a recall. Listings and
other searches leave the namespace out, and nothing can be put there.
"""

from __future__ import annotations

from itertools import islice

from keepstone.agent import Agent
from keepstone.errors import EntryNotFoundError
from keepstone.importing.langgraph_names import Namespace
from keepstone.integrations.homes import needs
from keepstone.integrations.langgraph_filters import passes
from keepstone.log.arguments import count_of
from keepstone.model import Entry

with needs("langgraph"):
    from langgraph.store.base import GetOp, Item, SearchItem, SearchOp

ROOT = "keepstone"
_LEVELS = 2
"""Number of labels in a session's namespace: the root, and the session's id."""
_MOST_FILTERED = 1_000
"""Minimum number of hits to recall if a filter is applied to them."""


def is_memory(namespace: Namespace) -> bool:
    """Return whether a namespace is part of an agent's whole memory."""
    return namespace[:1] == (ROOT,)


def remembered(agent: Agent, op: GetOp) -> Item | None:
    """Return an entry of any session as an item."""
    if len(op.namespace) != _LEVELS:
        return None
    try:
        entry = agent.get(op.key, op.namespace[1])
    except (EntryNotFoundError, ValueError):  # The empty key is not an id.
        return None
    return _item(entry, None) if agent.holds(entry) else None


def recalled(agent: Agent, op: SearchOp) -> list[SearchItem]:
    """Return entries as items: the best hits for a query, or without a query all entries by time."""
    limit, offset = count_of(op.limit, "limit"), count_of(op.offset, "offset")
    if len(op.namespace_prefix) > _LEVELS:
        return []
    sessions = [*op.namespace_prefix[1:]] or None
    if op.query:
        # A filter is applied to the hits of a recall, so recall more than one page.
        most = offset + limit if not op.filter else max(_MOST_FILTERED, offset + limit)
        hits = agent.recall(op.query, sessions=sessions, limit=most)
        found = (_item(hit.entry, hit.relevance) for hit in hits)
    elif sessions is None:
        found = (_item(entry, None) for entry in agent.iter_entries())
    else:
        found = (_item(entry, None) for entry in agent.session(sessions[0]).entries())
    return [*islice((item for item in found if passes(item.value, op.filter)), offset, offset + limit)]


def _item(entry: Entry, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=(ROOT, entry.session),
        key=entry.id,
        # An entry may have a text without a payload.
        value=entry.data or {"text": entry.text},
        created_at=entry.ts,
        updated_at=entry.modified,
        score=score,
    )
