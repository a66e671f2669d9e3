"""The output of ``keepstone demo``: one function per kind of memory, in order."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from keepstone.cli import sample
from keepstone.cli.demo_home import AGES, ASKED, BUDGET, DemoResult, FadedEntry
from keepstone.cli.recall import hit_view
from keepstone.cli.sample import AGENT, BMAD, PROJECT, USER_FILE
from keepstone.cli.screen import table
from keepstone.notes.notes import PROJECT_FILE
from keepstone.operations.documents import saved_words
from keepstone.text.display import clipped, counted, harmless, one_line

_STEPS = (
    ("recall 'how long is an unpaid hold kept' --explain", "ask your own question"),
    ("add 'Mr. Dunn cannot tell red from green' --type preference", "add an entry"),
    ("sessions show payments", "read a session"),
    ("notes list --dir {project}", "list the project's notes and your own"),
    ("doctor", "check the home for damage"),
)


def story(shown: DemoResult) -> Iterator[RenderableType]:
    """Yield the whole output, part by part."""
    yield from _sessions(shown)
    yield from _files(shown)
    yield from _notes(shown)
    yield from _session_memory(shown)
    yield from _vectors(shown)
    yield from _context(shown)
    yield from _next(shown)


def _heading(words: str) -> RenderableType:
    return Padding(Rule(Text(words, "bold"), align="left", style="dim"), (1, 0, 0, 0))


def _memory(number: int, name: str, what: str, path: str) -> RenderableType:
    """Return the heading of a kind of memory: its name, description and file."""
    return Group(_heading(f"{number}  {name}"), Text(what), Text(path, "dim"))


def _question(words: str) -> RenderableType:
    return Text(f"? {words}", "bold magenta")


def _sessions(shown: DemoResult) -> Iterator[RenderableType]:
    what = f"What was said and decided: {counted(shown.entries, 'entry')}, each a line of JSON."
    folder = f"agents/{AGENT}/memory/sessions/"
    yield _memory(1, "Session logs", what, f"{folder}{sample.SESSIONS[0]}.ndjson and five more")
    yield table(("session", "day", "entries", "recorded"), map(_session_row, sample.SESSIONS))
    for question, hits in shown.answers:
        yield _question(question)
        yield hit_view(1, hits[0])
        yield Text(harmless(str(hits[0].why)), "green")


def _session_row(name: str) -> tuple[str, str, str, str]:
    turns = sample.turns(name)
    kinds = [turn["type"] for turn in turns]
    kind_counts = [
        counted(kinds.count(kind), kind) for kind in ("decision", "finding", "preference") if kind in kinds
    ]
    return name, turns[0]["ts"][:10], str(len(turns)), ", ".join(kind_counts)


def _files(shown: DemoResult) -> Iterator[RenderableType]:
    what = "Text files in the agent's own folder, which it cannot leave."
    yield _memory(2, "The agent's files", what, f"agents/{AGENT}/files/{sample.FILE}")
    for line in [line for line in shown.file.splitlines() if line][:3]:
        yield Text(f"  {harmless(line)}")


def _notes(shown: DemoResult) -> Iterator[RenderableType]:
    what = "What your agents should always know: messages that start with #."
    yield _memory(3, "Notes", what, f"{PROJECT}/{PROJECT_FILE} and {USER_FILE}")
    for (message, _), result in zip(sample.TYPED_MESSAGES, shown.saves, strict=True):
        yield Text(f"  {message}", "bold magenta")
        yield Text(f"    {saved_words(result).replace(f'{shown.root}/', '')}")


def _session_memory(shown: DemoResult) -> Iterator[RenderableType]:
    what = "Typed entries whose priority fades with age and grows with use."
    yield _memory(4, "Session memory", what, f"{BMAD}/sessions/{sample.FADING_SESSION}.jsonl")
    headings = ("type", *(f"day {age}" for age in AGES), "content")
    yield table(headings, map(_faded_row, shown.fading))
    boosted = next(entry for entry in shown.fading if entry.type == "finding")
    yield Text(f"After {ASKED} queries the finding's priority is {boosted.priority_after_queries:.2f}.")
    gone = ", ".join(entry.type for entry in shown.fading if entry.archived)
    yield Text(f"Compaction archived entries of priority 0.3 or less: the {gone}.")


def _faded_row(entry: FadedEntry) -> tuple[str, ...]:
    return entry.type, *(f"{priority:.2f}" for priority in entry.priorities), clipped(entry.text, 36)


def _vectors(shown: DemoResult) -> Iterator[RenderableType]:
    what = "What callers asked, found by vector, without a word in common with the question."
    path = f"agents/{sample.DESK}/memory/sessions/{sample.CALLS}.ndjson"
    yield _memory(5, "Vector memory", what, path)
    yield _question(sample.QUESTION_OF_A_CALLER)
    for memory in shown.similar:
        yield Text.assemble((f"  {memory.score:.2f}", "green"), f"  {one_line(memory.text)}")
    yield Text(
        f"These vectors are handmade: {len(sample.TOPICS)} numbers, one per topic "
        f"({', '.join(sample.TOPICS[:4])} …). An embedder makes vectors of hundreds of numbers.",
        "dim",
    )


def _context(shown: DemoResult) -> Iterator[RenderableType]:
    yield _heading(f"All together: the block for a system prompt, at most {BUDGET} tokens")
    yield _question(sample.TOPIC)
    yield Panel(Text(harmless(shown.context.text.rstrip("\n"))), border_style="dim")


def _next(shown: DemoResult) -> Iterator[RenderableType]:
    yield _heading("Next steps")
    place = harmless(shown.place)
    yield Text(f"All of this is text in {place}/: open it. Deleting .index/ loses nothing.")
    yield Text(f"export KEEPSTONE_HOME={shlex.quote(place)}", "bold green")
    for words, meaning in _STEPS:
        command = words.format(project=shlex.quote(f"{place}/{PROJECT}"))
        yield Text.assemble((f"{_program()} {command}", "bold green"), (f"\n    {meaning}", "dim"))
    yield Text("The next demo creates this folder again, without what you added.", "dim")


def _program() -> str:
    if shutil.which("keepstone"):
        return "keepstone"
    called = Path(sys.argv[0])
    return sys.argv[0] if called.name == "keepstone" else "python -m keepstone"
