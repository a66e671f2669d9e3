"""The merge driver on three versions of a log, outside of a repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone.filesystem.layout import PURGED
from keepstone.operations.git_driver import merge_log


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a work tree that git knows nothing about."""
    (tmp_path / "sessions").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def note(name: str, text: str, second: int = 0, **keys: Any) -> dict[str, Any]:
    return {"id": name, "ts": f"2026-01-11T14:31:{second:02}Z", "type": "note", "text": text, **keys}


def merged(
    base: list[Any], ours: list[Any], theirs: list[Any], path: str = "sessions/main.ndjson"
) -> list[Any]:
    versions = [Path(name) for name in ("base", "ours", "theirs")]
    for version, lines in zip(versions, (base, ours, theirs), strict=True):
        version.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    merge_log(versions[0], versions[1], versions[2], path)
    return [json.loads(line) for line in versions[1].read_text().splitlines()]


A, B, C = note("a", "first"), note("b", "second", 1), note("c", "third", 2)


def test_what_each_side_added_is_in_the_result_by_time() -> None:
    assert [line["id"] for line in merged([A], [A, C], [A, B])] == ["a", "b", "c"]


def test_two_merges_of_swapped_sides_are_one_log() -> None:
    assert merged([A], [A, C], [A, B]) == merged([A], [A, B], [A, C])


def test_equal_sides_stay_as_they_are() -> None:
    assert merged([A], [A, B], [A, B]) == [A, B]


def test_of_two_edits_the_later_is_last() -> None:
    early, late = note("a", "early", 5), note("a", "late", 9)
    assert [line["text"] for line in merged([A], [A, late], [A, early])][-1] == "late"
    assert [line["text"] for line in merged([A], [A, early], [A, late])][-1] == "late"


def test_a_deletion_wins_over_an_edit_of_the_other_side() -> None:
    gone = {"id": "a", "ts": "2026-01-11T14:31:05Z", "deleted": True}
    edit = note("a", "edited", 9)
    for sides in (([A, gone], [A, edit]), ([A, edit], [A, gone])):
        found = merged([A], *sides)
        assert gone["deleted"] in [line.get("deleted") for line in found]
        assert "deleted" in [line for line in found if line["id"] == "a"][-1]


def test_a_purged_entry_is_in_no_result(top: Path, tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("a").session("main").add("note", text="secret", id="b")
        home.agent("a").session("main").purge("b")
    (journal,) = (tmp_path / "home").rglob(PURGED)
    (top / "sessions" / PURGED).write_bytes(journal.read_bytes())
    assert merged([A, B], [A, B], [A, B]) == [A]
    assert merged([A, B], [A, B], [A, B], "sessions/other.ndjson") == [A, B]


def suggestion(name: str, state: str | None = None) -> dict[str, Any]:
    head = {"id": name, "ts": "2026-01-11T14:31:00Z"}
    return head | (
        {"state": state, "by": "ada"} if state else {"do": "delete", "entries": ["e"], "why": "old"}
    )


def test_suggestions_and_decisions_of_both_sides_are_kept() -> None:
    one, other = suggestion("one"), suggestion("other")
    found = merged([], [one], [other], "suggestions.ndjson")
    assert {line["id"] for line in found} == {"one", "other"}
