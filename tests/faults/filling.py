"""Work on a home whose disk is full now and then, as a process of its own.

Prints, as one line of JSON, what was acknowledged and which errors came instead.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.traces import left

import keepstone
from keepstone import Home, MemoryService, Notes
from keepstone.errors import KeepstoneError, PurgePendingError
from keepstone.index.vectors import cache

DIM = 8


class Work:
    """All that may be written, and what came of it."""

    def __init__(self, home: Home, user: Path) -> None:
        self.home = home
        self.session = home.agent("a").session("s")
        self.notes = Notes(home.root, user)
        self.service = MemoryService(home, agent="v", hnsw_from=40)
        self.errors: Counter[str] = Counter()
        self.kept: dict[str, str] = {}
        self.memories: list[str] = []
        self.written: dict[str, str] = {}
        self.appended = ""
        self.noted: list[str] = []
        self.purged: list[str] = []

    def round(self, number: int) -> None:
        """Write some of everything."""
        text = f"{number} " + "walnut " * 40
        for act in (self.add, self.add_many, self.update, self.delete, self.purge, self.put):
            self.attempt(act, number, text)
        for act in (self.compact, self.file, self.append, self.note, self.memory, self.recall, self.similar):
            self.attempt(act, number, text)

    def attempt(self, act: Callable[[int, str], Any], number: int, text: str) -> bool:
        """Do it; what it raises must be an error of ours."""
        try:
            act(number, text)
        except KeepstoneError as error:
            self.errors[f"{act.__name__} {type(error).__name__}"] += 1
            return False
        return True

    def add(self, number: int, text: str) -> None:
        self.kept[self.session.add("note", text=text, id=f"add{number}").id] = text

    def add_many(self, number: int, text: str) -> None:
        added = self.session.add_many(
            [{"type": "event", "id": f"many{number}-{n}", "text": f"{text}{n}"} for n in range(9)]
        )
        self.kept |= {entry.id: entry.text for entry in added}

    def update(self, number: int, text: str) -> None:
        if f"add{number}" in self.kept:
            self.kept[f"add{number}"] = self.session.update(f"add{number}", text=f"new {text}").text

    def delete(self, number: int, text: str) -> None:  # noqa: ARG002
        if f"many{number}-0" in self.kept:
            self.session.delete(f"many{number}-0")
            del self.kept[f"many{number}-0"]

    def purge(self, number: int, text: str) -> None:  # noqa: ARG002
        if f"many{number}-1" in self.kept:
            del self.kept[f"many{number}-1"]  # Half a purge may be all that there is room for.
            with suppress(PurgePendingError):
                self.session.purge(f"many{number}-1")
            self.purged.append(f"many{number}-1")

    def put(self, number: int, text: str) -> None:
        if f"many{number}-2" in self.kept:
            entry = self.session.put({"id": f"many{number}-2", "type": "note", "text": f"put {text}"})
            self.kept[entry.id] = entry.text

    def compact(self, number: int, text: str) -> None:  # noqa: ARG002
        self.session.compact()

    def file(self, number: int, text: str) -> None:
        content = text * (number + 1)
        self.home.agent("a").files.write("whole.md", content)
        self.written["whole.md"] = content

    def append(self, number: int, text: str) -> None:  # noqa: ARG002
        self.home.agent("a").files.append("long.md", text)
        self.appended += text

    def note(self, number: int, text: str) -> None:  # noqa: ARG002
        self.notes.add(text, "Project")
        self.noted.append(" ".join(text.split()))

    def memory(self, number: int, text: str) -> None:  # noqa: ARG002
        for row in np.random.default_rng(number).normal(size=(20, DIM)).astype(np.float32):
            self.memories.append(self.service.create_memory("s", "short", row).id)

    def recall(self, number: int, text: str) -> None:  # noqa: ARG002
        self.home.agent("a").recall(text, limit=5)
        self.home.agent("v").recall("short", vector=np.ones(DIM), limit=5)

    def similar(self, number: int, text: str) -> None:  # noqa: ARG002
        self.service.query_similar_memories(np.ones(DIM), "s", 5)
        self.home.sync()

    def lost(self) -> list[str]:
        """What was acknowledged and is not there."""
        with keepstone.open(self.home.root, embedder="none") as home:
            agent = home.agent("a")
            there = {entry.id: entry.text for entry in agent.session("s").entries()}
            lost = [key for key, text in self.kept.items() if there.get(key) != text]
            lost += [f"by id {key}" for key, text in self.kept.items() if agent.get(key).text != text]
            memories = {entry.id for entry in home.agent("v").session("s").entries()}
            lost += [memory for memory in self.memories if memory not in memories]
            lost += [name for name, text in self.written.items() if agent.files.read(name) != text]
            if self.appended and agent.files.read("long.md") != self.appended:
                lost.append("long.md")
        notes = {entry.content for entry in self.notes.entries("Project")}
        return lost + [note for note in self.noted if note not in notes]


def work(root: Path, full: Callable[[bool], None], rounds: int) -> dict[str, Any]:
    """Fill a disk, look at what is there, make room, go on; ``full`` says whether it is to be full."""
    cache.NEWER = 16
    with keepstone.open(root, embedder="none") as home:
        work = Work(home, root.parent / "user.md")
        work.round(0)
        full(True)  # noqa: FBT003
        for number in range(1, rounds):
            work.round(number)
        lost = work.lost()
        full(False)  # noqa: FBT003
        before = sum(work.errors.values())
        after = [
            act.__name__
            for act in (work.add, work.file, work.append, work.note, work.memory, work.purge)
            if not work.attempt(act, rounds, "there is room")
        ]
        work.round(rounds + 1)
        home.sync()
        home.close()
        home.agent("a").sessions()
        behind = {str(path.relative_to(root)) for path in root.rglob("*.tmp")}
        return {
            "errors": work.errors,
            "lost": lost + work.lost(),
            "refused with room": after if sum(work.errors.values()) > before else [],
            "left": sorted(behind | left(root, *work.purged)),
        }


def limited(root: str, size: str) -> None:
    """Limit the length of files to this number of bytes, until there is room."""
    import resource

    def full(now: bool) -> None:  # noqa: FBT001
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size) if now else most, most))

    print(json.dumps(work(Path(root), full, 10)))  # noqa: T201


def filled(root: str, kept_free: str) -> None:
    """Fill the disk but for this number of bytes, until there is room."""
    ballast = Path(root).parent / "ballast"

    def full(now: bool) -> None:  # noqa: FBT001
        if not now:
            ballast.unlink()
            return
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(max(file.tell() - int(kept_free), 0))

    print(json.dumps(work(Path(root), full, 10)))  # noqa: T201


if __name__ == "__main__":
    {"limited": limited, "filled": filled}[sys.argv[1]](*sys.argv[2:])
