"""The lists of the pages, as Vue components that show plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from keepstone.web.phrases import shown


class List(ui.element):
    """Base of the list components."""

    def show(self, **props: Any) -> None:
        """Set properties; unchanged ones are not sent again."""
        # A page that polls sets the same rows every second. Sending them again would make the browser compare
        # every row again.
        changed = {name: value for name, value in props.items() if self.props.get(name) != value}
        if changed:
            self.props.update(changed)
            self.update()

    def when(self, event: str, act: Callable[[Any], Any]) -> None:
        """Call ``act`` with the arguments of an event."""

        def handle(happened: events.GenericEventArguments) -> Any:
            return act(happened.args)

        self.on(event, handle)


class SessionList(List, component="components/sessions.js"):
    """Sessions as a sortable table."""


class EntryList(List, component="components/entries.js"):
    """Entries as a conversation."""


class EntryPanel(List, component="components/panel.js"):
    """The details of one entry."""


class HitList(List, component="components/hits.js"):
    """Hits of a recall, each with the parts of its score."""


class NoteList(List, component="components/notes.js"):
    """The notes of one file."""


class LinkList(List, component="components/links.js"):
    """Links, each with a detail."""


class AgentList(List, component="components/agents.js"):
    """Agents, each with the size of its memory."""


class FindingList(List, component="components/findings.js"):
    """Findings of the doctor."""


class Choice(List, component="components/choice.js"):
    """A setting for how this browser shows the pages."""


# NiceGUI refuses a component whose file is named like one of its own that is imported, such as upload.js.
class Upload(List, component="components/file_drop.js"):
    """An area for a file that the browser sends to ``keepstone.web.transfers``."""


class CommandLine(List, component="components/command.js"):
    """A command or a program, with a button that copies it."""


def command(text: str, label: str = "") -> CommandLine:
    """Show a command or a program to copy; the label names it for screen readers."""
    made = CommandLine()
    made.show(text=shown(text), label=label)
    return made
