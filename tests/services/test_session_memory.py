"""Requirement 3: typed memory of a session, most important first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.services.written_by_hand import DOCUMENTED, copy_by_hand, ids, lines_of, log_of

import keepstone
from keepstone.errors import InvalidSessionIdError
from keepstone.services.session_memory import SessionMemory
from keepstone.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".bmad"


@pytest.fixture
def memory(root: Path, clock: ManualClock) -> Iterator[SessionMemory]:
    with SessionMemory("s", root, clock=clock) as memory:
        yield memory


# What lies in the file


@pytest.mark.requirement("memory.storage.one-jsonl-file", "memory.api.constructor")
def test_a_session_is_one_file_below_the_folder_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SessionMemory("sprint-1") as memory:
        memory.add("decision", {"decision": "Use OAuth"})
        memory.add("finding", {"issue": "Missing MFA"})

    assert [line["type"] for line in lines_of(tmp_path / ".bmad", "sprint-1")] == ["decision", "finding"]


@pytest.mark.requirement(
    "memory.storage.line-shape", "memory.api.add", "memory.tradeoffs.readable-without-tools"
)
def test_a_fresh_line_has_the_documented_keys_and_no_other(memory: SessionMemory, root: Path) -> None:
    added = memory.add("decision", {"decision": "Use OAuth", "by": "architect"})

    assert lines_of(root) == [
        {
            "id": added,
            "type": "decision",
            "ts": "2026-01-11T14:31:00.000000Z",
            "data": {"decision": "Use OAuth", "by": "architect"},
            "priority": 0.95,
            "access": 0,
        }
    ]


@pytest.mark.requirement(
    "memory.storage.conversation-line",
    "memory.storage.decision-line",
    "memory.storage.finding-line",
    "memory.storage.preference-line",
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_the_documented_lines_copied_by_hand_are_entries(root: Path, memory: SessionMemory, end: str) -> None:
    copy_by_hand(root, *DOCUMENTED, end=end)

    found = {result["id"]: result for result in memory.query()}

    assert found == {
        entry["id"]: {
            **entry,
            "priority": pytest.approx(entry["priority"] + 0.02 * (entry["access"] + 1)),
            "access": entry["access"] + 1,
        }
        for entry in map(json.loads, DOCUMENTED)
    }


@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_copied_by_hand_can_be_deleted_and_added_to(
    root: Path, memory: SessionMemory, end: str
) -> None:
    copy_by_hand(root, *DOCUMENTED, end=end)

    assert memory.delete("m002")
    added = memory.add("finding", {"issue": "No rate limit"})

    assert ids(memory.get_context()) == ["m001", "m004", "m003", added]


@pytest.mark.requirement("memory.privacy.soft-delete-line")
def test_a_delete_appends_a_line_of_exactly_id_deleted_and_ts(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    copy_by_hand(root, *DOCUMENTED)
    before = log_of(root).read_bytes()
    clock.advance(60)

    memory.delete("m002")

    after = log_of(root).read_bytes()
    assert after.startswith(before)
    assert json.loads(after[len(before) :]) == {
        "id": "m002",
        "deleted": True,
        "ts": "2026-01-11T14:32:00.000000Z",
    }


def test_nothing_is_written_before_the_first_add(root: Path) -> None:
    with SessionMemory("s", root) as memory:
        assert memory.query() == memory.get_context() == []
        assert not memory.delete("m001")
        assert memory.compact() == 0

    assert not root.exists()


# Adding


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("", {}),
        (None, {}),
        (5, {}),
        ("\ud800", {}),
        ("decision", None),
        ("decision", "Use OAuth"),
        ("decision", [1]),
        ("decision", {"by": math.nan}),
        ("decision", {"by": "\udfff"}),
        ("decision", {"by": {1, 2}}),
        ("decision", {"by": "x" * 17_000_000}),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_what_cannot_be_stored_is_refused_and_leaves_the_file(
    root: Path, memory: SessionMemory, kind: Any, data: Any
) -> None:
    copy_by_hand(root, *DOCUMENTED)
    memory.query()
    before = log_of(root).read_bytes()

    with pytest.raises((TypeError, ValueError)):
        memory.add(kind, data)

    assert log_of(root).read_bytes() == before


def test_an_unknown_type_is_kept_and_starts_like_a_conversation(memory: SessionMemory) -> None:
    memory.add("todo", {"what": "Write tests"})

    [found] = memory.query("todo")
    assert found["priority"] == pytest.approx(1.02)


@pytest.mark.parametrize("session", ["", "x" * 201])
def test_an_impossible_session_id_is_refused(tmp_path: Path, session: str) -> None:
    with pytest.raises(InvalidSessionIdError):
        SessionMemory(session, tmp_path)


@pytest.mark.parametrize("quota", [-1, 1.5, "10", None, True])
def test_a_quota_that_is_not_a_number_of_bytes_is_refused(tmp_path: Path, quota: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="quota"):
        SessionMemory("s", tmp_path, quota=quota)


# Querying


@pytest.mark.requirement("memory.query.skips-deleted", "memory.api.delete")
def test_a_deleted_entry_is_in_no_answer(memory: SessionMemory) -> None:
    kept, gone = (memory.add("finding", {"issue": issue}) for issue in ("one", "two"))

    assert memory.delete(gone)

    assert ids(memory.query()) == ids(memory.get_context()) == [kept]
    assert not memory.query(topic="two")
    assert not memory.delete(gone)


@pytest.mark.requirement("memory.query.filters-by-type")
def test_a_query_for_a_type_gives_entries_of_that_type(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)

    assert ids(memory.query("finding")) == ids(memory.query(type="finding")) == ["m003"]
    assert memory.query("todo") == []


@pytest.mark.requirement("memory.query.filters-by-priority")
def test_a_minimum_priority_compares_the_one_before_this_access(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)  # Worth 1.0, 1.01, 0.92 and 0.95 when they are asked for.

    assert ids(memory.query(min_priority=1.01)) == ["m002"]
    assert memory.query(min_priority=1.04) == []


@pytest.mark.requirement("memory.query.filters-by-topic")
@pytest.mark.parametrize(
    "topic", ["oauth", "DECISION", "use o", "Straße", "STRASSE", "inner", "deep", "4.5", "tru", "[.*]"]
)
def test_a_topic_is_found_in_keys_and_values_at_any_depth_and_case(memory: SessionMemory, topic: str) -> None:
    data = {"decision": "Use OAuth", "at": "Hauptstraße", "more": [{"inner": "Deep"}, 4.5, True, "[.*]"]}
    wanted = memory.add("decision", data)
    memory.add("finding", {"issue": "Missing MFA"})

    assert ids(memory.query(topic=topic)) == [wanted]


@pytest.mark.parametrize(
    "topic", ['":"', "{", "OAuth by", "OAuthby", "none", "null", "type", "\ud800", "O.uth"]
)
def test_a_topic_is_not_found_in_punctuation_or_across_values(memory: SessionMemory, topic: str) -> None:
    memory.add("decision", {"decision": "Use OAuth", "by": "architect", "why": None})

    assert memory.query(topic=topic) == []


@pytest.mark.requirement("memory.api.query")
def test_the_filters_of_a_query_are_joined(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)

    assert ids(memory.query("decision", "oauth", 0.9)) == ["m002"]
    assert memory.query("finding", "oauth", 0.9) == []
    assert ids(memory.query(None, "", 0)) == ["m002", "m001", "m004", "m003"]


@pytest.mark.requirement("memory.query.highest-priority-first")
def test_a_query_gives_the_highest_priority_first_then_the_oldest(
    memory: SessionMemory, clock: ManualClock
) -> None:
    kinds = ["finding", "conversation", "preference", "conversation", "decision"]
    added = [memory.add(kind, {"number": number}) for number, kind in enumerate(kinds)]
    clock.advance(timedelta(days=10))
    fresh = memory.add("preference", {"number": 5})

    found = memory.query()

    assert ids(found) == [fresh, *(added[place] for place in (4, 2, 1, 3, 0))]
    assert [result["priority"] for result in found] == sorted(
        (result["priority"] for result in found), reverse=True
    )


@pytest.mark.requirement("memory.api.get-context")
def test_the_context_is_the_twenty_most_important_entries(memory: SessionMemory) -> None:
    for number in range(30):
        memory.add("decision" if number % 2 else "preference", {"number": number})

    assert [result["data"]["number"] for result in memory.get_context()] == [
        *range(1, 30, 2),
        *range(0, 10, 2),
    ]
    assert len(memory.get_context(limit=3)) == 3
    assert memory.get_context(0) == []


def test_a_limit_gives_the_first_of_all_results(root: Path, memory: SessionMemory, tmp_path: Path) -> None:
    copy_by_hand(root, *DOCUMENTED)
    copy_by_hand(tmp_path / "twin", *DOCUMENTED)
    twin = SessionMemory("s", tmp_path / "twin", clock=ManualClock())

    assert memory.query(limit=2) == twin.query()[:2]


def test_entries_beyond_the_limit_are_not_accessed(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)

    memory.query(limit=1)

    assert [result["access"] for result in memory.query()] == [5, 1, 6, 2]


def test_changing_a_result_changes_no_memory(memory: SessionMemory) -> None:
    memory.add("decision", {"decision": "Use OAuth", "tags": [{"name": "auth"}]})

    [found] = memory.query()
    found["data"]["tags"][0]["name"] = found["data"]["decision"] = found["type"] = "changed"

    [found] = memory.query()
    assert found["data"] == {"decision": "Use OAuth", "tags": [{"name": "auth"}]}
    assert found["type"] == "decision"


def test_a_flat_line_of_another_program_is_shown_unchanged(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, '{"id":"e1","ts":"2026-01-11T14:31:00Z","type":"event","role":"user","content":"Hi"}')

    [found] = memory.query(topic="hi")
    shown = {"role": "user", "content": "Hi", "priority": pytest.approx(1.02), "access": 1}
    assert found == {"id": "e1", "ts": "2026-01-11T14:31:00Z", "type": "event"} | shown


@pytest.mark.parametrize(
    "arguments",
    [
        {"type": 5},
        {"topic": b"oauth"},
        {"min_priority": "high"},
        {"min_priority": None},
        {"min_priority": True},
        {"min_priority": math.nan},
        {"limit": -1},
        {"limit": 2.5},
        {"sessions": "s"},
        {"sessions": [5]},
        {"sessions": [""]},
        {"as_of": 5},
        {"as_of": "yesterday"},
        {"as_of": "2026-01-11T14:31:00"},
    ],
    ids=str,
)
def test_a_malformed_argument_is_an_error_and_no_access(
    root: Path, memory: SessionMemory, arguments: dict[str, Any]
) -> None:
    copy_by_hand(root, DOCUMENTED[0])

    with pytest.raises((TypeError, ValueError)):
        memory.query(**arguments)

    assert memory.query()[0]["access"] == 1


@given(st.text())
def test_any_topic_gives_an_answer_and_never_an_error(topic: str) -> None:
    memory = SessionMemory("s", "/nowhere/at/all")

    assert memory.query(topic=topic) == []


# Fading


@pytest.mark.requirement("memory.decay.updated-on-access")
def test_each_answer_shows_count_and_priority_with_its_own_access(
    memory: SessionMemory, clock: ManualClock
) -> None:
    memory.add("decision", {"decision": "Use OAuth"})
    clock.advance(timedelta(days=3))

    shown = [memory.query()[0], memory.get_context()[0], memory.query("decision")[0]]

    faded = 0.95 * math.exp(-0.03 * 3)
    assert [result["access"] for result in shown] == [1, 2, 3]
    assert [result["priority"] for result in shown] == [faded + 0.02, faded + 0.04, faded + 0.06]


def test_a_priority_that_a_caller_stored_is_what_fades(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    added = memory.add("decision", {"decision": "Use OAuth"})
    with keepstone.open(root, layout="bmad", clock=clock) as home:
        home.agent("default").session("s").update(added, priority=0.5)
    clock.advance(timedelta(days=10))

    assert memory.query()[0]["priority"] == 0.5 * math.exp(-0.3) + 0.02
