"""Soak test of the server: mixed requests for a long time must cause no errors and no growth.

    python bench/soak.py [--minutes 30]

Eight clients add, read, change, find, list and remove entries, write files and notes, and load pages. Each
client uses its own sessions and later removes them, so that the home stays about as large as after the first
minute. The server's memory, open files and threads are recorded every second. The first half is a warm-up, in
which the server's cache of stems fills. Growth is the difference between the last quarter and the third; it
is judged only in a run of 25 minutes or more. The exit status is 1 if there was an error or growth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder, sentences
from bench.server import request, serving

from keepstone.server.tokens import Tokens

CLIENTS = 8
SESSION = 60
"""Number of requests in one session before its client removes it."""
MAY_GROW_MB = 8.0
"""Maximum increase of memory, in MB, that is not growth: freed pages vary by up to this."""
MAY_GROW_FILES = 4
TOLD_FROM = 25 * 60
"""Minimum length of a run, in seconds, to distinguish growth from the warm-up."""
TEXTS = 2000
"""Number of texts for entries. It is limited, as new words would fill the server's caches without end."""


@dataclass
class Seen:
    """Measurements of the server, once a second, and counts of its responses by status."""

    memory: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def note(self, pid: int) -> None:
        """Record the memory and open files of a process."""
        status = Path(f"/proc/{pid}/status").read_text()
        values = dict(row.partition(":")[::2] for row in status.splitlines())
        self.memory.append(int(values["VmRSS"].split()[0]) / 1024)
        self.threads.append(int(values["Threads"]))
        self.files.append(len(list(Path(f"/proc/{pid}/fd").iterdir())))

    def growth(self, values: list[float] | list[int]) -> float:
        """Return the median of the last quarter minus the median of the third quarter."""
        half, quarter = len(values) // 2, len(values) // 4
        if not quarter:
            return 0.0
        return statistics.median(values[-quarter:]) - statistics.median(values[half : half + quarter])

    def is_flat(self) -> bool:
        """Return whether neither memory nor files grew; always True for a short run, in which caches fill."""
        if len(self.memory) < TOLD_FROM:
            return True
        return self.growth(self.memory) <= MAY_GROW_MB and self.growth(self.files) <= MAY_GROW_FILES


def main() -> None:
    """Run the soak test and print its results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    seen = soak(60 * parser.parse_args().minutes)
    answers = ", ".join(f"{count:,} {status}" for status, count in seen.answers.items())
    print(f"requests in {len(seen.memory):,} s: {answers}")
    print(f"memory, MB: {seen.memory[0]:.0f} at first, {seen.memory[-1]:.0f} at last")
    growth = seen.growth(seen.memory)
    print(f"  of the last quarter more than of the one before: {growth:+.1f} (at most {MAY_GROW_MB})")
    print(f"open files: {seen.files[0]} at first, {seen.files[-1]} at last, {max(seen.files)} at most")
    print(f"threads: {max(seen.threads)} at most")
    print(f"errors: {len(seen.errors)}", *seen.errors[:5], sep="\n  ")
    sys.exit(bool(seen.errors) or not seen.is_flat())


def soak(seconds: float) -> Seen:
    """Serve a new home under load for some seconds."""
    with folder() as root:
        token, _ = Tokens(root / "home").create()
        options = ("--project", str(root), "--user-file", str(root / "user.md"))
        with serving(root / "home", *options) as (port, pid):
            return asyncio.run(_soaked(port, pid, token, seconds))


async def _soaked(port: int, pid: int, token: str, seconds: float) -> Seen:
    seen, until = Seen(), time.monotonic() + seconds
    texts = cycle(list(islice(sentences(1), TEXTS)))
    clients = [Client(number, port, token, seen, texts) for number in range(CLIENTS)]
    await asyncio.gather(_note(pid, seen, until), *(client.run(until) for client in clients))
    return seen


async def _note(pid: int, seen: Seen, until: float) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))
        seen.note(pid)


class Client:
    """A client that sends requests over one connection."""

    def __init__(self, number: int, port: int, token: str, seen: Seen, texts: Iterator[str]) -> None:
        self._name = f"c{number}"
        self._base = f"/v1/agents/soak{number % 3}"
        self._port, self._token, self._seen = port, token, seen
        self._chance = random.Random(number)
        self._texts = texts

    async def run(self, until: float) -> None:
        """Work in one session after another until the given time."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        round_ = 0
        try:
            while time.monotonic() < until:
                await self._session(f"{self._name}-{round_}", until)
                round_ += 1
        except (OSError, asyncio.IncompleteReadError) as error:
            self._seen.errors.append(f"{self._name}: {error!r}")
        finally:
            self._writer.close()

    async def _session(self, session: str, until: float) -> None:
        path = f"{self._base}/sessions/{session}"
        kinds: tuple[Callable[[str, str], Awaitable[object]], ...] = (
            self._add, self._add, self._add, self._read, self._read, self._change, self._find, self._page,
            self._list, self._file, self._batch, self._forget, self._context, self._note,
        )  # fmt: skip
        self._ids: list[str] = []
        await self._add(session, path)
        for _ in range(SESSION):
            if time.monotonic() >= until:
                break
            await self._chance.choice(kinds)(session, path)
        await self._ask("DELETE", path)

    async def _add(self, _: str, path: str) -> None:
        item = {"type": self._chance.choice(("message", "decision", "note")), "text": next(self._texts)}
        added = await self._ask("POST", f"{path}/entries", item)
        self._ids.append(str(added["id"]))

    async def _batch(self, _: str, path: str) -> None:
        items = [{"type": "message", "text": next(self._texts)} for _ in range(5)]
        await self._ask("POST", f"{path}/entries/batch", {"items": items})

    async def _read(self, session: str, _: str) -> None:
        await self._ask("GET", f"{self._base}/entries/{self._chance.choice(self._ids)}?session={session}")

    async def _change(self, session: str, _: str) -> None:
        path = f"{self._base}/entries/{self._chance.choice(self._ids)}?session={session}"
        await self._ask("PATCH", path, {"tags": [str(self._chance.randint(1, 9))]})

    async def _forget(self, session: str, path: str) -> None:
        if len(self._ids) < 2:  # The other requests need one entry.
            return await self._add(session, path)
        gone = self._ids.pop()
        if self._chance.random() < 0.5:
            await self._ask("DELETE", f"{self._base}/entries/{gone}?session={session}")
        else:
            await self._ask("POST", f"{self._base}/entries/{gone}/purge?session={session}")
        return None

    async def _find(self, _: str, __: str) -> None:
        query = " ".join(next(self._texts).split()[:6])
        await self._ask("POST", f"{self._base}/recall", {"query": query, "limit": 5, "neighbours": 1})

    async def _context(self, _: str, __: str) -> None:
        await self._ask("POST", f"{self._base}/context", {"query": next(self._texts)[:60], "budget": 1000})

    async def _list(self, _: str, path: str) -> None:
        await self._ask("GET", f"{self._base}/sessions?limit=10")
        await self._ask("GET", f"{path}/entries?limit=10&newest=true")

    async def _file(self, session: str, _: str) -> None:
        path = f"{self._base}/files/{session}.md"
        await self._ask("PUT", path, {"content": next(self._texts)})
        await self._ask("GET", path)
        await self._ask("DELETE", path)

    async def _note(self, session: str, _: str) -> None:
        saved = await self._ask(
            "POST", "/v1/notes", {"text": f"{session} {time.monotonic()}", "type": "Project"}
        )
        await self._ask("POST", "/v1/notes/remove", saved["note"])

    async def _page(self, _: str, __: str) -> None:
        if self._chance.random() < 0.1:  # A page costs as much as fifty reads.
            await self._ask("GET", "/a/soak0/sessions")
        else:
            await self._ask("GET", "/v1/metrics")

    async def _ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """Send one request; any response other than a success is an error."""
        self._writer.write(request(method, path, self._token, body))
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(line.partition(": ")[::2] for line in head.split("\r\n")[1:])
        raw = await self._reader.readexactly(int(fields["content-length"]))
        status = head.split(" ", 2)[1]
        self._seen.answers[status] += 1
        if not status.startswith("2"):
            self._seen.errors.append(f"{method} {path}: {status} {raw[:300]!r}")
            return {"id": "none", "note": {"content": "none", "type": "Project", "line": 1}}
        return json.loads(raw) if "json" in fields.get("content-type", "") else {}


if __name__ == "__main__":
    main()
