"""The purge page: the entries that recall finds for a question, to purge one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType

from keepstone.agent import Agent
from keepstone.errors import EntryNotFoundError
from keepstone.model import Entry
from keepstone.operations.session_labels import session_labels
from keepstone.tui import wording
from keepstone.tui.listing import Listing
from keepstone.tui.page import when_sure

_HITS = 30


class Forgetting(Listing[Entry, bool]):
    """Lists the hits of a recall; the result is whether something was purged."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d,delete", "purge", "Purge")]
    heading = "Forget: purging removes an entry from every file, for good"
    keys = "↑↓ · Enter or d purge · Esc close"
    empty = "Nothing found. Notes are deleted in /memory."

    def __init__(self, agent: Agent, question: str) -> None:
        super().__init__()
        self._agent = agent
        self._question = question
        self._found: list[Entry] | None = None
        self._names: Mapping[str, str] = {}
        self._purged = False

    def search(self) -> list[Entry]:
        """Recall entries for the question, best first, and store them for the list."""
        self._found = [hit.entry for hit in self._agent.recall(self._question, limit=_HITS)]
        self._names = session_labels(self._agent, [entry.session for entry in self._found])
        return self._found

    def rows(self) -> Iterable[tuple[Entry, str]]:
        """Return the found entries that are not purged yet."""
        found = self.search() if self._found is None else self._found
        return [(entry, wording.entry(entry, self._names)) for entry in found]

    def on_option_list_option_selected(self) -> None:
        """Purge the highlighted entry after confirmation."""
        self.action_purge()

    def action_purge(self) -> None:
        """Purge the highlighted entry after confirmation."""
        entry = self.chosen
        if entry is not None:
            words = f"Remove every byte of this entry?\n\n{wording.entry(entry, self._names)}"
            when_sure(self.app, words, "Yes, purge it", lambda: self.attempt(lambda: self._purge(entry)))

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(self._purged)

    def _purge(self, entry: Entry) -> None:
        said = "Purged. Answers that quote it are separate entries."
        try:
            self._agent.purge(entry.id, entry.session)
            self._purged = True
        except EntryNotFoundError:
            said = "It no longer exists."
        # Do not recall again: another recall could put a different entry under the highlight.
        self._found = [other for other in self._found or () if other is not entry]
        self.reload(said)
