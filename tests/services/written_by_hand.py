"""The example lines of requirement 3, and sessions that hold lines which were written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCUMENTED = (
    (
        '{"id":"m001","type":"conversation","ts":"2026-01-11T14:30:00Z",'
        '"data":{"role":"user","content":"Hello"},"priority":1.0,"access":0}'
    ),
    (
        '{"id":"m002","type":"decision","ts":"2026-01-11T14:31:00Z",'
        '"data":{"decision":"Use OAuth","by":"architect"},"priority":0.95,"access":3}'
    ),
    (
        '{"id":"m003","type":"finding","ts":"2026-01-11T14:32:00Z",'
        '"data":{"issue":"Missing MFA","severity":"critical"},"priority":0.9,"access":1}'
    ),
    (
        '{"id":"m004","type":"preference","ts":"2026-01-11T14:33:00Z",'
        '"data":{"key":"verification_depth","value":"thorough"},"priority":0.85,"access":5}'
    ),
)
"""The example lines of the requirement document."""


def log_of(root: Path, session: str = "s") -> Path:
    """The log of a session."""
    return root / "sessions" / f"{session}.jsonl"


def lines_of(root: Path, session: str = "s") -> list[Any]:
    """The objects that a log holds, a line each."""
    return [json.loads(line) for line in log_of(root, session).read_text("utf-8").splitlines()]


def copy_by_hand(root: Path, *lines: str, session: str = "s", end: str = "\n") -> None:
    """Make a log of these lines, as a person with an editor would."""
    log_of(root, session).parent.mkdir(parents=True, exist_ok=True)
    log_of(root, session).write_text("\n".join(lines) + end, "utf-8")


def ids(results: list[dict[str, Any]]) -> list[str]:
    """The ids of results, in their order."""
    return [result["id"] for result in results]
