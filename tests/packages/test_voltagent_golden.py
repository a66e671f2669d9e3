"""The golden fixture that this side and packages/voltagent both write and read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import keepstone
from keepstone import InvalidAgentIdError, InvalidSessionIdError, MemoryAdapter
from keepstone.filesystem.layout import LAYOUTS, Layout
from keepstone.log.line import format_time, instant, parse, read_time
from keepstone.log.scan import batch_of

GOLDEN = Path(__file__).parent / "golden"
SCRIPT = json.loads((GOLDEN / "operations.json").read_text("utf-8"))
EVENTS = json.loads((GOLDEN / "events.json").read_text("utf-8"))
NAMES = json.loads((GOLDEN / "names.json").read_text("utf-8"))
LINES = json.loads((GOLDEN / "lines.json").read_text("utf-8"))
TIMES = json.loads((GOLDEN / "times.json").read_text("utf-8"))
SESSIONS = Path("agents", "golden", "memory", "sessions")
NEW_ID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
MOMENT = datetime.fromisoformat(SCRIPT["clock"])


def carry_out(root: Path) -> None:
    """Do in a new home what the fixture's script says."""
    with keepstone.open(root, embedder="none", clock=lambda: MOMENT) as home:
        adapter = MemoryAdapter(home, "golden")
        session = home.agent("golden").session

        def append(step: Mapping[str, Any]) -> None:
            names = {LAYOUTS["default"].session_of(path.name): path for path in logs(root)}
            with names[step["session"]].open("ab") as log:
                log.write(step["text"].encode())

        does: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
            "save": lambda step: adapter.save(step["event"], step["session"]),
            "batch": lambda step: session(step["session"]).put_many(step["events"]),
            "delete": lambda step: session(step["session"]).delete(step["id"]),
            "clear": lambda step: adapter.clear(step["session"]),
            "remove": lambda step: adapter.delete(step["session"]),
            "append": append,
        }
        for step in SCRIPT["operations"]:
            does[step["op"]](step)


def logs(root: Path) -> list[Path]:
    """Return the logs of the fixture's agent."""
    return list((root / SESSIONS).glob("*.ndjson"))


def files(root: Path) -> dict[str, bytes]:
    """Return everything that is in the folder of the sessions but the journal of erasures."""
    found = [path for path in sorted((root / SESSIONS).iterdir()) if path.is_file()]
    return {path.name: path.read_bytes() for path in found if not path.name.startswith(".purged.")}


def test_the_same_operations_write_the_fixtures_bytes(tmp_path: Path) -> None:
    carry_out(tmp_path)
    assert files(tmp_path) == files(GOLDEN / "home")


@pytest.mark.parametrize("session", sorted(EVENTS))
def test_the_fixture_reads_back_as_its_events(tmp_path: Path, session: str) -> None:
    copytree(GOLDEN / "home", tmp_path, dirs_exist_ok=True)
    assert MemoryAdapter(tmp_path, "golden").load(session) == EVENTS[session]


def test_the_fixture_lists_the_sessions_that_have_events(tmp_path: Path) -> None:
    copytree(GOLDEN / "home", tmp_path, dirs_exist_ok=True)
    assert {info.id for info in MemoryAdapter(tmp_path, "golden").list()} == EVENTS.keys()


@pytest.mark.parametrize(("session", "name"), NAMES["sessions"])
def test_a_session_has_the_file_name_of_the_table(session: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(InvalidSessionIdError):
            LAYOUTS["default"].session_file(session)
    else:
        assert LAYOUTS["default"].session_file(session) == name
        assert LAYOUTS["default"].session_of(name) == session


@pytest.mark.parametrize(("name", "session"), NAMES["files"])
def test_a_file_name_is_read_as_the_table_says(name: str, session: str | None) -> None:
    assert LAYOUTS["default"].session_of(name) == session


@pytest.mark.parametrize(("agent", "valid"), NAMES["agents"])
def test_a_slug_is_taken_or_refused_as_the_table_says(agent: str, *, valid: bool) -> None:
    if valid:
        assert LAYOUTS["default"].check_agent(agent) == agent
    else:
        with pytest.raises(InvalidAgentIdError):
            LAYOUTS["default"].check_agent(agent)


@pytest.mark.parametrize(("identity", "name"), NAMES["digests"])
def test_a_digest_is_the_one_of_the_table(identity: str, name: str) -> None:
    assert Layout.session_name(identity) == name


def test_a_new_session_has_an_id_that_sorts_by_time(tmp_path: Path) -> None:
    adapter = MemoryAdapter(tmp_path, "golden")
    ids = [adapter.new_session() for _ in range(20)]
    assert all(re.fullmatch(NEW_ID, session) for session in ids)
    assert ids == sorted(ids)


@pytest.mark.parametrize(("line", "readable", "batch"), LINES, ids=range(len(LINES)))
def test_an_odd_line_is_read_as_the_table_says(line: str, batch: list[int] | None, *, readable: bool) -> None:
    record = parse(line.encode())
    found = batch_of(record)
    assert (record is not None, found and list(found)) == (readable, batch)


@pytest.mark.parametrize(("text", "moment", "accepted"), TIMES)
def test_a_time_is_read_as_the_table_says(text: str, moment: str | None, *, accepted: bool) -> None:
    found = read_time(text)
    assert (found and format_time(found)) == moment
    if accepted:
        assert instant(text) == found
    else:
        with pytest.raises(ValueError, match="ts (has no time zone|is not an RFC 3339 time)"):
            instant(text)


@pytest.mark.parametrize("number", [10**309, -(10**400), 2**1024 - 2**970], ids=["309", "-400", "least"])
def test_an_integer_that_no_double_can_hold_is_refused_and_nothing_is_written(
    tmp_path: Path, number: int
) -> None:
    adapter = MemoryAdapter(tmp_path, "golden")
    with pytest.raises(ValueError, match=r"an integer exceeds 1\.8e308"):
        adapter.save({"n": [number]}, "s")
    assert adapter.list() == []


def test_the_largest_integer_that_a_double_can_hold_is_stored(tmp_path: Path) -> None:
    adapter = MemoryAdapter(tmp_path, "golden")
    saved = adapter.save({"n": 2**1024 - 2**970 - 1}, "s")
    assert adapter.load("s") == [saved]
