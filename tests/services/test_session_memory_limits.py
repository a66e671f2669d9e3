"""Sessions that grow long, and what the document named as limits."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.services.written_by_hand import DOCUMENTED, copy_by_hand, ids, lines_of, log_of

import keepstone
from keepstone.errors import AmbiguousIdError, EntryNotFoundError
from keepstone.services.session_memory import SessionMemory
from keepstone.testing import START, ManualClock


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


# Size


@pytest.mark.requirement("memory.size.compaction-keeps-what-matters")
def test_compaction_keeps_what_is_alive_and_above_the_limit(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    faded, gone = (memory.add("conversation", {"content": content}) for content in ("old", "deleted"))
    clock.advance(timedelta(days=30))
    kept = memory.add("preference", {"key": "depth", "value": "thorough"})
    memory.delete(gone)

    saved = memory.compact()

    assert [line["id"] for line in lines_of(root)] == ids(memory.query()) == [kept]
    assert saved > 0
    with keepstone.open(root, layout="bmad") as home:
        archived = home.agent("default").session("s").entries(archived=True)
    assert [entry.id for entry in archived] == [faded, kept]


def test_a_priority_at_the_limit_counts_as_faded(root: Path, memory: SessionMemory) -> None:
    at, above = (json.loads(line) | {"access": 0} for line in DOCUMENTED[:2])
    copy_by_hand(root, json.dumps(at | {"priority": 0.3}), json.dumps(above | {"priority": 0.301}))

    memory.compact()

    assert [line["id"] for line in lines_of(root)] == ["m002"]


def test_a_pinned_entry_stays_however_faded(root: Path, memory: SessionMemory, clock: ManualClock) -> None:
    copy_by_hand(root, json.dumps(json.loads(DOCUMENTED[0]) | {"pinned": True}), DOCUMENTED[1])
    clock.advance(timedelta(days=1000))

    memory.compact()

    assert ids(memory.query()) == ["m001"]


def test_accesses_not_yet_written_keep_an_entry_from_fading(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    copy_by_hand(root, DOCUMENTED[0])
    clock.advance(timedelta(days=30))  # Worth 0.22 without, and 0.42 with ten accesses.
    for _ in range(10):
        memory.query()

    memory.compact()

    assert ids(memory.query()) == ["m001"]


@pytest.mark.requirement("memory.size.quota-of-10-mb")
def test_a_log_of_more_than_ten_megabytes_is_compacted_and_a_smaller_one_not(
    memory: SessionMemory, root: Path, clock: ManualClock
) -> None:
    lines = [DOCUMENTED[0].replace("m001", f"m{number}") for number in range(1040)]
    copy_by_hand(root, *(line.replace("Hello", "x" * 9_900) for line in lines))
    clock.advance(timedelta(days=100))

    memory.add("decision", {"decision": "small"})
    assert 10_400_000 < log_of(root).stat().st_size < 10 * 1024 * 1024

    last = memory.add("decision", {"decision": "x" * 100_000})
    assert log_of(root).stat().st_size < 200_000
    assert last in ids(memory.query())


def test_a_log_that_stays_long_is_compacted_only_when_it_has_doubled(
    root: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    memory = SessionMemory("s", root, clock=clock, quota=10_000)
    compact = memory.compact

    def compact_and_tell() -> int:
        sizes.append(log_of(root).stat().st_size)
        return compact()

    monkeypatch.setattr(memory, "compact", compact_and_tell)
    for _ in range(100):
        memory.add("preference", {"value": "x" * 400})

    assert len(sizes) == 3
    assert all(later >= 2 * earlier for earlier, later in pairwise(sizes))


def test_counts_that_reads_write_never_exceed_twice_the_quota(root: Path, clock: ManualClock) -> None:
    with SessionMemory("s", root, clock=clock, quota=20_000) as memory:
        added = [memory.add("decision", {"decision": f"number {number}"}) for number in range(50)]
        sizes = []
        for _ in range(40):
            clock.advance(61)
            memory.query()
            sizes.append(log_of(root).stat().st_size)
    assert max(sizes) < 40_000
    assert {line["id"]: line["access"] for line in lines_of(root)} == dict.fromkeys(added, 40)


def test_a_log_over_quota_is_not_compacted_by_each_process(root: Path, clock: ManualClock) -> None:
    copy_by_hand(root, *(DOCUMENTED[1].replace("m002", f"m{number}") for number in range(100)))
    inodes = []
    for number in range(4):
        with SessionMemory("s", root, clock=clock, quota=5_000) as memory:
            memory.add("finding", {"issue": str(number)})
        inodes.append(log_of(root).stat().st_ino)
    assert inodes == inodes[:1] * 4


def test_an_add_has_succeeded_even_if_the_quota_cannot_be_kept(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SessionMemory("s", root, quota=100)
    (root / "sessions" / ".archive" / "s.jsonl").mkdir(parents=True)
    copy_by_hand(root, DOCUMENTED[0])

    added = memory.add("decision", {"decision": "Use OAuth"})

    assert added in ids(memory.query())
    assert "cannot compact" in caplog.text


# The lifted limits


@pytest.mark.requirement("memory.limits.index")
def test_answers_are_the_same_with_the_index_deleted(root: Path, clock: ManualClock) -> None:
    copy_by_hand(root, *DOCUMENTED)
    with SessionMemory("s", root, clock=clock) as memory:
        before = memory.query(as_of=clock())
    shutil.rmtree(root / ".index", ignore_errors=True)

    with SessionMemory("s", root, clock=clock) as memory:
        assert memory.query(as_of=clock()) == before != []


@pytest.mark.requirement("memory.limits.related")
def test_linked_entries_are_found_from_one_another(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)

    linked = memory.link("m002", "m003", "because")

    assert linked["links"] == [{"to": "m003", "rel": "because"}]
    assert ids(memory.related("m002")) == ["m003"]
    assert ids(memory.related("m003")) == ["m002"]
    assert memory.related("m001") == []


def test_several_links_are_kept_and_the_same_one_once(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)
    for target in ("m003", "m004", "m003"):
        linked = memory.link("m002", target, "because")

    assert [link["to"] for link in linked["links"]] == ["m004", "m003"]
    assert ids(memory.related("m002")) == ["m004", "m003"]


def test_related_entries_have_the_shape_of_lines_and_are_not_accessed(
    root: Path, memory: SessionMemory
) -> None:
    copy_by_hand(root, *DOCUMENTED)
    memory.link("m002", "m003", "because")

    assert memory.related("m002") == memory.related("m002")
    assert memory.related("m002") == [json.loads(DOCUMENTED[2]) | {"priority": pytest.approx(0.92)}]


def test_ids_that_another_session_has_too_mean_those_of_this_session(
    root: Path, memory: SessionMemory
) -> None:
    copy_by_hand(root, *DOCUMENTED)
    copy_by_hand(root, *DOCUMENTED, session="other")

    memory.link("m001", "m002", "led to")

    assert ids(memory.related("m002")) == ["m001"]
    with SessionMemory("other", root) as other:
        assert other.related("m002") == []


def test_entries_of_two_sessions_can_be_linked(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED[:2])
    copy_by_hand(root, *DOCUMENTED[2:], session="other")

    memory.link("m002", "m003", "because")

    assert ids(memory.related("m002")) == ["m003"]
    with SessionMemory("other", root) as other:
        assert ids(other.related("m003")) == ["m002"]


def test_a_link_to_nothing_is_refused_and_not_written(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)
    before = log_of(root).read_bytes()

    for a, b in (("m001", "gone"), ("gone", "m001")):
        with pytest.raises(EntryNotFoundError):
            memory.link(a, b, "because")
    with pytest.raises(EntryNotFoundError):
        memory.related("gone")

    assert log_of(root).read_bytes() == before


def test_an_id_of_several_other_sessions_is_ambiguous(root: Path, memory: SessionMemory) -> None:
    for session in ("a", "b"):
        copy_by_hand(root, *DOCUMENTED, session=session)

    with pytest.raises(AmbiguousIdError):
        memory.related("m001")


@pytest.mark.requirement("memory.limits.time-travel")
def test_a_query_as_of_a_time_shows_what_was_known_then(memory: SessionMemory, clock: ManualClock) -> None:
    first = memory.add("decision", {"decision": "Use OAuth"})
    clock.advance(timedelta(days=2))
    memory.add("decision", {"decision": "Use passkeys"})
    memory.delete(first)
    clock.advance(timedelta(days=2))

    [found] = memory.query(as_of=START + timedelta(days=1))

    assert (found["id"], found["access"]) == (first, 0)
    assert found["priority"] == 0.95 * math.exp(-0.03)
    assert [result["data"]["decision"] for result in memory.query()] == ["Use passkeys"]


def test_a_query_as_of_a_time_counts_no_access(memory: SessionMemory, root: Path) -> None:
    memory.add("decision", {"decision": "Use OAuth"})

    for _ in range(3):
        memory.query(as_of="2026-01-12T00:00:00Z")
    memory.close()

    assert len(lines_of(root)) == 1


@pytest.mark.requirement("memory.limits.several-sessions")
def test_a_query_spans_the_sessions_it_names(root: Path, memory: SessionMemory) -> None:
    for number, line in enumerate(DOCUMENTED):
        copy_by_hand(root, line, session="sabc"[number])

    assert ids(memory.query()) == ["m001"]
    assert sorted(ids(memory.query(sessions=["a", "s", "a", "missing"]))) == ["m001", "m002"]
    assert sorted(ids(memory.query(sessions="*"))) == ["m001", "m002", "m003", "m004"]
    assert memory.query(sessions=[]) == []


def test_accesses_in_other_sessions_are_counted_there(root: Path) -> None:
    copy_by_hand(root, DOCUMENTED[0], session="other")
    with SessionMemory("s", root) as memory:
        memory.query(sessions="*")
        memory.query(sessions=["other"])

    assert [line["access"] for line in lines_of(root, "other")] == [0, 2]


def test_entries_of_one_priority_come_oldest_first_across_sessions(root: Path, clock: ManualClock) -> None:
    for number, session in enumerate("bab"):
        SessionMemory(session, root, clock=clock).add("finding", {"number": number})
        clock.advance(60)

    found = SessionMemory("s", root, clock=clock).query(sessions=["a", "b"])

    assert [result["data"]["number"] for result in found] == [0, 1, 2]


@pytest.mark.requirement("memory.tradeoffs.ten-thousand-entries")
def test_ten_thousand_entries_are_all_found_in_order(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *(DOCUMENTED[number % 4].replace("m00", f"m{number}") for number in range(10_000)))

    found = memory.query()

    assert len({result["id"] for result in found}) == 10_000
    assert memory.query(topic="oauth", limit=1)[0]["id"] == "m12"
