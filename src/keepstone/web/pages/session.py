"""The session page: a session's entries as a conversation, starting at the newest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from nicegui import ui

from keepstone.agent import Agent
from keepstone.errors import EntryNotFoundError
from keepstone.model import Entry, SessionInfo
from keepstone.session import Session
from keepstone.text.display import counted, size
from keepstone.web.components import EntryList
from keepstone.web.details import Details
from keepstone.web.elements import EXPECTED, aside, box, button, empty, link, say
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of, moment, shown
from keepstone.web.site import Place
from keepstone.web.views import entry_views

_PAGE = 50
_REACHES = (10 * _PAGE, 100 * _PAGE, None)
"""Numbers of newest entries in which to search for an entry, in this order; None for all."""
_TYPES = ("decision", "finding", "preference", "message")


_KINDS = ("live", "archived", "deleted")
"""States of entries that can be shown."""


@dataclass(frozen=True, slots=True)
class SessionSlice:
    """The loaded entries of a session."""

    info: SessionInfo | None
    entries: Sequence[Entry]
    total: int


class SessionEntriesPage:
    """State of the page: its position, its filters, and the selected entries."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.session = place.agent.session(place.query.get("id", ""))
        self.target = place.query.get("entry", "")
        self.back = 0
        self.types: tuple[str, ...] = ()
        self.kind = _KINDS[0]
        self.selecting = False
        self.chosen: list[str] = []
        self.views: SessionSlice = SessionSlice(None, (), 0)

    async def build(self) -> None:
        """Draw the page."""
        try:
            summaries = await aside(self.place.agent.session_summaries, [self.session.id])
        except EXPECTED:
            summaries = []  # The list of entries shows the error.
        title = next((summary.title for summary in summaries if summary.title), None)
        with frame(self.place, "sessions", shown(title or self.session.id)) as head:
            if self.place.sees_notes:
                with head:
                    link("Continue", self.place.link("chat", session=self.session.id), "plain")
            self.about = say("p", "", "lead")
            with box(classes="bar-tools"):
                self._filter()
                if not self.place.read_only:
                    self.select = button("Select", self._selecting, "quiet")
                self._steps()
            if not self.place.read_only:
                self._bulk()
            self.live = Live(self._load, self._draw)
            self.list = EntryList()
            self.details = Details(self.place, self.live.refresh)
            self.details.connect(self.list)
            self.list.when("choose", self._pick)
            self.none = box()
            if self.target:
                self.back = await aside(self._place_of, self.target)
            await self.live.start()

    def _filter(self) -> None:
        types = ui.select(["all types", *_TYPES], value="all types")
        types.props("outlined dense options-dense aria-label=Types").classes("choose")
        types.on_value_change(self._choose)
        states = ui.select({kind: kind.capitalize() for kind in _KINDS}, value=self.kind)
        states.props("outlined dense options-dense aria-label=State").classes("choose")
        states.on_value_change(self._choose_kind)

    def _bulk(self) -> None:
        with box(classes="bar-tools bulk") as self.bulk:
            self.picked = say("span", "", "place", role="status")
            for verb, title in (("pin", "Pin"), ("tag", "Tag"), ("delete", "Delete")):
                button(title, partial(self._act_on_picked, verb), "plain")
        self.bulk.set_visibility(False)

    def _selecting(self) -> None:
        self.selecting, self.chosen = not self.selecting, []
        self.select.text = "Done" if self.selecting else "Select"
        self.bulk.set_visibility(self.selecting)
        self._draw(self.views)

    def _pick(self, key: str) -> None:
        self.chosen = (
            [chosen for chosen in self.chosen if chosen != key] if key in self.chosen else [*self.chosen, key]
        )
        self._draw(self.views)

    async def _act_on_picked(self, verb: str) -> None:
        # Change only entries on the current page, even if others were chosen before the page was turned.
        id_of = {key_of(entry.id): entry.id for entry in self.views.entries}
        ids = [id_of[key] for key in self.chosen if key in id_of]
        await self.details.correcting.act_on_many(verb, self.session, ids)
        self.chosen = []
        self._draw(self.views)

    def _steps(self) -> None:
        with box(classes="pager"):
            self.older = button("Older", lambda: self._go(self.back + _PAGE))
            self.newer = button("Newer", lambda: self._go(self.back - _PAGE))
            self.newest = button("Newest", lambda: self._go(0))
            self.where = say("span", "", "place", role="status")

    def _load(self) -> SessionSlice:
        """Read back only to the shown entries, so that a long session costs no more than its page."""
        info = self.session.info()
        if info is None:
            return SessionSlice(None, (), 0)
        if self.kind != _KINDS[0]:
            return self._load_others(info)
        newest = self.session.entries(
            limit=self.back + _PAGE, types=self.types or None, include_superseded=True
        )
        count = max(0, len(newest) - self.back)
        # The number of entries of a type is not known without reading the log, so a filtered list counts only
        # the entries that were read.
        total = self.session.entry_count() if not self.types else len(newest)
        return SessionSlice(info, newest[:count], total)

    def _load_others(self, info: SessionInfo) -> SessionSlice:
        """Read archived or deleted entries, which requires reading the whole log."""
        if self.kind == "archived":
            live = {entry.id for entry in self.session.entries(include_superseded=True)}
            every = self.session.entries(archived=True, include_superseded=True)
            found = [entry for entry in every if entry.id not in live]
        else:
            found = _deleted(self.place.agent, self.session)
        chosen = [entry for entry in found if not self.types or entry.type in self.types]
        end = max(0, len(chosen) - self.back)
        return SessionSlice(info, chosen[max(0, end - _PAGE) : end], len(chosen))

    def _place_of(self, entry_id: str) -> int:
        """Return the offset of the page that shows an entry; 0 if the session does not have it."""
        # Most links lead to new entries, so a few entries are read first and all of them last.
        for limit in _REACHES:
            found = self.session.entries(limit=limit, include_superseded=True)
            for at, entry in enumerate(reversed(found)):
                if entry.id == entry_id:
                    return at // _PAGE * _PAGE
            # With fewer entries than the limit, all were read.
            if limit is None or len(found) < limit:
                break
        return 0

    def _draw(self, found: SessionSlice) -> None:
        self.views = found
        views = entry_views(found.entries, datetime.now(UTC), place=self.place)
        state = "" if self.kind == _KINDS[0] else self.kind
        self.list.show(
            entries=[view | {"state": state} for view in views],
            plain=False,
            readOnly=self.place.read_only,
            selecting=self.selecting,
            chosen=self.chosen,
            target=key_of(self.target) if self.target else "",
        )
        if not self.place.read_only:
            self.picked.text = f"{len(self.chosen)} selected"
        self._say_where(found)
        self.none.clear()
        if not found.entries:
            with self.none:
                self._nothing(found.info)

    def _say_where(self, found: SessionSlice) -> None:
        info, end = found.info, found.total - self.back
        begin = end - len(found.entries)
        changed = found.entries[-1].ts if found.entries and not self.back else (info and info.modified)
        about = f"Last change {moment(changed)}, {size(info.size)}" if info and changed else "Not there"
        self.about.text = f"{shown(self.session.id)} · {about}"
        total = counted(found.total, "entry")
        is_part = found.total > _PAGE and not self.types
        self.where.text = f"{begin + 1:,} to {end:,} of {found.total:,}" if is_part else total
        self.older.props.update(disabled=len(found.entries) < _PAGE or (begin <= 0 and not self.types))
        self.newer.props.update(disabled=not self.back)
        self.newest.props.update(disabled=not self.back)
        for step in (self.older, self.newer, self.newest):
            step.set_visibility(found.total > _PAGE or self.back > 0)

    def _nothing(self, info: SessionInfo | None) -> None:
        if info is None:
            empty(
                "There is no such session",
                "It was deleted or never written. A session is created with its first entry.",
            )
        elif self.kind != _KINDS[0]:
            empty(f"No {self.kind} entries", "Choose another state, or the live entries.")
        elif self.types:
            empty("No entries of this type", "Choose another type, or all of them.")
        else:
            empty("This session is empty", "Entries that your agent adds appear here at once.")

    async def _go(self, back: int) -> None:
        self.back = max(0, back)
        await self.live.refresh()

    async def _choose(self, event: Any) -> None:
        self.types = () if event.value not in _TYPES else (event.value,)
        await self._go(0)

    async def _choose_kind(self, event: Any) -> None:
        self.kind = event.value if event.value in _KINDS else _KINDS[0]
        await self._go(0)


def _deleted(agent: Agent, session: Session) -> list[Entry]:
    """Return the deleted entries that the session's log still has, in their last versions."""
    gone: dict[str, None] = {}
    for line in session.export():
        entry_id = line.get("id")
        if isinstance(entry_id, str):
            if line.get("deleted") is True:
                gone[entry_id] = None
            elif "type" in line:
                # An id may have been restored after its deletion; its last line decides.
                gone.pop(entry_id, None)
    found: list[Entry] = []
    for entry_id in gone:
        # A purge may have removed the entry since the export.
        with suppress(EntryNotFoundError):
            lived = [version for version in agent.history(entry_id, session.id) if not version.deleted]
            found += lived[-1:]
    return sorted(found, key=lambda entry: entry.ts)


async def build(place: Place) -> None:
    """Draw the page."""
    await SessionEntriesPage(place).build()
