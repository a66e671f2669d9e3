"""The timeline page: the entries of all sessions, newest first, by type, tag, time and text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nicegui import ui

from keepstone.log.arguments import Filters
from keepstone.log.time_words import moment_of
from keepstone.model import Entry
from keepstone.text.display import counted
from keepstone.web.choosers import Choosers, trust_field
from keepstone.web.components import EntryList
from keepstone.web.details import Details
from keepstone.web.elements import box, button, empty, field, say
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of, shown
from keepstone.web.site import Place
from keepstone.web.views import entry_views

_LEAD = "Everything this agent remembers, newest first."
_PAGE = 50
_FOUND = 200
"""Maximum hits of a recall with the filter's words; hits without a matching word are dropped."""
_FIELDS = (
    ("q", "Words", "passkeys"),
    ("since", "Made since", "yesterday, 2026-03-01"),
    ("until", "Made before", "last week, 2026-04-01"),
)
_CHOSEN = ("type", "tag")
_FILTERS = (*_CHOSEN, *(name for name, *_ in _FIELDS), "trust")


@dataclass(frozen=True, slots=True)
class Slice:
    """The loaded entries, and whether there are more."""

    entries: Sequence[Entry]
    more: bool


class TimelinePage:
    """State of the page: the filters, and how many entries are shown."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.given = {name: place.query.get(name, "").strip() for name in _FILTERS}
        self.fields: dict[str, ui.input] = {}
        self.most = _PAGE

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "timeline", "Timeline", _LEAD):
            with box(classes="beside"):
                with box(data_search=""):
                    self._fields(_FIELDS[:1])
                    is_open = any(self.given[name] for name in _FILTERS if name != "q")
                    with box("details", data_roomy="", **({"open": ""} if is_open else {})):
                        say("summary", "Filters")
                        with box(classes="filters"):
                            self.choosers = Choosers(_CHOSEN, self.given, self._apply)
                            self._fields(_FIELDS[1:])
                            self.trust = trust_field(self.given["trust"], self._apply)
                with box():
                    self._entries()
            ui.timer(0, lambda: self.choosers.offer(self.place.agent), once=True)
            await self.live.start()

    def _fields(self, fields: Sequence[tuple[str, str, str]]) -> None:
        for name, label, hint in fields:
            made = field(label, hint, self.given[name])
            made.on("keydown.enter", self._apply, args=[])
            # Leaving a field applies it. ``_apply`` does nothing unless a value has changed.
            made.on("blur", self._apply, args=[])
            self.fields[name] = made

    def _entries(self) -> None:
        self.sum = say("p", "", "answer-line", role="status")
        self.live = Live(self._load, self._draw)
        self.list = EntryList()
        Details(self.place, self.live.refresh).connect(self.list)
        self.none = box()
        self.more = button("Show more", self._show_more)

    def _load(self) -> Slice:
        agent, filters = self.place.agent, self._filters()
        words = self.given["q"]
        if not words:
            page = agent.entries(limit=self.most, newest_first=True, **filters)
            return Slice(page, page.next is not None)
        hits = agent.recall(
            words,
            limit=_FOUND,
            types=filters.get("types"),
            tags=filters.get("tags"),
            trust=filters.get("trust"),
            since=filters.get("since"),
            until=filters.get("until"),
        )
        # The field filters by words. Entries that match only by meaning are left to the recall page.
        said = (hit.entry for hit in hits if hit.why.words)
        entries = sorted(said, key=lambda entry: entry.ts, reverse=True)
        return Slice(entries[: self.most], len(entries) > self.most)

    def _filters(self) -> Filters:
        found: Filters = {"include_superseded": True}  # The page marks the entries that are not valid.
        if types := self.choosers.chosen("type"):
            found["types"] = types
        if tags := self.choosers.chosen("tag"):
            found["tags"] = tags
        found["trust"] = self.given["trust"] or None
        now = datetime.now(UTC)
        if self.given["since"]:
            found["since"] = moment_of(self.given["since"], now, "Made since")
        if self.given["until"]:
            found["until"] = moment_of(self.given["until"], now, "Made before")
        return found

    async def _apply(self) -> None:
        """Filter, and keep the filters in the address, so that it can be bookmarked."""
        given = {name: self.choosers.text(name) for name in _CHOSEN}
        given |= {name: str(made.value or "").strip() for name, made in self.fields.items()}
        given["trust"] = self.trust.value
        if given != self.given:
            self.given, self.most = given, _PAGE
            address = self.place.link("timeline", **{name: value for name, value in given.items() if value})
            ui.run_javascript(f"history.replaceState(null, '', {json.dumps(address)})")
            await self.live.refresh()

    def _draw(self, found: Slice) -> None:
        views = entry_views(found.entries, datetime.now(UTC), place=self.place)
        for view, entry in zip(views, found.entries, strict=True):
            # An id may be in several sessions.
            view |= {"key": _key(entry), "where": shown(entry.session), "side": "nobody"}
        self.list.show(entries=views, plain=False, readOnly=self.place.read_only)
        self.sum.text = counted(len(views), "entry") + (", and more" if found.more else "")
        self.more.set_visibility(found.more)
        self.none.clear()
        if not views:
            with self.none:
                if any(self.given.values()):
                    empty("No matching entries", "Remove a filter, or try other words.")
                else:
                    empty("No entries yet", "What your agent adds appears here at once.")

    async def _show_more(self) -> None:
        self.most += _PAGE
        await self.live.refresh()


def _key(entry: Entry) -> str:
    return key_of(entry.session) + key_of(entry.id)


async def build(place: Place) -> None:
    """Draw the page."""
    await TimelinePage(place).build()
