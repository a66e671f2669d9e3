"""The session page: a session's entries as a conversation, starting at the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from keepstone.model import Entry, SessionInfo
from keepstone.text.display import counted, size
from keepstone.web.components import EntryList
from keepstone.web.elements import aside, attempt, box, button, empty, link, say
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of, moment, shown
from keepstone.web.site import Place
from keepstone.web.views import entry_views, version_views

_PAGE = 50
_REACHES = (10 * _PAGE, 100 * _PAGE, None)
"""Numbers of newest entries in which to search for an entry, one after the other."""
_TYPES = ("decision", "finding", "preference", "message")


@dataclass(frozen=True, slots=True)
class SessionSlice:
    """The loaded entries of a session."""

    info: SessionInfo | None
    entries: Sequence[Entry]
    total: int


class SessionEntriesPage:
    """State of the page: its position, and what is expanded."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.session = place.agent.session(place.query.get("id", ""))
        self.target = place.query.get("entry", "")
        self.back = 0
        self.types: tuple[str, ...] = ()
        self.whole: frozenset[str] = frozenset()
        self.versions: dict[str, Any] = {}
        self.views: SessionSlice = SessionSlice(None, (), 0)

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "sessions", shown(self.session.id)) as head:
            if self.place.sees_notes:
                with head:
                    link("Continue in chat", self.place.link("chat", session=self.session.id), "plain")
            self.about = say("p", "", "lead")
            with box(classes="bar-tools"):
                self._filter()
                self._steps()
            self.live = Live(self._load, self._draw)
            self.list = EntryList()
            self.list.when("history", self._history)
            self.list.when("whole", self._whole)
            self.none = box()
            if self.target:
                self.back = await aside(self._place_of, self.target)
            await self.live.start()

    def _filter(self) -> None:
        chosen = ui.select(["all types", *_TYPES], value="all types")
        chosen.props("outlined dense options-dense aria-label=Types").classes("choose")
        chosen.on_value_change(self._choose)

    def _steps(self) -> None:
        with box(classes="pager"):
            self.older = button("Older", lambda: self._go(self.back + _PAGE))
            self.newer = button("Newer", lambda: self._go(self.back - _PAGE))
            self.newest = button("Newest", lambda: self._go(0))
            self.where = say("span", "", "place", role="status")

    def _load(self) -> SessionSlice:
        """Read only as far back as shown, so that a long session costs no more than its page."""
        info = self.session.info()
        if info is None:
            return SessionSlice(None, (), 0)
        newest = self.session.entries(limit=self.back + _PAGE, types=self.types or None)
        count = max(0, len(newest) - self.back)
        total = self.session.entry_count() if not self.types else len(newest)
        return SessionSlice(info, newest[:count], total)

    def _place_of(self, entry_id: str) -> int:
        """Return the offset of the page that shows an entry; 0 if the session does not have it."""
        for limit in _REACHES:
            found = self.session.entries(limit=limit)
            for at, entry in enumerate(reversed(found)):
                if entry.id == entry_id:
                    return at // _PAGE * _PAGE
            if limit is None or len(found) < limit:
                break
        return 0

    def _draw(self, found: SessionSlice) -> None:
        self.views = found
        self.list.show(
            entries=entry_views(found.entries, datetime.now(UTC), self.whole),
            versions=self.versions,
            plain=False,
            target=key_of(self.target) if self.target else "",
        )
        self._say_where(found)
        self.none.clear()
        if not found.entries:
            with self.none:
                self._nothing(found.info)

    def _say_where(self, found: SessionSlice) -> None:
        info, end = found.info, found.total - self.back
        begin = end - len(found.entries)
        self.about.text = f"Last change {moment(info.modified)}, {size(info.size)}" if info else "Not there"
        total = counted(found.total, "entry")
        self.where.text = total if self.types or not found.total else f"{begin + 1:,} to {end:,} of {total}"
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

    async def _history(self, key: str) -> None:
        if key in self.versions:
            self.versions = {other: value for other, value in self.versions.items() if other != key}
        elif (entry_id := self._id_of(key)) is not None:
            with attempt():
                history = await aside(self.place.agent.history, entry_id, self.session.id)
                self.versions = self.versions | {key: version_views(history)}
        self._draw(self.views)

    def _whole(self, key: str) -> None:
        entry_id = self._id_of(key)
        self.whole |= set() if entry_id is None else {entry_id}
        self._draw(self.views)

    def _id_of(self, key: str) -> str | None:
        """Return the id of the entry with this key; None if it is no longer shown."""
        return next((entry.id for entry in self.views.entries if key_of(entry.id) == key), None)


async def build(place: Place) -> None:
    """Draw the page."""
    await SessionEntriesPage(place).build()
