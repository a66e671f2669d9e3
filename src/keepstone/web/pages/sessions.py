"""The sessions page: search, sort, open, create, clear and delete an agent's sessions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from nicegui import ui

from keepstone.model import SessionInfo
from keepstone.session import Session
from keepstone.store.protocol import SessionCheck
from keepstone.text.display import counted, size
from keepstone.web.components import SessionList
from keepstone.web.elements import (
    StalePageError,
    aside,
    asked,
    attempt,
    box,
    button,
    confirmed,
    empty,
    field,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of
from keepstone.web.site import Place
from keepstone.web.views import session_view

_PAGE = 50
_FIRST_ORDER = {"id": False, "modified": True, "size": True}
"""Whether a column is first sorted in descending order."""


class Act(Protocol):
    """Clears or removes a session, and tells whether it existed."""

    def __call__(self, session: Session, /, *, check: SessionCheck) -> bool:
        """Do it if ``check``, called inside the session's lock, does not raise."""


class SessionsPage:
    """State of the page: all sessions as last loaded, and which of them are shown."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.found: Sequence[SessionInfo] = ()
        self.sort, self.descending, self.at, self.wanted = "modified", True, 0, ""

    async def build(self) -> None:
        """Draw the page."""
        with frame(
            self.place, "sessions", "Sessions", "What was said and decided, one log for each session."
        ) as head:
            with head:
                self._tools()
            with box(classes="bar-tools", data_search=""):
                search = field("Search sessions").props("clearable type=search")
                search.on_value_change(lambda event: self._search(event.value or ""))
            self.live = Live(self._load, lambda loaded: self._draw(loaded[0]))
            self.list = SessionList()
            self.list.when("sort", self._sort)
            self.list.when("clear", self._clear)
            self.list.when("remove", self._remove)
            self.none = box()
            self._pager()
            await self.live.start()

    def _tools(self) -> None:
        if not self.place.read_only:
            button("Open by id", self._open, "plain")
            button("New session", self._new, "main", data_new="")

    def _pager(self) -> None:
        with box(classes="pager") as self.pager:
            self.back = button("Previous", lambda: self._turn(-1))
            self.where = say("span", "", "place", role="status")
            self.on = button("Next", lambda: self._turn(1))

    def _load(self) -> tuple[Sequence[SessionInfo], int]:
        """Return the sessions, and the minute, so that relative times are redrawn."""
        return self.place.agent.sessions(), int(time.time() // 60)

    def _draw(self, found: Sequence[SessionInfo]) -> None:
        self.found = found
        chosen = self._chosen()
        last = max(0, (len(chosen) - 1) // _PAGE)
        self.at = min(self.at, last)
        now, begin = datetime.now(UTC), self.at * _PAGE
        rows = [session_view(info, self.place, now) for info in chosen[begin : begin + _PAGE]]
        self.list.show(rows=rows, sort=self.sort, descending=self.descending, readOnly=self.place.read_only)
        self.list.set_visibility(bool(rows))
        self._say_where(chosen, begin, len(rows), last)

    def _chosen(self) -> list[SessionInfo]:
        chosen = [info for info in self.found if self.wanted in info.id.casefold()]
        return sorted(chosen, key=lambda info: (getattr(info, self.sort), info.id), reverse=self.descending)

    def _say_where(self, chosen: Sequence[SessionInfo], begin: int, count: int, last: int) -> None:
        total = size(sum(info.size for info in chosen))
        words = f"{begin + 1:,} to {begin + count:,} of {counted(len(chosen), 'session')}, {total}"
        self.where.text = words if last else f"{counted(len(chosen), 'session')}, {total}"
        self.back.props.update(disabled=self.at == 0)
        self.on.props.update(disabled=self.at == last)
        for one in (self.back, self.on):
            one.set_visibility(last > 0)
        self.pager.set_visibility(count > 0)
        self.none.clear()
        if not count:
            with self.none:
                self._nothing()

    def _nothing(self) -> None:
        if self.found:
            empty("No matching session", "Search for a part of the id, or clear the search.")
        else:
            empty("No sessions yet", "Start a new session, or let your agent write its first entry.")

    def _search(self, words: str) -> None:
        self.wanted, self.at = words.strip().casefold(), 0
        self._draw(self.found)

    def _sort(self, column: str) -> None:
        if column not in _FIRST_ORDER:
            return
        self.descending = not self.descending if column == self.sort else _FIRST_ORDER[column]
        self.sort, self.at = column, 0
        self._draw(self.found)

    def _turn(self, step: int) -> None:
        self.at = max(0, self.at + step)
        self._draw(self.found)

    async def _new(self) -> None:
        with attempt():
            session = await aside(self.place.agent.new_session)
            ui.navigate.to(self.place.link("session", id=session.id))

    async def _open(self) -> None:
        name = await asked("Open a session by its id", "Session id", "Open")
        with attempt():
            if name:
                self.place.agent.session(name)
                ui.navigate.to(self.place.link("session", id=name))

    async def _clear(self, key: str) -> None:
        words = "All entries of “{}” are removed, archived ones too. The session stays, empty."
        await self._empty(key, Session.clear, "Clear", words, "Cleared “{}”")

    async def _remove(self, key: str) -> None:
        words = "Every byte of “{}” is removed: log, archive and index. This cannot be undone."
        await self._empty(key, Session.remove, "Delete", words, "Deleted “{}”")

    async def _empty(self, key: str, act: Act, verb: str, words: str, done: str) -> None:
        name = next((info.id for info in self.found if key_of(info.id) == key), None)
        if name is None:
            tell("This session no longer exists")
            return
        session = self.place.agent.session(name)
        title, question = f"{verb} this session?", words.format(name)
        with attempt():
            expected = await aside(session.info)
            while await confirmed(title, question, verb) and not self.place.read_only:
                existed = await aside(_empty_expected, act, session, expected)
                if existed is not None:
                    tell(done.format(name) if existed else f"“{name}” no longer exists")
                    break
                expected = await aside(session.info)
                question = f"“{name}” has changed. {words.format(name)}"
        await self.live.refresh()


def _empty_expected(act: Act, session: Session, expected: SessionInfo | None) -> bool | None:
    """Empty a session and tell whether it existed; None if it has changed and was left as it is."""

    def check(info: SessionInfo) -> None:
        if info != expected:
            raise StalePageError

    try:
        return act(session, check=check)
    except StalePageError:
        return None


async def build(place: Place) -> None:
    """Draw the page."""
    await SessionsPage(place).build()
