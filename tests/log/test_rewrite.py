import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.damage import Damaged, batch, entry, lines, patch, tombstone

import keepstone
from keepstone.errors import StoreError
from keepstone.log import rewrite
from keepstone.log.line import MAX_LINE, dump
from keepstone.log.log_file import Log
from keepstone.log.replacement import Replacement
from keepstone.log.rewrite import is_due

A, B, C = (entry(letter) for letter in "abc")
MB = 1024 * 1024


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "sessions")
    yield session
    session.close()


def test_a_compacted_log_has_one_line_for_each_live_entry(session: Damaged) -> None:
    session.write(A, B, entry("a", "new"), patch("b", pinned=True), C, tombstone("c"))
    before = session.records()
    session.compact()
    assert session.raw() == session.records() == before


def test_a_compaction_archives_what_it_folds_and_nothing_else(session: Damaged) -> None:
    session.write(A, B, entry("a", "new"), C, tombstone("c"), b"damaged", patch("late", pinned=True))
    session.compact()
    archived = lines(A, entry("a", "new"), C, tombstone("c"), b"damaged", patch("late", pinned=True))
    assert session.archive_path.read_bytes() == archived


def test_a_compaction_without_changes_makes_no_archive(session: Damaged) -> None:
    session.write(A, B)
    session.compact()
    assert session.path.read_bytes() == lines(A, B)
    assert not session.archive_path.exists()


def test_counts_of_access_are_folded_for_good(session: Damaged) -> None:
    session.write(A, patch("a", access=1), patch("a", access=2), patch("gone", access=1))
    session.compact()
    assert session.raw() == [A | {"access": 2}]
    assert not session.archive_path.exists()


def test_a_second_compaction_archives_nothing_twice(session: Damaged) -> None:
    session.write(A, entry("a", "2"))
    session.compact()
    session.write(entry("a", "3"), tombstone("a"), entry("a", "4"))
    session.compact()
    session.compact()
    assert [line.get("text") for line in session.archived()] == ["x", "2", "3", None]


def test_an_id_that_lived_before_keeps_the_versions_of_its_new_life(session: Damaged) -> None:
    session.write(A, tombstone("a"))
    session.compact()
    session.write(entry("a", "again"), entry("a", "changed"))
    session.compact()
    assert [line.get("text") for line in session.archived()] == ["x", None, "again", "changed"]


def test_an_id_of_an_entry_archived_for_its_age_can_be_used_again(session: Damaged) -> None:
    later = "2026-02-02T00:00:00.000000Z"
    session.write(A, B)
    session.compact(aged=lambda record: record["id"] == "a")
    session.write(entry("a", "new", ts=later), entry("a", "newer", ts=later))
    session.compact()
    assert [line["text"] for line in session.archived()] == ["x", "new", "newer"]


def test_a_value_that_comes_back_in_the_same_instant_is_archived_again(session: Damaged) -> None:
    session.write(A, entry("a", "2"), entry("a", "3"))
    session.compact()
    session.write(entry("a", "2"))
    session.compact()
    assert [line["text"] for line in session.archived()] == ["x", "2", "3", "2"]


def test_a_rewrite_drops_the_mark_of_whole_batches(session: Damaged) -> None:
    session.write(*batch(A, B))
    session.compact()
    assert session.raw() == [A, B]


def test_a_rewrite_keeps_a_torn_batch_beside_the_archive(session: Damaged) -> None:
    session.write(*batch(A, length=2), B, *batch(C, length=2))
    session.compact()
    assert session.raw() == [A, B]
    [original] = session.archive_path.parent.glob("*.original")
    assert original.read_bytes() == lines(*batch(C, length=2))


def test_a_rewrite_writes_derived_ids_and_times_out(session: Damaged) -> None:
    session.write(A, b'{"k":1}', b'{"k":1}')
    before = session.records()
    session.compact()
    assert session.raw() == before
    session.write(b'{"k":1}')
    assert len(session.ids()) == 4


def test_a_first_line_with_a_byte_order_mark_can_be_read_in_the_archive(session: Damaged) -> None:
    session.archive_path.parent.mkdir()
    session.archive_path.write_bytes(lines(C))
    session.write_raw(b"\xef\xbb\xbf" + lines(A, tombstone("a")))
    session.compact()
    assert session.archived() == [C, A, tombstone("a")]


@pytest.mark.parametrize("rest", [b'{"id":"b","te', b"\0\0\0"])
def test_a_damaged_end_is_archived_and_not_lost(session: Damaged, rest: bytes) -> None:
    session.write(A)
    session.write_raw(rest)
    session.compact()
    assert session.path.read_bytes() == lines(A)
    assert session.archive_path.read_bytes() == rest + b"\n"


def test_a_line_that_is_too_long_is_archived_whole(session: Damaged) -> None:
    endless = b"x" * (MAX_LINE + 5)
    session.write(A, endless)
    session.compact()
    assert session.archive_path.read_bytes() == endless + b"\n"


def test_an_entry_that_fits_no_line_is_left_as_it_is(session: Damaged) -> None:
    session.write(entry("a", "x" * 10 * MB), patch("a", summary="y" * 10 * MB), B, B)
    before = session.path.read_bytes()
    assert session.compact() is None
    assert session.path.read_bytes() == before


def test_a_compaction_tells_what_it_saved(session: Damaged) -> None:
    session.write(A, tombstone("a"), B, entry("b", "new"))
    at = len(lines(A, tombstone("a"), B))
    done = session.compact()
    assert done is not None
    line = len(dump(entry("b", "new", modified=entry("b")["ts"])))
    assert (done.stat, done.saved) == (session.log.stat(), at + len(dump(entry("b", "new"))) - line)


def test_there_is_nothing_to_compact_without_a_log(session: Damaged) -> None:
    assert session.compact() is None
    assert not session.path.exists()


class Killed(BaseException):
    """Stands for the end of the process."""


def die(*_: object) -> None:
    raise Killed


STORY: list[Any] = [A, B, entry("a", "2"), tombstone("b"), b"damaged", b"damaged", C, entry("b", "again")]


@pytest.mark.parametrize("cut", [0, 1, 30, 150])
def test_a_compaction_killed_behind_the_archive_archives_nothing_twice(
    session: Damaged, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    session.write(*STORY)
    with monkeypatch.context() as patched:
        patched.setattr(Log, "replace", die)
        with pytest.raises(Killed):
            session.compact()
    archived = session.archive_path.read_bytes()
    session.archive_path.write_bytes(archived[: len(archived) - cut])
    session.reopen()
    session.write(entry("c", "2"))
    before = session.records()
    session.compact()
    expected = Counter(lines(*STORY[:-1], entry("c", "2")).splitlines())
    assert Counter(session.archive_path.read_bytes().splitlines()) == expected
    assert session.records() == before


def test_a_log_that_an_editor_saves_during_its_compaction_stays(
    session: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.write(*STORY)
    fold = Replacement.fold

    def folding(new: Replacement, *about: Any) -> None:
        fold(new, *about)
        session.path.with_suffix(".edited").write_bytes(lines(A))
        session.path.with_suffix(".edited").rename(session.path)

    monkeypatch.setattr(Replacement, "fold", folding)
    with pytest.raises(StoreError, match="another program"):
        session.compact()
    assert session.path.read_bytes() == lines(A)


def test_a_purge_leaves_no_byte_of_an_entry_in_log_or_archive(session: Damaged) -> None:
    session.write(entry("secret", "one"), A, entry("secret", "two"))
    session.compact()
    session.write(patch("secret", pinned=True), b'{"id":"secret","te', entry("secret", "three"))
    session.write_raw(b'{"id":"secret","text":"unfinished')
    session.purge("secret")
    assert session.path.read_bytes() == lines(A)
    assert session.archive_path.read_bytes() == b""


def test_a_purge_keeps_every_other_line(session: Damaged) -> None:
    session.write(*batch(A, B, C), b"damaged", entry("a", "2"), patch("a", access=1))
    session.write_raw(b"unfinished")
    session.purge("b")
    expected = lines(A, C, b"damaged", entry("a", "2"), patch("a", access=1), b"unfinished")
    assert session.path.read_bytes() == expected


def test_a_purge_finds_an_entry_in_a_line_that_is_too_long(session: Damaged) -> None:
    session.write(A, b'{"id":"secret","text":"' + b"x" * MAX_LINE + b'"}')
    session.purge("secret")
    assert session.path.read_bytes() == lines(A)


CUT = b'{"id":"11","ts":"2026-01-11T14:31:00Z","type":"note",'


@pytest.mark.parametrize(
    "damaged",
    [
        CUT + b'"data":{"text":"use 1 of other"',
        CUT + b'"data":{"text":"other"',
        CUT + b'"links":[{"to":"other","rel":"about"}]',
        CUT + b'"data":{"id":"other","type":"function","call":{}',
        CUT + b'"data":{"id":"other"}',
        b'{"data":{"id":"other"},"id":"11","ts":"2026',
        b'{"id":"another","te',
        b"other",
        b'"other"',
        b"[" * 100_000 + b'"id":"other"',
        b'{"id":["other"],"te',
    ],
)
def test_purge_of_an_unknown_id_keeps_lines_that_only_hold_it(session: Damaged, damaged: bytes) -> None:
    session.write(A, damaged)
    inode = session.log.stat()
    session.purge("other")
    assert session.log.stat() == inode


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"id":"other","te',
        b'{ "priority": 1, "data": {"id": "11"}, "id": "other", "te',
        b'{"id":"\\u006fther","text":"x',
        b'\xef\xbb\xbf{"id":"other","text":"x',
        b'\0\0"id":"other","ts":"2026-01-11T14:31:00Z","type":"note","text":"x"}',
        CUT + b'"text":"a wor{"id":"other","ts":"2026-01-11T14:31:00Z","type":"note","text":"x"}',
        CUT + b'"text":"a wor{"id":"other","type":"note","ts":"2026-01-11T14:31:00Z","text":"x',
    ],
)
def test_purge_removes_damaged_lines_of_the_entry(session: Damaged, damaged: bytes) -> None:
    session.write(A, damaged, B)
    session.purge("other")
    assert session.path.read_bytes() == lines(A, B)


def test_an_archive_keeps_no_descriptor_open(session: Damaged) -> None:
    session.append(A)
    before = len(os.listdir("/dev/fd"))
    for number in range(3):
        session.append(entry("a", str(number)))
        session.compact()
        session.purge("b")
    session.append(B)
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize(
    ("size", "compacted", "due"),
    [(10 * MB, 0, False), (10 * MB + 1, 0, True), (30 * MB, 20 * MB, False), (40 * MB, 20 * MB, True)],
)
def test_a_compaction_is_due_when_the_log_has_doubled(size: int, compacted: int, due: bool) -> None:  # noqa: FBT001
    assert is_due(size, compacted) is due


@pytest.fixture
def compactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes at which logs were compacted."""
    sizes: list[int] = []
    real = rewrite.compact

    def compact(log: Log, *others: Any) -> Any:
        stat = log.stat()
        sizes.append(stat.size if stat else 0)
        return real(log, *others)

    monkeypatch.setattr(rewrite, "compact", compact)
    return sizes


def test_adds_to_a_long_session_with_old_versions_compact_it_at_most_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compactions: list[int]
) -> None:
    monkeypatch.setattr(rewrite, "COMPACT_FROM", 20_000)
    with keepstone.open(tmp_path, durability="os") as home:
        session = home.agent("a").session("s1")
        for _ in range(2):
            session.add_many({"type": "event", "text": "x" * 1000} for _ in range(30))
        first = session.entries()[0]
        for number in range(200):
            session.update(first.id, text=f"{number}" + "x" * 1000)
        for number in range(200):
            session.add("note", text=f"{number}" + "x" * 100)
        assert len(session.entries()) == 260
    assert 1 <= len(compactions) <= 4


def test_counts_alone_compact_a_long_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compactions: list[int]
) -> None:
    monkeypatch.setattr(rewrite, "COMPACT_FROM", 20_000)
    with keepstone.open(tmp_path, durability="os") as home:
        session = home.agent("a").session("s1")
        ids = [entry.id for entry in session.add_many({"type": "event", "text": "x"} for _ in range(50))]
        for _ in range(50):
            session.count(dict.fromkeys(ids, 1), wait=False)
        assert [entry.access for entry in session.entries()] == [50] * 50
    assert 1 <= len(compactions) <= 20


def test_an_add_has_succeeded_even_if_its_log_cannot_be_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(rewrite, "COMPACT_FROM", 1000)
    monkeypatch.setattr(rewrite, "compact", full)
    with keepstone.open(tmp_path, durability="os") as home:
        session = home.agent("a").session("s1")
        entry = session.add("note", text="x" * 1000)
        session.update(entry.id, text="y" * 1000)
        session.update(entry.id, text="z" * 1000)
        assert [found.text for found in session.entries()] == ["z" * 1000]
    assert "could not be compacted: the disk is full" in caplog.text


def test_a_long_session_with_nothing_to_fold_away_is_not_rewritten_by_adds(
    tmp_path: Path, compactions: list[int]
) -> None:
    with keepstone.open(tmp_path, durability="os") as home:
        session = home.agent("a").session("s1")
        session.add_many({"type": "event", "text": "word " * 20_000} for _ in range(300))
        for number in range(1000):
            session.add("note", text=f"number {number}")
        assert len(session.entries()) == 1300
    assert compactions == []


def change_often(session: keepstone.Session, round_: int) -> None:
    """Puts, patches, a deletion and a new life of one entry."""
    session.add("note", {"content": f"first {round_}"}, id="a")
    session.update("a", data={"content": "second"})
    session.update("a", pinned=True)
    session.delete("a")
    session.add("note", {"content": f"again {round_}"}, id="a")
    session.update("a", tags=["t"])


def test_history_is_the_same_after_compactions_at_any_time(tmp_path: Path) -> None:
    told = []
    for name, compacting in (("never", False), ("always", True)):
        with keepstone.open(tmp_path / name) as home:
            session = home.agent("a").session("s1")
            for round_ in range(3):
                change_often(session, round_)
                if compacting:
                    session.compact()
                session.update("a", data={"content": "between"})
                session.delete("a")
            told.append(
                [(version.text, version.line.get("deleted")) for version in home.agent("a").history("a")]
            )
    assert told[0] == told[1]
