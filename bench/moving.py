"""Imports, exports and merges of 100,000 entries: seconds, processor seconds, and process memory.

The targets are 60 s for an import, 20 s for an export, 10 s for a merge, and memory that does not grow.

python bench/moving.py [ENTRIES]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keepstone
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import LAYOUTS
from keepstone.importing import import_memory
from keepstone.operations.exporting import FORMATS, export_memory
from keepstone.operations.git_home import init

WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
PER_SESSION = 500


@contextmanager
def timed(what: str) -> Iterator[None]:
    began, busy = time.perf_counter(), os.times()
    yield
    seconds, now = time.perf_counter() - began, os.times()
    used = sum(now[:4]) - sum(busy[:4])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<34} {seconds:7.2f} s   processor {used:6.2f} s   peak {peak:6.0f} MB")


def write_source(path: Path, entries: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(entries):
            text = f"message {number} about the retry policy of payment {number % 997}, with a few more words"
            line = {
                "id": f"m{number}",
                "ts": f"2026-01-{1 + number % 28:02}T10:00:00Z",
                "role": "user",
                "content": text,
            }
            file.write(json.dumps({"session": f"s{number // PER_SESSION}", **line}) + "\n")


def commit(folder: Path) -> None:
    git(folder, *WHO, "add", "-A")
    git(folder, *WHO, "commit", "-qm", "memory")


def merge(folder: Path, entries: int) -> None:
    """Merge two clones of a long log with adds, edits and deletions in both."""
    one, two = folder / "one", folder / "two"
    with keepstone.open(one, embedder="none", durability="os") as home:
        session = home.agent("a").session("main")
        for begin in range(0, entries, 1000):
            numbers = range(begin, begin + 1000)
            session.add_many(
                [{"type": "note", "id": f"n{n}", "text": f"note {n} of the long log"} for n in numbers]
            )
    init(one, LAYOUTS["default"])
    commit(one)
    git(folder, "clone", "-q", str(one), str(two))
    init(two, LAYOUTS["default"])
    for side, begin in ((one, 0), (two, 5)):
        with keepstone.open(side, embedder="none", durability="os") as home:
            agent = home.agent("a")
            agent.session("main").add_many(
                [{"type": "note", "text": f"{side.name} {n}"} for n in range(1000)]
            )
            agent.session("main").put_many(
                [
                    {"type": "note", "id": f"n{n}", "text": f"edited by {side.name}"}
                    for n in range(begin, 1000, 7)
                ]
            )
            agent.delete_where(ids=[f"n{n}" for n in range(1000 + begin, 2000, 10)])
        commit(side)
    branch = git(one, "branch", "--show-current").decode().strip()
    environment = {**os.environ, "GIT_AUTHOR_NAME": "b", "GIT_AUTHOR_EMAIL": "b@b"}
    environment |= {"GIT_COMMITTER_NAME": "b", "GIT_COMMITTER_EMAIL": "b@b"}
    with timed(f"merge of {entries:,} entries by git"):
        words = ["git", "-C", str(one), "pull", "-q", "--no-rebase", "--no-edit", str(two), branch]
        subprocess.run(words, check=True, env=environment)  # noqa: S603


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source.jsonl"
        write_source(source, entries)
        with keepstone.open(folder / "home", embedder="none") as home:
            agent = home.agent("a")
            for what in ("import", "second import, nothing new"):
                with timed(f"{what} of {entries:,}"):
                    result = import_memory(agent, "jsonl", source)
                print(
                    "   ",
                    result.imported,
                    "imported,",
                    result.unchanged,
                    "unchanged,",
                    len(result.failed),
                    "failed",
                )
            for form in FORMATS:
                with timed(f"export as {form}"):
                    export_memory(home, folder / f"out.{form}", agent="a", format=form)
        merge(folder, entries)


if __name__ == "__main__":
    main()
