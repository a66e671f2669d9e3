"""The agents page: list, search, switch, create."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from keepstone.text.display import counted
from keepstone.web.components import LinkList
from keepstone.web.elements import asked, attempt, box, button, empty, field
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.site import Place, address

_MOST = 200
_LEAD = "Each agent has its own memory. No page mixes two agents."


class AgentsPage:
    """State of the page: the agents as last loaded, and the search term."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.found: Sequence[str] = ()
        self.wanted = ""

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "agents", "Agents", _LEAD) as head:
            if not self.place.read_only:
                with head:
                    button("New agent", self._new, "main", data_new="")
            with box(classes="bar-tools", data_search=""):
                search = field("Search agents").props("clearable type=search")
                search.on_value_change(lambda event: self._search(event.value or ""))
            self.live = Live(self.place.agents, self._draw)
            self.list = LinkList()
            self.none = box(classes="hint")
            await self.live.start()

    def _draw(self, found: Sequence[str]) -> None:
        self.found = found
        chosen = [slug for slug in found if self.wanted in slug.casefold()]
        self.list.show(items=[self._item(slug) for slug in chosen[:_MOST]], label="Agents")
        self.list.set_visibility(bool(chosen))
        self.none.clear()
        with self.none:
            if not chosen:
                empty(
                    "No agents here" if not found else "No matching agent",
                    "An agent is created with its first entry.",
                )
            elif len(chosen) > _MOST:
                ui.label(f"{counted(len(chosen) - _MOST, 'agent')} more: search for them")

    def _item(self, slug: str) -> dict[str, object]:
        here = slug == self.place.agent.slug
        detail = "you are here" if here else ""
        return {"href": address(slug, "sessions"), "name": slug, "detail": detail, "current": here}

    def _search(self, words: str) -> None:
        self.wanted = words.strip().casefold()
        self._draw(self.found)

    async def _new(self) -> None:
        name = await asked("Go to a new agent", "Its name: letters, digits, . _ -", "Go")
        with attempt():
            if name:
                slug = name.strip()
                self.place.site.home.agent(slug)
                ui.navigate.to(address(slug, "sessions"))


async def build(place: Place) -> None:
    """Draw the page."""
    await AgentsPage(place).build()
