"""Relevance: how well it separates questions that a memory answers from questions about another memory.

    python bench/relevance.py [EMBEDDER ...] [--draw]

Each made-up conversation of tests/quality is asked its own questions and those of the other two. For each
embedder (default: none, static and minilm) the script prints the area under the ROC curve of the best hit's
relevance, and the share of own and of foreign questions with a relevant hit. ``--draw`` draws these shares by
floor into docs/decisions/0017-relevance.svg.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keepstone
from keepstone.model import RELEVANT

ROOT = Path(__file__).parents[1]
CONVERSATIONS = ROOT / "tests/quality/conversations"
KINDS = ("friends", "developer", "assistant")
PICTURE = ROOT / "docs/decisions/0017-relevance.svg"
WIDTH, HEIGHT, MARGIN = 300, 180, 30

Values = dict[bool, list[float]]
"""The best relevance for each own question (True) and each foreign question (False), ascending."""


def main() -> None:
    """Measure every embedder and print a line for each; draw the shares with ``--draw``."""
    names = [name for name in sys.argv[1:] if name != "--draw"] or ["none", "static", "minilm"]
    measured = {name: measure(name) for name in names}
    for name, values in measured.items():
        own, foreign = (share(values[kind], RELEVANT) for kind in (True, False))
        print(f"{name:8} AUROC {area(values):.3f}, own {own:.0%}, foreign {foreign:.0%} at {RELEVANT}")
    if "--draw" in sys.argv[1:]:
        PICTURE.write_text(drawn(measured), "utf-8")


def measure(embedder: str) -> Values:
    """Ask every conversation all questions; return the best relevance for each."""
    values: Values = {True: [], False: []}
    asked = {
        kind: [line["question"] for line in lines(CONVERSATIONS / f"{kind}.questions.ndjson")]
        for kind in KINDS
    }
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder, keepstone.open(folder, embedder=embedder) as home:
            agent = home.agent("bench")
            for path in sorted((CONVERSATIONS / kind).glob("*.ndjson")):
                agent.session(path.stem).add_many(lines(path))
            if embedder != "none":
                home.embed()
            for other, questions in asked.items():
                best = (max((hit.relevance for hit in agent.recall(text)), default=0.0) for text in questions)
                values[other == kind] += best
    return {kind: sorted(found) for kind, found in values.items()}


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def share(values: Sequence[float], floor: float) -> float:
    """Return the share of values that reach a floor."""
    return sum(value >= floor for value in values) / len(values)


def area(values: Values) -> float:
    """Return the AUROC: how often an own question's value is above a foreign question's; ties count half."""
    pairs = [(own > foreign) + (own == foreign) / 2 for own in values[True] for foreign in values[False]]
    return sum(pairs) / len(pairs)


def drawn(measured: dict[str, Values]) -> str:
    """Return a picture with one panel for each embedder: shares of questions answered, by floor."""
    panels = [panel(name, values, place) for place, (name, values) in enumerate(measured.items())]
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT + 20}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{"".join(panels)}</svg>\n'
    )


def panel(name: str, values: Values, place: int) -> str:
    """Return the curves of one embedder, solid for own questions and dashed for foreign questions."""
    left, wide, high = place * WIDTH + MARGIN, WIDTH - 2 * MARGIN, HEIGHT - MARGIN
    floors = [step / 50 for step in range(51)]
    parts = [f'<text x="{left}" y="14">{name}: questions answered, by floor</text>\n']
    for kind, dashes in ((True, "none"), (False, "4 3")):
        points = (f"{left + wide * at:.0f},{20 + high * (1 - share(values[kind], at)):.0f}" for at in floors)
        line = f'fill="none" stroke="black" stroke-dasharray="{dashes}"'
        parts.append(f'<polyline points="{" ".join(points)}" {line}/>\n')
    floor = left + wide * RELEVANT
    parts.append(
        f'<path d="M{floor:.0f} 20v{high}M{left} {20 + high}h{wide}M{left} 20v{high}" stroke="gray"/>\n'
    )
    parts.append(f'<text x="{floor:.0f}" y="{HEIGHT + 6}">{RELEVANT}</text>\n')
    return "".join(parts)


if __name__ == "__main__":
    main()
