"""The sessions page: search, sort, open, create, clear and delete an agent's sessions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from nicegui import ui

from keepstone.model import SessionInfo, SessionSummary
from keepstone.operations.agent_moves import move_session
from keepstone.session import Session
from keepstone.store.protocol import SessionCheck
from keepstone.text.display import counted, size
from keepstone.web.agent_menu import pick_agent
from keepstone.web.components import SessionList
from keepstone.web.elements import (
    StalePageError,
    answer_of,
    aside,
    asked,
    attempt,
    box,
    button,
    confirmed,
    dialog,
    empty,
    field,
    say,
    tell,
    undoing,
)
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of
from keepstone.web.site import Place, address
from keepstone.web.views import session_view
from keepstone.web.welcome import welcome

_PAGE = 50
_FIRST_ORDER = {"id": False, "entries": True, "modified": True, "size": True}
"""Whether a column is first sorted in descending order."""


class Act(Protocol):
    """Clears or removes a session, and returns whether it existed."""

    def __call__(self, session: Session, /, *, check: SessionCheck) -> bool:
        """Act on the session if ``check``, called inside its lock, does not raise."""


_SHOWN = {"all": "All", "chats": "Chats", "sessions": "Sessions"}
"""Kinds of sessions to show; chats are sessions that a person began in a chat of keepstone."""
_FOUND = 200
"""Maximum number of hits whose sessions a search lists."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The sessions that pass the search, in order, and the rows of the page."""

    total: int
    chosen: Sequence[SessionInfo]
    rows: Sequence[tuple[SessionInfo, SessionSummary | None]]
    minute: int
    """The minute of loading; a new minute makes the page draw relative times again."""
    in_empty_home: bool = False
    """Whether the home has no agents; False for readers who may not see all of them."""


class SessionsPage:
    """State of the page: all sessions as last loaded, and which of them are shown."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.loaded = Loaded(0, (), (), 0)
        self.sort, self.descending, self.at, self.wanted = "modified", True, 0, ""
        self.kind = place.query.get("show", "all")

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
                self._kinds()
            self.live = Live(self._load, self._draw)
            self.list = SessionList()
            self.list.when("sort", self._sort)
            self.list.when("rename", self._rename)
            self.list.when("move", self._move)
            self.list.when("clear", self._clear)
            self.list.when("remove", self._remove)
            self.none = box()
            self._pager()
            await self.live.start()

    def _kinds(self) -> None:
        with box(classes="group", role="group", aria_label="Shown"):
            self.kinds = {
                kind: button(title, partial(self._choose, kind), "quiet") for kind, title in _SHOWN.items()
            }
        self._press()

    def _press(self) -> None:
        for kind, chooser in self.kinds.items():
            chooser.props.update({"aria-pressed": str(kind == self.kind).lower()})

    async def _choose(self, kind: str) -> None:
        self.kind, self.at = kind, 0
        self._press()
        await self.live.refresh()

    def _tools(self) -> None:
        if not self.place.read_only:
            button("Open by id", self._open, "plain")
            button("New session", self._new, "main", data_new="")

    def _pager(self) -> None:
        with box(classes="pager") as self.pager:
            self.back = button("Previous", lambda: self._turn(-1))
            self.where = say("span", "", "place", role="status")
            self.on = button("Next", lambda: self._turn(1))

    def _load(self) -> Loaded:
        """Return the sessions that pass the search, with titles and previews for one page of them."""
        agent = self.place.agent
        infos = agent.sessions()
        # Sorting needs the values of all sessions, but only the sessions on the page need texts, which are
        # read from the logs.
        known = {summary.id: summary for summary in agent.session_summaries(texts=False)}
        chosen = self._chosen(self._of_kind(infos), known)
        # Sessions may have been removed since the page was turned.
        self.at = min(self.at, max(0, (len(chosen) - 1) // _PAGE))
        page = chosen[self.at * _PAGE : (self.at + 1) * _PAGE]
        texts = {summary.id: summary for summary in agent.session_summaries([info.id for info in page])}
        rows = [(info, texts.get(info.id)) for info in page]
        in_empty_home = not infos and self.place.is_home_empty()
        return Loaded(len(infos), chosen, rows, int(time.time() // 60), in_empty_home)

    def _of_kind(self, infos: Sequence[SessionInfo]) -> Sequence[SessionInfo]:
        """Return only chats or only other sessions, which requires reading the beginning of each."""
        if self.kind not in ("chats", "sessions"):
            return infos
        chats = {summary.id for summary in self.place.agent.session_summaries() if summary.is_chat}
        return [info for info in infos if (info.id in chats) == (self.kind == "chats")]

    def _draw(self, loaded: Loaded) -> None:
        self.loaded, chosen = loaded, loaded.chosen
        last = max(0, (len(chosen) - 1) // _PAGE)
        now, begin = datetime.now(UTC), self.at * _PAGE
        rows = [session_view(info, self.place, now, summary) for info, summary in loaded.rows]
        self.list.show(rows=rows, sort=self.sort, descending=self.descending, readOnly=self.place.read_only)
        self.list.set_visibility(bool(rows))
        self._say_where(chosen, begin, len(rows), last)

    def _chosen(self, infos: Sequence[SessionInfo], known: Mapping[str, SessionSummary]) -> list[SessionInfo]:
        """Return the sessions whose id, title or entries have the words of the search, in order."""
        chosen = list(infos)
        if self.wanted:
            said = {hit.entry.session for hit in self.place.agent.recall(self.wanted, limit=_FOUND)}
            titles = {summary.id: (summary.title or "").casefold() for summary in known.values()}
            chosen = [
                info
                for info in infos
                if self.wanted in info.id.casefold()
                or self.wanted in titles.get(info.id, "")
                or info.id in said
            ]

        def key(info: SessionInfo) -> tuple[Any, str]:
            summary = known.get(info.id)
            changed, entries = (info.modified, 0) if summary is None else (summary.changed, summary.entries)
            title = (summary.title if summary else None) or info.id
            return {"id": title, "modified": changed, "entries": entries, "size": info.size}[
                self.sort
            ], info.id

        return sorted(chosen, key=key, reverse=self.descending)

    def _say_where(self, chosen: Sequence[SessionInfo], begin: int, count: int, last: int) -> None:
        total = size(sum(info.size for info in chosen))
        words = f"{begin + 1:,} to {begin + count:,} of {counted(len(chosen), 'session')}, {total}"
        self.where.text = words if last else f"{counted(len(chosen), 'session')}, {total}"
        self.back.props.update(disabled=self.at == 0)
        self.on.props.update(disabled=self.at == last)
        for control in (self.back, self.on):
            control.set_visibility(last > 0)
        self.pager.set_visibility(count > 0)
        self.none.clear()
        if not count:
            with self.none:
                self._nothing()

    def _nothing(self) -> None:
        if self.kind == "chats" and not self.wanted:
            empty("No chats here", "A question that you ask in a chat begins one: New chat.")
        elif self.loaded.total:
            empty("No matching session", "Search for words of its title or its entries, or clear the search.")
        elif self.loaded.in_empty_home:
            welcome(self.place)
        else:
            empty("No sessions yet", "Start a new session, or let your agent write its first entry.")

    async def _search(self, words: str) -> None:
        self.wanted, self.at = words.strip().casefold(), 0
        await self.live.refresh()

    async def _sort(self, column: str) -> None:
        # Check the column, as it comes from the browser.
        if column not in _FIRST_ORDER:
            return
        self.descending = not self.descending if column == self.sort else _FIRST_ORDER[column]
        self.sort, self.at = column, 0
        await self.live.refresh()

    async def _turn(self, step: int) -> None:
        self.at = max(0, self.at + step)
        await self.live.refresh()

    async def _new(self) -> None:
        with dialog("New session") as question:
            line = field("Title, if you like").props("autofocus")
            line.on("keydown.enter", lambda: question.submit(line.value or ""), args=[])
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                button("Create", lambda: question.submit(line.value or ""), "main")
        title = await answer_of(question)
        if title is None or self.place.read_only:
            return
        with attempt():
            session = await aside(self.place.agent.new_session, title=str(title).strip() or None)
            ui.navigate.to(self.place.link("session", id=session.id))

    async def _rename(self, key: str) -> None:
        """Ask for another title; the id, and thus every link, stays the same."""
        name = self._named(key)
        if name is None:
            return
        session = self.place.agent.session(name)
        (summary,) = await aside(self.place.agent.session_summaries, [name])
        with dialog("Rename this session") as question:
            line = field("Title", value=summary.title or "").props("autofocus")
            line.on("keydown.enter", lambda: question.submit(line.value or ""), args=[])
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                button("Rename", lambda: question.submit(line.value or ""), "main")
        title = await answer_of(question)
        if title is not None and not self.place.read_only:
            with attempt():
                await aside(session.set_title, str(title).strip() or None)
                tell("Renamed", undoing(partial(self._retitle, session, summary.title), self.live.refresh))
        await self.live.refresh()

    def _retitle(self, session: Session, before: str | None) -> None:
        """Restore the title that was shown: the session's own, or that of its first message."""
        # A session without a title of its own is shown with that of its first message. If that title was
        # shown, no title is set.
        session.set_title(None)
        if self.place.agent.session_summaries([session.id])[0].title != before:
            session.set_title(before)

    async def _move(self, key: str) -> None:
        """Ask for another agent, and move a session to it."""
        name = self._named(key)
        if name is None:
            return
        agent = self.place.agent
        words = (
            f"“{name}” leaves this agent with its entries as they are now; earlier versions and deleted "
            "entries are not moved."
        )
        with attempt():
            slug = await pick_agent(self.place, "Move this session to another agent", words)
            if slug is not None:
                target = self.place.other(slug)
                moved = await aside(move_session, agent.session(name), agent, target)
                undo = undoing(partial(move_session, moved, target, agent), self.live.refresh)
                tell(f"Moved to {slug}.", undo, [("Show it there", address(slug, "session", id=name))])
        await self.live.refresh()

    def _named(self, key: str) -> str | None:
        found = (info.id for info in self.loaded.chosen if key_of(info.id) == key)
        name = next(found, None)
        if name is None:
            tell("This session no longer exists")
        return name

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
        name = self._named(key)
        if name is None:
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
    """Empty a session and return whether it existed; None if it has changed and was left as it is."""

    def check(info: SessionInfo) -> None:
        if info != expected:
            raise StalePageError

    try:
        # The check runs inside the session's lock, so that an entry added during the question is not lost
        # unnoticed.
        return act(session, check=check)
    except StalePageError:
        return None


async def build(place: Place) -> None:
    """Draw the page."""
    await SessionsPage(place).build()
