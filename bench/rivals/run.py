"""Ask keepstone and its rivals the same questions of LongMemEval, each in a separate process.

python bench/rivals/run.py FOLDER --cache FOLDER [--questions 30] [--half development] [--only grep mem0]

FOLDER holds LongMemEval's data; the cache keeps MiniLM's vectors, which all systems share. Time to load is
without embedding, from the second run on, as a system may embed parts of turns; a question's time is without
that of its vector. What is not installed is named.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench._longmemeval import Answer, Scores, digest_of, question_files, read
from bench.rivals.systems import SYSTEMS, version_of
from bench.rivals.vectors import CachedModel

from keepstone.embed.minilm import MiniLM

COLUMNS = ("any@5", "any@10", "share@5", "MRR", "turns@10", "p50 ms", "p95 ms")


def measure(name: str, paths: list[Path], cache: Path) -> dict[str, Any]:
    """Measure one system on all questions in this process, and return its figures."""
    scores, loads, sizes = Scores.none(), [], []
    model, uses_vectors = CachedModel(cache, MiniLM()), SYSTEMS[name].uses_vectors  # type: ignore[attr-defined]
    for path in paths:
        question = read(path)
        if uses_vectors:
            model.prepare(question.id, (turn.text for turn in question.turns), question.text)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            system = SYSTEMS[name](Path(folder), model)
            began = time.perf_counter()
            system.load(question)
            loads.append(time.perf_counter() - began)
            system.find("warm up")
            began = time.perf_counter()
            turns = system.find(question.text)
            scores.add(question, Answer(turns, time.perf_counter() - began))
            sizes.append(sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()))
    return {
        "version": version_of(name),
        "settings": SYSTEMS[name].settings,  # type: ignore[attr-defined]
        **{column: scores.row()[column] for column in COLUMNS},
        "load ms": 1000 * sum(loads) / len(loads),
        "MB on disk": sum(sizes) / len(sizes) / 1e6,
        "MB of memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Return the figures as a Markdown table, followed by the systems that could not run."""
    ran = {name: row for name, row in rows.items() if "error" not in row}
    columns = [*next(iter(ran.values()))]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(map(_shown, row.values())) + " |" for name, row in ran.items()]
    lines += [f"\n{name}: left out, {row['error']}" for name, row in rows.items() if "error" in row]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value <= 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return "–" if value is None else str(value)  # noqa: RUF001


def main() -> None:
    """Measure each system in a separate process, and print the table and its JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--half", choices=["development", "kept"], default="development")
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    chosen = parser.parse_args()
    paths = question_files(chosen.folder, chosen.half)[: chosen.questions]
    chosen.cache.mkdir(parents=True, exist_ok=True)
    if chosen.here:
        print(json.dumps(measure(chosen.only[0], paths, chosen.cache)))
        return
    rows: dict[str, dict[str, Any]] = {}
    for name in chosen.only:
        command = [sys.executable, __file__, *sys.argv[1:], "--only", name, "--here"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        last = (done.stderr.strip().splitlines() or ["no error was printed"])[-1]
        rows[name] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": last}
        print(name, "done" if done.returncode == 0 else last, file=sys.stderr, flush=True)
    print(f"LongMemEval S, {chosen.half} half, {len(paths)} questions, digest {digest_of(paths)}\n")
    print(table(rows))
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
