"""``keepstone notes``: notes in AGENTS.md and in the user's file."""

import sys
from collections.abc import Sequence
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from keepstone.cli.command import Answer, argument_or_input, confirm, notes_command
from keepstone.cli.exit_status import DeclinedError
from keepstone.cli.keyboard import read_keys
from keepstone.cli.options import YesOption
from keepstone.errors import NoteNotFoundError, NotTextError
from keepstone.notes import teaching
from keepstone.notes.bullets import sameness
from keepstone.notes.importing import Offer, offers, take
from keepstone.notes.notes import PROJECT, PROJECT_FILE, USER, MemoryEntry, Notes
from keepstone.notes.other_agents import OtherFile
from keepstone.operations.documents import note_document, offer_document, saved_document, saved_words
from keepstone.services.input_manager import InputManager
from keepstone.text.display import clipped, counted, harmless, one_line

app = typer.Typer(
    name="notes",
    help="List, add, edit and remove notes: bullets in AGENTS.md and in the user's file.",
    no_args_is_help=True,
    epilog="Example: keepstone notes list",
)

NotesChoice = Literal["project", "user"]

_CHOICES: dict[str, NotesChoice] = {"p": "project", "u": "user"}
_CANCELLING = ("\x1b", "\r", "\n", "\x04", "q", "")
"""Keys that cancel: Escape, Enter, Ctrl-D, q, and the end of input."""

TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="The note; - reads standard input.", show_default=False)
]
NoteArgument = Annotated[
    str,
    typer.Argument(
        metavar="NOTE", help="The note's exact text, or its line: Project:12.", show_default=False
    ),
]
QueryArgument = Annotated[
    str | None,
    typer.Argument(metavar="QUERY", help="Prefer notes with these words if not all fit.", show_default=False),
]
ProjectOption = Annotated[bool, typer.Option("--project", help="The project's notes, in AGENTS.md.")]
UserOption = Annotated[bool, typer.Option("--user", help="The user's notes, for all projects.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed.")]
BudgetOption = Annotated[
    int | None, typer.Option("--budget", metavar="TOKENS", help="Maximum number of tokens.")
]


FromOption = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Import the bullets of this file instead.",
        exists=True,
        dir_okay=False,
    ),
]
FileOption = Annotated[
    str, typer.Option("--file", metavar="NAME", help="Another file of the project, such as CLAUDE.md.")
]
RemoveOption = Annotated[bool, typer.Option("--remove", help="Take the section out.")]
TeachDryOption = Annotated[bool, typer.Option("--dry-run", help="Show the section, and write nothing.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be added.")]


@notes_command(app, "keepstone notes list --project", name="list")
def list_notes(notes: Notes, project: ProjectOption = False, user: UserOption = False) -> Answer:
    """List the notes with their lines: the project's, then the user's."""
    found = notes.entries(_type_of(project=project, user=user))
    _warn_of_size(notes)
    document = {"notes": [note_document(note) for note in found]}
    return Answer(document, _listing(found) if found else Text("no notes yet"))


@notes_command(app, "keepstone notes add '# Use pnpm instead of npm' --project")
def add(
    notes: Notes, text: TextArgument, *, project: ProjectOption = False, user: UserOption = False
) -> Answer:
    """Save a note for the project or the user. Leading # are not part of it.

    Without --project and --user you are asked. A note that its file already has is not written.
    """
    message = argument_or_input(text)
    manager = InputManager(notes)
    if manager.submit(message if message.startswith("#") else f"# {message}") == "message":
        raise ValueError(f"a note must not be empty: {message[:80]!r}")
    result = manager.select(_choice(project=project, user=user))
    _warn_of_size(notes)
    return Answer(saved_document(result), Text(saved_words(result)))


@notes_command(app, "keepstone notes remove Project:12 --yes")
def remove(notes: Notes, note: NoteArgument, yes: YesOption = False) -> Answer:
    """Remove a note with its continuation lines."""
    named = _named(notes, note)
    words = f"{_label(named)}  {one_line(clipped(named.content, 80))}"
    confirm(f"Remove {words}?", yes=yes)
    if not notes.remove(named):
        raise NoteNotFoundError(note)
    return Answer({"removed": True, "note": note_document(named)}, Text(f"removed {words}"))


@notes_command(app, "keepstone notes edit Project:12 'Use pnpm, and never npm'")
def edit(notes: Notes, note: NoteArgument, text: TextArgument) -> Answer:
    """Change the text of a note in place.

    A text that another note of its file already has is not written.
    """
    result = notes.replace(_named(notes, note), argument_or_input(text))
    if result is None:
        raise NoteNotFoundError(note)
    _warn_of_size(notes)
    return Answer(saved_document(result), Text(saved_words(result)))


@notes_command(app, "keepstone notes dedupe --dry-run")
def dedupe(
    notes: Notes, *, project: ProjectOption = False, user: UserOption = False, dry_run: DryRunOption = False
) -> Answer:
    """Remove notes that repeat an earlier one of their file.

    Case, white space and one final full stop are ignored.
    """
    kind = _type_of(project=project, user=user)
    found = _repeated(notes.entries(kind)) if dry_run else notes.deduplicate(kind)
    document = {"dry_run": dry_run, "notes": [note_document(note) for note in found]}
    if not found:
        return Answer(document, Text("no duplicate notes"))
    verb = "would remove" if dry_run else "removed"
    return Answer(document, Group(Text(f"{verb} {counted(len(found), 'note')}"), _listing(found)))


@notes_command(app, "keepstone notes show --budget 500 'release steps'")
def show(notes: Notes, query: QueryArgument = None, budget: BudgetOption = None) -> Answer:
    """Print the notes as a block for a system prompt.

    It contains both files, or with a budget as many of their notes as fit.
    On a terminal, control characters are escaped; elsewhere the text is printed unchanged.
    """
    text = notes.prompt(budget, query)
    view = Text(harmless(text.removesuffix("\n")) or "no notes to show")
    return Answer({"text": text}, view, exact=text.encode("utf-8"))


@notes_command(app, "keepstone notes import --dry-run", name="import")
def import_notes(
    notes: Notes, file: FromOption = None, dry_run: DryOption = False, yes: YesOption = False
) -> Answer:
    """Add bullets of other agents' instruction files to the project's notes.

    These are CLAUDE.md, GEMINI.md, .cursorrules and .cursor/rules/*.mdc, which are not changed.
    You choose among those that AGENTS.md does not have; --yes takes all.
    """
    found = offers(notes, None if file is None else [_read(file.absolute())])
    new = [offer for offer in found if offer.duplicate_of is None]
    chosen = new if dry_run else _chosen(new, yes=yes)
    added = [] if dry_run else take(notes, chosen)
    document = {
        "dry_run": dry_run,
        "offers": [offer_document(offer) for offer in found],
        "notes": [note_document(result.entry) for result in added if result.saved],
    }
    if not added:
        return Answer(document, Group(*_offered(found), Text(_summary(found, new))))
    return Answer(document, Text(f"added {counted(len(added), 'note')} to AGENTS.md"))


@notes_command(app, "keepstone notes teach --file CLAUDE.md")
def teach(
    notes: Notes,
    *,
    file: FileOption = PROJECT_FILE,
    remove: RemoveOption = False,
    dry_run: TeachDryOption = False,
) -> Answer:
    """Tell agents in AGENTS.md when to save to their memory and when to search it.

    The section is for agents that have the tools of: keepstone mcp.
    Running it again brings the section up to date; --remove takes it out.
    """
    from keepstone.mcp.instructions import INSTRUCTIONS

    changed = teaching.teach(notes.folder, file, None if remove else INSTRUCTIONS, dry_run=dry_run)
    document = {"file": file, "changed": changed, "removed": remove, "dry_run": dry_run}
    if not changed:
        return Answer(
            document, Text(f"{one_line(file)} {'has no such section' if remove else 'says so already'}")
        )
    if dry_run:
        words = "would be taken out of" if remove else "would be written into"
        return Answer(
            document, Text(f"{'' if remove else INSTRUCTIONS + chr(10)}This section {words} {one_line(file)}")
        )
    words = "does not tell agents any more" if remove else "tells agents now"
    return Answer(document, Text(f"{one_line(file)} {words} when to use their memory"))


def _read(file: Path) -> OtherFile:
    try:
        return OtherFile(str(file), file.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotTextError(f"{file} is not UTF-8 at byte {error.start}: save it as UTF-8 first") from None


def _chosen(new: Sequence[Offer], *, yes: bool) -> list[Offer]:
    """Return the offers that the user chooses."""
    if yes or not new:
        return list(new)
    if not sys.stdin.isatty():
        raise ValueError(
            f"{counted(len(new), 'bullet')} to add? Standard input is not a terminal: add --yes or --dry-run"
        )
    for number, offer in enumerate(new, 1):
        typer.echo(f"{number:>3}  {one_line(clipped(offer.content, 100))}", err=True)
    answer = typer.prompt(
        "Which? (such as 1,3-5, or all; Enter for none)", default="", show_default=False, err=True
    )
    numbers = range(1, len(new) + 1) if answer.strip().casefold() == "all" else numbers_of(answer, len(new))
    return [new[number - 1] for number in numbers]


def numbers_of(answer: str, most: int) -> list[int]:
    """Return the numbers that an answer such as ``1,3-5`` names, in order.

    Raises:
        ValueError: The answer does not have this form, or names a number outside 1 to ``most``.
    """
    found: set[int] = set()
    for word in answer.replace(",", " ").split():
        first, dash, last = word.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError(f"{word!r:.40} is not a number or a range such as 3-5; nothing was added")
        # Cut the range, so that one such as 1-999999999 fails without filling the memory.
        found |= set(range(int(first), int(last or first) + 1)[: most + 1])
    wrong = sorted(number for number in found if not 1 <= number <= most)
    if wrong:
        raise ValueError(f"number {wrong[0]} is not in 1 to {most}; nothing was added")
    return sorted(found)


def _offered(found: Sequence[Offer]) -> list[RenderableType]:
    """Return offers grouped by file."""
    parts: list[RenderableType] = []
    for source, of_file in groupby(found, attrgetter("source")):
        grid = Table.grid(padding=(0, 2))
        for offer in of_file:
            also = f"as {one_line(offer.duplicate_of)}" if offer.duplicate_of else "new"
            grid.add_row("", Text(str(offer.line), "dim"), Text(also), Text(one_line(clipped(offer.content))))
        parts += [Text(one_line(source), "bold"), grid]
    return parts


def _summary(found: Sequence[Offer], new: Sequence[Offer]) -> str:
    if not found:
        return "no bullets found in other agents' files"
    return f"{counted(len(new), 'bullet')} of {len(found)} can be added; nothing was added"


def _warn_of_size(notes: Notes) -> None:
    """Warn on standard error if AGENTS.md is longer than some agents read."""
    if words := notes.warning():
        typer.echo(f"warning: {words}. Remove notes, or run: keepstone notes dedupe", err=True)


def _type_of(*, project: bool, user: bool) -> str | None:
    return None if project == user else PROJECT if project else USER


def _choice(*, project: bool, user: bool) -> NotesChoice:
    if project and user:
        raise ValueError("give --project or --user, not both")
    if project or user:
        return "project" if project else "user"
    if not sys.stdin.isatty():
        raise ValueError("standard input is not a terminal: add --project or --user")
    return _ask_choice()


def _ask_choice() -> NotesChoice:
    typer.echo("Save it for the [P]roject or the [U]ser? Esc cancels: ", nl=False, err=True)
    # Other keys are ignored, and the question stays.
    keys = (key.lower() for _ in count() for key in read_keys())
    choice = next(_CHOICES.get(key) for key in keys if key in _CHOICES or key in _CANCELLING)
    typer.echo(choice or "", err=True)
    if choice is None:
        raise DeclinedError("nothing was saved")
    return choice


def _label(note: MemoryEntry) -> str:
    return f"{note.type}:{note.line}"


def _named(notes: Notes, name: str) -> MemoryEntry:
    known = notes.entries()
    found = [note for note in known if note.content == name.strip()]
    # Compare texts first: a note's text may be ``Project:12``.
    found = found or [note for note in known if _label(note).casefold() == name.strip().casefold()]
    if not found:
        raise NoteNotFoundError(name)
    if len(found) > 1:
        labels = ", ".join(map(_label, found))
        raise ValueError(f"{len(found)} notes say {name!r:.80}: name one by its line: {labels}")
    return found[0]


def _repeated(notes: Sequence[MemoryEntry]) -> list[MemoryEntry]:
    first: dict[tuple[str, str], MemoryEntry] = {}
    return [note for note in notes if first.setdefault((note.type, sameness(note.content)), note) is not note]


def _listing(notes: Sequence[MemoryEntry]) -> RenderableType:
    """Return notes grouped by file."""
    parts: list[RenderableType] = []
    for source, of_file in groupby(notes, attrgetter("source")):
        grid = Table.grid(padding=(0, 2))
        for note in of_file:
            grid.add_row("", Text(_label(note), "dim"), Text(one_line(clipped(note.content))))
        parts += [Text(one_line(source), "bold"), grid]
    return Group(*parts)
