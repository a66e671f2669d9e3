"""The chat page: messages are stored and answered; those that start with # become notes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from nicegui import ui

from keepstone.chat.slash import COMMANDS, Typed, command_of
from keepstone.model import Entry
from keepstone.notes.notes import PROJECT
from keepstone.operations.error_codes import message_of
from keepstone.session import Session
from keepstone.web.answering import Answerer, Talking
from keepstone.web.components import EntryList
from keepstone.web.elements import (
    EXPECTED,
    aside,
    attempt,
    box,
    button,
    confirmed,
    dialog,
    empty,
    failure,
    link,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.past_chats import PastChats
from keepstone.web.phrases import shown
from keepstone.web.selector import Selector
from keepstone.web.site import Place, address
from keepstone.web.views import View, entry_views

_SHOWN = 100
_LEAD = "Ask what your agent remembers. A message that starts with # is saved as a note."
_STREAMED = "answer"
_PACE = 0.1
"""Minimum seconds between updates of a streamed answer."""
_ANSWERING = ThreadPoolExecutor(64, "keepstone-answer")
"""Threads that wait for models. They are separate from the threads that pages share, as an answer takes many
seconds.
"""


class Chat:
    """State of the page: the session, and the answer being streamed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        # The session is created with the first message: see ``_ensure_session``.
        self.session: Session | None = None
        if place.query.get("session"):
            self.session = place.agent.session(place.query["session"])
        self.entries: list[Entry] = []
        self.coming: str | None = None
        self.unstored = ""
        """The last answer, if it was not stored."""

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "chat", "Chat", _LEAD) as head:
            with head:
                self.where = link("", "", "hint")
                link("New chat", self.place.link("chat"), "plain", data_new="")
            with box(classes="beside"):
                self.past = PastChats(self.place, lambda: self.session.id if self.session else None)
                await self.past.build()
                with box(classes="talk"):
                    await self._talk()

    async def _talk(self) -> None:
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
            self.selector = Selector(self.place, self._noted)
            commands = [[f"/{name}", COMMANDS[name].argument, COMMANDS[name].help] for name in _COMMANDS]
            with box(classes="line", data_search="", data_commands=json.dumps(commands)):
                self.input = ui.textarea("Message, or # and a note")
                self.input.props("outlined dense autogrow").classes("wide")
                # Enter sends, and Shift+Enter begins a line: ``exact`` leaves Shift+Enter to the browser, and
                # ``prevent`` keeps Enter from adding a line.
                self.input.on("keydown.enter.exact.prevent", self._send, args=[])
                self.input.on("keydown.esc", self.selector.cancel, args=[])
                self.button = button("Send", self._send, "main")
        if self.place.read_only:
            self.input.props("disable")
            self.button.props.update(disabled=True)

    def _load(self) -> list[Entry]:
        return self.session.entries(limit=_SHOWN, include_superseded=True) if self.session else []

    def _draw(self, entries: list[Entry]) -> None:
        grown = len(entries) > len(self.entries)
        self.entries = entries
        views = entry_views(entries, datetime.now(UTC), place=self.place)
        # The answer is stored before ``_settle`` resets ``coming``. A load between the two steps would show
        # the answer twice.
        is_stored = bool(entries) and entries[-1].data.get("content") == self.coming
        if self.coming is not None and not (self.coming and is_stored):
            views.append(_streamed(self.coming))
        if self.coming is None and self.unstored:
            views.append(_streamed(self.unstored))
        self.list.show(entries=views, plain=True)
        self.none.clear()
        if not views:
            with self.none:
                empty(
                    "No messages yet",
                    "Without a model the answer consists of quotes from memory, so it works offline.",
                )
        if grown or self.coming is not None:
            ui.run_javascript("scrollTo(0, document.body.scrollHeight)")

    async def _send(self) -> None:
        text = (self.input.value or "").strip()
        if not text or self.coming is not None or self.place.read_only:
            return
        if self.selector.is_open:
            tell("Choose first where to save the note, or cancel it")
        # A note without text is refused before the field is emptied, so nothing typed is lost.
        elif not text.strip("# "):
            tell("Write the note behind the #")
        elif (typed := command_of(text)) is not None:
            with attempt():
                self._command(typed)
        else:
            self.input.value = ""
            if not self.selector.submit(text):
                await self._ask(text)

    def _command(self, typed: Typed) -> None:
        """Run a slash command; the command is not stored."""
        known = COMMANDS.get(typed.name)
        if known is None or typed.name not in _COMMANDS:
            raise ValueError(f"unknown command /{typed.name}: /help lists all commands")
        if typed.argument and not known.argument:
            raise ValueError(f"/{typed.name} takes no argument")
        self.input.value = ""
        _COMMANDS[typed.name](self, typed.argument)

    def _go(self, page: str, **query: str) -> None:
        ui.navigate.to(self.place.link(page, **query))

    def _help(self) -> None:
        with dialog("Commands") as window, box(classes="keys"):
            for name in _COMMANDS:
                say("kbd", f"/{name} {COMMANDS[name].argument}".rstrip())
                say("span", COMMANDS[name].help)
        window.open()

    def _switch(self, slug: str) -> None:
        agent = self.place.site.home.agent(slug) if slug else None
        ui.navigate.to(address(agent.slug, "chat") if agent else self.place.link("agents"))

    async def _ask(self, text: str) -> None:
        self.trouble.clear()
        self.coming, self.unstored = "", ""
        self.button.props.update(disabled=True)
        try:
            session = await self._ensure_session()
            await self._stream(self._answerer().answer(self.place.agent, session.id, text))
            await self._settle()
        except EXPECTED as error:
            with self.trouble:
                failure(message_of(error))
            # A refused message was not stored, so it is put back into the field to be sent again.
            self.input.value = text
            await self._settle()

    def _answerer(self) -> Answerer:
        """Return the site's answerer, which asks here before it saves a note from a model."""
        answerer, loop = self.place.site.answerer, asyncio.get_running_loop()

        def ask(text: str, kind: str) -> bool:
            # The model's tool runs in a thread of ``_ANSWERING``, and elements may be drawn on the event loop
            # only.
            answer = asyncio.run_coroutine_threadsafe(self._may_save(text, kind), loop)
            try:
                return answer.result()
            except futures.CancelledError:  # The page was closed.
                return False

        return answerer.asking(ask) if isinstance(answerer, Talking) else answerer

    async def _may_save(self, text: str, kind: str) -> bool:
        if self.list.client.is_deleted:
            return False
        whose = "this project (AGENTS.md)" if kind == PROJECT else "you, in all projects"
        # A thread started this task, which therefore has no slot of the page, so the dialog's parent is set
        # here.
        with self.trouble:
            return await confirmed(
                "Save the model's note?",
                f"For {whose}. It becomes part of every later request: {text}",
                "Save",
            )

    async def _settle(self) -> None:
        said, self.coming = self.coming, None
        last = (await aside(self._load))[-1:]
        if said and not any(entry.data.get("content") == said for entry in last):
            self.unstored = said
        self.button.props.update(disabled=False)
        await self.live.refresh()
        await self._focus()

    async def _ensure_session(self) -> Session:
        """Return the session, created with the first message so that an unused chat leaves none."""
        if self.session is None:
            made: Session = await aside(self.place.agent.new_session)
            self.session = made
            ui.run_javascript(
                f"history.replaceState(null, '', {json.dumps(self.place.link('chat', session=made.id))})"
            )
            self._say_where()
        return self.session

    async def _stream(self, pieces: Iterator[str]) -> None:
        """Show the chunks as they come. If the page is closed, the answer is still received completely."""
        said, drawn = "", 0.0
        loop = asyncio.get_running_loop()
        # Each piece is requested separately: different threads may resume a generator, one after the other,
        # and the event loop draws in between. The default of ``next`` ends this loop, because a StopIteration
        # cannot be raised into a future.
        while (piece := await loop.run_in_executor(_ANSWERING, next, pieces, None)) is not None:
            said += piece
            self.coming = said
            # Draw rarely, as models send many small pieces, and each drawing sends the whole answer.
            if time.monotonic() - drawn > _PACE and not self.list.client.is_deleted:
                # ``aside`` would cancel this task when the page is closed, but the answer must still be
                # received and stored.
                self._draw(await asyncio.to_thread(self._load))
                drawn = time.monotonic()
        if self.list.client.is_deleted:
            raise asyncio.CancelledError("the page was closed")

    def _say_where(self) -> None:
        if self.session is not None:
            self.where.text = "Read it as a session"
            self.where.props.update(href=self.place.link("session", id=self.session.id))

    async def _noted(self, left: str) -> None:
        """Continue after a note; a cancelled note is put back before text that was typed later."""
        self.input.value = "\n".join(filter(None, (left, self.input.value)))
        await self._focus()

    async def _focus(self) -> None:
        self.input.run_method("focus")


def _streamed(text: str) -> View:
    """Return the view of a partial answer."""
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


_COMMANDS: dict[str, Callable[[Chat, str], object]] = {
    "memory": lambda chat, _: chat._go("memory"),  # noqa: SLF001  Of the class above.
    "sessions": lambda chat, _: chat._go("sessions"),  # noqa: SLF001
    "new": lambda chat, _: chat._go("chat"),  # noqa: SLF001
    "recall": lambda chat, words: chat._go("recall", **({"q": words} if words else {})),  # noqa: SLF001
    "context": lambda chat, words: chat._go("context", **({"q": words} if words else {})),  # noqa: SLF001
    "agent": lambda chat, slug: chat._switch(slug),  # noqa: SLF001
    "theme": lambda _, __: ui.run_javascript("keepstoneTheme()"),
    "help": lambda chat, _: chat._help(),  # noqa: SLF001
}
"""Slash commands of the page, with their functions."""


async def build(place: Place) -> None:
    """Draw the page."""
    await Chat(place).build()
