"""The page of sessions: open, create, clear, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType

from keepstone.agent import Agent
from keepstone.log.arguments import new_id
from keepstone.session import Session
from keepstone.text.display import counted, one_line
from keepstone.tui import wording
from keepstone.tui.listing import Listing
from keepstone.tui.page import when_sure

_WITH_WORDS = 50
"""Number of sessions, last changed first, that are listed with their last message."""


class SessionsScreen(Listing[str, Session | None]):
    """Lists an agent's sessions; the result is the one to continue with, None for no change.

    If the current session was cleared or deleted, the result is the cleared session or a new one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "New"),
        Binding("c", "clear", "Clear"),
        Binding("d,delete", "delete", "Delete"),
    ]
    heading = "Sessions"
    keys = "↑↓ · Enter open · n new · c clear · d delete · Esc close"
    empty = "No sessions yet."

    def __init__(self, agent: Agent, current: Session) -> None:
        super().__init__()
        self._agent = agent
        self._current = current
        self._changed: Session | None = None

    def rows(self) -> Iterable[tuple[str, str]]:
        """Return the ids of the sessions, last changed first."""
        counts = self._agent.entry_counts()
        for place, info in enumerate(self._agent.sessions()):
            current = info.id == self._current.id
            last = self._last_words(info.id) if place < _WITH_WORDS else ""
            yield info.id, wording.session(info, counts.get(info.id, 0), last, current=current)

    def _last_words(self, session: str) -> str:
        return "".join(entry.text for entry in self._agent.session(session).entries(limit=1))

    def on_option_list_option_selected(self) -> None:
        """Open the highlighted session."""
        chosen = self.chosen
        if chosen is not None:
            self.attempt(lambda: self._leave_for(self._agent.session(chosen)))

    def action_new(self) -> None:
        """Create a session."""
        self._leave_for(self._new())

    def action_clear(self) -> None:
        """Clear the highlighted session after confirmation."""
        question = "Clear session {}? Its {} will be removed for good."
        self.attempt(lambda: self._ask(question, "Yes, clear it", self._clear))

    def action_delete(self) -> None:
        """Delete the highlighted session after confirmation."""
        question = "Delete session {} with its {} for good?"
        self.attempt(lambda: self._ask(question, "Yes, delete it", self._delete))

    def action_close(self) -> None:
        """Close the page; the current session is shown again if it has changed."""
        self.dismiss(self._changed)

    def _ask(self, question: str, yes: str, act: Callable[[Session], str]) -> None:
        if self.chosen is None:
            return
        session = self._agent.session(self.chosen)
        count = counted(session.entry_count(), "entry")
        words = question.format(one_line(session.id), count)
        when_sure(self.app, words, yes, lambda: self.attempt(lambda: self.reload(act(session))))

    def _new(self) -> Session:
        """Return a new session, which is created with its first message."""
        return self._agent.session(new_id())

    def _leave_for(self, session: Session) -> None:
        self.dismiss(session)

    def _clear(self, session: Session) -> str:
        session.clear()
        if session.id == self._current.id:
            self._changed = session
        return f"Cleared {session.id}."

    def _delete(self, session: Session) -> str:
        session.remove()
        if session.id == self._current.id:
            self._changed = self._current = self._new()
        return f"Deleted {session.id}."
