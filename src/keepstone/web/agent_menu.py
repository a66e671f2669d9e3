"""The agent menu in the frame of every page, which leads to the same page of another agent."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from keepstone.web.components import LinkList
from keepstone.web.elements import answer_of, aside, attempt, box, dialog, field, link, say
from keepstone.web.phrases import shown
from keepstone.web.site import Place, address

_LISTED = 50
"""Maximum number of listed agents; a filter finds the others."""
_OF_ANY_AGENT = frozenset("sessions timeline changes chat recall context files inbox overview".split())
"""Pages that every agent has. From any other page the menu leads to the agent's sessions."""


class AgentMenu:
    """Shows the agent of a page, and lists all agents with a filter when it is opened."""

    def __init__(self, place: Place, page: str) -> None:
        self._place = place
        self._page = page if page in _OF_ANY_AGENT else "sessions"
        self._slugs: list[str] = []

    def build(self) -> None:
        """Draw the button that opens the menu."""
        slug = self._place.agent.slug
        made = box(
            "button",
            "agent",
            type="button",
            aria_haspopup="dialog",
            aria_label=f"Agent {slug}, switch",
            data_go="a",
        )
        with made:
            say("small", "Agent")
            say("span", slug)
        made.on("click", self._open, args=[])

    async def _open(self) -> None:
        with attempt():
            # The agents are read when the menu opens, not with the page: every page has the menu, and few
            # readers open it.
            self._slugs = await aside(self._place.agents)
            # NiceGUI deletes a dialog with the element in whose context it was made. The layout lasts as long
            # as the page.
            with ui.context.client.layout:
                self._draw()

    def _draw(self) -> None:
        with dialog("Switch agent", "finder") as menu:
            line = field("Filter agents").props("autofocus type=search")
            listed = LinkList()
            none = say("p", "No agent has this in its name.", "hint")
            link("All agents", self._place.link("agents"), "all-agents")

        def show(words: str) -> None:
            found = self._items(words.strip().casefold())
            listed.show(items=found, label="Agents")
            none.set_visibility(not found)

        def follow() -> None:
            if found := self._items(str(line.value or "").strip().casefold()):
                ui.navigate.to(found[0]["href"])

        line.on_value_change(lambda event: show(str(event.value or "")))
        line.on("keydown.enter", follow, args=[])
        # NiceGUI only hides a closed dialog. Each opening draws a new one, so the old one is deleted.
        menu.on("hide", menu.delete)
        show("")
        menu.open()

    def _items(self, words: str) -> list[dict[str, Any]]:
        """Return the agents with these words in their names."""
        current = self._place.agent.slug
        return [_item(slug, self._page, current) for slug in self._slugs if words in slug.casefold()][
            :_LISTED
        ]


async def pick_agent(place: Place, title: str, words: str) -> str | None:
    """Let the reader choose another agent; None if they close the dialog."""
    slugs = [slug for slug in await aside(place.agents) if slug != place.agent.slug]
    with dialog(title, "finder") as question:
        say("p", words)
        line = field("Name of the agent").props("autofocus type=search")
        listed = LinkList()
        none = say("p", "No agent has this in its name.", "hint")

    def chosen() -> list[str]:
        wanted = str(line.value or "").strip()
        return [slug for slug in slugs if wanted.casefold() in slug.casefold()][:_LISTED]

    def show() -> None:
        slugs_shown = chosen()
        listed.show(
            items=[_item(slug, "sessions", place.agent.slug) for slug in slugs_shown],
            label="Agents",
            picks=True,
        )
        none.set_visibility(not slugs_shown)

    def pick(href: str) -> None:
        slug_of = {address(slug, "sessions"): slug for slug in slugs}
        # The address comes from the browser, which may send any address. Accept only an agent that this
        # dialog offered.
        if href in slug_of:
            question.submit(slug_of[href])

    def pick_first() -> None:
        for slug in chosen()[:1]:
            question.submit(slug)

    line.on_value_change(show)
    line.on("keydown.enter", pick_first, args=[])
    listed.when("chosen", pick)
    show()
    answer: str | None = await answer_of(question)
    return answer


def _item(slug: str, page: str, current: str) -> dict[str, Any]:
    return {
        "name": shown(slug),
        "detail": "this one" if slug == current else "",
        "href": address(slug, page),
        "current": slug == current,
    }
