"""The chat: what is written is remembered and answered, and what begins with # becomes a note."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from nicegui import ui

from keepstone.model import Entry
from keepstone.notes.notes import PROJECT
from keepstone.operations.error_codes import message_of
from keepstone.session import Session
from keepstone.web.answering import Answerer, Talking
from keepstone.web.components import EntryList
from keepstone.web.elements import EXPECTED, aside, box, button, confirmed, empty, failure, link
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import shown
from keepstone.web.selector import Selector
from keepstone.web.site import Place
from keepstone.web.views import View, entry_views

_SHOWN = 100
_LEAD = "Ask what your agent remembers. A message that begins with # is kept as a note."
_STREAMED = "answer"
_PACE = 0.1
"""Seconds between two looks at an answer that is coming."""
_ANSWERING = ThreadPoolExecutor(64, "keepstone-answer")
"""Threads that wait for models. The few that all pages share must not: one answer takes many seconds."""


class Chat:
    """The page's state: the session that is talked in, and the answer that is on its way."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.session: Session | None = None
        if place.query.get("session"):
            self.session = place.agent.session(place.query["session"])
        self.entries: list[Entry] = []
        self.coming: str | None = None

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "chat", "Chat", _LEAD) as head:
            with head:
                self.where = link("", "", "hint")
                link("New chat", self.place.link("chat"), "plain", data_new="")
            with box(classes="talk"):
                with box(classes="said", role="log", aria_label="The conversation"):
                    self.live = Live(self._load, self._draw)
                    self.list = EntryList()
                    self.none = box()
                    self.trouble = box()
                self._line()
            self._say_where()
            await self.live.start()

    def _line(self) -> None:
        with box(classes="say"):
            self.selector = Selector(self.place, self._focus)
            with box(classes="line", data_search=""):
                self.input = ui.textarea("Message, or # and a note")
                self.input.props("outlined dense autogrow autofocus").classes("wide")
                self.input.on("keydown.enter.exact.prevent", self._send, args=[])
                self.button = button("Send", self._send, "main")
        if self.place.read_only:
            self.input.props("disable")
            self.button.props.update(disabled=True)

    def _load(self) -> list[Entry]:
        return self.session.entries(limit=_SHOWN) if self.session else []

    def _draw(self, entries: list[Entry]) -> None:
        grown = len(entries) > len(self.entries)
        self.entries = entries
        views = entry_views(entries, datetime.now(UTC))
        is_stored = bool(entries) and entries[-1].data.get("content") == self.coming
        if self.coming is not None and not (self.coming and is_stored):
            views.append(_streamed(self.coming))
        self.list.show(entries=views, versions={}, plain=True)
        self.none.clear()
        if not views:
            with self.none:
                empty(
                    "Nothing said yet",
                    "Without a model the answer is made of quotes from memory, so it works offline.",
                )
        if grown or self.coming is not None:
            ui.run_javascript("scrollTo(0, document.body.scrollHeight)")

    async def _send(self) -> None:
        text = (self.input.value or "").strip()
        if not text or self.coming is not None or self.place.read_only:
            return
        self.input.value = ""
        if not self.selector.submit(text):
            await self._ask(text)

    async def _ask(self, text: str) -> None:
        self.trouble.clear()
        self.coming = ""
        self.button.props.update(disabled=True)
        try:
            session = await self._begun()
            await self._stream(self._answerer().answer(self.place.agent, session.id, text))
            await self._settle()
        except EXPECTED as error:
            with self.trouble:
                failure(message_of(error))
            self.input.value = text
            await self._settle()

    def _answerer(self) -> Answerer:
        """Return who answers here, so that notes of a model are saved only if the person agrees."""
        answerer, loop = self.place.site.answerer, asyncio.get_running_loop()

        def ask(text: str, kind: str) -> bool:
            asked = asyncio.run_coroutine_threadsafe(self._may_save(text, kind), loop)
            try:
                return asked.result()
            except futures.CancelledError:  # The page was closed.
                return False

        return answerer.asking(ask) if isinstance(answerer, Talking) else answerer

    async def _may_save(self, text: str, kind: str) -> bool:
        if self.list.client.is_deleted:
            return False
        whose = "this project (AGENTS.md)" if kind == PROJECT else "you, in all projects"
        with self.trouble:
            return await confirmed(
                "Save the model's note?", f"For {whose}. Every later request follows it: {text}", "Save"
            )

    async def _settle(self) -> None:
        self.coming = None
        self.button.props.update(disabled=False)
        await self.live.refresh()
        await self._focus()

    async def _begun(self) -> Session:
        """Return the session, made with the first message so that a chat nobody began leaves nothing."""
        if self.session is None:
            made: Session = await aside(self.place.agent.new_session)
            self.session = made
            ui.run_javascript(
                f"history.replaceState(null, '', {json.dumps(self.place.link('chat', session=made.id))})"
            )
            self._say_where()
        return self.session

    async def _stream(self, pieces: Iterator[str]) -> None:
        """Show the pieces as they come. An answer whose page was closed is still taken to its end."""
        said, drawn = "", 0.0
        loop = asyncio.get_running_loop()
        while (piece := await loop.run_in_executor(_ANSWERING, next, pieces, None)) is not None:
            said += piece
            self.coming = said
            if time.monotonic() - drawn > _PACE and not self.list.client.is_deleted:
                self._draw(await asyncio.to_thread(self._load))
                drawn = time.monotonic()
        if self.list.client.is_deleted:
            raise asyncio.CancelledError("the page was closed")

    def _say_where(self) -> None:
        if self.session is not None:
            self.where.text = "Read it as a session"
            self.where.props.update(href=self.place.link("session", id=self.session.id))

    async def _focus(self) -> None:
        self.input.run_method("focus")


def _streamed(text: str) -> View:
    """Return the answer as far as it has come."""
    return {
        "key": _STREAMED,
        "id": _STREAMED,
        "type": "answering",
        "tone": "other",
        "who": "Assistant",
        "side": "agent",
        "text": shown(text) or "…",
        "tags": [],
        "time": "",
        "day": "",
    }


async def build(place: Place) -> None:
    """Draw the page."""
    await Chat(place).build()
