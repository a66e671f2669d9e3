"""The page for import, export and backup, and for purging a text everywhere."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial

from nicegui import ui

from keepstone.agent import Agent
from keepstone.importing import SOURCES, ImportResult, import_memory
from keepstone.model import Purged
from keepstone.notes.notes import Notes
from keepstone.operations.erasing import Holders, counts_of, erase, holders_of
from keepstone.operations.error_codes import message_of
from keepstone.operations.exporting import FORMATS
from keepstone.text.display import clipped, counted, size
from keepstone.web.components import Upload, command
from keepstone.web.elements import (
    EXPECTED,
    aside,
    attempt,
    box,
    button,
    confirmed,
    failure,
    field,
    link,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.phrases import shown
from keepstone.web.site import Place, address
from keepstone.web.transfers import LARGEST_FILE, Receiver

_LEAD = "Bring memory in from other tools, take it along, and purge a text for good."
_LISTED = 20
"""Maximum number of failures, entries or notes listed one by one."""
_TITLES = {"ndjson": "Lines (NDJSON)", "md": "Markdown", "okf": "OKF", "sqlite": "SQLite", "csv": "CSV"}
_TICK = 0.25


class Import:
    """Receives a file, counts its records, and imports them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._receiver = Receiver()
        self._done = self._total = 0

    def build(self) -> None:
        """Draw the section."""
        self._receiver.attach()
        with box("section", "source"):
            say("h2", "Import")
            say(
                "p",
                f"An export of another tool, or of keepstone: a file, or a folder as a ZIP file, up to "
                f"{size(LARGEST_FILE)}. You see what it brings before anything is written; nothing of it is "
                "executed, and a second import adds nothing.",
                "hint",
            )
            names = {name: "recognise it" if name == "auto" else name for name in SOURCES}
            self._source = ui.select(names, label="It comes from", value="auto")
            self._source.props("outlined dense options-dense").classes("chooser choose-source")
            upload = Upload()
            upload.show(
                page=ui.context.client.id,
                address=self._place.link("upload"),
                largest=LARGEST_FILE,
                tooLarge=f"The file is larger than {size(LARGEST_FILE)}: use keepstone import instead.",
            )
            upload.when("received", self._preview)
            self._state = say("p", "", "answer-line", role="status")
            self._bar = box(
                classes="progress", role="progressbar", aria_label="Records read", aria_valuemin="0"
            )
            with self._bar:
                self._filled = box("i")
            self._bar.set_visibility(False)
            self._result = box(classes="stack")
            self._timer = ui.timer(_TICK, self._tick, active=False)

    async def _preview(self, name: str) -> None:
        """Count the records of a file, and offer to import them."""
        # The name comes from the browser and is only shown. The file's own name on the disk is made safe by
        # the receiver.
        found = await self._run(f"Reading {clipped(str(name), 80)} …", dry_run=True)
        if found is None:
            return
        self._state.text = _sentence(found, "This would bring")
        _show(self._result, partial(self._ask, found))

    def _ask(self, found: ImportResult) -> None:
        _failures(found)
        with box(classes="row"):
            if found.imported:
                words = f"Import {counted(found.imported, 'entry')}"
                button(words, partial(self._import, found.source), "main")
            button("Discard the file", self._discard)

    async def _import(self, source: str) -> None:
        # Pass the source that the preview recognised, so that the import matches the preview.
        found = await self._run("Importing …", dry_run=False, source=source)
        if found is None:
            return
        self._receiver.close()
        self._state.text = _sentence(found, "Imported")
        _show(self._result, partial(self._tell, found))

    def _tell(self, found: ImportResult) -> None:
        _failures(found)
        with box(classes="row"):
            link("To the sessions", self._place.link("sessions"), "plain")

    async def _run(self, words: str, *, dry_run: bool, source: str = "") -> ImportResult | None:
        """Import the file in a thread; on a failure show it and return None.

        With ``dry_run`` only count what would be imported.
        """
        path = self._receiver.path
        self._result.set_visibility(False)  # A button in it may call this: hide it now, clear it later.
        if path is None or self._place.read_only:
            self._state.text = "There is no file any more: choose it again."
            return None
        self._done, self._total, self._state.text = 0, 0, words
        self._timer.active = True
        chosen = source or str(self._source.value)
        agent = self._place.agent
        try:
            found: ImportResult = await aside(
                import_memory, agent, chosen, path, dry_run=dry_run, progress=self._progress
            )
        except EXPECTED as error:
            self._state.text = ""
            # The path is in a temporary folder of the server, which means nothing to the reader.
            _show(self._result, partial(failure, message_of(error).replace(str(path), path.name)))
            return None
        finally:
            self._timer.active = False
            self._bar.set_visibility(False)
        return found

    def _progress(self, done: int, total: int) -> None:
        """Record the thread's progress, which the timer draws."""
        self._done, self._total = done, total

    def _tick(self) -> None:
        self._bar.set_visibility(self._total > 0)
        if self._total:
            self._bar.props.update({"aria-valuemax": self._total, "aria-valuenow": self._done})
            self._filled.style(f"width: {100 * self._done / self._total:.0f}%")

    def _discard(self) -> None:
        self._receiver.close()
        self._result.set_visibility(False)
        self._state.text = "The file was removed. Nothing was imported."


def _show(result: ui.element, draw: Callable[[], object]) -> None:
    """Replace the previous result by a new one."""
    result.clear()
    result.set_visibility(True)
    with result:
        draw()


def _sentence(found: ImportResult, verb: str) -> str:
    failed = f", {counted(len(found.failed), 'record')} cannot be imported" if found.failed else ""
    entries = counted(found.imported, "entry")
    return f"{verb} {entries} from {found.source}; {found.unchanged:,} are here already{failed}."


def _failures(found: ImportResult) -> None:
    for note in found.notes:
        say("p", note, "hint")
    if found.failed:
        with box("ul", "links plain-list", aria_label="Not imported"):
            for record in found.failed[:_LISTED]:
                with box("li"):
                    say("strong", record.place)
                    say("span", record.reason)
        if len(found.failed) > _LISTED:
            say("p", f"and {len(found.failed) - _LISTED:,} more", "hint")


def _export(place: Place) -> None:
    with box("section", "source"):
        say("h2", "Export")
        say("p", "The entries of this agent as they are now. Import reads all of these back.", "hint")
        with box(classes="row"):
            for name in FORMATS:
                link(_TITLES[name], place.link("export", format=name), "plain", download="")
        say("p", "One session: in its menu on the page of sessions.", "hint")


def _backup(place: Place) -> None:
    with box("section", "source"):
        say("h2", "Backup")
        say("p", "All agents with their history and files, as a ZIP file. Unpacked, it is a home.", "hint")
        with box(classes="row"):
            link("Download a backup", place.link("backup"), "plain", download="")
        say("p", "Into a folder of this computer:", "hint")
        command(shlex.join(["keepstone", "backup", *place.site.place, "FOLDER"]))


class Purge:
    """Finds a text, lists its places, and purges it."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def build(self) -> None:
        """Draw the section."""
        with box("section", "source"):
            say("h2", "Purge this text everywhere")
            say(
                "p",
                "A name, an address, a key: every entry, session, file and suggestion with it goes, with all "
                "history; of notes those that contain it. This cannot be undone.",
                "hint",
            )
            with box(classes="add-note"):
                self._text = field("Text to purge").props("autocomplete=off")
                self._text.on("keydown.enter", self._look, args=[])
                button("Find it", self._look, "main")
            self._all = ui.checkbox("In all agents of this home, and in notes", value=True)
            self._all.set_visibility(self._place.is_admin)
            self._state = say("p", "", "answer-line", role="status")
            self._result = box(classes="stack")

    def _scope(self) -> tuple[list[Agent], Notes | None]:
        """Return the agents and notes to search."""
        place = self._place
        # The checkbox is hidden from readers who are not admins, but its value is still True.
        if not (place.is_admin and self._all.value):
            return [place.agent], None
        return [place.site.home.agent(slug) for slug in place.agents()], place.site.notes

    async def _look(self) -> None:
        text = str(self._text.value or "")
        self._result.set_visibility(False)
        self._state.text = "Searching …"
        try:
            found: Holders = await aside(lambda: holders_of(text, self._place.site.home.root, *self._scope()))
        except EXPECTED as error:
            self._state.text = ""
            _show(self._result, partial(failure, message_of(error)))
            return
        self._state.text = _summary(found)
        _show(self._result, partial(self._list, text, found))

    def _list(self, text: str, found: Holders) -> None:
        for slug, purged in found.agents.items():
            self._holder(slug, purged)
        self._notes(found)
        say("h3", "A purge does not reach")
        with box("ul", "bullets"):
            for words in found.beyond:
                say("li", words)
        if found:
            with box(classes="row"):
                button("Purge it", partial(self._purge, text), "main danger")

    def _holder(self, slug: str, purged: Purged) -> None:
        """List the places of the text in one agent's memory."""
        say("h3", f"Agent {slug}: {counts_of(purged)}")
        with box("ul", "bullets"):
            for session, entry in purged.entries[:_LISTED]:
                with box("li"):
                    link(f"{session}: {entry}", address(slug, "session", id=session, entry=entry))
            for session in purged.sessions:
                say("li", f"session {session}, with all its entries")
            for path in purged.files:
                say("li", f"file {path}")
            if len(purged.entries) > _LISTED:
                say("li", f"and {counted(len(purged.entries) - _LISTED, 'more entry')}")

    def _notes(self, found: Holders) -> None:
        if found.notes:
            say("h3", f"Notes: {counted(len(found.notes), 'note')}")
            with box("ul", "bullets"):
                for note in found.notes[:_LISTED]:
                    say("li", f"{note.type}, line {note.line}: {clipped(note.content, 120)}")

    async def _purge(self, text: str) -> None:
        words = f"Every byte that contains “{clipped(text, 80)}” goes as listed. This cannot be undone."
        if not await confirmed("Purge this text everywhere?", words, "Purge"):
            return
        with attempt():
            # The scope is read again, because agents may have been added since the search.
            agents, notes = await aside(self._scope)
            if notes is not None:
                await self._place.check_admin()
            found = await aside(erase, text, self._place.site.home.root, agents, notes)
            tell(f"Purged: {_summary(found)}")
        await self._look()


def _summary(found: Holders) -> str:
    places = [f"{counts_of(purged)} of {shown(slug)}" for slug, purged in found.agents.items()]
    places += [counted(len(found.notes), "note")] if found.notes else []
    return "; ".join(places) if places else "Nothing contains this text."


async def build(place: Place) -> None:
    """Draw the page."""
    with frame(place, "in-and-out", "In and out", _LEAD):
        if not place.read_only:
            Import(place).build()
        _export(place)
        if place.access.agents is None:
            _backup(place)
        if not place.read_only:
            Purge(place).build()
