"""The finder that Ctrl+K opens: pages, sessions, entries, notes, files and commands."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from nicegui import ui

from keepstone.chat.slash import COMMANDS
from keepstone.errors import AmbiguousIdError, EntryNotFoundError, KeepstoneError
from keepstone.model import Entry
from keepstone.text.display import clipped, one_line
from keepstone.web.components import LinkList
from keepstone.web.elements import answer_of, aside, attempt, dialog, field
from keepstone.web.phrases import shown
from keepstone.web.site import WITH_NOTES, Place

_EACH = 6
"""Maximum results of each kind."""
_START = 90
_COMMANDS = (
    (f"/recall: {COMMANDS['recall'].help}", "recall", ""),
    (f"/context: {COMMANDS['context'].help}", "context", ""),
    (f"/new: {COMMANDS['new'].help}", "chat", ""),
    ("New session: begin an empty one", "sessions", "#new"),
    ("New note: remember something", "memory", "#new"),
    ("New file", "files", "#new"),
    ("New agent, or switch to another one", "agents", "#new"),
    (f"/theme: {COMMANDS['theme'].help}", "", "#theme"),
    ("/help: shortcuts of the keyboard", "", "#shortcuts"),
)
"""Commands available on every page: the text, the target page, and the action there, see ``keys.js``."""


class Finder:
    """Searches everything that this reader may see of an agent.

    Args:
        place: The place to search.
        pages: Name and title of each page.
    """

    def __init__(self, place: Place, pages: list[tuple[str, str]]) -> None:
        self._place = place
        self._pages = pages

    def open(self) -> None:
        """Open the finder."""
        with dialog("Find", "broad finder") as self._dialog:
            line = field("Pages, sessions, entries, notes, files, commands").props("autofocus type=search")
            line.on_value_change(lambda event: self._search(str(event.value or "")))
            self._list = LinkList()
            self._list.when("chosen", self._chosen)
        self._dialog.on("hide", self._dialog.delete)
        # Without words only pages are listed, which needs no reads, so this call may run on the event loop.
        self._list.show(items=self._found(""), label="Results")
        self._dialog.open()

    def _chosen(self, href: str) -> None:
        if href.startswith("#"):  # All other links leave the page.
            self._dialog.close()

    async def _search(self, words: str) -> None:
        with attempt():
            items = await aside(self._found, words.strip())
            self._list.show(items=items, label="Results")

    def _found(self, words: str) -> list[dict[str, Any]]:
        place, wanted = self._place, words.casefold()
        items = [
            _item(title, "page", place.link(name))
            for name, title in self._pages
            if wanted in title.casefold()
        ]
        if not wanted:
            return items
        agent = place.agent
        for summary in agent.session_summaries(texts=False):
            if wanted in f"{summary.title or ''} {summary.id}".casefold():
                items.append(
                    _item(summary.title or summary.id, "session", place.link("session", id=summary.id))
                )
                # Summaries without texts are fast, so all of them are searched; titles that come from first
                # messages are not found.
                if sum(item["detail"] == "session" for item in items) == _EACH:
                    break
        for hit in agent.recall(words, limit=_EACH):
            entry = hit.entry
            href = place.link("session", id=entry.session, entry=entry.id)
            items.append(_item(entry.text, f"{entry.type} in {entry.session}", href))
        if place.sees_notes:
            # Notes are files of the project. Their errors, such as a missing permission, must not hide the
            # other results.
            with suppress(KeepstoneError):
                notes = [note for note in place.site.notes.entries() if wanted in note.content.casefold()]
                items += [_item(note.content, "note", place.link("memory")) for note in notes[:_EACH]]
        paths = [path for path in agent.files.list() if wanted in path.casefold()]
        items += [_item(path, "file", place.link("files", path=path)) for path in paths[:_EACH]]
        return items + [
            _item(name, "command", f"{place.link(page) if page else ''}{act}")
            for name, page, act in _COMMANDS
            # A reader of one agent may not see notes, so a command that leads to them would only show a
            # refusal.
            if wanted in name.casefold() and (place.sees_notes or page not in WITH_NOTES)
        ]


async def pick_entry(place: Place, title: str, besides: Entry) -> tuple[Entry, str] | None:
    """Let the reader find another entry and name the relation; None if they close the dialog."""
    entries_by_link: dict[str, Entry] = {}
    with dialog(title, "broad finder") as question:
        line = field("Words of the other entry, or its id").props("autofocus type=search")
        rel = field("Relation", value="related")
        results = LinkList()

    async def search(words: str) -> None:
        entries_by_link.clear()
        with attempt():
            entries = await aside(_entries, place, words.strip())
            entries_by_link.update(
                (place.link("session", id=entry.session, entry=entry.id), entry) for entry in entries
            )
        # An entry is not linked to itself.
        entries_by_link.pop(place.link("session", id=besides.session, entry=besides.id), None)
        items = [
            _item(entry.text, f"{entry.type} in {entry.session}", href)
            for href, entry in entries_by_link.items()
        ]
        results.show(items=items, label="Entries", picks=True)

    def pick(href: str) -> None:
        if href in entries_by_link:
            question.submit((entries_by_link[href], str(rel.value or "").strip() or "related"))

    line.on_value_change(lambda event: search(str(event.value or "")))
    # The first result is the entry with the typed id, if there is one: see ``_entries``.
    line.on("keydown.enter", lambda: pick(next(iter(entries_by_link), "")), args=[])
    results.when("chosen", pick)
    results.show(items=[], label="Entries", picks=True)
    answer: tuple[Entry, str] | None = await answer_of(question)
    return answer


def _entries(place: Place, words: str) -> list[Entry]:
    """Return the entry with this id, then the entries that a recall finds."""
    entries = [hit.entry for hit in place.agent.recall(words, limit=_EACH)] if words else []
    with suppress(EntryNotFoundError, AmbiguousIdError, ValueError):
        entries.insert(0, place.agent.get(words))
    return entries


def _item(name: str, detail: str, href: str) -> dict[str, Any]:
    return {
        "name": shown(clipped(one_line(name), _START)),
        "detail": shown(detail),
        "href": href,
        "current": False,
    }


def open_finder(place: Place, pages: list[tuple[str, str]]) -> None:
    """Open the finder on the current page."""
    with ui.context.client.layout:
        Finder(place, pages).open()
