"""Retrieval on LongMemEval S: sessions and turns found, abstention, and answers in the context.

python bench/longmemeval.py FOLDER                          # words alone, on the development half
python bench/longmemeval.py FOLDER --embedder minilm --questions 40 --cache VECTORS
python bench/longmemeval.py FOLDER --half kept              # at the end, once

FOLDER holds the public data, outside of this repository; docs/comparison.md names its source. Each question
gets a separate home, with one entry for each turn and the turns' times. No model is used as a judge.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import keepstone

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._longmemeval import Answer, Question, digest_of, measured, question_files, read, table
from bench.rivals.vectors import CachedModel

from keepstone.embed.e5 import E5
from keepstone.embed.minilm import MiniLM

LIMIT = 50
"""Maximum number of turns to find, which covers ten sessions in nearly all cases."""
BUDGET = 2000
"""Maximum size of the context, in tokens."""


def embedder_of(name: str, cache: Path | None) -> str | CachedModel:
    """Return the embedder for a home: a name, or a model whose vectors are cached in a folder."""
    if cache is None or name == "none":
        return name
    cache.mkdir(parents=True, exist_ok=True)
    return CachedModel(cache, MiniLM() if name == "minilm" else E5())


def answered(question: Question, embedder: str | CachedModel) -> Answer:
    """Load a question's haystack into a new home, and ask the question."""
    if isinstance(embedder, CachedModel):
        embedder.prepare(question.id, (), question.text)

    def now() -> datetime:
        return question.now

    with (
        tempfile.TemporaryDirectory() as folder,
        keepstone.open(folder, embedder=embedder, durability="os", clock=now) as home,
    ):
        agent = home.agent("reader")
        for session in dict.fromkeys(turn.session for turn in question.turns):
            agent.session(session).add_many(
                {
                    "id": turn.id,
                    "type": "message",
                    "ts": turn.time,
                    "data": {"role": turn.role, "content": turn.text},
                }
                for turn in question.turns
                if turn.session == session
            )
        if embedder != "none":
            home.embed()
        agent.recall("warm up", limit=1)
        began = time.perf_counter()
        hits = agent.recall(question.text, limit=LIMIT)
        took = time.perf_counter() - began
        context = agent.context(question.text, budget=BUDGET)
        best = max((hit.relevance for hit in hits), default=0.0)
        return Answer([hit.entry.id for hit in hits], took, best, context.text)


def below(row: dict[str, float | None], floors: list[str]) -> list[str]:
    """Return a message for each floor, given as ``FIGURE=VALUE``, that the figures miss."""
    wanted = {name: float(value) for name, _, value in (floor.partition("=") for floor in floors)}
    return [
        f"{name} is {row[name]}, and must be {least} at least"
        for name, least in wanted.items()
        if (row[name] or 0.0) < least
    ]


def main() -> None:
    """Print the figures; exit with status 1 if one is below its floor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--embedder", choices=["none", "minilm", "e5"], default="none")
    parser.add_argument("--cache", type=Path, help="where an embedder's vectors are kept for the next time")
    parser.add_argument("--half", choices=["development", "kept"], default="development")
    parser.add_argument("--questions", type=int, help="the first ones by their ids; default: all")
    parser.add_argument("--least", nargs="*", default=[], metavar="FIGURE=VALUE", help="such as any@5=0.9")
    chosen = parser.parse_args()
    if chosen.folder is None:
        print("LongMemEval: left out, as no folder with its data was named")
        return
    paths = question_files(chosen.folder, chosen.half)[: chosen.questions]
    print(f"LongMemEval S, {chosen.half} half, {len(paths)} questions, digest {digest_of(paths)};")
    print(f"keepstone {keepstone.__version__}, embedder {chosen.embedder}, k = {LIMIT} turns\n")
    embedder = embedder_of(chosen.embedder, chosen.cache)
    scores = measured(map(read, paths), lambda question: answered(question, embedder))
    print(table(scores))
    missed = below(scores["all"].row(), chosen.least)
    if missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
