"""The memory page: notes of the project and of the user, to add, edit, delete and undo."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from keepstone.notes.notes import TYPES, MemoryEntry, Notes, SaveResult
from keepstone.text.display import clipped
from keepstone.web.components import NoteList
from keepstone.web.elements import aside, attempt, box, button, empty, field, say, tell, undoing
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import shown
from keepstone.web.selector import Selector
from keepstone.web.site import Place
from keepstone.web.views import note_views

_LEAD = "What your agents should always know. Every note is a bullet in a file that you can edit yourself."
_NONE = {
    "Project": ("No project notes", "Add one above; it is written into AGENTS.md below “Memories”."),
    "User": ("No user notes", "Add one above and choose User; it applies to all projects."),
}


class MemoryPage:
    """State of the page: the notes as last loaded."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.notes: Notes = place.site.notes
        self.found: Sequence[MemoryEntry] = ()

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "memory", "Notes", _LEAD):
            if not self.place.read_only:
                self._adding()
            self.live = Live(self._load, self._draw)
            with box(classes="sources"):
                self.groups = {kind: _Group(self, kind) for kind in TYPES}
            await self.live.start()

    def _adding(self) -> None:
        with box(classes="add-note", data_new=""):
            self.input = field("A new note", "Use pnpm instead of npm")
            self.input.on("keydown.enter", self._add, args=[])
            button("Add", self._add, "main")
        self.selector = Selector(self.place, self._added)
        self.input.on("keydown.esc", self.selector.cancel, args=[])

    def _load(self) -> tuple[Sequence[MemoryEntry], dict[str, str]]:
        """Return the notes, and the path of each file, which need not exist."""
        return self.notes.entries(), {source.kind: source.path for source in self.notes.sources()}

    def _draw(self, seen: tuple[Sequence[MemoryEntry], dict[str, str]]) -> None:
        self.found, paths = seen
        for kind, group in self.groups.items():
            group.draw([note for note in self.found if note.type == kind], paths[kind])

    def _add(self) -> None:
        text = str(self.input.value or "").strip()
        if self.selector.is_open:
            tell("Choose first where to save the note, or cancel it")
        elif text and self.selector.submit(f"# {text}", text):
            self.input.value = ""

    async def _added(self, left: str) -> None:
        self.input.value = " ".join(filter(None, (left, self.input.value)))
        self.input.run_method("focus")
        await self.live.refresh()

    async def save(self, kind: str, change: dict[str, Any]) -> None:
        """Change the text of a note."""
        note, text = self._note(kind, change), str(change["text"]).strip()
        if text != change["content"] and not self.place.read_only:
            with attempt():
                result = await aside(self._replaced, note, kind, text)
                if not result.saved:
                    tell(f"Not changed: line {result.entry.line} already says the same")
                elif note is not None:
                    undo = undoing(partial(self.notes.replace, result.entry, note.content), self.live.refresh)
                    tell("Saved.", undo)
            await self.live.refresh()

    def _replaced(self, note: MemoryEntry | None, kind: str, text: str) -> SaveResult:
        """Change a note in place; add it as a new note if the old one was removed."""
        changed = None if note is None else self.notes.replace(note, text)
        return changed or self.notes.add(text, kind)

    async def remove(self, kind: str, row: dict[str, Any]) -> None:
        """Delete a note, and offer to restore it."""
        note = self._note(kind, row)
        if note is None or self.place.read_only:
            return
        with attempt():
            if await aside(self.notes.remove, note):
                tell(f"Deleted “{clipped(note.content, 60)}”.", partial(self._restore, note))
        await self.live.refresh()

    async def _restore(self, note: MemoryEntry) -> None:
        with attempt():
            # Insert the note at its old line; if the file is shorter, the note becomes the last one.
            result = await aside(self.notes.add, note.content, note.type, note.line)
            tell("Restored" if result.entry.line == note.line else "Restored as the last note of its file")
        await self.live.refresh()

    def _note(self, kind: str, row: dict[str, Any]) -> MemoryEntry | None:
        """Return the note that a row shows, by its text and line."""
        # Lines move when a file is edited, so the text identifies a note; the line decides only between notes
        # with the same text.
        same = (note for note in self.found if note.type == kind and note.content == row["content"])
        return min(same, key=lambda note: abs(note.line - row["line"]), default=None)


class _Group:
    """The notes of one file."""

    def __init__(self, page: MemoryPage, kind: str) -> None:
        self._kind = kind
        with box():
            with box(classes="source"):
                say("h2", f"{kind} notes")
                self._path = say("code", "")
            self._none = box()
            self._list = NoteList()
        self._list.show(readOnly=page.place.read_only, label=f"{kind} notes")
        self._list.when("save", lambda change: page.save(kind, change))
        self._list.when("remove", lambda row: page.remove(kind, row))

    def draw(self, notes: Sequence[MemoryEntry], path: str) -> None:
        self._path.text = shown(path)
        self._list.show(notes=note_views(notes))
        self._none.clear()
        if not notes:
            with self._none:
                empty(*_NONE[self._kind])


async def build(place: Place) -> None:
    """Draw the page."""
    await MemoryPage(place).build()
