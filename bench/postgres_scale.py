"""A home of many entries in PostgreSQL: recall latency compared with handwritten pgvector SQL, and its cost.

    python bench/postgres_scale.py [ENTRIES] [--questions 40] [--exact]      # 100,000 entries unless said

One agent has 10,000 entries, another agent has all others, 500 in each session. Each entry has a text of 20
words and a vector of 384 numbers. A block of entries is written by keepstone; the other entries repeat its
rows in other sessions, with different vectors. Recalls alternate with handwritten SQL, in three ways:

- the same work, as psycopg is commonly used: a pooled connection, a transaction that sets the agent for
  row-level security, and entries with time, text and metadata, without entries that are not valid now;
- the same, with all statements in one pipeline, which takes one round trip, as in a recall;
- only the statement and its raw rows, on a leased connection.

All three send vectors in pgvector's binary format, and prepare statements. With ``--exact`` no graph (HNSW)
is built, which is the slowest step.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
from psycopg.types.numeric import Int8
from psycopg_pool import ConnectionPool

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import PostgresServer, running_server, schema_of

import keepstone
from keepstone import Home
from keepstone.log.line import dump
from keepstone.log.scan import Line
from keepstone.model import BOUNDS
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.vector_format import VectorDumper
from keepstone.store.postgres.vector_rows import graph_settings
from keepstone.store.transfer import RawLine
from keepstone.store.validity import is_valid
from keepstone.vector import Vector, given_space, unit

A_SESSION, AN_AGENT, BLOCK, DIM = 500, 10_000, 30_000, 384
SPACE = given_space(DIM).id
AGENT, ALL = "one", "all"
CHANCE = np.random.default_rng(7)
WORDS = np.array([f"word{number}" for number in range(20_000)])
_OFTEN = 1 / (np.arange(len(WORDS)) + 5)
_OFTEN /= _OFTEN.sum()
_AT_ONCE = 50_000
AGENTS, EACH = 1_000, 3


def _texts(count: int) -> list[str]:
    return [" ".join(row) for row in CHANCE.choice(WORDS, (count, 20), p=_OFTEN)]


def _vector() -> Vector:
    return unit(CHANCE.standard_normal(DIM))


# Making the home


def write_block(dsn: str, agent: str, entries: int) -> None:
    """Write entries without vectors, as a migration does."""
    with closing(PostgresStore(dsn)) as store:
        for begin in range(0, entries, A_SESSION):
            lines = []
            for at, text in enumerate(_texts(A_SESSION)):
                record = {"id": f"n{begin + at}", "ts": _time(begin + at), "type": "note", "text": text}
                raw = dump(record)
                lines.append(RawLine(Line(at, raw[:-1], len(raw), record), archived=False))
            store.take_raw_lines(agent, f"s{begin // A_SESSION}", lines)


def _time(at: int) -> str:
    return f"2026-01-{1 + at % 28:02}T10:{at // 28 % 60:02}:00.{at % 1_000_000:06}Z"


def repeat_block(connection: psycopg.Connection[tuple[object, ...]], times: int) -> None:
    """Copy the rows of the large agent into other sessions."""
    for number in range(1, times + 1):
        for table, columns in (
            ("sessions", "next_seq, entries, texts, words, size"),
            ("lines", "seq, folded, archived, id, ts, line"),
            ("entries", "id, seq, ts, type, pinned, tags, targets, facts, head, sum, length, terms, times"),
        ):
            connection.execute(
                f"INSERT INTO {table} (agent, session, {columns}) SELECT agent, session || %s, {columns} "
                f"FROM {table} WHERE agent = %s AND session NOT LIKE '%%-%%'".encode(),
                (f"-{number}", ALL),
            )


def add_vectors(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Give each entry a different random vector."""
    connection.adapters.register_dumper("numpy.ndarray", VectorDumper)
    keys = connection.execute("SELECT agent, session, key FROM entries ORDER BY agent, key").fetchall()
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        made = CHANCE.standard_normal((len(some), DIM), dtype=np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        into = "COPY vectors (agent, space, key, session, embedding) FROM STDIN (FORMAT BINARY)"
        with connection.cursor().copy(into) as copy:
            for (agent, session, key), vector in zip(some, made, strict=True):
                copy.write_row((agent, SPACE, Int8(int(str(key))), session, vector))
    connection.execute(
        "INSERT INTO spaces SELECT agent, session, space, %s, count(*) FROM vectors GROUP BY 1, 2, 3", (DIM,)
    )
    connection.execute("VACUUM (ANALYZE) sessions, lines, entries, vectors, spaces")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the time that the ``with`` block takes."""
    began = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - began:,.0f} s", flush=True)


# Recalls


def p50(calls: dict[str, Callable[[int], object]], questions: int) -> dict[str, float]:
    """Return the median milliseconds of calls that run in turn, in a random order each time."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(questions + 2):
        # The order is random, as the first call loads pages for the others, and each call fills the caches.
        for name in CHANCE.permutation(list(calls)).tolist():
            call = calls[name]
            began = time.perf_counter()
            call(number)
            times[name].append(1000 * (time.perf_counter() - began))
    return {name: median(found[2:]) for name, found in times.items()}


def by_hand(agent: str, session: str | None, *, graph: bool) -> str:
    """Return a typical handwritten query: the nearest ten entries with their lines."""
    distance = (
        f"(v.embedding::vector({DIM})) <#> %s::vector({DIM})" if graph else "v.embedding <#> %s::vector"
    )
    where = "" if session is None else f"AND v.session = '{session}'"
    return (
        f"SELECT e.id, n.distance, coalesce(e.record, l.line) FROM (SELECT v.key, {distance} AS distance "
        f"FROM vectors v WHERE v.agent = '{agent}' AND v.space = '{SPACE}' {where} "
        f"ORDER BY distance LIMIT 10) n JOIN entries e ON e.agent = '{agent}' AND e.key = n.key "
        f"LEFT JOIN lines l ON l.agent = '{agent}' AND l.session = e.session AND l.seq = e.seq "
        "AND NOT l.archived"
    )


class ByHand:
    """The three ways to query with handwritten SQL."""

    def __init__(self, dsn: str) -> None:
        self._pool = ConnectionPool(
            dsn, min_size=1, max_size=2, configure=self._configure, connection_class=psycopg.Connection
        )

    @staticmethod
    def _configure(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        connection.adapters.register_dumper("numpy.ndarray", VectorDumper)
        connection.execute(graph_settings(10).replace("true)", "false)").encode())
        connection.commit()

    def same_work(self, agent: str, query: bytes, vector: Vector) -> list[dict[str, Any]]:
        """Query in a transaction for the agent."""
        with self._pool.connection() as connection:
            connection.execute(_OF_AGENT, (agent,))
            rows = connection.execute(query, (vector,)).fetchall()
        return entries_of(rows)

    def pipelined(self, agent: str, query: bytes, vector: Vector) -> list[dict[str, Any]]:
        """Query in a transaction for the agent, in one round trip."""
        with self._pool.connection() as connection, connection.pipeline():
            connection.execute(_OF_AGENT, (agent,))
            cursor = connection.execute(query, (vector,))
            connection.execute("COMMIT")
            rows = cursor.fetchall()
        return entries_of(rows)

    @contextmanager
    def alone(self) -> Iterator[Callable[[bytes, Vector], object]]:
        """Lease an autocommit connection; yield a function that runs only the statement."""
        with self._pool.connection() as connection:
            connection.autocommit = True
            yield lambda query, vector: connection.execute(query, (vector,)).fetchall()
            connection.autocommit = False

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


_OF_AGENT = "SELECT set_config('keepstone.agent', %s, true)"


def entries_of(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the entries in rows, without entries that are not valid now."""
    now, found = datetime.now(UTC), []
    for name, distance, line in rows:
        metadata = json.loads(line)
        if BOUNDS.isdisjoint(metadata) or is_valid(metadata, now):
            ts, text = datetime.fromisoformat(metadata["ts"]), metadata["text"]
            found.append({"id": name, "score": -distance, "ts": ts, "text": text, "metadata": metadata})
    return found


def recalls(home: Home, hand: ByHand, questions: int) -> None:
    """Print the time of recalls by vectors and words."""
    vectors = [_vector() for _ in range(questions + 2)]
    words = [" ".join(text.split()[:4]) for text in _texts(questions + 2)]
    scopes: tuple[tuple[str, str, str | None], ...] = (
        (f"a session of {A_SESSION}", AGENT, "s3"),
        (f"an agent of {AN_AGENT:,}", AGENT, None),
        ("everything", ALL, None),
    )
    for name, slug, session in scopes:
        agent = home.agent(slug)
        sessions = None if session is None else [session]
        graph = agent.recall(None, vector=vectors[0], sessions=sessions).searched == "hnsw"
        sql = by_hand(slug, session, graph=graph).encode()
        with hand.alone() as alone:
            found = p50(
                {
                    "ours": lambda n, a=agent, s=sessions: a.recall(None, vector=vectors[n], sessions=s),  # type: ignore[misc]
                    "same": lambda n, a=slug, q=sql: hand.same_work(a, q, vectors[n]),  # type: ignore[misc]
                    "pipelined": lambda n, a=slug, q=sql: hand.pipelined(a, q, vectors[n]),  # type: ignore[misc]
                    "alone": lambda n, q=sql, ask=alone: ask(q, vectors[n]),  # type: ignore[misc]
                    "words": lambda n, a=agent, s=sessions: a.recall(words[n], sessions=s),  # type: ignore[misc]
                    "both": lambda n, a=agent, s=sessions: a.recall(words[n], vector=vectors[n], sessions=s),  # type: ignore[misc]
                },
                questions,
            )
        ways = {"same": "the same work", "pipelined": "pipelined", "alone": "the statement alone"}
        ratios = (f"{say} {found[way]:.2f} ms, {found['ours'] / found[way]:.2f}" for way, say in ways.items())
        print(
            f"recall in {name}, {'graph' if graph else 'exact'}, p50: by vector {found['ours']:.2f} ms, "
            f"by hand: {'; '.join(ratios)}; by four words {found['words']:.1f} ms; "
            f"by both {found['both']:.1f} ms",
            flush=True,
        )


def agents_at_once(home: Home) -> None:
    """Print the time of adds and recalls of many agents at once, with one thread for each agent."""
    waits: list[float] = []
    failed: list[str] = []

    def use(number: int) -> None:
        agent = home.agent(f"agent-{number}")
        for _ in range(EACH):
            for call in (
                lambda: agent.session("s").add("note", text=texts[number]),
                lambda: agent.recall("word40"),
            ):
                began = time.perf_counter()
                try:
                    call()
                except keepstone.KeepstoneError as error:
                    failed.append(str(error)[:200])
                waits.append(time.perf_counter() - began)

    texts = _texts(AGENTS)
    threads = [threading.Thread(target=use, args=(number,)) for number in range(AGENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    waits.sort()
    print(
        f"{AGENTS:,} agents at once, {EACH} adds and recalls each: {took:.1f} s, "
        f"{len(waits) / took:,.0f} calls/s, p50 {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s, "
        f"{len(failed)} failed {failed[:1]}",
        flush=True,
    )


# Cost


def sizes(connection: psycopg.Connection[tuple[object, ...]], entries: int) -> None:
    """Print the bytes per entry of each table and index."""
    rows = connection.execute(
        "SELECT c.relname, c.relkind::text, pg_table_size(c.oid) FROM pg_class c "
        "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i') "
        "ORDER BY pg_table_size(c.oid) DESC"
    ).fetchall()
    total = sum(int(str(size)) for _, _, size in rows)
    print(f"on disk: {total / 1e9:.2f} GB, {total / entries:,.0f} bytes an entry")
    kinds = {"i": "index", "r": "table"}
    for name, kind, size in rows:
        if int(str(size)) > entries:
            print(f"    {kinds[str(kind)]} {name}: {int(str(size)) / entries:,.0f}")


def memory(server: PostgresServer) -> float:
    """Return the memory of the server's processes in megabytes, counting shared memory once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if str(server.pid) in (folder.name, parent):
                rows = (folder / "smaps_rollup").read_text().splitlines()
                total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        except (OSError, StopIteration):
            continue  # The process has just ended.
    return total / 1024


def main() -> None:
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", type=int, nargs="?", default=100_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--exact", action="store_true")
    wanted = parser.parse_args()
    block = min(BLOCK, wanted.entries - AN_AGENT)
    times = max(0, (wanted.entries - AN_AGENT) // block - 1)
    entries = AN_AGENT + block * (times + 1)
    graph_memory = f"{max(512, entries * 2500 // 1_000_000)}MB"
    settings = {"maintenance_work_mem": graph_memory, "shared_buffers": "1GB", "max_wal_size": "2GB"}
    with (
        running_server(fsync=True, settings=settings) as server,
        schema_of(server.dsn) as dsn,
    ):
        print(f"{entries:,} entries")
        with timed(f"{AN_AGENT + block:,} entries written by keepstone"):
            write_block(dsn, AGENT, AN_AGENT)
            write_block(dsn, ALL, block)
        with psycopg.connect(dsn, autocommit=True) as hand, keepstone.open(dsn, embedder="none") as home:
            with timed("others repeated, and vectors"):
                repeat_block(hand, times)
                add_vectors(hand)
            if wanted.exact:
                vector_rows.MOST_DIMENSIONS = 0  # Prevents the building of a graph.
            else:
                home.agent(ALL).recall(None, vector=_vector())  # Makes a graph due.
                with timed(f"graph of {entries:,} vectors, maintenance_work_mem {graph_memory}"):
                    home.sync()
            with closing(ByHand(dsn)) as by:
                recalls(home, by, wanted.questions)
            print(f"memory of the server: {memory(server):,.0f} MB, shared_buffers 1 GB", flush=True)
            sizes(hand, entries)
            agents_at_once(home)


if __name__ == "__main__":
    main()
