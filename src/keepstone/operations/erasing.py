"""Erasing a text from agents and notes, and the places that a purge does not reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from keepstone.agent import Agent
from keepstone.filesystem.work_tree import work_tree_of
from keepstone.model import Purged
from keepstone.notes.notes import MemoryEntry, Notes
from keepstone.store.opening import is_database
from keepstone.text.display import counted
from keepstone.text.tokenizer import containing


@dataclass(frozen=True, slots=True)
class Holders:
    """The places that contain a text."""

    agents: Mapping[str, Purged]
    """Entries, sessions, files and suggestions that contain the text, by agent."""
    notes: tuple[MemoryEntry, ...]
    beyond: tuple[str, ...]
    """Places that a purge does not reach, each with a remedy."""

    def __bool__(self) -> bool:
        """Return whether a purge would remove anything."""
        return bool(self.agents or self.notes)


def counts_of(found: Purged) -> str:
    """Return the counts of what a purge removes, in words.

    Examples:
        >>> counts_of(Purged((("main", "a"), ("main", "b")), files=("plan.md",)))
        '2 entries, 1 file'
    """
    kinds = (
        (found.entries, "entry"),
        (found.sessions, "whole session"),
        (found.files, "file"),
        (found.suggestions, "suggestion"),
    )
    return ", ".join(counted(len(listed), what) for listed, what in kinds if listed)


def holders_of(text: str, root: Path, agents: Iterable[Agent], notes: Notes | None) -> Holders:
    """Return the places that contain a text, ignoring case and Unicode normal form. Changes nothing.

    Args:
        text: The text to search for.
        root: The home's folder or database.
        agents: The agents to search.
        notes: The notes to search, if any.

    Raises:
        ValueError: The text is blank.
    """
    if not text.strip():
        raise ValueError("the text is blank: give a name, a key or another text to search for")
    found = {agent.slug: agent.purge_matching(text, dry_run=True) for agent in agents}
    contains = containing(text)
    noted = tuple(note for note in (notes.entries() if notes else ()) if contains(note.content))
    return Holders(
        {slug: purged for slug, purged in found.items() if purged},
        noted,
        tuple(_beyond(root, notes, noted, text)),
    )


def erase(text: str, root: Path, agents: Iterable[Agent], notes: Notes | None) -> Holders:
    """Purge a text from agents, remove the notes that contain it, and return the places that did.

    Raises:
        ValueError: The text is blank.
        PurgePendingError: As for ``Agent.purge_matching``.
    """
    # The agents are passed over twice, and the caller may give an iterator.
    chosen = list(agents)
    found = holders_of(text, root, chosen, notes)
    for agent in chosen:
        if agent.slug in found.agents:
            agent.purge_matching(text)
    if notes is not None:
        for note in found.notes:
            notes.remove(note)
    return found


def _beyond(root: Path, notes: Notes | None, noted: tuple[MemoryEntry, ...], text: str) -> Iterable[str]:
    contains = containing(text)
    for source in notes.sources() if notes else ():
        # A file of notes is a person's own Markdown: text outside its bullets is reported, not changed.
        is_in_a_note = any(note.type == source.kind for note in noted)
        if contains(source.bullets.text) and not is_in_a_note:
            yield f"{source.path} has it outside of its notes: edit the file."
    if is_database(root):
        yield (
            "PostgreSQL's files until keepstone postgres scrub, its write-ahead log and its replicas: "
            "ask the person who runs the database."
        )
    elif work_tree_of(root) is not None:
        yield "Commits of this home: rewrite git's history, and purge in every clone."
    if notes and noted and work_tree_of(notes.folder) is not None:
        yield f"Commits of the notes in {notes.folder}: rewrite git's history."
    yield "Backups and exports: delete them, or purge there with keepstone purge --match TEXT --home BACKUP."
    yield "Text that was sent to a model."
