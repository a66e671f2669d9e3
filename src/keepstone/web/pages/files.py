"""The files page: the agent's own files, edited without losing concurrent changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nicegui import ui

from keepstone.errors import MemoryFileNotFoundError
from keepstone.files import Check
from keepstone.text.display import clipped, counted, size
from keepstone.web.components import LinkList
from keepstone.web.conflict import ask, ask_deleted
from keepstone.web.diff import line_counts
from keepstone.web.elements import (
    EXPECTED,
    StalePageError,
    aside,
    asked,
    attempt,
    box,
    button,
    confirmed,
    empty,
    field,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import shown
from keepstone.web.preview import MOST, rendered
from keepstone.web.site import Place

_MOST = 500
_LONGEST = 1_000_000
"""Maximum characters of a file that can be edited here."""
_MARKDOWN = (".md", ".markdown")
_LEAD = "Text files in the agent's own folder, which it cannot leave."


@dataclass(frozen=True, slots=True)
class Seen:
    """The loaded paths, and the open file's content; None if the file does not exist."""

    paths: tuple[str, ...]
    content: str | None
    difference: str = ""
    """A description of how the content differs from the text that the field was filled with."""


class FilesPage:
    """State of the page: the open file, and its content when it was read."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.files = place.agent.files
        self.path = place.query.get("path", "")
        self.base: str | None = None
        self.seen = Seen((), None)
        self.wanted = ""

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "files", "Files", _LEAD) as head:
            if not self.place.read_only:
                with head:
                    button("New file", self._new, "main", data_new="")
            self.live = Live(self._load, self._draw)
            with box(classes="files"):
                with box(classes="stack"):
                    self._list()
                with box(classes="editor stack"):
                    self._editor(await aside(self._first))
            await self.live.start()

    def _list(self) -> None:
        with box(data_search=""):
            search = field("Search files").props("clearable type=search")
            search.on_value_change(lambda event: self._search(event.value or ""))
        self.list = LinkList()
        self.more = say("p", "", "hint")

    def _first(self) -> str:
        """Return the field's initial value; setting it later would overwrite early input."""
        try:
            return _editable(self._read() or "")
        except EXPECTED:
            return ""  # The list, which is loaded next, fails with the same error and shows it.

    def _editor(self, content: str) -> None:
        self.none = box()
        with box(classes="stack") as self.open:
            with box(classes="head"):
                say("h2", self.path)
                box(classes="fill")
                if self.path.lower().endswith(_MARKDOWN):
                    self.switch = button("Preview", self._turn, "plain", aria_pressed="false")
                if not self.place.read_only:
                    button("Delete", self._delete, "quiet danger")
                    button("Save", self._save, "main", data_save="", title="Ctrl+S")
            self.told = box(role="status")
            self.text = ui.textarea(value=content).props("outlined autogrow").classes("w-full")
            self.text.props["aria-label"] = f"Content of {shown(self.path)}"
            self.text.on_value_change(self._mark)
            if self.place.read_only:
                self.text.props("readonly")
            with box() as self.preview:
                self.cut = say("p", f"The preview ends after {MOST:,} characters.", "hint")
                self.html = ui.html("").classes("preview")
            self.preview.set_visibility(False)
        self.open.set_visibility(False)

    async def _turn(self) -> None:
        """Switch between the text and its preview."""
        to_preview = not self.preview.visible
        self.preview.set_visibility(to_preview)
        self.text.set_visibility(not to_preview)
        self.switch.props["aria-pressed"] = "true" if to_preview else "false"
        await self._draw_preview()

    async def _draw_preview(self) -> None:
        if self.preview.visible:
            text = str(self.text.value or "")
            self.cut.set_visibility(len(text) > MOST)
            html = await aside(rendered, text)
            if text == str(self.text.value or ""):  # Otherwise a later call draws the new text.
                self.html.set_content(html)

    def _load(self) -> Seen:
        content = self._read()
        return Seen(tuple(self.files.list()), content, _changed(self.base, content))

    def _read(self) -> str | None:
        try:
            return self.files.read(self.path) if self.path else None
        except MemoryFileNotFoundError:
            return None

    def _draw(self, seen: Seen) -> None:
        self.seen = seen
        self._draw_list()
        self._draw_file(seen)

    def _draw_list(self) -> None:
        chosen = [path for path in self.seen.paths if self.wanted in path.casefold()]
        self.list.show(items=[self._item(path) for path in chosen[:_MOST]], label="Files")
        self.list.set_visibility(bool(chosen))
        rest = len(chosen) - _MOST
        self.more.text = f"{counted(rest, 'file')} more: search for them" if rest > 0 else ""

    def _item(self, path: str) -> dict[str, object]:
        is_current = path == self.path
        return {
            "href": self.place.link("files", path=path),
            "name": shown(path),
            "detail": "",
            "current": is_current,
        }

    def _draw_file(self, seen: Seen) -> None:
        """Show the file's content unless the field has unsaved changes."""
        content, edited = seen.content, self._is_edited
        self.told.clear()
        if edited and content != self.base:
            with self.told:
                say("p", seen.difference, "told")
        # The field is unedited, so it follows the file. Its value is set only if it differs, because setting
        # it moves the cursor.
        elif content is not None:
            self.base = content
            if self.text.value != _editable(content):
                self.text.value = _editable(content)
                # ``Live`` draws in a plain function, which cannot wait for the preview's thread.
                ui.timer(0, self._draw_preview, once=True)
        self.open.set_visibility(content is not None or edited)
        self.none.clear()
        if content is None and not edited:
            with self.none:
                self._nothing()

    @property
    def _is_edited(self) -> bool:
        # A browser's text area has only line feeds, so a file with carriage returns would count as edited
        # once the browser has sent the text.
        return self.base is not None and _flat(self.text.value) != _flat(_editable(self.base))

    def _mark(self) -> None:
        """Make the browser ask before it leaves a page with unsaved changes."""
        if self._is_edited:
            self.text.props["data-unsaved"] = ""
        else:
            self.text.props.pop("data-unsaved", None)

    def _nothing(self) -> None:
        if self.path:
            empty("There is no such file", f"“{self.path}” was deleted or never written.")
        elif self.seen.paths:
            empty("No file is open", "Choose one from the list.")
        else:
            empty("No files yet", "Files that the agent writes appear here.")

    def _search(self, words: str) -> None:
        self.wanted = words.strip().casefold()
        self._draw_list()

    async def _save(self) -> None:
        """Write the text if the file is unchanged since it was read; otherwise ask which to keep."""
        if self.place.read_only:
            return
        with attempt():
            text = _with_newlines_of(self.base or "", str(self.text.value or ""))
            # Each iteration overwrites only the text that the reader has seen last. Another change during the
            # question leads to the next iteration.
            before_save = expected = self.base
            while not await aside(self._write, self.path, text, expected):
                before, expected = expected or "", await aside(self._read)
                kept = await (ask_deleted(text) if expected is None else ask(before, text, expected))
                if kept is None:
                    break
                answer, text = kept
                if answer == "theirs":
                    self.base = expected
                    self.text.value = _editable(text)
                    break
                before_save = expected
                if answer == "merged":
                    self.text.value = text
            else:
                self.base = text
                self._mark()
                tell(f"Saved {self.path}", partial(self._undo, before_save, text))
        await self.live.refresh()

    async def _undo(self, before: str | None, after: str | None) -> None:
        """Restore the file's content from before a change, unless it has changed again."""
        if before is None or not await aside(self._write, self.path, before, after):
            tell(f"Not undone: {self.path} is new, or has changed since")
            return
        self.base = before
        self.text.value = _editable(before)
        self._mark()
        tell("Undone")
        await self.live.refresh()

    def _write(self, path: str, text: str, expected: str | None) -> bool:
        """Write a file if it has the expected content (None: no file exists); otherwise return False."""
        try:
            # The check runs inside the lock of the file, so nobody can write between the comparison and the
            # writing.
            self.files.write(path, text, check=_expecting(expected))
        except StalePageError:
            return False
        return True

    async def _delete(self) -> None:
        """Delete the file if it still has the content shown with the question; otherwise ask again."""
        expected, words = self.base, f"“{self.path}” is removed from the agent's folder."
        with attempt():
            # A reader confirms the deletion of the content that was shown. If it changed during the question,
            # the question is asked again.
            while await confirmed("Delete this file?", words, "Delete") and not self.place.read_only:
                if await aside(self._delete_expected, self.path, expected):
                    self.base = None
                    self._mark()
                    tell(f"Deleted {self.path}", partial(self._undo, expected, None))
                    break
                expected = await aside(self._read)
                words = f"“{self.path}” has changed. Delete its new content?"
                await self.live.refresh()
        await self.live.refresh()

    def _delete_expected(self, path: str, expected: str | None) -> bool:
        """Delete a file if it has the expected content; otherwise return False."""
        try:
            self.files.delete(path, check=_expecting(expected))
        except StalePageError:
            return False
        return True

    async def _new(self) -> None:
        path = await asked("New file", "Its path, such as plans/today.md", "Create")
        with attempt():
            if path:
                await aside(self._write, path.strip(), "", None)
                ui.navigate.to(self.place.link("files", path=path.strip()))


def _expecting(expected: str | None) -> Check:
    def check(old: str | None) -> None:
        if old != expected:
            raise StalePageError

    return check


def _changed(base: str | None, content: str | None) -> str:
    """Return a description of a file's changes since the field was filled with it; empty for no change."""
    if base is None or base == content:
        return ""
    if content is None:
        return "This file was deleted since you opened it. Saving asks what to keep."
    added, removed = line_counts(_flat(base), _flat(content))
    words = f"{counted(added, 'line')} added, {removed:,} removed"
    return f"This file has changed since you opened it: {words}. Saving shows what both changed."


def _flat(text: str) -> str:
    return text.replace("\r\n", "\n")


def _with_newlines_of(old: str, text: str) -> str:
    """Return a text with the line ends of the old one; browsers send only one kind."""
    if len(old) > _LONGEST:
        raise ValueError(f"the file ({size(len(old))}) is too long for this page: use a text editor")
    # A file with both kinds of line ends gets line feeds: the browser's text does not show which line had
    # which.
    kept = "\r\n" if "\r\n" in old and "\n" not in old.replace("\r\n", "") else "\n"
    return _flat(text).replace("\n", kept)


def _editable(content: str) -> str:
    return content if len(content) <= _LONGEST else clipped(content, _LONGEST)


async def build(place: Place) -> None:
    """Draw the page."""
    await FilesPage(place).build()
