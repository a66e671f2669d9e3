import hashlib
import os
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import TS, batch, entry, lines, opened, patch

from keepstone.log import scan
from keepstone.log.line import MAX_LINE, dump, format_time, parse
from keepstone.log.scan import Line, Scan, backwards, batch_of, behind_last_newline, split

Opener = Callable[[bytes], int]


@pytest.fixture
def log_of(tmp_path: Path) -> Iterator[Opener]:
    """Makes a descriptor of a file with the given bytes."""
    fds: list[int] = []

    def open_log(data: bytes) -> int:
        path = tmp_path / f"log{len(fds)}"
        path.write_bytes(data)
        fds.append(os.open(path, os.O_RDONLY))
        return fds[-1]

    yield open_log
    for fd in fds:
        os.close(fd)


def seen(found: list[Line]) -> list[Any]:
    """The ids of lines, None for an unreadable one."""
    return [line.record and line.record.get("id") for line in found]


def shown(fd: int, *, unfinished: bool = False) -> list[Any]:
    return seen(list(Scan(fd, unfinished=unfinished)))


A, B, C, D = (entry(letter) for letter in "abcd")


def test_reading_from_within_a_batch_does_not_read_to_its_end(
    log_of: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, parsed = lines(*batch(*[entry(str(n)) for n in range(100)])), list[bytes]()

    def parsing(line: bytes) -> Any:
        parsed.append(line)
        return parse(line)

    monkeypatch.setattr(scan, "parse", parsing)
    first = next(iter(Scan(log_of(raw), raw.index(b"\n") + 1)))
    assert first.record is not None
    assert first.record["id"] == "1"
    assert len(parsed) == 1


def test_lines_come_in_file_order_with_their_places(log_of: Opener) -> None:
    found = list(Scan(log_of(lines(A, B))))
    length = len(dump(A))
    assert seen(found) == ["a", "b"]
    assert [(line.offset, line.length) for line in found] == [(0, length), (length, length)]


def test_a_batch_cut_short_at_the_end_is_hidden(log_of: Opener) -> None:
    scan = Scan(log_of(lines(A, *batch(B, C, length=3))))
    assert seen(list(scan)) == ["a"]
    assert scan.torn == 2


def test_a_batch_cut_short_before_other_lines_was_edited_and_is_shown(log_of: Opener) -> None:
    assert shown(log_of(lines(*batch(A, B, length=3), C))) == ["a", "b", "c"]
    assert shown(log_of(lines(*batch(A, length=2), *batch(C, D)))) == ["a", "c", "d"]


def test_a_whole_batch_is_shown(log_of: Opener) -> None:
    assert shown(log_of(lines(*batch(A, B, C), D))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("kept", [[1], [2], [0, 2], [1, 2], [2, 1]])
def test_any_other_gap_in_a_batch_hides_nothing(log_of: Opener, kept: list[int]) -> None:
    whole = batch(A, B, C)
    left = [whole[place] for place in kept]
    assert shown(log_of(lines(*left, D))) == [*(record["id"] for record in left), "d"]


@pytest.mark.parametrize("place", [1, 2])
def test_a_damaged_line_in_or_after_a_batch_hides_nothing(log_of: Opener, place: int) -> None:
    items: list[Any] = batch(A, B, length=3)
    items.insert(place, b"damaged")
    assert [found for found in shown(log_of(lines(*items, C))) if found] == ["a", "b", "c"]


def test_a_damaged_line_before_a_torn_batch_does_not_show_it(log_of: Opener) -> None:
    assert shown(log_of(lines(b"damaged", *batch(A, B, length=3)))) == [None]


@pytest.mark.parametrize("mark", [None, 1, [], [1], [0, 2], [3, 2], ["1", "2"], [1, 2, 3], {}, [1.0, 2.0]])
def test_a_mark_that_is_none_makes_no_batch(log_of: Opener, mark: object) -> None:
    assert shown(log_of(lines(A | {"batch": mark}))) == ["a"]


def naive(items: list[Any]) -> list[Any]:
    """What of marks and damage is shown: runs rise within one length; a pure start at the end is hidden."""
    runs: list[list[Any]] = []
    for item in items:
        last = [other for other in (runs[-1] if runs else []) if other]
        open_run = bool(last) and last[-1][0] < last[-1][1]
        if open_run and (item is None or (item and item[1] == last[-1][1] and item[0] > last[-1][0])):
            runs[-1].append(item)
        else:
            runs.append([item])
    last = runs[-1] if runs else []
    if last and last[-1] and last == [(n, last[0][1]) for n in range(1, len(last) + 1)]:
        runs = runs[:-1] if last[-1][0] < last[-1][1] else runs
    return [item for run in runs for item in run]


marks = st.one_of(
    st.none(), st.just(()), st.integers(1, 3).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))
)


@given(st.lists(marks, max_size=10))
def test_what_of_batches_is_shown_is_what_a_naive_reader_shows(items: list[Any]) -> None:
    data = lines(*(b"damaged" if item is None else A | ({"batch": item} if item else {}) for item in items))
    with opened(data) as fd:
        found = [line.record is not None and (batch_of(line.record) or ()) for line in Scan(fd)]
    assert found == [item is not None and item for item in naive(items)]


def test_unreadable_lines_are_given_without_a_record(log_of: Opener) -> None:
    data = lines(b"damaged", A, b"[1]", b'{"id":"\xff"}', b"\0\0\0\0" + dump(B)[:-1], C)
    assert shown(log_of(data)) == [None, "a", None, None, None, "c"]


def test_blank_lines_are_not_lines(log_of: Opener) -> None:
    assert shown(log_of(b"\n\r\n  \t\n" + lines(A) + b"\n\n")) == ["a"]


def test_a_byte_order_mark_does_not_hide_the_first_line(log_of: Opener) -> None:
    mark = b"\xef\xbb\xbf"
    assert shown(log_of(mark + lines(A, B))) == ["a", "b"]
    assert shown(log_of(mark + b"\n" + lines(A))) == ["a"]
    assert shown(log_of(mark + b'{"k":1}\n')) == shown(log_of(b'{"k":1}\n'))


def test_lines_may_end_as_on_windows(log_of: Opener) -> None:
    data = lines(A, b'{"k":1}')
    assert shown(log_of(data.replace(b"\n", b"\r\n"))) == shown(log_of(data))


def test_a_line_of_20_megabytes_is_skipped_with_flat_memory(log_of: Opener) -> None:
    fd = log_of(lines(A, b'{"text":"' + b"x" * 20_000_000 + b'"}', B))
    tracemalloc.start()
    found = shown(fd)
    back = seen(list(backwards(fd, os.fstat(fd).st_size)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == back[::-1] == ["a", None, "b"]
    assert peak < 5 * MAX_LINE


def test_an_endless_last_line_is_not_kept(log_of: Opener) -> None:
    scan = Scan(log_of(lines(A) + b"x" * (MAX_LINE + 2)), unfinished=True)
    assert seen(list(scan)) == ["a"]
    assert len(scan.rest) == 1


def test_a_line_without_an_id_gets_one_from_its_bytes(log_of: Opener) -> None:
    raw = b'{"k":1}'
    digest = hashlib.sha256(raw).hexdigest()[:32]
    assert shown(log_of(lines(raw, b" " + raw, A, raw))) == [digest, f"{digest}-2", "a", f"{digest}-3"]


def test_a_line_is_not_given_an_id_that_a_rewrite_gave_to_another(log_of: Opener) -> None:
    raw = b'{"k":1}'
    digest = hashlib.sha256(raw).hexdigest()[:32]
    assert shown(log_of(lines(entry(digest), entry(f"{digest}-7"), raw))) == [
        digest,
        f"{digest}-7",
        f"{digest}-8",
    ]


@pytest.mark.parametrize("value", [b"5", b"null", b'""', b"{}"])
def test_an_id_that_is_not_a_word_is_replaced(log_of: Opener, value: bytes) -> None:
    (line,) = Scan(log_of(b'{"id":' + value + b',"k":1}\n'))
    assert line.derived
    assert len((line.record or {})["id"]) == 32


def test_a_patch_without_an_id_gets_none(log_of: Opener) -> None:
    (line,) = Scan(log_of(lines(b'{"priority":1}')))
    assert "id" not in (line.record or {})


def times(found: list[Line]) -> list[str]:
    return [(line.record or {})["ts"] for line in found]


def test_a_line_without_a_time_has_that_of_the_line_before(log_of: Opener) -> None:
    data = lines(A, b'{"id":"b","text":"x"}', b'{"id":"c","ts":"soon","text":"x"}')
    assert times(list(Scan(log_of(data)))) == [TS, TS, TS]


def test_a_first_line_without_a_time_has_the_files(log_of: Opener) -> None:
    fd = log_of(b'{"id":"a","text":"x"}\n')
    changed = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=os.fstat(fd).st_mtime_ns // 1000)
    assert times(list(Scan(fd))) == [format_time(changed)]


def test_a_scan_goes_on_where_another_settled(log_of: Opener) -> None:
    raw = b'{"k":1}'
    data = lines(A, raw, *batch(B, C), raw, D)
    whole = list(Scan(log_of(data)))
    first = Scan(log_of(lines(A, raw)))
    list(first)
    second = Scan(log_of(data), first.settled, ts=first.ts, seen=first.seen)
    assert list(second) == whole[2:]


def test_a_first_line_without_a_time_is_not_later_than_the_next(log_of: Opener) -> None:
    found = list(Scan(log_of(lines(b'{"k":1}', b'{"k":2}', A))))
    assert [line.record and line.record["ts"] for line in found] == [A["ts"]] * 3


def test_a_torn_batch_at_the_end_is_not_settled(log_of: Opener) -> None:
    scan = Scan(log_of(lines(A, *batch(B, C, length=3))))
    list(scan)
    assert scan.settled == len(lines(A))


def test_an_unfinished_line_is_taken_in_on_request_and_never_settled(log_of: Opener) -> None:
    fd = log_of(lines(A, B)[:-1])
    assert shown(fd) == ["a"]
    scan = Scan(fd, unfinished=True)
    assert seen(list(scan)) == ["a", "b"]
    assert (scan.settled, scan.rest, scan.unread) == (len(dump(A)), dump(B)[:-1], b"")


def test_half_an_unfinished_line_is_left_for_later(log_of: Opener) -> None:
    scan = Scan(log_of(lines(A) + b'{"id":"b'), unfinished=True)
    assert seen(list(scan)) == ["a"]
    assert scan.unread == scan.rest == b'{"id":"b'


@pytest.mark.parametrize("cut", [2, len(dump(D)) + 14])
def test_the_unfinished_end_of_a_torn_batch_is_not_taken_in(log_of: Opener, cut: int) -> None:
    torn = batch(B, C, D)
    scan = Scan(log_of(lines(A, *torn)[:-cut]), unfinished=True)
    assert seen(list(scan)) == ["a"]
    assert scan.unread == b""


def test_the_last_line_of_a_batch_may_lack_its_newline_like_any_other(log_of: Opener) -> None:
    fd = log_of(lines(A, *batch(B, C, D))[:-1])
    assert shown(fd) == ["a"]
    scan = Scan(fd, unfinished=True)
    assert seen(list(scan)) == ["a", "b", "c", "d"]
    assert (scan.settled, scan.torn, scan.unread) == (len(dump(A)), 0, b"")


def test_a_stranger_behind_a_torn_batch_is_taken_in(log_of: Opener) -> None:
    scan = Scan(log_of(lines(*batch(A, length=2), B)[:-1]), unfinished=True)
    assert seen(list(scan)) == ["a", "b"]
    assert scan.settled == 0


@given(st.lists(st.sampled_from([dump(A), b"\n", b"damaged\n", b"x" * 70_000 + b"\n"])), st.integers(0, 20))
def test_backwards_gives_the_same_lines_last_first(parts: list[bytes], cut: int) -> None:
    data = b"".join(parts)
    data = data[: max(len(data) - cut, 0)]
    with opened(data) as fd:
        end = behind_last_newline(fd, len(data))
        assert end == data.rfind(b"\n") + 1
        assert list(backwards(fd, end))[::-1] == list(split(fd, 0))


def test_a_run_of_patches_is_a_batch_like_any_other(log_of: Opener) -> None:
    data = lines(A, *batch(patch("a", access=1), patch("a", pinned=True), length=3))
    assert shown(log_of(data)) == ["a"]


def test_lines_longer_than_a_block_are_whole(log_of: Opener) -> None:
    items = [entry(str(number), "x" * 300_000) for number in range(20)]
    assert shown(log_of(lines(*items))) == [item["id"] for item in items]


def test_a_place_in_a_batch_is_a_number_and_no_truth_value() -> None:
    assert batch_of({"batch": [1, 2]}) == (1, 2)
    assert batch_of({"batch": [True, 2]}) is None


def test_a_first_line_without_a_time_has_that_of_the_file_to_the_microsecond(log_of: Opener) -> None:
    fd = log_of(b'{"n":1}\n')
    os.utime(fd, ns=(0, 1_800_000_000_123_456_999))
    [line] = Scan(fd)
    assert line.record is not None
    assert line.record["ts"] == "2027-01-15T08:00:00.123456Z"
