"""The ratios to the peers that keepstone must reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCOPED = ("session", "ten sessions", "type + time")
OUR_RECALL = dict.fromkeys(SCOPED, 1.0) | {"everything": 0.97}
"""Minimum recall, by kind of question, at which keepstone's answers count."""
FASTER = {
    "chroma": 50,
    "lancedb": 10,
    "sqlite_vec": 30,
    "sqlite_vec_partition": 30,
    "zvec": 1,
    "qdrant_edge": 1,
}
"""Minimum ratio of a peer's time to keepstone's time for a scoped question."""


@dataclass(frozen=True)
class Verdict:
    """A ratio, and whether it reaches its bound."""

    what: str
    peer: str
    ratio: float
    bound: float
    recall: float | None = None
    """Keepstone's recall if it is below its minimum, which fails the verdict; else None."""

    @property
    def passed(self) -> bool:
        """Whether ratio and recall reach their bounds."""
        return self.ratio >= self.bound and self.recall is None


def ratios(peers: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts on all peers for which both sides were measured."""
    ours = peers.get("keepstone", {"failed": "not measured"})
    if "failed" in ours:
        return []
    others = {name: peers[name] for name in FASTER if name in peers and "failed" not in peers[name]}
    verdicts = [
        _faster(ours, other, name, kind, FASTER[name]) for name, other in others.items() for kind in SCOPED
    ]
    chroma = others.get("chroma")
    if chroma is not None:
        verdicts.append(_faster(ours, chroma, "chroma", "everything", 3))
        verdicts.append(Verdict("bulk ingest", "chroma", chroma["fill_s"] / ours["fill_s"], 10))
        memory = chroma["memory"]["rss_mb"] / ours["memory"]["rss_mb"]
        verdicts.append(Verdict("resident memory", "chroma", memory, 4))
    return verdicts


def _faster(ours: dict[str, Any], other: dict[str, Any], peer: str, kind: str, bound: float) -> Verdict:
    mine, theirs = ours["questions"][kind], other["questions"][kind]
    enough = mine["recall"] >= OUR_RECALL[kind] - 1e-9
    return Verdict(kind, peer, theirs["p50_ms"] / mine["p50_ms"], bound, None if enough else mine["recall"])
