"""The page of agents."""

from __future__ import annotations

from collections.abc import Iterable

from keepstone.home import Home
from keepstone.text.display import one_line
from keepstone.tui.listing import Listing


class AgentsScreen(Listing[str, str | None]):
    """Lists the agents of a home; the result is the chosen slug, None for no change."""

    heading = "Agents: each has its own memory"
    keys = "↑↓ · Enter talk with · /agent NAME creates a new one · Esc close"
    empty = "No agents yet. /agent NAME creates one."

    def __init__(self, home: Home, current: str) -> None:
        super().__init__()
        self._home = home
        self._current = current

    def rows(self) -> Iterable[tuple[str, str]]:
        """Return the slugs of all agents."""
        for slug in self._home.agents():
            yield slug, one_line(slug) + ("  (this one)" if slug == self._current else "")

    def on_option_list_option_selected(self) -> None:
        """Choose the highlighted agent."""
        self.dismiss(self.chosen)
