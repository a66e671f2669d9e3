"""Making the vectors of a whole home: those that are missing, or all of them with another embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keepstone.embed import check_embedder, embed_texts
from keepstone.embed.base import Embedder
from keepstone.errors import EmbedderUnavailableError, StoreError
from keepstone.model import Scope
from keepstone.recall.meaning import AUTO, Choice, best, chosen
from keepstone.recall.vectors import AT_ONCE
from keepstone.store.base import Store

Progress = Callable[[int, int], None]
"""Told how many vectors were made, and how many there are to make."""


def embed_all(store: Store, choice: Choice, progress: Progress | None = None) -> int:
    """Make the vectors that entries lack in the space of an embedder; return how many were made.

    Agents whose vectors are their callers' own are left alone.

    Raises:
        EmbedderUnavailableError: There is no embedder, or it failed. What was made is kept.
    """
    embedder = _wanted(choice)
    agents = [agent for agent in store.agents() if not any(space.is_given for space in store.spaces(agent))]
    made = _embed(store, embedder, agents, progress)
    if made:
        store.set_home_space(check_embedder(embedder))
    return made


def reembed(store: Store, wanted: Any, progress: Progress | None = None) -> int:
    """Make all vectors anew with another embedder and record it; see ``Home.reembed``."""
    embedder = _wanted(best() if isinstance(wanted, str) and wanted == AUTO else chosen(wanted, "named"))
    space, agents = check_embedder(embedder), store.agents()
    made = _embed(store, embedder, agents, progress)
    store.set_home_space(space)
    for agent in agents:
        for other in store.spaces(agent):
            if other != space and not other.is_given:
                store.forget_vectors(agent, other.id)
    return made


def _wanted(choice: Choice) -> Embedder:
    if choice.embedder is None:
        raise EmbedderUnavailableError(f"there is no embedder: {choice.reason}")
    return choice.embedder


def _keep(store: Store, embedder: Embedder, agent: str, keys: Sequence[int]) -> int:
    entries = list(store.load(agent, keys).values())
    vectors = embed_texts(embedder, [entry.text for entry in entries]) if entries else ()
    return store.keep_vectors(agent, embedder.id, list(zip(entries, vectors, strict=True)))


def _embed(store: Store, embedder: Embedder, agents: list[str], progress: Progress | None) -> int:
    pending = [(agent, store.pending(embedder.id, Scope(agent))) for agent in agents]
    total, done, made = sum(len(keys) for _, keys in pending), 0, 0
    for agent, keys in pending:
        for begin in range(0, len(keys), AT_ONCE):
            some = keys[begin : begin + AT_ONCE]
            try:
                made += _keep(store, embedder, agent, some)
            except StoreError:
                if agent in store.agents():
                    raise
                break  # The agent was purged meanwhile.
            done += len(some)
            if progress:
                progress(done, total)
    return made
