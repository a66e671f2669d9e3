"""Importing the memory of other tools: OpenAI Agents, LangGraph, mem0, Chroma, ChatGPT, Claude and more.

Each source has a reader that yields records; one writer stores them. Records are recognised by a stable id: a
second run adds nothing, a changed record updates its entry, and a deleted entry is not added again. Nothing
of a foreign file is executed: no pickle is loaded, and no class of the source is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from keepstone.agent import Agent
from keepstone.errors import SourceError
from keepstone.importing.item import Item, Options, Unread
from keepstone.importing.origin import Origin
from keepstone.importing.owner import AgentFrom
from keepstone.importing.registry import SOURCES, reader_of
from keepstone.importing.writer import ImportResult, Writer

__all__ = ["SOURCES", "ImportResult", "SourceError", "Unread", "import_memory"]


def import_memory(
    agent: Agent,
    source: str,
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    resume: bool = False,
    mapping: Mapping[str, str] | None = None,
    branches: bool = False,
    vectors: bool = False,
    secrets: str = "keep",
    agent_from: str | None = None,
    keep_origin: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Import a foreign memory into an agent.

    The whole source is read once before anything is written, so that a damaged source is not imported in
    part. To finish an import that was killed, run it again.

    Args:
        agent: The agent to import into.
        source: One of ``SOURCES``; ``auto`` detects the source.
        path: The file, folder or zip archive of the source. It is not changed.
        dry_run: Write nothing, and return the same counts.
        resume: Skip records whose id is already stored. Their contents are not compared, which is faster.
        mapping: For ``csv`` and ``jsonl``, the column of each field: ``text``, ``ts``, ``role``, ``id``,
            ``session``, ``type``, ``tags``. For ``openai-agents``, the table of ``messages`` if its name is
            not ``agent_messages``.
        branches: Import all branches of a conversation, not only the current one.
        vectors: Also import vectors whose model the source does not name, because the home's embedder made
            them. By default only vectors that name the agent's own space are imported, and an import never
            sets that space.
        secrets: ``"keep"``, ``"mask"`` or ``"refuse"`` keys and tokens, as for ``keepstone.open``.
        agent_from: Import into an agent for each user, named ``keepstone.slug`` of this: the ``user_id`` of
            the records, the ``namespace`` of a LangGraph store, or ``namespace.0`` for its first label.
            Records without this field go to ``agent``.
        keep_origin: Keep the origin of each record. By default no imported entry has more trust than
            ``import``.
        progress: Called with the number of records read and their total.

    Raises:
        SourceError: The source is not recognised, unreadable, damaged or hostile; nothing was written.
        TypeError, ValueError: An argument is invalid; nothing was written.
        LockTimeoutError, StoreError: As for ``Session.add``; entries that are already written stay.

    Examples:
        >>> import_memory(agent, "jsonl", "notes.jsonl", mapping={"text": "body"})  # doctest: +SKIP
        ImportResult(source='jsonl', imported=2, unchanged=0, failed=[], notes=[])
    """
    if secrets not in ("keep", "mask", "refuse"):
        raise ValueError(f"secrets must be 'keep', 'mask' or 'refuse', not {secrets!r}")
    if mapping and source not in ("csv", "jsonl", "openai-agents", "auto"):
        raise ValueError(
            f"source {source!r:.80} has nothing to map; a mapping is for csv, jsonl and openai-agents"
        )
    with Origin(Path(path).expanduser()) as origin:
        name, read = reader_of(source, origin)
        options = Options(dict(mapping or {}), branches)
        owner = AgentFrom(agent_from) if agent_from is not None else None
        # The source is read twice instead of being kept between the passes: it may be larger than the memory.
        total = owned = 0
        for item in read(origin, options):
            total += 1
            owned += owner is not None and isinstance(item, Item) and owner.slug_of(item) is not None
        # If the source lacked the field, the memories of all users would otherwise end up in one agent,
        # without an error.
        if owner is not None and total and not owned:
            raise SourceError(f"no record of {name} says {owner}: import it without agent_from")
        result = ImportResult(name)
        writer = Writer(
            agent,
            result,
            dry_run=dry_run,
            resume=resume,
            vectors=vectors,
            secrets=secrets,
            mtime=origin.mtime,
            agent_from=owner,
            keep_origin=keep_origin,
        )
        for done, item in enumerate(read(origin, options), 1):
            writer.add(item)
            if progress is not None and (done % _STEP == 0 or done == total):
                progress(done, total)
        writer.finish()
        return result


_STEP = 200
"""Records between two calls of ``progress``."""
