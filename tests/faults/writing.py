"""Processes that write to one home at the same time, ours and a stranger's."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from filelock import FileLock
from tests.faults.killing import context

import keepstone

AGENT = "default"
"""The one agent of the layout that the stranger knows."""


def add(root: Path, session: str, writer: int, adds: int, start: Barrier) -> None:
    """Add as fast as can be."""
    with keepstone.open(root, layout="bmad", embedder="none") as home:
        start.wait()
        for number in range(adds):
            home.agent(AGENT).session(session).add("note", {"writer": writer, "number": number})


def append_as_a_stranger(root: Path, session: str, writer: int, adds: int, start: Barrier) -> None:
    """Append lines one by one, with a program that knows nothing of us."""
    start.wait()
    for number in range(adds):
        append_line(root, session, f"f{writer}-{number}", {"writer": writer, "number": number})


def append_line(root: Path, session: str, name: str, data: dict[str, Any]) -> None:
    """Lock the session, append a line: all that a program has to know."""
    line = {"id": name, "type": "note", "ts": datetime.now(UTC).isoformat(), "data": data}
    with (
        FileLock(root / f"sessions/{session}.lock", timeout=5),
        (root / f"sessions/{session}.jsonl").open("a", encoding="utf-8") as log,
    ):
        log.write(json.dumps(line) + "\n")


def read(root: Path, sessions: list[str], least: int, start: Barrier) -> None:
    """Read and recall until each session has its entries; what was seen once is never missing."""
    seen: dict[str, int] = dict.fromkeys(sessions, 0)
    with keepstone.open(root, layout="bmad", embedder="none") as home:
        agent = home.agent(AGENT)
        start.wait()
        while min(seen.values()) < least:
            for session in sessions:
                ids = [entry.id for entry in agent.session(session).entries()]
                if len(ids) != len(set(ids)) or len(ids) < seen[session]:
                    raise AssertionError(f"{session} had {seen[session]} entries and has {len(set(ids))} now")
                seen[session] = len(ids)
            found = [(hit.entry.session, hit.entry.id) for hit in agent.recall("number", limit=50)]
            if len(found) != len(set(found)):
                raise AssertionError(f"recall found an entry twice: {found}")


def run(*jobs: tuple[Callable[..., None], Any]) -> None:
    """Run jobs in a process each, all at once; every one of them has to end well."""
    start = context.Barrier(len(jobs))
    processes = [context.Process(target=target, args=(*arguments, start)) for target, arguments in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    assert codes == [0] * len(jobs)
