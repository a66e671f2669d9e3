"""The page of sessions: open, begin, clear, delete."""

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
"""So many sessions, those changed last, are listed with their last words."""


class SessionsScreen(Listing[str, Session | None]):
    """Lists an agent's sessions; gives the one to go on with, None to go on as before.

    A session that was cleared or deleted while it is the one on the screen ends the conversation
    there: the page then gives it back cleared, or a new one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "New"),
        Binding("c", "clear", "Clear"),
        Binding("d,delete", "delete", "Delete"),
    ]
    heading = "Sessions"
    keys = "↑↓ · Enter open · n new · c clear · d delete · Esc close"
    empty = "No session yet."

    def __init__(self, agent: Agent, current: Session) -> None:
        super().__init__()
        self._agent = agent
        self._current = current
        self._changed: Session | None = None

    def rows(self) -> Iterable[tuple[str, str]]:
        """Return the ids of the sessions, the one changed last first."""
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
        """Begin a new session."""
        self._leave_for(self._new())

    def action_clear(self) -> None:
        """Empty the highlighted session, after a question."""
        question = "Clear session {}? Its {} will be gone for good."
        self.attempt(lambda: self._ask(question, "Yes, clear it", self._clear))

    def action_delete(self) -> None:
        """Delete the highlighted session, after a question."""
        question = "Delete session {}, with its {}, for good?"
        self.attempt(lambda: self._ask(question, "Yes, delete it", self._delete))

    def action_close(self) -> None:
        """Close the page; a session on the screen that has changed is shown anew."""
        self.dismiss(self._changed)

    def _ask(self, question: str, yes: str, act: Callable[[Session], str]) -> None:
        if self.chosen is None:
            return
        session = self._agent.session(self.chosen)
        count = counted(session.entry_count(), "entry")
        words = question.format(one_line(session.id), count)
        when_sure(self.app, words, yes, lambda: self.attempt(lambda: self.reload(act(session))))

    def _new(self) -> Session:
        """Return a new session, which its first message makes."""
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
