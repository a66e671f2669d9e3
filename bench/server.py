"""Figures of the server: reads, durable adds and recalls per second, and the overhead of HTTP.

    python bench/server.py [ENTRIES]

The server is a separate process on the loopback interface; eight clients keep one connection each. The
overhead of HTTP is the median of a recall over one connection minus the median of the same recall in this
process.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder, sentences, took

import keepstone
from keepstone.server.tokens import Tokens

CLIENTS = 8
REQUESTS = 4000
RECALLS = 400
SESSION = 500


def main() -> None:
    """Fill a home, serve it, measure and print."""
    entries = int(sys.argv[1]) if sys.argv[1:] else 100_000
    with folder() as root:
        questions = fill(root, entries)
        token, _ = Tokens(root).create()
        with serving(root) as (port, pid):
            measure(port, pid, token, questions, entries)
            over_http = asyncio.run(latencies(port, token, questions))
        with keepstone.open(root) as home:
            agent = home.agent("bench")
            agent.recall("warm up")
            own = [took(lambda question=question: agent.recall(question)) for question in questions]  # type: ignore[misc]
    medians = 1000 * statistics.median(over_http), 1000 * statistics.median(own)
    print(f"{'recall p50 over HTTP, ms':52} {medians[0]:>10,.2f}")
    print(f"{'recall p50 in the library, ms':52} {medians[1]:>10,.2f}")
    print(f"{'what HTTP adds, ms (at most 3)':52} {medians[0] - medians[1]:>10,.2f}")


def fill(root: Path, entries: int) -> list[str]:
    """Write the entries; return questions of eight words, each from one sentence."""
    texts = sentences(1)
    with keepstone.open(root, durability="os") as home:
        for begin in range(0, entries, SESSION):
            home.agent("bench").session(f"s{begin // SESSION}").add_many(
                {"id": f"e{number}", "type": "message", "text": next(texts)}
                for number in range(begin, begin + SESSION)
            )
    return [" ".join(next(texts).split()[:8]) for _ in range(RECALLS)]


@contextmanager
def serving(root: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run the server on a free port; yield the port and the process id."""
    command = [sys.executable, "-m", "keepstone", "serve", "--home", str(root), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  Our own command.
        assert server.stdout is not None  # noqa: S101  A pipe was asked for.
        found = re.search(r":(\d+)/v1", server.stdout.readline())
        if found is None:
            raise RuntimeError("the server did not start")
        try:
            yield int(found[1]), server.pid
        finally:
            server.terminate()


def measure(port: int, pid: int, token: str, questions: Sequence[str], entries: int) -> None:
    """Print the requests per second of each kind, and the server's processor time for one."""
    base = "/v1/agents/bench"
    kinds: dict[str, tuple[int, Callable[[int], bytes]]] = {
        "GET entry a second, 8 clients (at least 1,000)": (
            REQUESTS,
            lambda n: request("GET", f"{base}/entries/e{n * 7919 % entries}", token),
        ),
        "durable adds a second, 8 clients (at least 300)": (
            REQUESTS,
            lambda n: request(
                "POST", f"{base}/sessions/new{n % CLIENTS}/entries", token, {"type": "note", "text": f"{n}"}
            ),
        ),
        "recalls a second, 8 clients": (
            RECALLS,
            lambda n: request("POST", f"{base}/recall", token, {"query": questions[n]}),
        ),
    }
    for name, (count, make) in kinds.items():
        before = busy(pid)
        seconds = took(lambda count=count, make=make: asyncio.run(all_clients(port, count, make)))  # type: ignore[misc]
        cost = 1000 * (busy(pid) - before) / count
        print(f"{name:52} {count / seconds:>10,.0f}   {cost:.2f} ms of a core each", flush=True)


def busy(pid: int) -> float:
    """Return the processor seconds of a process; NaN on systems other than Linux."""
    file = Path(f"/proc/{pid}/stat")
    if not file.exists():
        return math.nan
    fields = file.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(method: str, path: str, token: str, body: object = None) -> bytes:
    """Return the bytes of a request."""
    raw = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


async def all_clients(port: int, count: int, make: Callable[[int], bytes]) -> None:
    """Send ``count`` requests over eight connections at a time."""
    await asyncio.gather(*(client(port, range(at, count, CLIENTS), make) for at in range(CLIENTS)))


async def client(port: int, numbers: Sequence[int], make: Callable[[int], bytes]) -> list[float]:
    """Send requests one after the other over one connection; return the seconds of each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds = []
    for number in numbers:
        began = time.perf_counter()
        writer.write(make(number))
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head)
        if found is None or not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"an answer that is none: {head!r}")
        await reader.readexactly(int(found[1]))
        seconds.append(time.perf_counter() - began)
    writer.close()
    return seconds


async def latencies(port: int, token: str, questions: Sequence[str]) -> list[float]:
    """Return the seconds of each recall over one connection."""

    def make(number: int) -> bytes:
        return request("POST", "/v1/agents/bench/recall", token, {"query": questions[number]})

    return await client(port, range(len(questions)), make)


if __name__ == "__main__":
    os.environ.setdefault("KEEPSTONE_EMBEDDER", "none")
    main()
