"""The chat app and its main screen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import ClassVar, TypeVar

from textual import work
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.theme import Theme
from textual.widgets import Static
from textual.worker import Worker

from keepstone.agent import Agent
from keepstone.chat import Conversation, Delta, ModelChoice
from keepstone.chat.conversation import words_of_turn
from keepstone.errors import KeepstoneError
from keepstone.home import Home
from keepstone.notes.notes import PROJECT, Notes, SaveResult
from keepstone.operations.documents import saved_words
from keepstone.operations.session_labels import session_labels
from keepstone.services.input_manager import InputManager
from keepstone.session import Session
from keepstone.text.brand import ACCENT, ACCENT_ON_DARK, SIGN
from keepstone.text.display import frames_of, one_line
from keepstone.tui import wording
from keepstone.tui.agents import AgentsScreen
from keepstone.tui.commands import COMMANDS, command_of, help_text
from keepstone.tui.completion import Completion
from keepstone.tui.composer import Composer
from keepstone.tui.memory import MemoryScreen
from keepstone.tui.page import Confirm, Page
from keepstone.tui.purge import Forgetting
from keepstone.tui.selector import SelectorScreen
from keepstone.tui.sessions import SessionsScreen
from keepstone.tui.transcript import MarkdownText, PlainText, Transcript, answer_of

logger = logging.getLogger("keepstone.chat")

T = TypeVar("T")

_KEYS = "Enter send · # note · / commands · ↑ earlier · Ctrl+Q leave"
_KEYS_WHILE_ANSWERING = "An answer is coming … · Esc stop · Ctrl+Q leave"
_POLL = 0.1
"""Seconds between checks, while a question is open, whether the answer was stopped."""
_LEAVE = "Press Ctrl+C again to leave"
_LEAVE_SECONDS = 2.0
"""Seconds within which a second Ctrl+C leaves."""
DARK, LIGHT = "keepstone-dark", "keepstone-light"
_THEMES = (
    Theme(DARK, primary=ACCENT, secondary=ACCENT_ON_DARK, accent=ACCENT_ON_DARK),
    Theme(LIGHT, primary=ACCENT, secondary=ACCENT, accent=ACCENT, dark=False),
)


class ChatApp(App[str]):
    """A conversation with one agent.

    The app returns the id of the last session, None if that session was never created.

    Examples:
        >>> from keepstone.chat.choose_model import choose
        >>> app = ChatApp(home, agent, Notes("."), choose("offline"))  # app.run() shows it
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "keepstone chat"
    AUTO_FOCUS = "#composer"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop the answer"),
        # With priority, these keys also work in the input field, which has its own bindings for them.
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+q", "leave", "Leave", priority=True),
        Binding("pageup", "scroll(-1)", priority=True),
        Binding("pagedown", "scroll(1)", priority=True),
    ]

    def __init__(
        self, home: Home, agent: Agent, notes: Notes, choice: ModelChoice, session: Session | None = None
    ) -> None:
        super().__init__()
        for theme in _THEMES:
            self.register_theme(theme)
        self.theme = DARK
        self.conversation = Conversation(agent, notes, choice.model, session, ask=self._may_save)
        self._home = home
        self._notes = notes
        self._choice = choice
        self._input = InputManager(notes)
        self._answering: Worker[None] | None = None
        self._growing: PlainText | MarkdownText | None = None
        self._leaving = False

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield Static("", id="place")
        yield Transcript(id="transcript")
        yield Completion(id="completion")
        yield Composer(id="composer")
        yield Static(Content(_KEYS), id="keys", classes="keys")

    def on_mount(self) -> None:
        """Show the session's messages."""
        self.begin(self.conversation)
        if not self.conversation.turns(1):
            self._say("notice", wording.WELCOME)
        self._say("notice", wording.model(self._choice))

    def on_unmount(self) -> None:
        """Stop the answer, as the terminal is closed."""
        self.conversation.stop()

    def begin(self, conversation: Conversation) -> None:
        """Show another conversation."""
        self.conversation = conversation
        turns = conversation.turns()
        self.query_one(Transcript).begin(turns)
        questions = (words_of_turn(turn) for turn in turns if turn.data.get("role") == "user")
        self.query_one(Composer).begin(questions)
        self._show_place()

    def _show_place(self) -> None:
        """Show the agent, the model and the session's title."""
        talk = self.conversation
        found = talk.agent.session_summaries([talk.session.id])
        title = next((summary.title for summary in found if summary.title), "new session")
        line = " · ".join((f"{SIGN} keepstone", talk.agent.slug, talk.model.name, title))
        self.query_one("#place", Static).update(Content(one_line(line)))

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Handle a line of input: a note, a command or a message."""
        text = event.text
        if not text.strip():
            return
        with self._attempt():
            if self._take(text):
                self.query_one(Composer).remember(text)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Show an error raised in the block, in any thread; the app continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  An embedder, a reranker or a model may raise anything.
            # This may be any thread, but only the app's own thread may change the screen.
            self.call_later(self._show_error, error)

    def _show_error(self, error: Exception) -> None:
        if isinstance(error, KeepstoneError | ValueError):
            self._say("error", str(error))
            return
        # Log only the type and the frames: the error's message may quote memory.
        logger.error("unexpected %s in the chat at\n%s", type(error).__name__, frames_of(error))
        self._say("error", f"Unexpected error ({type(error).__name__}). Your messages are stored.")

    def _aside(self, call: Callable[[], T], show: Callable[[T], object]) -> None:
        """Call the library in a thread, so that the screen stays responsive, then show the result."""

        async def called() -> None:
            with self._attempt():
                # A coroutine, not a threaded worker, so that ``show`` runs in the app's own thread.
                show(await asyncio.to_thread(call))

        self.run_worker(called())

    def _may_save(self, text: str, kind: str) -> bool:
        """Ask the user to confirm a note from the model; called in the answer's thread."""
        question = Confirm(wording.proposed(text, kind), *wording.SAVE_IT)
        answers = SimpleQueue[bool | None]()
        # Only the app's own thread may change the screen.
        self.call_from_thread(self.push_screen, question, answers.put)
        # Interrupt the wait to check whether the answer, and so the question, was stopped.
        while not self.conversation.stopped:
            with suppress(Empty):
                return bool(answers.get(timeout=_POLL))
        self.call_from_thread(self._close, question)  # type: ignore[arg-type]  # It may be a coroutine.
        return False

    async def _close(self, question: Confirm) -> None:
        if question.is_current:
            await question.dismiss(result=False)

    def _take(self, text: str) -> bool:
        """Handle a line; False if it must stay in the input field."""
        if not text.strip("# \n"):
            raise ValueError("write the note behind the #")
        if self._input.submit(text) == "selecting":
            self.push_screen(SelectorScreen(self._input), lambda result: self._noted(text, result))
            return True
        typed = command_of(text)
        if typed is None:
            return self._send(text)
        command = COMMANDS.get(typed.name)
        if command is None:
            raise ValueError(f"unknown command /{typed.name}: /help lists all commands")
        if command.waits and self._is_busy():
            return False
        if typed.argument and not command.argument:
            raise ValueError(f"/{command.name} takes no argument")
        act: Callable[[str], None] = getattr(self, f"_do_{command.name}")
        act(typed.argument)
        return True

    def _noted(self, text: str, result: SaveResult | None) -> None:
        if result is None:
            self.query_one(Composer).restore(text)
            return
        self._say("notice", saved_words(result))
        if result.entry.type == PROJECT:
            with self._attempt():
                if words := self._notes.warning():
                    self._say("error", f"{words}. Delete notes you no longer need in /memory.")

    def _send(self, text: str) -> bool:
        if self._is_busy():
            return False
        deltas = self.conversation.send(text)
        self._say("user", text)
        self._answering = self._show_answer(deltas)
        return True

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.is_finished

    def on_worker_state_changed(self) -> None:
        """Show the keys that work while an answer is coming."""
        self.query_one("#keys", Static).update(
            Content(_KEYS_WHILE_ANSWERING if self._is_answering else _KEYS)
        )

    def _is_busy(self) -> bool:
        if self._is_answering:
            self._say("notice", "An answer is still coming: wait, or press Esc to stop it.")
        return self._is_answering

    @work(thread=True)
    def _show_answer(self, deltas: Iterator[Delta]) -> None:
        with self._attempt():
            try:
                for delta in deltas:
                    self.call_from_thread(self._show, delta)  # type: ignore[arg-type]  # It may be a coroutine.
            finally:
                self.call_from_thread(self._end_text)  # type: ignore[arg-type]  # The same.

    async def _show(self, delta: Delta) -> None:
        """Show a delta of the answer."""
        if delta.kind == "text":
            if self._growing is None:
                self._growing = answer_of(self.conversation.model.name)
                await self.query_one(Transcript).mount(self._growing)
            await self._growing.grow(delta.text)
            # The height of the longer answer is known only after the next drawing.
            self.call_after_refresh(self.query_one(Transcript).keep_beginning, self._growing)
            return
        await self._end_text()
        self._say(delta.kind, wording.tool(delta.text) if delta.kind == "tool" else delta.text)

    async def _end_text(self) -> None:
        if self._growing is not None:
            await self._growing.end()
            self._growing = None
            self._show_place()

    def _say(self, kind: str, text: str) -> None:
        self.query_one(Transcript).say(kind, text)

    def action_stop(self) -> None:
        """Stop the current answer and keep what was received."""
        if self._is_answering:
            self.conversation.stop()
            self._say("notice", "Stopped. The partial answer is kept; /retry asks again.")

    def action_interrupt(self) -> None:
        """Stop the current answer, or copy the selection; without either, leave at the second key press."""
        if self._is_answering:
            self.action_stop()
        elif self.screen.get_selected_text() or getattr(self.focused, "selected_text", ""):
            # Textual then runs another binding of the key, which copies the selection.
            raise SkipAction
        elif self._leaving:
            self.run_worker(self.action_leave())
        else:
            self._ask_to_leave()

    def _ask_to_leave(self) -> None:
        """Show briefly that a second Ctrl+C leaves, in the line of keys: a toast would cover the input."""
        line = self.screen.query_one(".keys", Static)
        keys, self._leaving = line.content, True

        def go_on() -> None:
            self._leaving = False
            if line.is_attached:
                line.update(keys)

        line.update(Content(_LEAVE))
        self.set_timer(_LEAVE_SECONDS, go_on)

    def action_scroll(self, pages: int) -> None:
        """Scroll the topmost screen."""
        shown = self.screen.query("#transcript, #text, OptionList").first()
        shown.scroll_page_down() if pages > 0 else shown.scroll_page_up()

    async def action_leave(self) -> None:
        """Leave; a partial answer is kept."""
        self.conversation.stop()
        if self._answering is not None:
            # The thread stores the partial answer at its end; leaving earlier would lose that answer.
            await self.workers.wait_for_complete([self._answering])
        kept = self.conversation.close()
        self.exit(self.conversation.session.id if kept else None)

    def _do_memory(self, _: str) -> None:
        self.push_screen(MemoryScreen(self._notes))

    def _do_sessions(self, _: str) -> None:
        def opened(session: Session | None) -> None:
            self.conversation.sent = None  # /context shows this prompt; it may quote deleted entries.
            if session is not None:
                with self._attempt():
                    self._continue(self.conversation.agent, session)

        self.push_screen(SessionsScreen(self.conversation.agent, self.conversation.session), opened)

    def _do_new(self, _: str) -> None:
        self._continue(self.conversation.agent, None)

    def _do_recall(self, question: str) -> None:
        _require(question, "/recall which database did we choose?")
        agent, title = self.conversation.agent, f"Recall: {one_line(question)}"

        def found() -> str:
            hits = agent.recall(question)
            return wording.hits(hits, session_labels(agent, [hit.entry.session for hit in hits]))

        self._aside(found, lambda words: self.push_screen(Page(title, words)))

    def _do_forget(self, question: str) -> None:
        page = Forgetting(self.conversation.agent, _require(question, "/forget my old address"))
        self._aside(page.search, lambda _: self.push_screen(page, self._after_purge))

    def _after_purge(self, purged: bool | None) -> None:  # noqa: FBT001  The page's result.
        """Remove purged entries from the screen and from the prompt that /context shows."""
        if purged:
            self.conversation.sent = None
            self.begin(self.conversation)

    def _do_agent(self, slug: str) -> None:
        if slug:
            self._continue(self._home.agent(slug), None)
            return

        def chosen(slug: str | None) -> None:
            if slug is not None:
                with self._attempt():
                    self._continue(self._home.agent(slug), None)

        self.push_screen(AgentsScreen(self._home, self.conversation.agent.slug), chosen)

    def _do_context(self, question: str) -> None:
        sent = None if question else self.conversation.sent
        title = "System prompt of the last request" if sent else "System prompt of the next request"
        talk = self.conversation
        self._aside(
            lambda: sent or talk.preview(question or None),
            lambda prompt: self.push_screen(Page(title, wording.prompt(prompt))),
        )

    def _do_retry(self, _: str) -> None:
        self._answering = self._show_answer(self.conversation.retry())

    def _do_theme(self, _: str) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def _do_help(self, _: str) -> None:
        self.push_screen(Page("Help", help_text()))

    def _do_quit(self, _: str) -> None:
        self.run_worker(self.action_leave())

    def _continue(self, agent: Agent, session: Session | None) -> None:
        """Continue with another agent or session."""
        if session is None or session.id != self.conversation.session.id:
            self.conversation.close()
        self.begin(Conversation(agent, self._notes, self._choice.model, session, ask=self._may_save))
        self._say("notice", f"{agent.slug}, session {self.conversation.session.id}")


def _require(argument: str, example: str) -> str:
    if not argument:
        raise ValueError(f"an argument is missing: {example}")
    return argument
