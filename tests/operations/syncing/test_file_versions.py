"""Versions of files: two of them have one result, in any order of exchanges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.operations.syncing.file_versions import (
    Known,
    Version,
    conflict_name,
    dump,
    ended,
    joined,
    parsed,
    written,
)
from keepstone.store.files.file_deletions import VERSIONS

DIGESTS = st.sampled_from([character * 64 for character in "0123456789"])
MARKS = st.frozensets(st.sampled_from("abcdef"), max_size=4)


@st.composite
def versions(draw: st.DrawFn) -> Version:
    lives, over = draw(MARKS), draw(MARKS)
    digest = draw(DIGESTS)
    seen = dict.fromkeys([*draw(st.lists(DIGESTS, max_size=3)), digest])
    return Version(draw(st.integers(0, 3)), digest, tuple(one[:16] for one in seen), lives - over, over)


def told(version: Version) -> tuple[object, ...]:
    """What devices must agree on; the order of contents that were seen decides only what is forgotten."""
    return version.time, version.sha256, frozenset(version.seen), version.lives, version.over


@given(versions(), versions())
def test_the_order_of_two_versions_does_not_matter(one: Version, other: Version) -> None:
    assert told(joined(one, other)) == told(joined(other, one))


@given(versions(), versions(), versions())
def test_three_versions_end_the_same_for_lives_in_any_grouping(
    one: Version, two: Version, three: Version
) -> None:
    left, right = joined(joined(one, two), three), joined(one, joined(two, three))
    assert (left.lives, left.over) == (right.lives, right.over)


@given(versions())
def test_a_version_joined_with_itself_is_itself(version: Version) -> None:
    assert told(joined(version, version)) == told(version)
    assert joined(None, version) == version


@given(versions(), versions())
def test_what_ended_on_one_device_is_not_live_after_a_join(one: Version, other: Version) -> None:
    found = joined(one, other)
    assert found.lives.isdisjoint(one.over | other.over)
    assert one.over | other.over <= found.over


@given(versions(), versions())
def test_a_join_knows_what_both_knew(one: Version, other: Version) -> None:
    found = joined(one, other)
    assert all(found.knows(digest) for digest in (one.sha256, other.sha256))


@given(st.dictionaries(st.text(max_size=5), versions(), max_size=4))
def test_published_versions_come_back(found: dict[str, Version]) -> None:
    assert parsed(dump(found)) == found


def test_a_later_edit_wins_over_an_earlier_one() -> None:
    first = written(None, "0" * 64, 10)
    early, late = written(first, "1" * 64, 20), written(first, "2" * 64, 30)
    assert joined(early, late).sha256 == joined(late, early).sha256 == "2" * 64


def test_an_edit_is_later_than_its_version_though_the_clock_is_behind() -> None:
    first = written(None, "0" * 64, 100)
    edit = written(first, "1" * 64, 5)
    assert edit.time == 101
    assert joined(first, edit).sha256 == "1" * 64


def test_of_equal_times_the_digest_decides_on_both_devices() -> None:
    one, other = written(None, "1" * 64, 10), written(None, "2" * 64, 10)
    assert joined(one, other).sha256 == joined(other, one).sha256 == "2" * 64


def test_a_live_version_wins_over_a_later_one_that_ended() -> None:
    ended_late = ended(written(None, "1" * 64, 99))
    alive = written(None, "2" * 64, 1)
    assert joined(ended_late, alive).sha256 == joined(alive, ended_late).sha256 == "2" * 64


def test_a_deletion_ends_the_lives_that_its_device_knew() -> None:
    first = written(None, "1" * 64, 10)
    assert not joined(written(first, "2" * 64, 20), ended(first)).is_live


def test_a_deletion_leaves_a_life_that_began_elsewhere() -> None:
    first = ended(written(None, "1" * 64, 10))
    assert joined(first, written(first, "2" * 64, 20)).is_live


def test_the_same_text_written_again_begins_a_new_life() -> None:
    gone = ended(written(None, "1" * 64, 10))
    again = written(gone, "1" * 64, 20)
    assert again.is_live
    assert joined(gone, again).is_live


def test_copies_of_one_home_begin_one_life_of_a_file() -> None:
    assert written(None, "1" * 64, 10).lives == written(None, "1" * 64, 20).lives


def test_the_contents_that_are_known_again_are_the_newest() -> None:
    version = written(None, f"{0:064}", 0)
    for number in range(1, 100):
        version = written(version, f"{number:016}{0:048}", number)
    assert len(version.seen) == 64
    assert version.knows(f"{99:016}{0:048}")
    assert not version.knows(f"{0:064}")


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"{",
        b'{"a": 1}',
        b'{"a": [1, "x", [], []]}',
        b'{"a": [-1, "x", [], [], []]}',
        b'{"a": [1, "x", [2], [], []]}',
        b'{"a": [1.5, "x", [], [], []]}',
        b'{"a": [1, "x", [], {}, []]}',
    ],
)
def test_bytes_of_another_form_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(raw)


def test_known_versions_come_back_from_the_disk(tmp_path: Path) -> None:
    known = Known({})
    known.of("agent")["name"] = written(None, "1" * 64, 10)
    known.of("empty")
    known.save(tmp_path)
    assert Known.load(tmp_path).groups == {"agent": known.groups["agent"]}


def test_damaged_versions_say_what_to_do(tmp_path: Path) -> None:
    Known({}).save(tmp_path)
    (file,) = tmp_path.rglob(VERSIONS)
    file.write_text(json.dumps({"agent": [1]}))
    with pytest.raises(ValueError, match="is damaged .*restore it from a backup, or delete it"):
        Known.load(tmp_path)


def test_groups_with_a_slash_are_no_agents() -> None:
    version = written(None, "1" * 64, 10)
    known = Known({"agent": {"f": version}, "empty": {}, "agent/grants": {"l": version}})
    assert known.agents() == ["agent"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("today.md", "today (conflict 11111111).md"),
        ("plans/today.tar.gz", "plans/today.tar (conflict 11111111).gz"),
        ("notes", "notes (conflict 11111111)"),
        (".env", ".env (conflict 11111111)"),
        ("a.b/notes", "a.b/notes (conflict 11111111)"),
    ],
)
def test_what_lost_keeps_its_folder_and_its_extension(path: str, name: str) -> None:
    assert conflict_name(path, "1" * 64) == name


@given(
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=255)
)
def test_the_name_of_what_lost_fits_a_file_system(name: str) -> None:
    made = conflict_name(name, "1" * 64)
    assert "(conflict 11111111)" in made
    assert len(made.encode()) <= max(255, len(name.rpartition(".")[2].encode()) + 22)
