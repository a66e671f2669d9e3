"""Values in logs that an index cannot hold or would misread: none of them costs any other entry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent

HUGE = 10**30


@contextmanager
def agent_with(root: Path, *lines: dict[str, Any]) -> Iterator[Agent]:
    folder = root / "agents" / "a" / "memory" / "sessions"
    folder.mkdir(parents=True)
    (folder / "s.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with keepstone.open(root) as home:
        yield home.agent("a")


OTHER: dict[str, Any] = {"id": "other", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": "walnut"}


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "x", "type": "note", "text": "hi", "priority": HUGE},
        {"id": "x", "type": "note", "text": "hi", "priority": -HUGE},
        {"id": "other", "access": HUGE},
        {"id": "\ud800", "type": "note", "text": "hi"},
        {"id": "x", "type": "note", "text": "hi", "embedding": {"space": "\ud800", "f32": "AACAPw=="}},
        {"id": "x", "type": "note", "text": "hi", "links": ["other", 5, None]},
    ],
)
def test_an_odd_value_hides_no_other_entry(tmp_path: Path, odd: dict[str, Any]) -> None:
    with agent_with(tmp_path, odd, OTHER) as agent:
        assert [hit.entry.id for hit in agent.recall("walnut") if "walnut" in hit.entry.text] == ["other"]
        assert agent.get("other").text == "walnut"
        assert agent.session("s").add("note", text="more").text == "more"
        assert len(agent.session("s").entries(limit=9)) == len(agent.session("s").entries())
        agent.session("s").compact()
        assert agent.related("other") == []


def test_a_huge_priority_is_kept_and_the_session_stays_usable(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").new_session("s")
        log = tmp_path / "agents/a/memory/sessions/s.ndjson"
        log.write_text(json.dumps({"id": "x", "type": "note", "text": "walnut", "priority": HUGE}) + "\n")
        home.sync()
        assert home.agent("a").recall("walnut")[0].entry.line["priority"] == HUGE
        session.purge("x")
        assert session.entries() == []


def test_an_entry_that_holds_a_lone_surrogate_can_be_patched(tmp_path: Path) -> None:
    with agent_with(tmp_path, OTHER | {"odd": "\ud800"}) as agent:
        assert agent.update("other", pinned=True).pinned
        agent.session("s").compact()
        assert agent.get("other").line["odd"] == "\ud800"


def test_related_ends_where_no_more_entries_are_linked(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        agent = home.agent("a")
        ids = [agent.session("s").add("note", text=name).id for name in ("one", "two")]
        agent.link(ids[0], ids[1], "next")
        assert [entry.id for entry in agent.related(ids[0], depth=10**12)] == [ids[1]]


def test_a_purge_leaves_nothing_in_the_index_of_another_version(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        entry = home.agent("a").session("s").add("note", text="walnut")
        old = tmp_path / ".index" / "a" / "v0"
        old.mkdir()
        (old / "index.db").write_text("walnut")
        home.agent("a").purge(entry.id)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"walnut" in path.read_bytes()]
