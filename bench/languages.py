"""Recall in nine languages, with questions in other words than their facts.

    python bench/languages.py [EMBEDDER ...]

Each language has a home with eight facts among sixteen other entries (tests/quality/languages.py). For each
embedder (default: none, static, minilm and e5) the script prints how many of the eight questions of each
language have their fact as the first hit, among the first three, and among the first ten.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.quality.languages import BESIDE, FACTS, OTHER_WORDS

import keepstone
from keepstone.model import Scope

STEMMED = ("de", "fr", "es")
"""Languages that must be passed to ``keepstone.open``, as they share the script of English."""
PLACES = (1, 3, 10)


def main() -> None:
    """Measure every embedder and print a line for each."""
    names = sys.argv[1:] or ["none", "static", "minilm", "e5"]
    print(f"{'':8}", *(f"{language:>8}" for language in FACTS), f"{'of 72':>10}")
    for name in names:
        counts = [answered(language, name) for language in FACTS]
        total = "/".join(str(sum(column)) for column in zip(*counts, strict=True))
        print(f"{name:8}", *(f"{'/'.join(map(str, count)):>8}" for count in counts), f"{total:>10}")


def answered(language: str, embedder: str) -> list[int]:
    """Return how many questions of a language have their fact among the first hits."""
    stemmer = language if language in STEMMED else None
    with (
        tempfile.TemporaryDirectory() as folder,
        keepstone.open(folder, embedder=embedder, language=stemmer) as home,
    ):
        agent = home.agent("a")
        for fact in (*(fact for fact, _ in FACTS[language]), *BESIDE[language]):
            agent.new_session().add("fact", text=fact)
        if embedder != "none":
            agent.vectors().fill(Scope("a"))
        found = [
            (fact, [hit.entry.text for hit in agent.recall(asked, limit=PLACES[-1])])
            for (fact, _), asked in zip(FACTS[language], OTHER_WORDS[language], strict=True)
        ]
        return [sum(fact in texts[:place] for fact, texts in found) for place in PLACES]


if __name__ == "__main__":
    main()
