"""Grants as lines: what counts, and that whatever is not understood grants nothing."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Home, NotGrantedError, StoreError
from keepstone.testing import START, ManualClock

LINE = {"to": "coder", "may": "read", "ts": "2026-01-11T14:31:00.000000Z"}
FILE = "agents/team/memory/grants.ndjson"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def home(tmp_path: Path, clock: ManualClock) -> Home:
    """Agents team, with an entry, and coder."""
    home = keepstone.open(tmp_path / "home", embedder="none", clock=clock)
    home.agent("team").add("We deploy on Fridays", id="friday", type="decision", tags=["ops"])
    return home


@pytest.fixture
def team(home: Home) -> Agent:
    return home.agent("team")


def write(home: Home, *lines: Any, end: str = "\n") -> None:
    """Write the grants of the team by hand; texts as they are."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (home.root / FILE).write_text("\n".join(texts) + end, "utf-8")


def may_read(home: Home) -> bool:
    try:
        return home.agent("coder").get("friday", of="team").id == "friday"
    except NotGrantedError:
        return False


def damage_of(home: Home) -> list[str]:
    return [found.message for found in home.doctor() if found.level == "error" and "grants" in found.subject]


def test_a_line_by_hand_grants_reading(home: Home, team: Agent) -> None:
    write(home, LINE)
    assert may_read(home)
    assert [(one.to, one.may, one.ts) for one in team.grants()] == [("coder", "read", START)]
    assert damage_of(home) == []


def test_a_grant_is_one_line_with_what_was_given(home: Home, team: Agent) -> None:
    team.grant("coder", "write", types=["note"], tags=["ops"], until="7d", by="Ada")
    expected = {
        "to": "coder",
        "may": "write",
        "types": ["note"],
        "tags": ["ops"],
        "until": "2026-01-18T14:31:00.000000Z",
        "by": "Ada",
        "ts": "2026-01-11T14:31:00.000000Z",
    }
    assert json.loads((home.root / FILE).read_text("utf-8")) == expected
    assert [one.as_dict() for one in team.grants()] == [expected]
    assert (home.root / FILE).stat().st_mode & 0o777 == 0o600


DAMAGE: list[Any] = [
    "{",
    '{"to": "coder", "may": "re',
    "[]",
    "null",
    '"coder"',
    "<<<<<<< ours",
    "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    '{"to": "x", "to": "coder", "may": "read", "ts": "2026-01-11T14:31:00Z"}',
    LINE | {"to": "*"},
    LINE | {"to": ""},
    LINE | {"to": "../coder"},
    LINE | {"to": None},
    LINE | {"to": ["coder"]},
    LINE | {"may": "Read"},
    LINE | {"may": "admin"},
    LINE | {"may": None},
    LINE | {"may": ["read"]},
    LINE | {"type": ["note"]},
    LINE | {"id": "1"},
    LINE | {"types": "decision"},
    LINE | {"types": [1]},
    LINE | {"types": {"decision": True}},
    LINE | {"tags": "ops"},
    LINE | {"until": "soon"},
    LINE | {"until": 0},
    LINE | {"by": 7},
    LINE | {"ts": None},
    LINE | {"ts": "yesterday"},
    LINE | {"ts": 1},
    {"to": "coder", "may": "read"},
    {"may": "read", "ts": LINE["ts"]},
    "[" * 100_000,
]


@pytest.mark.parametrize("line", DAMAGE, ids=range(len(DAMAGE)))
@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_line_makes_the_whole_file_grant_nothing(
    home: Home, team: Agent, line: Any, number: int
) -> None:
    write(home, *([line, LINE] if number == 1 else [LINE, line]))
    assert (may_read(home), team.grants()) == (False, [])
    assert [f"line {number} is not a grant" in found for found in damage_of(home)] == [True]


@pytest.mark.parametrize("change", [lambda team: team.grant("coder"), lambda team: team.revoke("coder")])
def test_a_damaged_file_is_not_written_to(home: Home, team: Agent, change: Callable[[Agent], Any]) -> None:
    write(home, LINE, "{")
    before = (home.root / FILE).read_bytes()
    with pytest.raises(StoreError, match="line 2 is not a grant.*keepstone doctor"):
        change(team)
    assert (home.root / FILE).read_bytes() == before


def test_a_file_that_is_too_long_grants_nothing_and_is_kept(home: Home) -> None:
    write(home, LINE, LINE | {"to": "ops"}, *[LINE] * 20_000)
    before = (home.root / FILE).read_bytes()
    home.agent("ops").add("x")
    home.purge_agent("ops")
    assert not may_read(home)
    assert len(damage_of(home)) == 1
    assert (home.root / FILE).read_bytes() == before


def test_blank_lines_and_a_missing_last_newline_are_no_damage(home: Home, team: Agent) -> None:
    write(home, "", LINE, "", end="")
    assert may_read(home)
    team.grant("other")
    assert {one.to for one in team.grants()} == {"coder", "other"}


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "fifo", "folder that is a link"])
def test_a_file_that_is_not_regular_grants_nothing(home: Home, tmp_path: Path, kind: str) -> None:
    write(home, LINE)
    path, outside = home.root / FILE, tmp_path / "outside"
    path.rename(outside)
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "hard link":
        os.link(outside, path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        other = home.agent("ops").session("s")
        other.add("note", "x")
        outside.rename(home.root / "agents/ops/memory/grants.ndjson")
        assert home.agents() == ["ops", "team"]
        (home.root / "agents/alias").symlink_to(home.root / "agents/ops")
        with pytest.raises(NotGrantedError):
            home.agent("coder").count(shared=["alias"])
        return
    assert not may_read(home)
    assert len(damage_of(home)) == 1


def test_the_newest_line_counts_and_ties_go_by_place(home: Home) -> None:
    older = LINE | {"ts": "2026-01-10T00:00:00Z"}
    write(home, LINE, older | {"may": "nothing"})
    assert may_read(home)
    write(home, LINE | {"may": "nothing"}, older)
    assert not may_read(home)
    write(home, LINE, LINE | {"may": "nothing"})
    assert not may_read(home)
    write(home, LINE | {"may": "nothing"}, LINE)
    assert may_read(home)


def test_a_line_of_the_future_does_not_count_until_then(home: Home, clock: ManualClock) -> None:
    write(home, LINE | {"ts": "2026-01-11T14:31:01Z"})
    assert not may_read(home)
    clock.advance(1)
    assert may_read(home)
    write(home, LINE, LINE | {"may": "nothing", "ts": "2027-01-01T00:00:00Z"})
    assert may_read(home)


def test_a_revocation_outlasts_lines_of_the_future(home: Home, team: Agent, clock: ManualClock) -> None:
    write(home, LINE | {"ts": "2026-01-12T00:00:00Z"}, LINE | {"to": "other", "ts": "2026-01-12T00:00:00Z"})
    assert not team.revoke("coder")
    clock.advance(timedelta(days=7))
    assert not may_read(home)
    assert [one.to for one in team.grants()] == ["other"]


def test_a_grant_ends_at_its_time(home: Home, team: Agent, clock: ManualClock) -> None:
    team.grant("coder", until=START + timedelta(hours=1))
    clock.advance(3599)
    assert may_read(home)
    clock.advance(1)
    assert (may_read(home), team.grants()) == (False, [])
    assert not team.revoke("coder")


def test_revoking_returns_whether_anything_was_granted(home: Home, team: Agent) -> None:
    team.grant("coder")
    assert (team.revoke("coder"), team.revoke("coder"), team.revoke("nobody")) == (True, False, False)
    assert not may_read(home)


MISTAKES: list[tuple[type[Exception], Callable[[Agent], Any]]] = [
    (keepstone.InvalidAgentIdError, lambda team: team.grant("../x")),
    (keepstone.InvalidAgentIdError, lambda team: team.grant("*")),
    (keepstone.InvalidAgentIdError, lambda team: team.revoke("*")),
    (ValueError, lambda team: team.grant("team")),
    (ValueError, lambda team: team.grant("coder", "nothing")),  # type: ignore[arg-type]
    (ValueError, lambda team: team.grant("coder", "all")),  # type: ignore[arg-type]
    (ValueError, lambda team: team.grant("coder", until="someday")),
    (ValueError, lambda team: team.grant("coder", by="")),
    (TypeError, lambda team: team.grant("coder", types="note")),
    (TypeError, lambda team: team.grant("coder", tags=[1])),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("error", "act"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_grant_writes_nothing(
    home: Home, team: Agent, error: type[Exception], act: Callable[[Agent], Any]
) -> None:
    with pytest.raises(error):
        act(team)
    assert not (home.root / FILE).exists()


# A model of 1,000 random files


def model(lines: list[dict[str, Any]], now: datetime) -> dict[str, dict[str, Any]]:
    """Return the grants in force, from their definition."""
    found: dict[str, dict[str, Any]] = {}
    for to in {line["to"] for line in lines}:
        past = [line for line in lines if line["to"] == to and datetime.fromisoformat(line["ts"]) <= now]
        if past:
            newest = max(line["ts"] for line in past)
            last = [line for line in past if line["ts"] == newest][-1]
            until = last.get("until")
            if last["may"] != "nothing" and (until is None or datetime.fromisoformat(until) > now):
                found[to] = last
    return found


def drawn(chance: random.Random) -> dict[str, Any]:
    times = [f"2026-01-{day:02}T00:00:00+00:00" for day in range(8, 15)]
    line: dict[str, Any] = {
        "to": chance.choice(["coder", "other"]),
        "may": chance.choice(["read", "write", "nothing"]),
        "ts": chance.choice(times),
    }
    if chance.random() < 0.4:
        line["types"] = chance.sample(["note", "decision"], chance.randint(0, 2))
    if chance.random() < 0.4:
        line["tags"] = chance.sample(["ops", "web"], chance.randint(0, 2))
    if chance.random() < 0.3:
        line["until"] = chance.choice(times)
    return line


ENTRIES = {
    f"{kind}-{'-'.join(tags)}": (kind, tags)
    for kind in ("note", "decision")
    for tags in ((), ("ops",), ("web",), ("ops", "web"))
}


def allowed(line: dict[str, Any] | None, kind: str, tags: tuple[str, ...]) -> bool:
    if line is None:
        return False
    return kind in line.get("types", [kind]) and set(line.get("tags", [])) <= set(tags)


def ids_or_none(act: Callable[[], list[str]]) -> set[str] | None:
    try:
        return set(act())
    except NotGrantedError:
        return None


def test_a_thousand_random_files_grant_what_a_model_says(tmp_path: Path, clock: ManualClock) -> None:
    chance = random.Random(47)
    with keepstone.open(tmp_path / "h", embedder="none", clock=clock, durability="os") as home:
        team, coder = home.agent("team"), home.agent("coder")
        for name, (kind, tags) in ENTRIES.items():
            team.add(f"walnut {name}", id=name, type=kind, tags=[*tags])
        for _ in range(1_000):
            lines = [drawn(chance) for _ in range(chance.randint(0, 6))]
            write(home, *lines)
            found = model(lines, START)
            assert {one.to for one in team.grants()} == found.keys()
            line = found.get("coder")
            expected = None if line is None else {name for name, of in ENTRIES.items() if allowed(line, *of)}
            assert ids_or_none(lambda: [entry.id for entry in coder.entries(shared=["team"])]) == expected
            name = chance.choice(list(ENTRIES))
            session = coder.session("main", of="team")
            may_write = line is not None and line["may"] == "write" and allowed(line, *ENTRIES[name])
            try:
                session.update(name, priority=chance.choice([0.1, 0.2, 0.3]))
                assert may_write
            except (NotGrantedError, keepstone.EntryNotFoundError):
                assert not may_write
        assert [hit.agent for hit in coder.recall("walnut", shared=[])] == []


def test_times_of_grants_are_aware_and_in_utc(team: Agent) -> None:
    given = team.grant("coder", until="2026-02-01T01:00:00+01:00")
    assert given.until == datetime(2026, 2, 1, tzinfo=UTC)
    assert team.grants() == [given]
