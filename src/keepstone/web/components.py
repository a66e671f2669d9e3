"""The lists of the pages: one Vue component each, which shows plain text and keeps what has not changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import events, ui


class List(ui.element):
    """A list that is given what it shows."""

    def show(self, **props: Any) -> None:
        """Show these; what is the same as before is not sent again."""
        changed = {name: value for name, value in props.items() if self.props.get(name) != value}
        if changed:
            self.props.update(changed)
            self.update()

    def when(self, event: str, act: Callable[[Any], Any]) -> None:
        """Call ``act`` with what an event brings."""

        def handle(happened: events.GenericEventArguments) -> Any:
            return act(happened.args)

        self.on(event, handle)


class SessionList(List, component="components/sessions.js"):
    """Sessions as a table whose headings sort it."""


class EntryList(List, component="components/entries.js"):
    """Entries as a conversation."""


class HitList(List, component="components/hits.js"):
    """Hits of a recall, with what each score is the sum of."""


class NoteList(List, component="components/notes.js"):
    """The notes of one file."""


class LinkList(List, component="components/links.js"):
    """Links, each with a word about it."""


class FindingList(List, component="components/findings.js"):
    """What the doctor found."""
