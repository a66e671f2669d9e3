"""Figures of the context: assembly time with 10,000 entries, and with large notes.

python bench/context.py
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import keepstone
from keepstone import Agent, Notes
from keepstone.chat import Conversation
from keepstone.chat.messages import Request

RUNS = 40
TURNS = 50
SESSIONS = 200
A_SESSION = 50
WORDS = [
    f"{first}{last}" for first in ("wal", "ce", "ma", "o", "be", "lin") for last in ("nut", "dar", "ple")
]
TYPES = ("message", "message", "message", "finding", "message", "decision", "message", "preference")


def text(number: int) -> str:
    chance = random.Random(number)
    return f"{' '.join(chance.choices(WORDS, k=14))} in house number {number % 997}."


def times_ms(call: Callable[[int], object]) -> tuple[float, float]:
    """Return the median and the 95th percentile of a call's time, in milliseconds."""
    took = []
    for number in range(RUNS):
        start = time.perf_counter()
        call(number)
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took), statistics.quantiles(took, n=20)[-1]


def fill(agent: Agent) -> None:
    for session in range(SESSIONS):
        numbers = range(session * A_SESSION, (session + 1) * A_SESSION)
        agent.session(f"s{session}").add_many(
            {"type": TYPES[number % len(TYPES)], "content": text(number)} for number in numbers
        )


def show(what: str, call: Callable[[int], object]) -> None:
    start = time.perf_counter()
    call(0)
    first = (time.perf_counter() - start) * 1000
    half, most = times_ms(call)
    print(f"{what}: p50 {half:.1f} ms, p95 {most:.1f} ms, the first {first:.0f} ms")


def with_notes(agent: Agent, folder: Path, size: int, name: str) -> None:
    bullets = (f"- {text(number)}\n" for number in range(size // len(f"- {text(1)}\n")))
    (folder / "AGENTS.md").write_text("# Guide\n\nWe build.\n\n## Memories\n\n" + "".join(bullets), "utf-8")
    notes = Notes(folder, folder / "user.md")
    show(f"a context with notes of {name}", lambda n: agent.context(f"house {n} walnut", notes=notes))

    def saved(number: int) -> object:
        notes.add(f"a new note, number {number}", "Project")
        return agent.context(f"house {number}", notes=notes)

    start = time.perf_counter()
    saved(0)
    took = (time.perf_counter() - start) * 1000
    print(f"a note added to these {name} and the context with it: {took:.0f} ms")


class Recorder:
    """A model that keeps the prompts it gets."""

    name = "recorder"
    uses_tools = False

    def __init__(self) -> None:
        self.prompts: list[bytes] = []

    def answer(self, request: Request) -> Iterator[str]:
        """Keep the prompt and say yes."""
        self.prompts.append(request.prompt.text.encode())
        yield "Yes."


def shared(one: bytes, other: bytes) -> float:
    """Return the share of a prompt that is a common prefix with the previous prompt."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same) / len(other)


def show_prefix(agent: Agent, folder: Path, notes_added: int) -> None:
    bullets = "".join(f"- {text(number)}\n" for number in range(60))
    (folder / "AGENTS.md").write_text(f"## Memories\n\n{bullets}", "utf-8")
    notes, model = Notes(folder, folder / "user.md"), Recorder()
    talk = Conversation(agent, notes, model)
    for turn in range(TURNS):
        if notes_added and turn % (TURNS // notes_added) == 1:
            notes.add(f"a new note, number {turn}", "Project")
        list(talk.send(f"house {turn} walnut"))
    shares = [shared(one, other) for one, other in pairwise(model.prompts)]
    said = f"{statistics.mean(shares):.1%} of the bytes, at least {min(shares):.1%}"
    print(f"the same prefix as before, {TURNS} turns, {notes_added} notes added: {said}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = str(Path(name) / "state")
        with keepstone.open(Path(name) / "home", durability="os", embedder="none") as home:
            agent = home.agent("a")
            fill(agent)
            show("recall alone", lambda n: agent.recall(f"house {n} walnut", limit=8))
            show("a context of 10,000 entries in 200 sessions", lambda n: agent.context(f"house {n} walnut"))
            show_prefix(agent, Path(name), 0)
            show_prefix(agent, Path(name), 5)
            with_notes(agent, Path(name), 1_000_000, "1 MB")
            with_notes(agent, Path(name), 5_000_000, "5 MB")


if __name__ == "__main__":
    main()
