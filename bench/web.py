"""First paint of the web pages in Chromium: 10,000 sessions, and one session of 100,000 entries.

Needs Chromium and the packages of the ``server`` extra; without Chromium it only prints a message.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

import keepstone

SESSIONS, ENTRIES, ROUNDS = 10_000, 100_000, 5
WORDS = "the storm ferry deck payment search index passkey pager release car boarding rota night".split()
TYPES = ["message"] * 6 + ["decision", "finding", "preference"]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = """
import sys
from pathlib import Path
import uvicorn
from fastapi import FastAPI
import keepstone
from keepstone.web import Open, mount
root = Path(sys.argv[1])
app = FastAPI()
home, notes = keepstone.open(root, embedder="none"), keepstone.Notes(root, root / "user.md")
mount(app, home, project=root, notes=notes, access=lambda request: Open())
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def line(number: int, chance: Random) -> str:
    record = {
        "id": f"e{number}",
        "ts": (BEGIN + timedelta(minutes=number)).isoformat(),
        "type": chance.choice(TYPES),
        "data": {"role": "user", "content": " ".join(chance.choices(WORDS, k=20))},
    }
    return json.dumps(record) + "\n"


def fill(root: Path) -> None:
    chance = Random(1)
    for agent, sizes in (("many", [1] * SESSIONS), ("long", [ENTRIES])):
        folder = root / "agents" / agent / "memory" / "sessions"
        folder.mkdir(parents=True)
        for session, size in enumerate(sizes):
            lines = (line(number, chance) for number in range(size))
            (folder / f"s{session}.ndjson").write_text("".join(lines), encoding="utf-8")
    with keepstone.open(root, embedder="none") as home:
        home.sync()


@contextmanager
def serving(root: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", SERVER, str(root), str(port)]) as server:  # noqa: S603
        try:
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def load(browser: Browser, url: str, sign: str) -> tuple[float, float]:
    """Return the milliseconds to the first paint and to an expected element, with an empty cache."""
    context = browser.new_context()
    page = context.new_page()
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(sign).first.wait_for(timeout=120_000)
    there = 1000 * (time.perf_counter() - began)
    painted = float(page.wait_for_function(PAINT).json_value())
    context.close()
    return painted, there


def main() -> None:
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        print("no Chromium: nothing measured")
        return
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        fill(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with serving(Path(folder)) as base:
            for what, path, sign in (
                (f"{SESSIONS:,} sessions", "many/sessions", "tbody tr"),
                (f"a session of {ENTRIES:,} entries", "long/session?id=s0", ".entry"),
                (f"recall over {ENTRIES:,} entries", "long/recall?q=storm+payment", ".hits li"),
                (f"overview of {SESSIONS:,} sessions", "many/overview", ".chart svg"),
                (f"overview of {ENTRIES:,} entries", "long/overview", ".chart svg"),
                ("agents", "long/agents", ".agents .size"),
            ):
                load(browser, f"{base}/a/{path}", sign)
                loads = [load(browser, f"{base}/a/{path}", sign) for _ in range(ROUNDS)]
                painted, there = (median(times) for times in zip(*loads, strict=True))
                print(f"{what}: first paint {painted:.0f} ms, its rows {there:.0f} ms (nothing cached)")
        browser.close()


if __name__ == "__main__":
    main()
