"""Embedding a whole home: the missing vectors, or all of them with another embedder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keepstone.embed import Embedder, check_embedder
from keepstone.embed.maker import Maker
from keepstone.errors import EmbedderUnavailableError, StoreError
from keepstone.model import Entry, Scope
from keepstone.recall.filling import pending_slices
from keepstone.recall.selection import AUTO, Choice, best, chosen, with_probe
from keepstone.store.protocol import Store
from keepstone.store.reader import Reader, with_reader
from keepstone.text.display import counted

logger = logging.getLogger("keepstone.recall")

Progress = Callable[[int, int], None]
"""Called with the number of entries done so far, and the number of entries to embed."""


def embed_all(
    store: Store, choice: Choice, progress: Progress | None = None, maker: Maker | None = None
) -> int:
    """Make the vectors that are missing in an embedder's space; return how many were made.

    Agents with vectors that callers gave are skipped.

    Raises:
        EmbedderUnavailableError: No embedder is available, or it failed. Vectors made so far are kept.
    """
    embedder = _wanted(choice)
    agents = [agent for agent in store.agents() if not any(space.is_given for space in store.spaces(agent))]
    made = _embed(store, maker or Maker(embedder), agents, progress)
    if made:
        store.set_home_space(with_probe(check_embedder(embedder), choice))
    return made


def reembed(store: Store, wanted: Any, progress: Progress | None = None) -> int:
    """Replace all vectors with another embedder's and record that embedder; see ``Home.reembed``."""
    choice = best() if isinstance(wanted, str) and wanted == AUTO else chosen(wanted, "named")
    embedder = _wanted(choice)
    space, agents = check_embedder(embedder), store.agents()
    made = _embed(store, Maker(embedder), agents, progress)
    # The space is recorded once all vectors are made, and old vectors are deleted after that: a run that is
    # killed earlier leaves the home usable as it was.
    store.set_home_space(with_probe(space, choice))
    for agent in agents:
        for other in store.spaces(agent):
            if other != space and not other.is_given:
                store.forget_vectors(agent, other.id)
    return made


def _wanted(choice: Choice) -> Embedder:
    if choice.embedder is None:
        raise EmbedderUnavailableError(f"no embedder is available: {choice.reason}")
    return choice.embedder


def _embed(store: Store, maker: Maker, agents: list[str], progress: Progress | None) -> int:
    run = _Run(store, maker, progress)
    for step in (run.count, run.embed):
        for agent in agents:
            try:
                with_reader(store, agent, lambda reader, step=step, agent=agent: step(reader, agent))  # type: ignore[misc]
            except StoreError:
                if agent in store.agents():
                    raise  # Else the agent was purged during the run.
    return run.made


@dataclass
class _Run:
    """The progress of embedding the entries of all agents."""

    store: Store
    maker: Maker
    progress: Progress | None
    total: int = 0
    done: int = 0
    made: int = 0

    def count(self, reader: Reader, agent: str) -> None:
        self.total += reader.pending_count(self.maker.embedder.id, Scope(agent))

    def embed(self, reader: Reader, agent: str) -> None:
        for keys in pending_slices(reader, self.maker.embedder.id, Scope(agent)):
            self.made += self._keep(agent, list(reader.load(keys).values()))
            self.done = min(self.done + len(keys), self.total)
            if self.progress:
                self.progress(self.done, self.total)

    def _keep(self, agent: str, entries: Sequence[Entry]) -> int:
        vectors = self.maker.make([entry.text for entry in entries], must=True)
        made = [(entry, vectors[entry.text]) for entry in entries if entry.text in vectors]
        if len(made) < len(entries):
            refused = counted(len(entries) - len(made), "text")
            logger.warning("the embedder refused %s, found by words only", refused)
        kept = self.store.keep_vectors(agent, self.maker.embedder.id, made)
        self.maker.stored([entry.text for entry, _ in made])
        return kept
