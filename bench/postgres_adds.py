"""Durable adds to a home in PostgreSQL compared with pgbench, which inserts the same rows.

    python bench/postgres_adds.py [--seconds 5] [--rounds 3]

A dedicated server runs on this machine, with fsync. A client is a process that adds to a separate session;
``threads`` are clients in one process. pgbench inserts into the same tables with prepared statements: first
with one round trip for each statement, then with one pipeline for each transaction. Rounds alternate; figures
are medians, and ratios are ratios of medians. On a shared machine compare processor times, which are those of
the clients and of the server's processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import PostgresServer, programs, running_server, schema_of

import keepstone
from keepstone.log.line import dump, entry_of
from keepstone.model import Record
from keepstone.store.postgres.entry_rows import Columns, columns_of

CLIENTS = (1, 8)
TEXTS = 20
"""Number of different texts.

Each is a script of pgbench, which chooses one at random for each transaction.
"""
AGENT = "b"
WORDS = np.array([f"word{number}" for number in range(20_000)])
_OFTEN = 1 / (np.arange(len(WORDS)) + 5)


def texts() -> list[str]:
    """Return texts of 20 words with natural word frequencies, the same texts in each process."""
    rows = np.random.default_rng(7).choice(WORDS, (TEXTS, 20), p=_OFTEN / _OFTEN.sum())
    return [" ".join(row) for row in rows]


# Ours


class Speed(NamedTuple):
    """Adds per second, and the microseconds of processor time per add of clients and of the server."""

    rate: float
    client: float
    server: float


def add_for(dsn: str, session: str, seconds: float) -> tuple[float, float, int]:
    """Add for some seconds; return adds per second, seconds of processor time, and the number of adds."""
    with keepstone.open(dsn, embedder="none") as home:
        target, said = home.agent(AGENT).session(session), texts()
        for text in said:  # These adds prepare the statements.
            target.add("note", text=text)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        began, used, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - began < seconds:
            target.add("note", text=said[count % TEXTS])
            count += 1
        return count / (time.perf_counter() - began), time.process_time() - used, count


def used_by(server: PostgresServer) -> float:
    """Return the seconds of processor time of a server's processes, including processes that have ended."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # The process has just ended.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name == str(server.pid):
                total += sum(map(int, fields[11:15]))
            elif fields[1] == str(server.pid):
                total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def processes(server: PostgresServer, dsn: str, clients: int, seconds: float) -> Speed:
    """Return the total speed of several processes."""
    command = [sys.executable, __file__, "--client", dsn, "--seconds", str(seconds)]
    running = [
        subprocess.Popen(  # noqa: S603
            [*command, "--session", f"p{client}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for client in range(clients)
    ]
    for one in running:
        if one.stdout is not None:
            one.stdout.readline()
    before = used_by(server)
    for one in running:
        if one.stdin is not None:
            one.stdin.write("go\n")
            one.stdin.flush()
    said = [json.loads(one.communicate()[0]) for one in running]
    rate, used, count = (sum(column) for column in zip(*said, strict=True))
    return Speed(rate, 1e6 * used / count, 1e6 * (used_by(server) - before) / count)


def threads(server: PostgresServer, dsn: str, clients: int, seconds: float) -> Speed:
    """Return the total speed of several threads in one process."""
    counts = [0] * clients
    with keepstone.open(dsn, embedder="none") as home:
        said = texts()
        for client in range(clients):
            home.agent(AGENT).session(f"t{client}").add("note", text="begun")
        before, began, used = used_by(server), time.perf_counter(), time.process_time()

        def work(client: int) -> None:
            session = home.agent(AGENT).session(f"t{client}")
            while time.perf_counter() - began < seconds:
                session.add("note", text=said[counts[client] % TEXTS])
                counts[client] += 1

        started = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
        for one in started:
            one.start()
        for one in started:
            one.join()
        count, used = sum(counts), time.process_time() - used
        return Speed(
            count / (time.perf_counter() - began),
            1e6 * used / count,
            1e6 * (used_by(server) - before) / count,
        )


# pgbench


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "'{}'"
    return "'" + str(value).replace("'", "''") + "'"


def script(record: Record, *, pipelined: bool) -> str:
    """Return the pgbench script of an add: its line, entry and event, and its session's counts."""
    columns = columns_of(entry_of(AGENT, "h", record), "en")
    raw = dump(record)[:-1]
    session, seq = "'h' || :client_id", ":seq"
    entry = ", ".join(_literal(value) for value in columns)
    begin, end = ("\\startpipeline\n", "\\endpipeline\n") if pipelined else ("", "")
    return (
        "\\set seq :seq + 1\n"
        f"{begin}BEGIN;\n"
        f"INSERT INTO lines (agent, session, seq, id, ts, line) VALUES ('{AGENT}', {session}, {seq}, "
        f"'id-' || {seq}, {_literal(columns.ts)}, '\\x{raw.hex()}');\n"
        f"INSERT INTO entries (agent, session, id, seq, record, {', '.join(Columns._fields)}) VALUES "
        f"('{AGENT}', {session}, 'id-' || {seq}, {seq}, NULL, {entry});\n"
        "UPDATE sessions SET next_seq = next_seq + 1, entries = entries + 1, texts = texts + 1, "
        f"words = words + {columns.length}, size = size + {len(raw) + 1}, modified = clock_timestamp() "
        f"WHERE agent = '{AGENT}' AND session = {session};\n"
        "INSERT INTO events (agent, session, id, kind, xid, token) VALUES "
        f"('{AGENT}', {session}, 'id-' || {seq}, 'add', pg_current_xact_id(), {seq});\n"
        f"COMMIT;\n{end}"
    )


def pgbench(
    server: PostgresServer, dsn: str, folder: Path, clients: int, seconds: float, *, pipelined: bool
) -> Speed:
    """Return the speed of pgbench."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for client in range(clients):
            connection.execute(
                "INSERT INTO sessions (agent, session) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (AGENT, f"h{client}"),
            )
        [(last,)] = connection.execute("SELECT coalesce(max(seq), 0) FROM lines").fetchall()
    files = []
    for number, text in enumerate(texts()):
        record = {"id": "0190", "ts": "2026-01-11T14:31:00.120000Z", "type": "note", "text": text}
        path = folder / f"{number}-{pipelined}.sql"
        path.write_text(script(record, pipelined=pipelined), encoding="utf-8")
        files += ["-f", str(path)]
    parts = urlsplit(dsn)
    command = [f"{programs()}/pgbench", "--no-vacuum", "-M", "prepared", "-c", str(clients), "-j", "2"]
    command += ["-T", str(max(1, round(seconds))), "-D", f"seq={last}", *files]
    command += ["-h", str(parts.hostname), "-p", str(parts.port), "-U", str(parts.username), "postgres"]
    options = unquote(parts.query.partition("options=")[2])
    environment = {**os.environ, "PGPASSWORD": str(parts.password), "PGOPTIONS": options}
    before, used = used_by(server), sum(os.times()[2:4])
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout  # noqa: S603
    rate = float(re.findall(r"tps = ([\d.]+)", said)[0])
    count = int(re.findall(r"transactions actually processed: (\d+)", said)[0])
    used = sum(os.times()[2:4]) - used
    return Speed(rate, 1e6 * used / count, 1e6 * (used_by(server) - before) / count)


def measure(seconds: float, rounds: int) -> None:
    """Print adds per second and their ratios."""
    with (
        running_server(fsync=True) as server,
        schema_of(server.dsn) as dsn,
        tempfile.TemporaryDirectory() as name,
    ):
        with closing(keepstone.open(dsn, embedder="none")) as home:
            home.agent(AGENT).session("begun").add("note", text="begun")
        for clients in CLIENTS:
            told = (server, dsn)
            ways: dict[str, Callable[[], Speed]] = {
                "processes": partial(processes, *told, clients, seconds),
                "threads": partial(threads, *told, clients, seconds),
                "pgbench": partial(pgbench, *told, Path(name), clients, seconds, pipelined=False),
                "pipelined": partial(pgbench, *told, Path(name), clients, seconds, pipelined=True),
            }
            found: dict[str, list[Speed]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, measured in ways.items():
                    found[way].append(measured())
            report(
                clients, {way: Speed(*map(median, zip(*some, strict=True))) for way, some in found.items()}
            )


def report(clients: int, speeds: Mapping[str, Speed]) -> None:
    """Print speeds, and the ratios of keepstone to pgbench by wall-clock and by total processor time."""
    print(f"{clients} clients")
    for way, one in speeds.items():
        shares = [
            f"{one.rate / other.rate:.2f} of {name} ({sum(other[1:]) / sum(one[1:]):.2f} by processor time)"
            for name, other in list(speeds.items())[2:]
            if way in ("processes", "threads")
        ]
        used = f"processor time {one.client:.0f} µs, of the server {one.server:.0f} µs"
        print(f"    {way}: {one.rate:,.0f}/s; {'; '.join([used, *shares])}", flush=True)


def main() -> None:
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--session", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.client:
        print(json.dumps(add_for(wanted.client, wanted.session, wanted.seconds)))
    else:
        measure(wanted.seconds, wanted.rounds)


if __name__ == "__main__":
    main()
