"""Use a home of which the system refuses something, as a process of its own, and print what came of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import keepstone
from keepstone import KeepstoneError, MemoryService
from keepstone.index.vectors import cache

NOBODY = 65534


def main(root: str, warm: str) -> None:
    """Try everything, as nobody: first in a home of which nothing is refused, so that all is imported."""
    cache.NEWER = 8
    tried(warm)
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    print(json.dumps(tried(root)))  # noqa: T201


def tried(root: str) -> dict[str, Any]:
    """What came of each call; an error that is not ours ends the process."""
    said: dict[str, Any] = {}

    def attempt(name: str, act: Callable[[], Any]) -> None:
        try:
            said[name] = act()
        except KeepstoneError as error:
            said[name] = type(error).__name__

    try:
        home = keepstone.open(root, embedder="none")
    except KeepstoneError as error:
        return {"open": type(error).__name__}
    agent, session = home.agent("a"), home.agent("a").session("s")
    attempt("agents", home.agents)
    attempt("entries", lambda: [entry.id for entry in session.entries()])
    attempt("newest", lambda: [entry.id for entry in session.entries(1)])
    attempt("other session", lambda: [entry.id for entry in agent.session("t").entries()])
    attempt("recall", lambda: [hit.entry.id for hit in agent.recall("walnut", sessions=["t"])])
    attempt("get", lambda: agent.get("it").id)
    attempt("other agent", lambda: [hit.entry.id for hit in home.agent("b").recall("walnut")])
    attempt("read", lambda: agent.files.read("x.md"))
    attempt("list", agent.files.list)
    attempt("add", lambda: session.add("note", text="walnut", id="new").id)
    attempt("update", lambda: session.update("it", tags=["x"]).id)
    attempt("purge", lambda: session.purge("gone"))
    attempt("compact", lambda: bool(session.compact() + 1))
    attempt("write", lambda: agent.files.write("x.md", "new"))
    attempt("append", lambda: agent.files.append("x.md", "new"))
    attempt("similar", lambda: len(MemoryService(home, agent="v").query_similar_memories(np.ones(4), "s", 3)))
    attempt("sync", home.sync)
    attempt("doctor", lambda: len(home.doctor()) > 0)
    attempt("remove", lambda: agent.session("t").remove())
    attempt("purge agent", lambda: home.purge_agent("b"))
    home.close()
    return said


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
