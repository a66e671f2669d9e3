"""``keepstone demo``: a sample home with sessions, files, notes, typed entries and vectors."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.constrain import Constrain

from keepstone.cli import sample
from keepstone.cli.command import Answer, show
from keepstone.cli.options import JsonOption
from keepstone.operations.documents import context_document, hits_document, note_document

if TYPE_CHECKING:
    from keepstone.cli.demo_home import DemoResult

app = typer.Typer()

PLACE = ".keepstone-demo"
MARKER = "DEMO.txt"
SIGNATURE = "This folder was made by: keepstone demo\n"
_WIDTH = 80


@app.command(epilog="Example: keepstone demo")
def demo(
    home: Annotated[
        str, typer.Option("--home", metavar="DIR", help="Where to write the sample.", rich_help_panel="Place")
    ] = PLACE,
    json: JsonOption = False,
) -> None:
    """Write sample sessions, files, notes, typed entries and vectors, query them and show their files.

    The sample is the memory of a software team's assistant: six sessions over three weeks, a file, notes
    and more. A second run starts clean.
    """
    from keepstone.cli.demo_home import make
    from keepstone.cli.demo_story import story

    place = Path(home).expanduser()  # The printed commands quote the path, so a shell would not expand it.
    root = place.absolute()
    start_clean(root)
    shown = make(root, str(place))
    show(Answer(_document(shown), Constrain(Group(*story(shown)), _WIDTH)), as_json=json)


def start_clean(root: Path) -> None:
    """Remove an earlier demo and mark the folder as a demo.

    Raises:
        ValueError: The folder is not a demo, or contains the working directory. It is left unchanged.
    """
    # The folder is deleted as a whole below, so it must be empty or contain our mark.
    if root.is_symlink() or (root.exists() and not _is_ours(root)):
        raise ValueError(f"{root} exists and is not a demo: choose another folder with --home")
    # Otherwise the shell would be in a deleted folder, where every later command fails.
    if Path.cwd().is_relative_to(root.resolve()):
        raise ValueError(
            f"{root} contains the working directory: change directory, or choose another folder with --home"
        )
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(parents=True, mode=0o700)
    note = "The next run deletes this folder and creates it again.\n"
    (root / MARKER).write_text(SIGNATURE + note, encoding="utf-8")


def _is_ours(root: Path) -> bool:
    if not root.is_dir():
        return False
    marker = root / MARKER
    if marker.is_file() and not marker.is_symlink():
        return marker.read_bytes().startswith(SIGNATURE.encode("ascii"))
    return not any(root.iterdir())


def _document(shown: "DemoResult") -> dict[str, object]:
    return {
        "home": str(shown.root),
        "sessions": list(sample.SESSIONS),
        "entries": shown.entries,
        "files": [sample.FILE],
        "notes": [note_document(result.entry) for result in shown.saves if result.saved],
        "fading": [
            {
                "id": entry.id,
                "type": entry.type,
                "priorities": list(entry.priorities),
                "archived": entry.archived,
            }
            for entry in shown.fading
        ],
        "similar": [
            {"id": memory.id, "text": memory.text, "score": memory.score} for memory in shown.similar
        ],
        "questions": [{"query": query, **hits_document(hits)} for query, hits in shown.answers],
        "context": {"query": sample.TOPIC, **context_document(shown.context)},
    }
