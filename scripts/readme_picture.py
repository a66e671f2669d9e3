"""Draw the README's picture: a recall, the log file with the entries found, and the file's ``git diff``.

python scripts/readme_picture.py docs/recall.svg
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rich.text import Text

import keepstone
from keepstone.cli.recall import Explained

_QUESTION = "how do people log into the app?"
_ENTRIES = (
    ("signin", "decision", "We sign in with passkeys", "2026-03-02T10:00:00Z"),
    ("disk", "finding", "The nightly job ran out of disk on db2", "2026-03-03T06:00:00Z"),
)
_NOW = datetime(2026, 3, 9, 9, 30, tzinfo=UTC)
_WIDTH = 132


def picture() -> str:
    """Return the picture as SVG."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        with keepstone.open(root / "memory", embedder="minilm", clock=lambda: _NOW) as home:
            agent = home.agent("coder")
            session = agent.session("standup")
            for name, kind, text, moment in _ENTRIES:
                session.add(kind, {"content": text}, id=name, ts=moment)
            _git(root, "init", "--quiet")
            _git(root, "add", "memory/agents")
            _git(root, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "memory")
            agent.update("signin", data_merge={"by": "Ada"})
            hits = agent.recall(_QUESTION, limit=1)
            log = next((root / "memory").rglob("standup.ndjson")).read_text("utf-8")
            diff = _git(root, "diff", "--unified=0", "--", "memory/agents")
            return _drawn(Explained(hits, agent.slug), log, "\n".join(diff.splitlines()[4:]))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def _drawn(hits: Explained, log: str, diff: str) -> str:
    screen = Console(record=True, width=_WIDTH, file=io.StringIO(), highlight=False)
    grid = Table.grid(padding=(0, 3), expand=True)
    grid.add_column(ratio=5)
    grid.add_column(ratio=6)
    left = Table.grid()
    left.add_row(Text(f"$ keepstone recall '{_QUESTION}' --explain", "bold"))
    left.add_row(hits)
    right = Table.grid()
    lines = "\n".join(log.splitlines()[: len(_ENTRIES)])
    for command, text, colour in (("cat standup.ndjson", lines, ""), ("git diff", diff, "green")):
        right.add_row(Text(f"$ {command}", "bold"))
        right.add_row(Text(f"{text}\n", colour, overflow="fold"))
    grid.add_row(left, right)
    screen.print(grid)
    svg = screen.export_svg(title="keepstone")
    return re.sub(r"@font-face {.*?}\n", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
