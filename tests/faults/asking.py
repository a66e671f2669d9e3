"""A home with everything in it, and what each way of reading says about it, asked in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.memories import Letters
from tests.warm import warm

import keepstone
from keepstone import Agent, Entry, Home
from keepstone.index.vectors import cache
from keepstone.model import Scope
from keepstone.vector import unit

ROUNDS = int(os.environ.get("KEEPSTONE_FAULT_ROUNDS", "8"))
"""How often tests try what chance decides."""
REPOSITORY = Path(__file__).parents[2]

DIM = 8
PURGED = "qzvxkwalnut"
"""A word of an entry that was purged."""
FOREIGN = "zebrawood"
"""A word that all entries of another home and of another agent have."""
QUERIES = ("walnut", "pecan 7", "hazel", "東京", "abba cab", "nothing of it", FOREIGN, PURGED)
FEW, NEVER = 20, 1_000_000
"""From how many vectors on a graph is asked."""


def opened(root: Path) -> Home:
    """A home whose vectors have their generation and graphs from 32 entries on."""
    cache.NEWER = 32
    return keepstone.open(root, durability="os", embedder=Letters(DIM))


def vectors(count: int, seed: int) -> Any:
    """Vectors that are equal in every process."""
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


def fill(home: Home, word: str = "walnut", slug: str = "a", seed: int = 1) -> None:
    """Two sessions with given vectors, puts, patches, deletions, a purge, an archive and foreign lines."""
    for name in ("s1", "s2"):
        session = home.agent(slug).session(name)
        session.add_many(
            {
                "type": "event",
                "id": f"{name}-{n}",
                "text": f"{word} {n}" if n % 2 else f"pecan {n} 東京都 {word}",
                "embedding": vector,
            }
            for n, vector in enumerate(vectors(45, seed))
        )
        session.add_many(
            {"type": "event", "id": f"{name}-made-{n}", "text": f"{word} abba cab {n}"} for n in range(5)
        )
        session.update(f"{name}-3", data={"content": f"hazel {word}"})
        session.update(f"{name}-4", tags=["x"], pinned=True)
        session.delete(f"{name}-5")
        session.add("note", id=f"{name}-purged", text=f"{PURGED} {PURGED} abba")
    home.agent(slug).session("s2").compact()
    log = next(home.root.glob(f"agents/{slug}/memory/sessions/s1.ndjson"))
    with log.open("a") as file:
        file.write('{"content":"walnut of another program"}\nno line at all\n' + '{"content":"same"}\n' * 2)
    home.sync()
    home.embed()


def with_files(home: Home, slug: str = "a") -> None:
    """Let the index have its generation and graphs."""
    for sessions in (None, ("s1",)):
        similar(home, slug, FEW, sessions)
        home.sync()
        assert similar(home, slug, FEW, sessions).searched == "hnsw"


def similar(home: Home, slug: str, hnsw_from: int, sessions: tuple[str, ...] | None = None) -> Any:
    """What the store finds by vectors: entries with cosines, and how it searched."""
    vector, scope = unit(vectors(1, 99)[0]), Scope(slug, sessions)
    return home.agent(slug).vectors().similar(vector, scope, 6, hnsw_from=hnsw_from)


def purge(home: Home, slug: str = "a") -> None:
    """Take out what must never come back."""
    for name in ("s1", "s2"):
        home.agent(slug).session(name).purge(f"{name}-purged")


def given(home: Home, slug: str = "a") -> dict[str, list[Entry]]:
    """What each way of reading that asks the index gives back."""
    agent, found = home.agent(slug), {}
    for query in QUERIES:
        # On a busy machine the vectors of a rebuilt index may come after the first answer.
        for _ in range(50):
            if not (hits := agent.recall(query, limit=9, neighbours=1)).pending:
                break
            home.embed()
        assert not hits.pending
        found[f"recall {query}"] = [hit.entry for hit in hits]
    found["vector"] = [hit.entry for hit in agent.recall(None, vector=vectors(1, 99)[0], limit=5)]
    found["tags"] = [hit.entry for hit in agent.recall("pecan", tags=["x"])]
    for hnsw_from in (FEW, NEVER):
        for sessions in (None, ("s1",), ("s1", "s2")):
            near = similar(home, slug, hnsw_from, sessions)
            found[f"similar {hnsw_from} {sessions}"] = [entry for entry, _ in near]
    for name in ("s1", "s2", "none"):
        found[f"newest {name}"] = agent.session(name).entries(7)
    found["got"] = [agent.get("s1-3"), agent.get("s2-44")]
    return found


def truth(agent: Agent) -> dict[tuple[str, str], Entry]:
    """What the logs say, read whole and without the index."""
    return {(name, entry.id): entry for name in ("s1", "s2") for entry in agent.session(name).entries()}


def answers(home: Home) -> dict[str, Any]:
    """What is said of the agent, in a shape that can be compared."""
    found, true = given(home), truth(home.agent("a"))
    wrong = [
        entry.id for some in found.values() for entry in some if true.get((entry.session, entry.id)) != entry
    ]
    ids = {name: [f"{entry.session}/{entry.id}" for entry in some] for name, some in found.items()}
    return {
        "ids": {name: sorted(some) if name.startswith("recall") else some for name, some in ids.items()},
        "counts": home.agent("a").entry_counts(),
        "wrong": wrong,
    }


def main() -> None:
    """Answer for each home that standard input names, one line of JSON each."""
    for line in sys.stdin:
        root = Path(line.rstrip("\n"))
        with opened(root) as home:
            told = answers(home)
        with opened(root) as home:
            again = answers(home)
        print(json.dumps([told, again]), flush=True)  # noqa: T201


def asked(
    roots: Iterable[Path], script: str = "from tests.faults.asking import main; main()"
) -> Iterator[Any]:
    """What another process says about each home; it must come to its end."""
    names = [str(root) for root in roots]
    told = subprocess.run(
        [*warm(), "-W", "error", "-c", script],
        input="".join(f"{name}\n" for name in names),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
        timeout=600,
    )
    lines = told.stdout.splitlines()
    culprit = names[len(lines)] if len(lines) < len(names) else "the end"
    assert told.returncode == 0, f"status {told.returncode} at {culprit}: {told.stderr[-3000:]}"
    yield from map(json.loads, lines)


def copy(root: Path, to: Path) -> Path:
    """A copy of a home whose index or state is to be damaged.

    Its logs are the same files: an index follows a log by its inode, and would read a copy from its start,
    whatever is in the index.
    """

    def linked(source: str, target: str) -> str:
        if not {".index", ".keepstone"}.isdisjoint(Path(source).parts):
            return str(shutil.copy2(source, target))
        os.link(source, target)
        return target

    return Path(shutil.copytree(root, to, copy_function=linked))
