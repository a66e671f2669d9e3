"""What the doctor finds, and that it changes nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with recollect.open(tmp_path, durability="os") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
        yield home


def append(home: Home, text: str) -> None:
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as log:
        log.write(text)


def found(home: Home) -> list[tuple[str, str]]:
    """Level and message of each finding, but for an index that is behind."""
    findings = [finding for finding in home.doctor() if finding.subject != "embedder"]
    return [(each.level, each.message) for each in findings if "behind" not in each.message]


def test_a_sound_home_has_one_good_finding_an_agent(home: Home) -> None:
    assert found(home) == [("ok", "1 entries, every line readable, index in step")]


@pytest.mark.parametrize(
    ("damage", "level", "message"),
    [
        ("no line\n[]\n", "error", "2 unreadable line(s), skipped"),
        (
            '{"id":"x","type":"note","batch":[1,3]}\n',
            "warning",
            "1 line(s) of a batch whose write was cut short",
        ),
        ('{"id":"x","type":"note"}', "warning", "the last line has no newline; the next write ends it"),
        ('{"id":"none","pinned":true}\n', "warning", "1 patch(es) without an entry, ignored"),
    ],
)
def test_what_is_wrong_with_a_log_is_named(home: Home, damage: str, level: str, message: str) -> None:
    append(home, damage)
    assert any(each[0] == level and each[1].startswith(message) for each in found(home))


def test_an_index_that_is_behind_is_named_until_it_caught_up(home: Home) -> None:
    append(home, '{"id":"x","type":"note"}\n')
    assert any("behind" in finding.message for finding in home.doctor())
    home.sync()
    assert found(home) == [("ok", "2 entries, every line readable, index in step")]


def test_the_doctor_changes_no_byte_of_the_home(home: Home) -> None:
    append(home, "no line\n")
    before = {path: path.read_bytes() for path in home.root.rglob("*.ndjson")}
    home.doctor()
    assert {path: path.read_bytes() for path in home.root.rglob("*.ndjson")} == before


def test_damage_in_an_archive_is_counted_too(home: Home) -> None:
    home.agent("a").session("s").update("it", text="pecan")
    home.agent("a").session("s").compact()
    with (home.root / "agents/a/memory/sessions/.archive/s.ndjson").open("a") as log:
        log.write("no line\n")
    assert ("error", "1 unreadable line(s), skipped") in found(home)
