"""Tables of the figures, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench.peers.data import KINDS
from bench.peers.judge import Verdict
from rich.console import Console  # noqa: TID251  Figures are printed as the command prints.
from rich.table import Table  # noqa: TID251  As above.

NONE = "-"
ASKED = (*KINDS, "words")
KEPT = ("fill rows/s", "with indexes", "adds/s", "open + answer ms", "RSS MB", "own MB", "disk MB")
GROWING: dict[str, Callable[[dict[str, Any]], float]] = {
    "session": lambda peer: float(peer["questions"]["session"]["p50_ms"]),
    "everything": lambda peer: float(peer["questions"]["everything"]["p50_ms"]),
    "words": lambda peer: float(peer["questions"]["words"]["p50_ms"]),
    "cold open": lambda peer: float(peer["cold_ms"]),
    "memory": lambda peer: float(peer["memory"]["rss_mb"]),
    "disk": lambda peer: float(peer["bytes"]),
}
"""The figures compared between scales."""


def table(scale: str, results: dict[str, Any]) -> None:
    """Print the figures of a scale as tables on the terminal."""
    console, peers = _console(), results["peers"]
    for title, columns, rows in tables(peers):
        shown = _table(f"{scale}: {title}", columns)
        for row in rows:
            shown.add_row(*row)
        if rows:
            console.print(shown)
    for name, peer in peers.items():
        said = peer.get("failed")
        line = f"a single add: {peer['facts']['durability']}" if said is None else f"not measured: {said}"
        console.print(f"{name}: {line}", markup=False)


def markdown(results: dict[str, Any]) -> None:
    """Print the figures of a scale as Markdown tables."""
    for title, columns, rows in tables(results["peers"]):
        print(f"\n{title.capitalize()}, {results['rows']:,} rows:\n")
        print(f"| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|")
        for row in rows:
            print(f"| {' | '.join(row)} |")


def tables(peers: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return both tables, each as its title, columns and rows."""
    measured = {name: peer for name, peer in peers.items() if "failed" not in peer}
    asked = [
        [f"{name} {peer['facts']['version']}", *(question(peer["questions"].get(kind)) for kind in ASKED)]
        for name, peer in measured.items()
    ]
    keeping = [[name, *kept(peer)] for name, peer in measured.items()]
    return [
        ("questions, p50 / p95 in ms (recall@10)", ["peer", *ASKED], asked),
        ("keeping", ["peer", *KEPT], keeping),
    ]


def question(figures: dict[str, Any] | None) -> str:
    """Return the text of a table cell for a kind of question."""
    if figures is None:
        return NONE
    cell = f"{_ms(figures['p50_ms'])} / {_ms(figures['p95_ms'])}"
    return f"{cell} ({figures['recall']:.3f})" if "recall" in figures else cell


def kept(peer: dict[str, Any]) -> list[str]:
    """Return the cells on storage: write rates, cold start, sizes and memory."""
    rows, cold, size = peer["rows"], peer.get("cold_ms"), peer["bytes"]
    return [
        f"{rows / peer['fill_s']:,.0f}",
        f"{rows / (peer['fill_s'] + peer['ready_s']):,.0f}",
        f"{peer['adds'] / peer['add_s']:,.0f}",
        NONE if cold is None else f"{cold:,.0f}",
        f"{peer['memory']['rss_mb']:,.0f}",
        f"{peer['memory']['own_mb']:,.0f}",
        NONE if size is None else f"{size / 1e6:,.0f}",
    ]


def verdicts(scale: str, found: list[Verdict]) -> None:
    """Print the ratios that keepstone must reach."""
    shown = _table(
        f"{scale}: how many times better than a peer", ["what", "peer", "ratio", "at least", "verdict"]
    )
    for verdict in found:
        shown.add_row(
            verdict.what, verdict.peer, f"{verdict.ratio:,.1f}", f"{verdict.bound:g}", _verdict(verdict)
        )
    if found:
        _console().print(shown)


def growth(results: dict[str, Any]) -> None:
    """Print the ratio of each figure to its value at the previous scale."""
    scales = list(results)
    for before, after in pairwise(scales):
        shown = _table(f"{before} to {after}: how many times more", ["peer", *GROWING])
        for name, larger in results[after]["peers"].items():
            smaller = results[before]["peers"].get(name, {"failed": ""})
            if "failed" not in larger and "failed" not in smaller:
                shown.add_row(name, *(_factor(figure, smaller, larger) for figure in GROWING.values()))
        _console().print(shown)


def _factor(
    figure: Callable[[dict[str, Any]], float], smaller: dict[str, Any], larger: dict[str, Any]
) -> str:
    try:
        return f"{figure(larger) / figure(smaller):.1f}"
    except (KeyError, TypeError):
        # The peer lacks the compared figure.
        return NONE


def _verdict(verdict: Verdict) -> str:
    if verdict.recall is not None:
        return f"miss: our recall is {verdict.recall:.3f}"
    return "pass" if verdict.passed else "miss"


def _table(title: str, columns: list[str]) -> Table:
    made = Table(title=title, title_justify="left")
    for name in columns:
        made.add_column(name, justify="left" if name in ("peer", "what") else "right")
    return made


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"


def _console() -> Console:
    # A pipe has no width, and a table cut at eighty columns is unreadable.
    console = Console()
    return console if console.is_terminal else Console(width=140)
