import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import batch, entry, lines, opened, patch, tombstone

from recollect.fold import Fold
from recollect.line import parse
from recollect.scan import Scan, derived_id
from recollect.tail import tail

ANONYMOUS = b'{"text":"no id"}'
NAMED_LATER = derived_id(ANONYMOUS)
ids = st.sampled_from(["a", "b", "c", '\u00e4"\\', NAMED_LATER, NAMED_LATER + "-2"])
records = st.one_of(
    st.builds(entry, ids, text=st.sampled_from(["x", "y"])),
    st.builds(patch, ids, access=st.integers(0, 2)),
    st.builds(tombstone, ids),
)
single = st.one_of(
    records,
    st.just(ANONYMOUS),
    st.sampled_from([b"damaged", b"", b"[]", b'{"id":"a"']),
    st.builds(lambda record: json.dumps(record).encode(), records),
)
runs = st.builds(
    lambda records, missing: batch(*records, length=len(records) + missing),
    st.lists(records, min_size=1, max_size=3),
    st.integers(0, 2),
)
logs = st.lists(st.one_of(single.map(lambda item: [item]), runs), max_size=12).map(
    lambda parts: [item for part in parts for item in part]
)


def newest(data: bytes, count: int) -> list[Any]:
    """What ``tail`` gives, from bytes."""
    with opened(data) as fd:
        return tail(fd, count)


def naive(data: bytes, count: int) -> list[Any]:
    """The creating lines of the last live entries, by reading everything forwards."""
    with opened(data) as fd:
        found = list(Scan(fd, unfinished=True))
    raw = {line.offset: parse(line.raw) for line in found}
    places = [folded.place for folded in Fold().take(found).entries.values()]
    return [raw[place] for place in places[max(len(places) - count, 0) :]]


@given(logs, st.integers(0, 6), st.integers(0, 3))
def test_the_tail_is_what_reading_everything_gives(items: list[Any], count: int, cut: int) -> None:
    data = lines(*items)
    data = data[: max(len(data) - cut, 0)]
    assert newest(data, count) == naive(data, count)


def test_the_tail_is_in_file_order_and_as_written() -> None:
    data = lines(entry("a"), entry("b", tags=["t"]), patch("b", tags=None), entry("c"))
    assert newest(data, 2) == [entry("b", tags=["t"]), entry("c")]


def test_a_put_does_not_make_an_entry_newer() -> None:
    data = lines(entry("a"), entry("b"), entry("c"), entry("a", "new"))
    assert newest(data, 2) == [entry("b"), entry("c")]


def test_an_entry_made_again_after_its_deletion_is_new() -> None:
    data = lines(entry("a"), entry("b"), tombstone("a"), entry("a", "again"))
    assert newest(data, 2) == [entry("b"), entry("a", "again")]


def test_a_deleted_line_without_an_id_is_not_in_the_tail() -> None:
    data = lines(entry("a"), ANONYMOUS, ANONYMOUS, tombstone(NAMED_LATER + "-2"))
    assert newest(data, 2) == [entry("a"), {"text": "no id"}]


def test_an_entry_of_a_torn_batch_in_the_middle_is_not_older() -> None:
    data = lines(*batch(entry("a"), length=2), *batch(entry("a"), entry("b")), entry("c"))
    assert [record["id"] for record in newest(data, 3)] == ["a", "b", "c"]


@pytest.mark.parametrize("count", [0, -1])
def test_a_tail_of_nothing_is_empty(count: int) -> None:
    assert newest(lines(entry("a")), count) == []


def test_puts_of_everything_leave_the_newest_where_they_are() -> None:
    items = [entry(str(number)) for number in range(500)]
    data = lines(*items, *items)
    assert newest(data, 3) == items[-3:]


_MEASURE = """
import os, resource, sys
from recollect.tail import tail
fd = os.open(sys.argv[1], os.O_RDONLY)
tail(fd, 1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = tail(fd, 100)
print(len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_flat_on_a_log_of_hundreds_of_megabytes(tmp_path: Path) -> None:
    block = b"".join(lines(entry("old", "x" * 4000)) for _ in range(250))
    with (tmp_path / "log").open("wb") as file:
        for _ in range(210):
            file.write(block)
        file.write(lines(*(entry(str(number)) for number in range(99))))
    command = [sys.executable, "-c", _MEASURE, str(tmp_path / "log")]
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.split()
    assert int(printed[0]) == 100
    assert int(printed[1]) < 30 * (1 if sys.platform == "darwin" else 1 / 1024) * 2**20
