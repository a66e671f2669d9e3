"""The command that measures the peers one after another and shows the figures."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from bench.peers import drawing, judge, machine, report
from bench.peers.making import SESSION, dataset
from bench.peers.peer import PEERS
from bench.peers.processes import BENCH, ROOT, StepFailedError, empty, step

RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"
SCALES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
COLD_RUNS = 3
LARGEST = {"langgraph": 100_000}
"""Maximum number of rows for a peer that keeps all rows in memory; more do not fit on most machines."""


def main() -> None:
    """Measure the peers and scales that the command line names."""
    wanted = _arguments()
    if wanted.markdown:
        for scale in wanted.scale:
            report.markdown(load(scale))
        return
    for scale in wanted.scale:
        results = load(scale)
        results["machine"] = machine.facts()
        data = dataset(BENCH / "data", SCALES[scale], wanted.session)
        for peer in wanted.only:
            print(f"{scale}: {peer} ...", flush=True)
            results["peers"][peer] = measure(peer, data, SCALES[scale], wanted.timeout)
            save(scale, results)
    show(wanted.scale)


def show(scales: list[str]) -> None:
    """Print the tables of some scales and the growth between all measured scales; draw the charts."""
    everything = {scale: load(scale) for scale in SCALES if _file(scale).exists()}
    for scale in scales:
        report.table(scale, everything[scale])
        report.verdicts(scale, judge.ratios(everything[scale]["peers"]))
    report.growth(everything)
    drawing.draw(FIGURES, everything)


def measure(peer: str, data: Path, size: int, timeout: float) -> dict[str, Any]:
    """Return all figures of a peer, or the reason why there are none."""
    if size > LARGEST.get(peer, size):
        return {"failed": f"not measured beyond {LARGEST[peer]:,} rows: it keeps them all in memory"}
    folder = empty(BENCH / "stores" / peer)
    try:
        figures = step("fill", peer, data, folder, timeout)
        figures |= step("ask", peer, data, folder, timeout)
        if figures["facts"]["persistent"]:
            colds = [step("cold", peer, data, folder, timeout) for _ in range(COLD_RUNS)]
            figures |= {
                name: statistics.median(run[name] for run in colds) for name in ("open_ms", "cold_ms")
            }
        return figures | step("add", peer, data, folder, timeout)
    except StepFailedError as error:
        return {"failed": str(error)}
    finally:
        empty(folder)


def load(scale: str) -> dict[str, Any]:
    """Return the saved figures of a scale, so that a single peer can be measured again."""
    if not _file(scale).exists():
        return {"scale": scale, "rows": SCALES[scale], "peers": {}}
    results: dict[str, Any] = json.loads(_file(scale).read_text())
    return results


def save(scale: str, results: dict[str, Any]) -> None:
    """Save the figures of a scale, with the peers in the order of the table."""
    results["peers"] = {name: results["peers"][name] for name in PEERS if name in results["peers"]}
    RESULTS.mkdir(parents=True, exist_ok=True)
    _file(scale).write_text(json.dumps(_rounded(results), indent=1) + "\n")


def _file(scale: str) -> Path:
    return RESULTS / f"peers-{scale}.json"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure keepstone beside its peers.")
    parser.add_argument("--scale", type=_names(tuple(SCALES)), default=["10k", "100k"], help="10k,100k,1m")
    parser.add_argument("--only", type=_names(PEERS), default=list(PEERS), help=", ".join(PEERS))
    parser.add_argument("--session", type=int, default=SESSION, help="rows in a session, after a large one")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that a step may take")
    parser.add_argument(
        "--markdown", action="store_true", help="print the tables of the last run; measure nothing"
    )
    return parser.parse_args()


def _names(known: tuple[str, ...]) -> Any:
    def parse(value: str) -> list[str]:
        names = [name.strip().replace("-", "_") for name in value.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return parse
