"""Requirement 0: session logs behind VoltAgent's memory adapter interface."""

from __future__ import annotations

import json
import logging
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepstone import MemoryAdapter


@pytest.fixture
def adapter(tmp_path: Path) -> MemoryAdapter:
    return MemoryAdapter(tmp_path / ".work-agent", agent="coder")


def folder_of(root: Path, agent: str = "coder") -> Path:
    return root / ".work-agent" / "agents" / agent / "memory" / "sessions"


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.requirement("log.adapter.events-go-to-the-sessions-file")
def test_events_lie_in_the_ndjson_file_of_agent_and_session(adapter: MemoryAdapter, tmp_path: Path) -> None:
    adapter.save({"role": "user", "content": "Hi"}, "s-1")

    [line] = lines_of(folder_of(tmp_path) / "s-1.ndjson")
    assert (line["role"], line["content"]) == ("user", "Hi")


@pytest.mark.requirement("log.adapter.save-appends-with-time")
def test_a_save_appends_one_line_with_a_timestamp(adapter: MemoryAdapter, tmp_path: Path) -> None:
    session = adapter.new_session()
    adapter.save({"content": "one"})
    before = (folder_of(tmp_path) / f"{session}.ndjson").read_bytes()

    adapter.save({"content": "two"})

    after = (folder_of(tmp_path) / f"{session}.ndjson").read_bytes()
    assert after.startswith(before)
    line = json.loads(after[len(before) :])
    assert line["content"] == "two"
    assert datetime.now(UTC) - datetime.fromisoformat(line["ts"]) < timedelta(minutes=5)


@pytest.mark.requirement("log.adapter.load-is-chronological")
def test_load_gives_events_in_the_order_of_their_time(adapter: MemoryAdapter) -> None:
    for hour in (3, 1, 2):
        adapter.save({"hour": hour, "ts": f"2026-01-11T0{hour}:00:00Z"}, "s")

    assert [event["hour"] for event in adapter.load("s")] == [1, 2, 3]


@pytest.mark.requirement("log.adapter.new-session-makes-a-file")
def test_a_new_session_has_an_id_and_a_file_of_its_own(adapter: MemoryAdapter, tmp_path: Path) -> None:
    ids = {adapter.new_session() for _ in range(20)}

    assert len(ids) == 20
    assert {path.stem for path in folder_of(tmp_path).glob("*.ndjson")} == ids


@pytest.mark.requirement("log.sessions.are-listed-with-time-and-size", "log.interface.list-gives-metadata")
def test_the_list_has_id_time_and_size_of_each_session_of_the_agent(
    adapter: MemoryAdapter, tmp_path: Path
) -> None:
    adapter.save({"content": "one"}, "a")
    adapter.save({"content": "two"}, "b")
    adapter.for_agent("other").save({"content": "three"}, "c")

    listed = {info.id: info for info in adapter.list()}

    assert set(listed) == {"a", "b"}
    for session, info in listed.items():
        status = (folder_of(tmp_path) / f"{session}.ndjson").stat()
        assert info.size == status.st_size
        assert abs(info.modified.timestamp() - status.st_mtime) < 0.001
        assert info.modified.tzinfo is not None


@pytest.mark.requirement("log.sessions.clear-empties-and-reports", "log.interface.clear-confirms")
def test_clear_leaves_zero_bytes_confirms_and_tells_the_debugger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[dict[str, Any]] = []
    adapter = MemoryAdapter(tmp_path / ".work-agent", agent="coder", debugger=told.append)
    adapter.save({"content": "secret"}, "s")
    path = folder_of(tmp_path) / "s.ndjson"
    size = path.stat().st_size

    with caplog.at_level(logging.INFO, logger="keepstone.debugger"):
        assert adapter.clear("s") is True

    assert path.stat().st_size == 0
    assert told == [{"event": "memory.clear", "agent": "coder", "session": "s", "bytes": size}]
    assert caplog.messages == [f"memory.clear agent=coder session=s bytes={size}"]


def test_a_debugger_object_with_log_is_told_of_a_clear(tmp_path: Path) -> None:
    class Debugger:
        told: ClassVar[list[dict[str, Any]]] = []

        def log(self, event: dict[str, Any]) -> None:
            self.told.append(event)

    adapter = MemoryAdapter(tmp_path, debugger=Debugger())
    adapter.save({"content": "x"}, "s")
    adapter.clear("s")

    assert [event["event"] for event in Debugger.told] == ["memory.clear"]


def test_clearing_a_missing_session_is_false_and_reports_nothing(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    adapter = MemoryAdapter(tmp_path, debugger=told.append)

    assert adapter.clear("nothing") is False
    assert told == []
    assert list(tmp_path.iterdir()) == []


def test_a_cleared_session_goes_on_with_what_is_saved_next(adapter: MemoryAdapter) -> None:
    adapter.save({"content": "before"}, "s")
    adapter.clear("s")
    adapter.save({"content": "after"}, "s")

    assert [event["content"] for event in adapter.load("s")] == ["after"]


@pytest.mark.requirement("log.sessions.delete-removes-file-and-listing")
def test_a_deleted_session_is_neither_on_disk_nor_in_the_list(adapter: MemoryAdapter, tmp_path: Path) -> None:
    adapter.save({"content": "x"}, "gone")
    adapter.save({"content": "y"}, "stays")

    assert adapter.delete("gone") is True

    assert [info.id for info in adapter.list()] == ["stays"]
    assert not [path for path in folder_of(tmp_path).rglob("*") if "gone" in path.name]
    assert adapter.delete("gone") is False


def test_a_save_after_the_current_session_was_deleted_begins_another(adapter: MemoryAdapter) -> None:
    first = adapter.new_session()
    adapter.delete(first)
    adapter.save({"content": "x"})

    [info] = adapter.list()
    assert info.id != first


def test_first_saves_of_threads_share_one_session(adapter: MemoryAdapter) -> None:
    together = threading.Barrier(8)

    def save(number: int) -> None:
        together.wait()
        adapter.save({"number": number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(8)))
    [session] = adapter.list()
    assert len(adapter.load(session.id)) == 8


@pytest.mark.requirement("log.agents.switch-isolates")
def test_after_a_switch_the_other_agents_sessions_cannot_be_read(
    adapter: MemoryAdapter, tmp_path: Path
) -> None:
    adapter.save({"content": "for A only"}, "shared-id")

    other = adapter.for_agent("b")

    assert other.load("shared-id") == []
    assert other.list() == []
    assert other.load("../../../coder/memory/sessions/shared-id") == []
    other.save({"content": "for B"}, "shared-id")
    assert (folder_of(tmp_path, "b") / "shared-id.ndjson").exists()
    assert [event["content"] for event in adapter.load("shared-id")] == ["for A only"]


def _save_many(root: Path, session: str, writer: int, barrier: Any) -> None:
    adapter = MemoryAdapter(root, agent="coder")
    barrier.wait()
    for number in range(40):
        adapter.save({"writer": writer, "number": number}, session)


def _in_processes(root: Path, sessions: list[str]) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(sessions))
    processes = [
        context.Process(target=_save_many, args=(root, session, writer, barrier))
        for writer, session in enumerate(sessions)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


@pytest.mark.requirement("log.agents.concurrent-sessions-do-not-mix")
def test_sessions_written_by_several_processes_do_not_mix(tmp_path: Path) -> None:
    _in_processes(tmp_path, ["s0", "s1", "s2"])

    adapter = MemoryAdapter(tmp_path, agent="coder")
    for writer in range(3):
        events = adapter.load(f"s{writer}")
        assert [(event["writer"], event["number"]) for event in events] == [(writer, n) for n in range(40)]


@pytest.mark.requirement("log.interface.save-is-atomic")
def test_saves_of_several_processes_into_one_session_stay_whole_lines(tmp_path: Path) -> None:
    _in_processes(tmp_path, ["one"] * 3)

    lines = lines_of(tmp_path / "agents" / "coder" / "memory" / "sessions" / "one.ndjson")
    assert sorted((line["writer"], line["number"]) for line in lines) == [
        (w, n) for w in range(3) for n in range(40)
    ]


@pytest.mark.requirement("log.interface.load-takes-a-limit")
@pytest.mark.parametrize(
    ("limit", "expected"), [(0, []), (2, [3, 4]), (9, [0, 1, 2, 3, 4]), (None, [0, 1, 2, 3, 4])]
)
def test_a_limit_keeps_the_newest_events_oldest_first(
    adapter: MemoryAdapter, limit: int | None, expected: list[int]
) -> None:
    for number in range(5):
        adapter.save({"number": number}, "s")

    assert [event["number"] for event in adapter.load("s", {"limit": limit})] == expected


def test_a_missing_session_loads_as_an_empty_list(adapter: MemoryAdapter) -> None:
    assert adapter.load("never written") == []


@pytest.mark.parametrize("options", [{"limit": -1}, {"limt": 3}])
def test_bad_options_of_load_are_value_errors(adapter: MemoryAdapter, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="limit"):
        adapter.load("s", options)


def test_the_same_id_again_replaces_the_event_in_its_place(adapter: MemoryAdapter) -> None:
    adapter.save({"id": "m1", "role": "assistant", "content": "Wor"}, "s")
    adapter.save({"id": "m2", "role": "user", "content": "next"}, "s")
    adapter.save({"id": "m1", "role": "assistant", "content": "Working"}, "s")

    assert [event["content"] for event in adapter.load("s")] == ["Working", "next"]


def test_an_event_keeps_its_id_type_and_instant(adapter: MemoryAdapter) -> None:
    saved = adapter.save({"id": "e", "type": "tool", "ts": "2026-01-11T15:30:00+01:00", "n": 1}, "s")

    assert adapter.load("s") == [saved]
    assert (saved["id"], saved["type"], saved["n"]) == ("e", "tool", 1)
    assert datetime.fromisoformat(saved["ts"]) == datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "key", ["data", "deleted", "priority", "access", "tags", "batch", "summary", "embedding"]
)
def test_an_event_that_uses_a_key_of_the_log_comes_back_as_it_was(
    adapter: MemoryAdapter, tmp_path: Path, key: str
) -> None:
    event = {"id": "e1", "type": "odd", key: {"any": ["value", None, True]}, "role": "user"}
    adapter.save(event, "s")

    assert adapter.load("s") == [event]
    [line] = lines_of(folder_of(tmp_path) / "s.ndjson")
    assert line["data"] == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["id", "type", "ts", "data", "text", "priority", "deleted", "batch", "role"]
) | st.text(max_size=5)


@settings(max_examples=60)
@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_any_json_event_comes_back_with_all_it_held(
    tmp_path_factory: pytest.TempPathFactory, event: dict[str, Any]
) -> None:
    adapter = MemoryAdapter(tmp_path_factory.mktemp("home"))
    adapter.save(event, "s")

    [loaded] = adapter.load("s")
    assert {key: loaded[key] for key in event} == event


@pytest.mark.parametrize("event", [["list"], "text", None, 5])
def test_items_that_are_not_mappings_are_refused_and_nothing_is_written(tmp_path: Path, event: Any) -> None:
    with pytest.raises(TypeError):
        MemoryAdapter(tmp_path).save(event, "s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "x"}, object(), "\ud800", b"bytes"])
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        MemoryAdapter(tmp_path).save({"value": value}, "s")
    assert list(tmp_path.iterdir()) == []
