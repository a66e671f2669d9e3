"""``recollect demo``: a sample memory, three questions to it, and where everything lies."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from recollect.cli import sample
from recollect.cli.command import Answer, show
from recollect.cli.documents import context_document, hits_document
from recollect.cli.options import JsonOption
from recollect.cli.screen import clipped, counted, harmless, moment, size, table
from recollect.model import Context, Hit, Hits

if TYPE_CHECKING:
    from recollect.home import Home

app = typer.Typer()

PLACE = ".recollect-demo"
MARKER = "DEMO.txt"
SIGNATURE = "This folder was made by: recollect demo\n"
QUESTIONS = (
    "Why do customers sign in with passkeys?",
    "Why were customers charged twice?",
    "How should a summary for Lena be written?",
)
TOPIC = "Why was the car deck double booked?"
_STEPS = (
    ("recall 'who carries the pager in May' --explain", "ask it something of your own"),
    ("add 'Mr. Dunn cannot tell red from green' --type preference", "tell it something"),
    ("sessions show payments", "read a session, a bad night and a good day"),
    ("doctor", "see that everything is well"),
    ("--help", "see all commands"),
)
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Shown:
    """What the demo has found out, before it is printed."""

    place: str
    root: Path
    entries: int
    answers: tuple[tuple[str, Hits], ...]
    context: Context


@app.command(epilog="Example: recollect demo")
def demo(
    home: Annotated[
        str, typer.Option("--home", metavar="DIR", help="Where to write the sample.", rich_help_panel="Place")
    ] = PLACE,
    json: JsonOption = False,
) -> None:
    """Write a sample memory, ask it three questions and show where everything lies.

    The sample is a software team's assistant: six sessions over three months. A second run starts clean.
    """
    import recollect

    root = Path(home).expanduser().absolute()
    start_clean(root)
    with recollect.open(root) as opened:
        entries = fill(opened)
        shown = ask(opened, home, entries)
    show(Answer(_document(shown), Constrain(Group(*_story(shown)), _WIDTH)), as_json=json)


def start_clean(root: Path) -> None:
    """Remove an earlier demo and mark the folder as one.

    Raises:
        ValueError: Something else is there, or this process works inside it. It is left as it is.
    """
    if root.is_symlink() or (root.exists() and not _is_ours(root)):
        raise ValueError(f"{root} exists and is no demo: choose another place with --home")
    if Path.cwd().is_relative_to(root.resolve()):
        raise ValueError(f"{root} is made anew and you are inside: go elsewhere, or choose another --home")
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(parents=True, mode=0o700)
    note = "The next run removes it with everything in it and makes it anew.\n"
    (root / MARKER).write_text(SIGNATURE + note, encoding="utf-8")


def _is_ours(root: Path) -> bool:
    if not root.is_dir():
        return False
    marker = root / MARKER
    if marker.is_file() and not marker.is_symlink():
        return marker.read_bytes().startswith(SIGNATURE.encode("ascii"))
    return not any(root.iterdir())


def fill(home: "Home") -> int:
    """Write the sample through the public API and return how many entries it has."""
    agent = home.agent("default")
    count = 0
    for name in sample.SESSIONS:
        count += len(agent.session(name).add_many(sample.turns(name)))
    agent.files.write(sample.FILE, sample.file_text())
    return count


def ask(home: "Home", place: str, entries: int) -> Shown:
    """Ask the questions and build the context block."""
    agent = home.agent("default")
    answers = tuple((question, agent.recall(question, limit=3)) for question in QUESTIONS)
    return Shown(place, home.root, entries, answers, agent.context(TOPIC))


def _document(shown: Shown) -> dict[str, object]:
    return {
        "home": str(shown.root),
        "sessions": list(sample.SESSIONS),
        "entries": shown.entries,
        "files": [sample.FILE],
        "questions": [{"query": query, **hits_document(hits)} for query, hits in shown.answers],
        "context": {"query": TOPIC, **context_document(shown.context)},
    }


def _story(shown: Shown) -> Iterator[RenderableType]:
    # One function for each memory that the demo shows, in the order in which they appear.
    yield from _sessions(shown)
    yield from _recall(shown)
    yield from _context(shown)
    yield from _places(shown)
    yield from _next(shown)


def _heading(words: str) -> RenderableType:
    return Padding(Rule(Text(words, "bold"), align="left", style="dim"), (1, 0))


def _sessions(shown: Shown) -> Iterator[RenderableType]:
    yield _heading("What was remembered")
    yield Text("A ferry line replaces its booking system; an assistant sat in on the talks.")
    rows = [_session_row(name) for name in sample.SESSIONS]
    yield table(("session", "day", "entries", "of these, set down as"), rows)
    yield Text(f"{counted(shown.entries, 'entry')} in {len(rows)} sessions, and one file: {sample.FILE}")


def _session_row(name: str) -> tuple[str, str, str, str]:
    turns = sample.turns(name)
    kinds = [turn["type"] for turn in turns]
    told = [
        counted(kinds.count(kind), kind) for kind in ("decision", "finding", "preference") if kind in kinds
    ]
    return name, turns[0]["ts"][:10], str(len(turns)), ", ".join(told)


def _recall(shown: Shown) -> Iterator[RenderableType]:
    yield _heading("Three questions, with the reason for each hit")
    for question, hits in shown.answers:
        yield Text(f"? {question}", "bold magenta")
        yield from (Padding(_hit(hit), (0, 0, 1, 2)) for hit in hits)


def _hit(hit: Hit) -> RenderableType:
    entry = hit.entry
    head = Text.assemble(
        (entry.type, "bold cyan"), (f"  {moment(entry.ts)}  {entry.session}/{entry.id}", "dim")
    )
    return Group(head, Text(harmless(clipped(entry.text, 230))), Text(harmless(str(hit.why)), "green"))


def _context(shown: Shown) -> Iterator[RenderableType]:
    yield _heading("The context block: what goes into a system prompt")
    yield Text(f"? {TOPIC}", "bold magenta")
    yield Panel(Text(harmless(clipped(shown.context.text, 1100))), border_style="dim")
    yield Text(f"{counted(shown.context.tokens, 'token')} at most, shown from its beginning")


def _places(shown: Shown) -> Iterator[RenderableType]:
    yield _heading("Where it lies: plain files, open them")
    yield Text(f"{harmless(shown.place)}/", "bold")
    for path in sorted((shown.root / "agents").rglob("*.*")):
        if path.is_file() and path.suffix in (".ndjson", ".md"):
            yield _place(path, path.relative_to(shown.root).as_posix())
    yield Text.assemble("  .index/", ("  makes recall fast; delete it, nothing is lost", "dim"))


def _place(path: Path, name: str) -> Text:
    return Text.assemble(f"  {name}", (f"  {size(path.stat().st_size)}", "dim"))


def _next(shown: Shown) -> Iterator[RenderableType]:
    yield _heading("Now you")
    place = shlex.quote(harmless(shown.place))
    yield Text(f"export RECOLLECT_HOME={place}", "bold green")
    for words, meaning in _STEPS:
        yield Text.assemble((f"{_program()} {words}", "bold green"), (f"\n    {meaning}", "dim"))
    yield Text("The next demo makes this folder anew, without what you add.", "dim")


def _program() -> str:
    if shutil.which("recollect"):
        return "recollect"
    called = Path(sys.argv[0])
    return sys.argv[0] if called.name == "recollect" else "python -m recollect"
