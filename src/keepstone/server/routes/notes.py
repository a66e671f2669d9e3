"""``/v1/notes``: the notes of the server's project and of its user."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from keepstone.errors import NoteNotFoundError
from keepstone.notes.notes import TYPES, MemoryEntry, Notes
from keepstone.operations import answers
from keepstone.operations.documents import note_document, saved_document
from keepstone.server import shapes
from keepstone.server.parts import access_of, answer, responds
from keepstone.server.requests import ChangedNote, Deduplication, NamedNote, NewNote, NoteType

router = APIRouter(prefix="/notes", tags=["notes"])


async def _reading(request: Request) -> Notes:
    access_of(request).check_home()
    notes = request.app.state.notes
    assert isinstance(notes, Notes)  # noqa: S101  create_app adds these routes only with notes.
    return notes


async def _writing(request: Request) -> Notes:
    notes = await _reading(request)
    access_of(request).check_write()
    return notes


NotesReading = Annotated[Notes, Depends(_reading)]
NotesWriting = Annotated[Notes, Depends(_writing)]
TypeQuery = Annotated[
    NoteType | None, Query(alias="type", description="Only the project's, or only the user's.")
]


@router.get("", **responds(shapes.Notes))
def list_notes(notes: NotesReading, kind: TypeQuery = None) -> Response:
    """List the notes with their lines: the project's, then the user's."""
    return answer(shapes.Notes(notes=[note_document(note) for note in notes.entries(kind)]))


@router.post("", **responds(answers.SavedNote))
def add_note(notes: NotesWriting, body: NewNote) -> Response:
    """Save a note, unless its file already has it."""
    return answer(saved_document(notes.add(body.text, body.type, body.line)))


@router.put("", **responds(answers.SavedNote))
def change_note(notes: NotesWriting, body: ChangedNote) -> Response:
    """Change the text of a note in place, unless another note already says the same."""
    result = notes.replace(_named(notes, body.note), body.text)
    if result is None:
        raise NoteNotFoundError(body.note.content)
    return answer(saved_document(result))


@router.post("/remove", **responds(shapes.RemovedNote))
def remove_note(notes: NotesWriting, body: NamedNote) -> Response:
    """Remove a note with its continuation lines. A note that has moved is found by its text."""
    note = _named(notes, body)
    if not notes.remove(note):
        raise NoteNotFoundError(body.content)
    return answer(shapes.RemovedNote(removed=True, note=note_document(note)))


def _named(notes: Notes, named: NamedNote) -> MemoryEntry:
    found = [note for note in notes.entries(named.type) if note.content == named.content]
    if not found:
        raise NoteNotFoundError(named.content)
    # An editor may have moved the note since it was listed; of several notes with this text, take the
    # nearest.
    return min(found, key=lambda note: abs(note.line - named.line))


@router.post("/dedupe", **responds(shapes.RemovedNotes))
def dedupe_notes(notes: NotesWriting, body: Deduplication) -> Response:
    """Remove notes that repeat an earlier one of their file."""
    removed = [note_document(note) for note in notes.deduplicate(body.type)]
    return answer(shapes.RemovedNotes(dry_run=False, notes=removed))


@router.get("/files", **responds(shapes.NotesFiles))
def files_of_notes(notes: NotesReading) -> Response:
    """Show the sizes of the two notes files, and the project's instruction files for other agents."""
    files = [shapes.NotesFile(type=kind, size=notes.size(kind)) for kind in TYPES]
    others = [
        shapes.OtherFile(path=other.path, text=other.text, is_cut=other.is_cut) for other in notes.others()
    ]
    return answer(shapes.NotesFiles(files=files, others=others))


BudgetQuery = Annotated[int | None, Query(ge=0, description="Maximum number of tokens.")]
AboutQuery = Annotated[str | None, Query(description="Prefer notes with these words if not all fit.")]


@router.get("/prompt", **responds(shapes.Text))
def prompt_of_notes(notes: NotesReading, budget: BudgetQuery = None, query: AboutQuery = None) -> Response:
    """Return the notes as a block for a system prompt."""
    return answer(shapes.Text(text=notes.prompt(budget, query)))
