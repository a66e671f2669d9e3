"""The page of sessions: open, create, clear, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from keepstone.agent import Agent
from keepstone.log.arguments import new_id
from keepstone.session import Session
from keepstone.text.display import counted, one_line
from keepstone.tui import wording
from keepstone.tui.composer import Filter
from keepstone.tui.listing import Listing
from keepstone.tui.page import Ask, when_sure

_WITH_WORDS = 50
"""Number of sessions, latest changed first, that are listed with their last message."""


class SessionsScreen(Listing[str, Session | None]):
    """Lists an agent's sessions; the result is the session to continue with, None for no change.

    If the current session was cleared or deleted, the result is the cleared session or a new one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("n", "new", "New"),
        Binding("r", "rename", "Rename"),
        Binding("c", "clear", "Clear"),
        Binding("d,delete", "delete", "Delete"),
    ]
    heading = "Sessions"
    keys = "↑↓ · Enter open · / filter · n new · r rename · c clear · d delete · Esc close"
    empty = "No sessions."

    def __init__(self, agent: Agent, current: Session) -> None:
        super().__init__()
        self._agent = agent
        self._current = current
        self._changed: Session | None = None

    def compose(self) -> ComposeResult:
        """Build the page, with the filter below the title."""
        title, *others = super().compose()
        yield title
        yield Filter(placeholder="type to filter by title, id and last words", id="filter")
        yield from others

    def rows(self) -> Iterable[tuple[str, str]]:
        """Return the sessions that contain every word of the filter, those with the newest entries first."""
        words = self.query_one(Filter).value.casefold().split()
        sizes = {info.id: info.size for info in self._agent.sessions()}
        found = self._agent.session_summaries(texts=False)
        # Previews and titles from messages require reading entries, and few of many sessions are seen.
        shown = self._agent.session_summaries([summary.id for summary in found[:_WITH_WORDS]])
        for summary in (*shown, *found[_WITH_WORDS:]):
            said = f"{summary.title or ''} {summary.id} {summary.preview}".casefold()
            if all(word in said for word in words):
                current = summary.id == self._current.id
                yield summary.id, wording.session(summary, sizes.get(summary.id, 0), current=current)

    def on_input_changed(self) -> None:
        """Apply the filter."""
        self.reload()

    def on_input_submitted(self) -> None:
        """Move the focus from the filter to the rows."""
        self.query_one("#rows").focus()

    def action_filter(self) -> None:
        """Move the focus to the filter."""
        self.query_one(Filter).focus()

    def action_rename(self) -> None:
        """Ask for the highlighted session's title."""
        if self.chosen is None:
            return
        session = self._agent.session(self.chosen)
        found = self._agent.session_summaries([session.id])
        given = next((summary.title for summary in found if summary.title and summary.named), "")

        def named(title: str | None) -> None:
            if title is not None:
                self.attempt(lambda: session.set_title(title.strip() or None))
                self.reload("Renamed." if title.strip() else "The title was removed.")

        self.app.push_screen(Ask("Title of this session", one_line(given)), named)

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
        """Close the page; the current session is shown again if it was cleared or deleted."""
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
