"""Recall over the entries that other agents share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keepstone.errors import NotGrantedError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.line import entry_of
from keepstone.model import Hit, Hits, Scope, Why
from keepstone.recall.question import Question
from keepstone.recall.shared_recall import merged, recall_shared
from keepstone.store.files.file_store import FileStore
from keepstone.store.sharing.granted_store import Reach
from keepstone.store.sharing.grants import Grant
from keepstone.testing.clock import START
from keepstone.testing.making import record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    """Agents team and second, which both share their notes with own."""
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        for agent in ("team", "second"):
            store.append(agent, "s", [record(agent, "walnut"), record("fact", "walnut", kind="fact")])
            store.add_grant(agent, Grant("own", "read", types=("note",), ts=START))
        yield store


def asked(store: FileStore, *agents: str, **given: Any) -> list[Hits]:
    reaches = [Reach(store, lambda: START, "own", agent) for agent in agents]
    question = Question("walnut", 5, START, lambda: START, **given)
    return recall_shared(reaches, question, Scope("own"), lambda _: None, None)


def test_each_agent_s_covered_entries_are_searched(store: FileStore) -> None:
    found = asked(store, "team", "second")
    assert [[hit.entry.id for hit in hits] for hits in found] == [["team"], ["second"]]
    assert [hit.entry.agent for hits in found for hit in hits] == ["team", "second"]


def test_one_agent_that_shares_nothing_ends_the_recall(store: FileStore) -> None:
    with pytest.raises(NotGrantedError, match="agent 'none' does not let 'own' read its memory"):
        asked(store, "team", "none")


def test_the_past_is_shared_by_nobody(store: FileStore) -> None:
    with pytest.raises(NotGrantedError, match="no grant covers earlier states: leave out as_of"):
        asked(store, "team", as_of=START)


# The hits of several agents


def hits(*relevances: float, agent: str = "own", **more: Any) -> Hits:
    found = [
        Hit(entry_of(agent, "s", record(f"{agent}{n}", "x")), 1.0, Why({}), relevance=relevance)
        for n, relevance in enumerate(relevances)
    ]
    return Hits(found, **more)


def ids(found: Hits) -> list[str]:
    return [hit.entry.id for hit in found]


def test_an_agent_s_own_hits_alone_are_returned_as_they_are() -> None:
    own = hits(0.5)
    assert merged(own, [], 1) is own


def test_hits_of_all_agents_are_in_one_order_by_relevance() -> None:
    own, team = hits(0.9, 0.3), hits(0.7, 0.5, agent="team")
    assert ids(merged(own, [team], 3)) == ["own0", "team0", "team1"]


def test_hits_of_the_same_relevance_keep_their_order_the_own_first() -> None:
    assert ids(merged(hits(0.5, 0.5), [hits(0.5, agent="team")], 9)) == ["own0", "own1", "team0"]


def test_what_is_told_of_a_recall_is_that_of_all_of_them() -> None:
    own = hits(pending=1, took_ms=2.0, reason="none here")
    team = hits(agent="team", pending=3, took_ms=4.0, stale=True, embedder="minilm", reason="")
    found = merged(own, [team], 5)
    assert (found.pending, found.took_ms, found.stale, found.embedder) == (4, 6.0, True, "minilm")
