"""CrewAI's memory, stored by keepstone. Runs offline, with a toy embedder.

pip install keepstone crewai && python examples/crewai_memory.py
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai.memory.unified_memory import Memory

import keepstone
from keepstone.integrations.crewai import KeepstoneStorage


def embed(texts: list[str]) -> list[list[float]]:
    """Return vectors that count a few words; use a real embedder in their place."""
    return [[float(word in text.lower()) for word in ("pnpm", "tool", "tea")] for text in texts]


def main(home: str) -> None:
    """Remember two things, and recall one with new objects, as after a restart."""
    memory = Memory(storage=KeepstoneStorage(home, agent="crew"), embedder=embed)
    for text in ("The team uses the tool pnpm", "Ada drinks tea"):
        memory.remember(text, scope="/team", categories=["facts"], importance=0.8)
    memory.close()

    later = Memory(storage=KeepstoneStorage(home, agent="crew"), embedder=embed)
    print(later.recall("which tool?", depth="shallow", limit=1)[0].format())
    with keepstone.open(home) as opened:
        print("recalled:", opened.agent("crew").recall("pnpm", limit=1)[0].text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
