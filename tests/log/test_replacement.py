"""A log that is written again while others write to it, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.damage import Damaged, batch, entry, lines, tombstone

from keepstone.log.line import id_of
from keepstone.log.replacement import HELD, Keep, OvertakenError, Replacement
from keepstone.log.rewrite import without
from keepstone.log.scan import derived_id

A, B, C = (entry(letter) for letter in "abc")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "sessions")
    yield session
    session.close()


@pytest.fixture
def new(session: Damaged) -> Iterator[Replacement]:
    """Begin a rewrite that leaves out ``b``, of a log with ``a`` and ``b``; the lock is held."""
    session.append(A, B)
    with session.log.locked():
        new = begun(session)
        with new.closing(HELD):
            yield new


def begun(session: Damaged, keep: Keep | None = None) -> Replacement:
    new = Replacement.begin(session.log, keep or without({"b"}))
    assert new is not None
    return new


def put(new: Replacement) -> None:
    new.check()
    new.end()
    new.put()


def test_without_a_log_no_rewrite_begins(session: Damaged) -> None:
    with session.log.locked():
        assert Replacement.begin(session.log, without({"b"})) is None


def test_the_log_stays_as_it_is_until_the_copy_is_put(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    assert session.path.read_bytes() == lines(A, B)
    put(new)
    assert session.path.read_bytes() == lines(A)


def test_lines_that_others_add_are_copied(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    session.write(C)
    assert new.left == len(lines(C))
    put(new)
    assert session.path.read_bytes() == lines(A, C)


def test_lines_that_others_add_are_filtered_as_well(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    session.write(tombstone("b"), entry("b", "again"))
    put(new)
    assert session.path.read_bytes() == lines(A)


def test_a_last_line_without_a_newline_is_copied_at_the_end(session: Damaged, new: Replacement) -> None:
    session.write_raw(lines(C)[:-1])
    new.follow_all()
    assert new.left == len(lines(C)) - 1
    put(new)
    assert session.path.read_bytes() == lines(A, C)


def test_a_damaged_end_without_a_newline_is_kept(session: Damaged, new: Replacement) -> None:
    session.write_raw(b'{"id":')
    new.follow_all()
    put(new)
    assert session.path.read_bytes().removesuffix(b"\n") == lines(A) + b'{"id":'


def test_a_torn_batch_is_put_away_before_the_rewrite_begins(session: Damaged) -> None:
    session.append(A)
    session.write(*batch(B, C)[:1])
    with session.log.locked(), begun(session).closing(HELD):
        assert session.path.read_bytes() == lines(A)


def test_the_states_before_and_after_are_those_of_the_files(session: Damaged, new: Replacement) -> None:
    before = session.log.stat()
    assert (new.before, new.size) == (before, len(lines(A, B)))
    new.end()
    after = new.stat
    assert new.put() == after == session.log.stat()


def test_the_time_of_the_last_change_can_be_kept(session: Damaged, new: Replacement) -> None:
    new.end(moment := 1_700_000_000_000_000_000)
    new.put()
    assert session.path.stat().st_mtime_ns == moment


# Others overtake it


def test_a_log_that_was_rewritten_by_others_is_noticed(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    other = session.path.with_name("other")
    other.write_bytes(lines(A, B))
    other.replace(session.path)
    with pytest.raises(OvertakenError):
        new.check()


def test_a_log_that_became_shorter_is_noticed(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    session.cut(1)
    with pytest.raises(OvertakenError):
        new.check()


def test_a_log_whose_copied_bytes_changed_is_noticed(session: Damaged, new: Replacement) -> None:
    new.follow_all()
    session.flip(len(lines(A)) + 9)
    with pytest.raises(OvertakenError):
        new.check()


def test_a_log_that_was_removed_is_noticed(session: Damaged, new: Replacement) -> None:
    session.path.unlink()
    with pytest.raises(OvertakenError):
        new.check()


def test_a_copy_that_an_erasure_removed_is_noticed(session: Damaged, new: Replacement) -> None:
    session.log.clear_away(in_use=True)
    with pytest.raises(OvertakenError):
        new.check()


def test_a_rewrite_given_up_leaves_the_log_and_no_file(session: Damaged) -> None:
    session.append(A, B)
    with session.log.locked():
        new = begun(session)
        with new.closing(HELD):
            new.follow_all()
    assert session.path.read_bytes() == lines(A, B)
    assert not session.log.is_prepared()
    assert new.source == -1


# Ids that follow from the bytes of lines


def test_numbers_of_repeated_lines_that_were_removed_are_reported(session: Damaged) -> None:
    same = b'{"content":"same"}'
    digest = derived_id(same)
    session.write(same, same, same)
    session.write(A)

    def keep_first(_: int, line: object) -> bytes | None:
        record = getattr(line, "record", None) or {}
        return None if id_of(record) in (f"{digest}-2", f"{digest}-3") else same + b"\n"

    with session.log.locked():
        new = begun(session, keep_first)
        with new.closing(HELD):
            put(new)
            assert new.renumbered == {digest: 1}


def test_a_rewrite_that_removes_no_repeated_line_renumbers_nothing(session: Damaged) -> None:
    session.write(b'{"content":"same"}', b'{"content":"same"}', B)
    with session.log.locked():
        new = begun(session)
        with new.closing(HELD):
            put(new)
            assert new.renumbered == {}


# Whether the log may be rewritten without its lock


def test_a_log_that_ends_with_a_whole_line_is_ended(new: Replacement) -> None:
    assert new.is_ended()


@pytest.mark.parametrize("rest", [b'{"id":', lines(C)[:-1]])
def test_a_log_that_ends_without_a_newline_is_not_ended(session: Damaged, rest: bytes) -> None:
    session.append(A)
    session.write_raw(rest)
    with session.log.locked():
        new = begun(session)
        with new.closing(HELD):
            assert not new.is_ended()
