"""The agents page: counts of each agent; search, switch, create and purge."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.log.line import format_time
from keepstone.operations.error_codes import message_of
from keepstone.text.display import counted, size
from keepstone.web.components import AgentList
from keepstone.web.elements import (
    answer_of,
    aside,
    asked,
    attempt,
    box,
    button,
    dialog,
    empty,
    field,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import ago, moment, shown
from keepstone.web.site import Place, address

_MOST = 200
_LEAD = "Each agent has its own memory. No page mixes two agents."


@dataclass(frozen=True, slots=True)
class Facts:
    """The size of an agent's memory."""

    sessions: int
    entries: int
    changed: datetime | None
    """The time of its newest entry; None without entries."""
    size: int
    """The size of its logs in bytes."""


def facts_of(agent: Agent) -> Facts:
    """Return the counts of an agent."""
    infos, summaries = agent.sessions(), agent.session_summaries(texts=False)
    return Facts(
        len(infos),
        sum(summary.entries for summary in summaries),
        max((summary.changed for summary in summaries if summary.entries), default=None),
        sum(info.size for info in infos),
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The agents, and for each shown agent its counts, or its error as text."""

    found: Sequence[str]
    facts: Mapping[str, Facts | str]
    minute: int
    """The minute of loading; a new minute makes the page draw relative times again."""


class AgentsPage:
    """State of the page: the agents as last loaded, and the search term."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.loaded = Loaded((), {}, 0)
        self.wanted = ""
        self.counts = False

    async def build(self) -> None:
        """Draw the page with the agents' names; their counts are read once it is open."""
        with frame(self.place, "agents", "Agents", _LEAD) as head:
            if not self.place.read_only:
                with head:
                    button("New agent", self._new, "main", data_new="")
            with box(classes="bar-tools", data_search=""):
                search = field("Search agents").props("clearable type=search")
                search.on_value_change(lambda event: self._search(event.value or ""))
            self.live = Live(self._load, self._draw)
            self.list = AgentList()
            self.list.when("purge", self._purge)
            self.none = box(classes="hint")
            await self.live.start()
            # The first load lists only names, which is fast. Counts of many agents take longer than a reader
            # waits for a page.
            self.counts = True
            ui.timer(0, self.live.refresh, once=True)

    def _load(self) -> Loaded:
        found = self.place.agents()
        minute = int(time.time() // 60)
        # The first load runs before the page is sent: see ``build``.
        if not self.counts:
            return Loaded(found, {}, minute)
        return Loaded(found, {slug: self._facts(slug) for slug in self._chosen(found)[:_MOST]}, minute)

    def _facts(self, slug: str) -> Facts | str:
        try:
            return facts_of(self.place.site.home.agent(slug))
        # Show the error of a damaged agent in its row, so that it does not hide the other agents.
        except KeepstoneError as error:
            return message_of(error)

    def _chosen(self, found: Sequence[str]) -> list[str]:
        return [slug for slug in found if self.wanted in slug.casefold()]

    def _draw(self, loaded: Loaded) -> None:
        self.loaded = loaded
        chosen, now = self._chosen(loaded.found), datetime.now(UTC)
        self.list.show(agents=[self._item(slug, now) for slug in chosen[:_MOST]], purging=self.place.is_admin)
        self.list.set_visibility(bool(chosen))
        self.none.clear()
        with self.none:
            if not chosen:
                empty(
                    "No agents here" if not loaded.found else "No matching agent",
                    "An agent is created with its first entry.",
                )
            elif len(chosen) > _MOST:
                ui.label(f"{counted(len(chosen) - _MOST, 'agent')} more: search for them")

    def _item(self, slug: str, now: datetime) -> dict[str, object]:
        facts = self.loaded.facts.get(slug)
        is_read = isinstance(facts, Facts)
        return {
            "href": address(slug, "sessions"),
            "slug": slug,
            "current": slug == self.place.agent.slug,
            "facts": _view(facts, now) if isinstance(facts, Facts) else None,
            "trouble": "" if is_read or facts is None else shown(str(facts)),
        }

    async def _search(self, words: str) -> None:
        self.wanted = words.strip().casefold()
        await self.live.refresh()

    async def _new(self) -> None:
        name = await asked("Go to a new agent", "Its name: letters, digits, . _ -", "Go")
        with attempt():
            if name:
                slug = name.strip()
                # This checks the name, so that an error is shown here and not as a separate page.
                self.place.site.home.agent(slug)
                ui.navigate.to(address(slug, "sessions"))

    async def _purge(self, slug: str) -> None:
        """Purge an agent after the reader has typed its name."""
        # Check the name before the purge, as it comes from the browser.
        if slug not in self.loaded.found or not self.place.is_admin:
            return
        if await self._typed(slug) != slug:
            return
        with attempt():
            await self.place.check_admin()
            await aside(self.place.site.home.purge_agent, slug)
            tell(f"Purged {slug}")
            if slug == self.place.agent.slug:
                ui.navigate.to("/")
        await self.live.refresh()

    async def _typed(self, slug: str) -> Any:
        """Ask for the agent's name, and return the typed text; None if the dialog was closed."""
        facts = self.loaded.facts.get(slug)
        counts = ""
        if isinstance(facts, Facts):
            counts = f" It holds {counted(facts.sessions, 'session')} and {counted(facts.entries, 'entry')}."
        with dialog(f"Purge agent {slug}?") as question:
            say("p", f"Every session, file and index of “{slug}” is removed.{counts} This cannot be undone.")
            line = field(f"Type {slug} to purge it").props("autofocus autocomplete=off")
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                purge = button("Purge", lambda: question.submit(line.value), "main danger", disabled=True)
            line.on_value_change(lambda event: purge.props.update(disabled=event.value != slug))
        return await answer_of(question)


def _view(facts: Facts, now: datetime) -> dict[str, str]:
    changed = facts.changed
    return {
        "sessions": counted(facts.sessions, "session"),
        "entries": counted(facts.entries, "entry"),
        "iso": format_time(changed) if changed else "",
        "moment": moment(changed) if changed else "",
        "ago": ago(changed, now) if changed else "",
        "size": size(facts.size),
    }


async def build(place: Place) -> None:
    """Draw the page."""
    await AgentsPage(place).build()
