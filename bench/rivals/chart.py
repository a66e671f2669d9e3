"""Draw docs/comparison.svg from the figures that run.py saves with --json.

python bench/rivals/chart.py FIGURES.json docs/comparison.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers.svg import OURS, THEIRS, document, text

PANELS = {"any@5": "a session with the answer among five", "MRR": "mean reciprocal rank of the first one"}
WIDTH, LEFT, ROW, BAR = 640, 150, 24, 380


def drawing(rows: dict[str, dict[str, Any]]) -> str:
    """Return a chart with one panel for each figure, and a bar for each system that ran, the best first."""
    ran = {name: row for name, row in rows.items() if "error" not in row}
    parts, down = [], 0
    for figure, title in PANELS.items():
        down += 24
        parts.append(text(0, down, f"{figure}: {title}", bold=True))
        for name, row in sorted(ran.items(), key=lambda item: -item[1][figure]):
            down += ROW
            colour = OURS if name.startswith("keepstone") else THEIRS
            length = BAR * row[figure]
            parts.append(text(LEFT - 8, down, name, end=True))
            parts.append(
                f'<rect x="{LEFT}" y="{down - 12}" width="{length:.1f}" height="16" fill="{colour}"/>'
            )
            parts.append(text(LEFT + length + 6, down, f"{row[figure]:.3f}"))
        down += 12
    return document(WIDTH, down + 8, "Retrieval on LongMemEval S", parts)


def main() -> None:
    """Draw the chart."""
    figures, target = map(Path, sys.argv[1:])
    target.write_text(drawing(json.loads(figures.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
