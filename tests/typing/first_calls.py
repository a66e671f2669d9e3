"""The calls that people write first, for type checkers: every line here must pass mypy and pyright."""

from __future__ import annotations

import array
from datetime import datetime
from typing import assert_type

import numpy as np

import keepstone
from keepstone import Entry, Page


def texts(agent: keepstone.Agent) -> None:
    session = agent.session("main")
    entry = session.add("note", "Ada likes tea", tags=["drinks"], expires="7d")
    assert_type(entry, Entry)
    assert_type(agent.add("Ada likes tea", pinned=True, ts="2026-01-11"), Entry)
    assert_type(agent.update(entry.id, "Ada likes coffee", session="main", priority=0.5), Entry)
    agent.supersede(entry.id, "Ada likes water")
    session.replace(entry.id, "Ada likes water")
    assert_type(entry.valid_to, datetime | None)
    assert_type(entry.modified, datetime)


def filters(agent: keepstone.Agent) -> None:
    chosen: keepstone.Filters = {"where": {"a": {"gte": 1}}, "since": "7d", "include_superseded": True}
    assert_type(agent.entries(**chosen), Page[Entry])
    assert_type(agent.count(**chosen), int)


def vectors(agent: keepstone.Agent) -> None:
    for vector in ([1, 2.5], (0.5, 0.5), array.array("f", [1.0]), np.ones(3, dtype=np.float32)):
        agent.recall(None, vector=vector)
        agent.add("tea", embedding=vector)


def facts(agent: keepstone.Agent, home: keepstone.Home) -> None:
    assert_type(agent.set("plan", "Free"), Entry)
    assert_type(agent.unset("plan"), bool)
    assert_type(home.import_from("mem0", "history.db"), keepstone.ImportResult)
    assert_type(home.export("all"), int)
    assert_type(home.user("ada@example.com"), keepstone.Agent)
    assert_type(keepstone.__version__, str)


async def awaited(home: keepstone.AsyncHome) -> None:
    agent = home.user("ada@example.com")
    assert_type(await agent.add("Ada likes tea", pinned=True), Entry)
    assert_type(await agent.session("main").add("note", "Ada likes tea"), Entry)
    await agent.add("tea", pinnd=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
