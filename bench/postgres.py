"""A home in PostgreSQL compared with handwritten SQL for the same work, on a dedicated server.

    python bench/postgres.py [ENTRIES]      # 100,000 unless said

Only ratios within one run are comparable: the server, its clients and other programs share the machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg

import keepstone
from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.session_lines import literal
from keepstone.store.transfer import move
from keepstone.vector import encode, unit

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import running_server, schema_of

ENTRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
SESSIONS, DIM, ROUNDS = 20, 384, 15
WORDS = [f"word{number}" for number in range(20_000)]
CHANCE = np.random.default_rng(7)
OFTEN = 1 / (np.arange(len(WORDS)) + 5)


def _text() -> str:
    return " ".join(CHANCE.choice(WORDS, 20, p=OFTEN / OFTEN.sum()))


def _vector() -> Any:
    return unit(CHANCE.standard_normal(DIM))


def _timed(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1000 * median(times)


def fill(folder: Path) -> None:
    """Write a file-based home with a vector for each entry."""
    with keepstone.open(folder, embedder="none", durability="os") as home:
        for session in range(SESSIONS):
            home.agent("a").session(f"s{session}").add_many(
                [
                    {"type": "note", "text": _text(), "embedding": encode(f"given:{DIM}", _vector())}
                    for _ in range(ENTRIES // SESSIONS)
                ]
            )


def recalls(dsn: str) -> None:
    """Print the time of recalls and of handwritten queries for the same rows."""
    vector, words = _vector(), "word40 word900 word5000"
    with keepstone.open(dsn, embedder="none") as home, psycopg.connect(dsn, autocommit=True) as hand:
        agent = home.agent("a")
        for name, sessions in (("a session", ["s3"]), ("the agent", None)):
            where = "" if sessions is None else "AND v.session = 's3'"
            sql = (
                "SELECT e.id, l.line FROM (SELECT v.key FROM vectors v WHERE v.agent = 'a' "
                f"AND v.space = 'given:{DIM}' {where} ORDER BY v.embedding <#> %s::vector LIMIT 10) n "
                "JOIN entries e ON e.agent = 'a' AND e.key = n.key JOIN lines l "
                "ON l.agent = 'a' AND l.session = e.session AND l.seq = e.seq"
            )
            said = literal(vector)
            by_hand = _timed(lambda sql=sql, said=said: hand.execute(sql, (said,)).fetchall())  # type: ignore[misc]
            ours = _timed(lambda sessions=sessions: agent.recall(None, vector=vector, sessions=sessions))  # type: ignore[misc]
            print(f"by vector, exact, {name}: {ours:.1f} ms, by hand {by_hand:.1f} ms, {ours / by_hand:.2f}")
            ours = _timed(lambda sessions=sessions: agent.recall(words, sessions=sessions))  # type: ignore[misc]
            both = _timed(lambda sessions=sessions: agent.recall(words, vector=vector, sessions=sessions))  # type: ignore[misc]
            print(f"by words, {name}: {ours:.1f} ms; by words and vectors: {both:.1f} ms")
        if ENTRIES >= 50_000:
            began = time.perf_counter()
            home.sync()
            print(f"graph of {ENTRIES:,} vectors: {time.perf_counter() - began:.0f} s")
            found = agent.recall(None, vector=vector)
            ours = _timed(lambda: agent.recall(None, vector=vector))
            print(f"by vector, {found.searched}, the agent: {ours:.1f} ms")


def _by_hand(dsn: str, client: int, count: int) -> None:
    """Insert the rows of adds, a line and an entry each, with one transaction for each add."""
    with psycopg.connect(dsn) as connection:
        for at in range(count):
            place = ("hand", f"s{client}", f"{at}")
            text = _text()
            with connection.pipeline():
                connection.execute(
                    "INSERT INTO lines (agent, session, seq, id, line) VALUES (%s, %s, %s, %s, %s)",
                    (*place[:2], at, place[2], text.encode()),
                )
                connection.execute(
                    "INSERT INTO entries (agent, session, id, seq, ts, type, pinned, tags, targets, facts, "
                    "head, sum, length, terms, times) VALUES (%s, %s, %s, %s, now(), 'note', false, '{}', "
                    "'{}', %s, %s, 1, 20, %s, %s)",
                    (*place, at, list(range(at, at + 6)), text[:64], list(range(at, at + 20)), [1] * 20),
                )
                connection.execute("COMMIT")


def adds(dsn: str) -> None:
    """Print durable adds per second with 1 and 8 clients, and handwritten inserts of the same rows."""
    count = 300
    with keepstone.open(dsn, embedder="none") as home:

        def ours(client: int) -> None:
            session = home.agent("b").session(f"s{client}")
            for _ in range(count):
                session.add("note", text=_text())

        for clients in (1, 8):
            speeds = []
            for work in (ours, lambda client: _by_hand(dsn, client + 10 * clients, count)):  # noqa: B023
                threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
                began = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                speeds.append(clients * count / (time.perf_counter() - began))
            print(
                f"adds/s, {clients} clients: {speeds[0]:,.0f}, by hand {speeds[1]:,.0f}, "
                f"{speeds[0] / speeds[1]:.2f}"
            )


def agents(dsn: str) -> None:
    """Print the time of adds and recalls of 1,000 agents, eight at a time."""
    with keepstone.open(dsn, embedder="none") as home:

        def use(client: int) -> None:
            for number in range(client, 1000, 8):
                agent = home.agent(f"agent-{number}")
                agent.session("s").add("note", text=_text())
                agent.recall("word40")

        threads = [threading.Thread(target=use, args=(client,)) for client in range(8)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"1,000 agents, an add and a recall each: {time.perf_counter() - began:.1f} s")


def check(places: dict[str, str | Path]) -> None:
    """Print the time of ``doctor(deep=True)`` in the database and on files."""
    took = {}
    for name, place in places.items():
        with keepstone.open(place, embedder="none") as home:
            began = time.perf_counter()
            home.doctor(deep=True)
            took[name] = time.perf_counter() - began
    print(
        f"doctor --deep: {took['database']:.1f} s, files {took['files']:.1f} s, "
        f"{took['database'] / took['files']:.2f}"
    )


def main() -> None:
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    with (
        running_server(fsync=True) as server,
        schema_of(server.dsn) as dsn,
        tempfile.TemporaryDirectory() as name,
    ):
        fill(Path(name))
        source, target = FileStore(Path(name), LAYOUTS["default"]), PostgresStore(dsn)
        with closing(source), closing(target):
            began, spent = time.perf_counter(), time.process_time()
            move(source, target)
            took, spent = time.perf_counter() - began, time.process_time() - spent
            print(
                f"migrate, with vectors: {ENTRIES / took:,.0f} entries/s; "
                f"{ENTRIES / spent:,.0f} per second of our processor time"
            )
        check({"files": Path(name), "database": dsn})
        recalls(dsn)
        adds(dsn)
        agents(dsn)
        with psycopg.connect(dsn) as connection:
            for table in ("lines", "entries", "vectors"):
                [(size,)] = connection.execute(
                    "SELECT pg_total_relation_size(%s::regclass)", (table,)
                ).fetchall()
                print(f"{table}: {size / ENTRIES:,.0f} bytes an entry")


if __name__ == "__main__":
    main()
