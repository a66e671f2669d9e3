"""Times in the journal of erasures, which decide nothing."""

from datetime import timedelta
from pathlib import Path

from tests.synced_homes import Devices

import keepstone
from keepstone.store.files.purge_digests import both, erased_in
from keepstone.testing import START

FIRST, LATER = "2026-01-11T14:30:00.000000Z", "2026-01-12T14:30:00.000000Z"


def line(life: str = "", ts: str = "") -> bytes:
    return b'{"purged":"ab"%s%s}' % (life.encode(), f',"ts":"{ts}"'.encode() if ts else b"")


def test_two_lines_of_one_erasure_have_the_first_time() -> None:
    for lines in ([line(ts=FIRST), line(), line(ts=LATER)], [line(ts=LATER), line(ts=FIRST), line()]):
        found = erased_in(lines)
        assert (found.lives, found.times) == ({"ab": 1}, {"ab": FIRST})
    merged = both(erased_in([line(ts=LATER)]), erased_in([line(ts=FIRST)]))
    assert (merged.lives, merged.times) == ({"ab": 1}, {"ab": FIRST})


def test_a_later_life_has_its_own_time() -> None:
    lines = [line(ts=FIRST), line(',"life":2', LATER)]
    assert erased_in(lines).times == erased_in(reversed(lines)).times == {"ab": LATER}
    assert erased_in([line(ts=FIRST), line(',"life":2')]).times == {}


def test_what_is_no_time_is_left_out(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        agent = home.agent("default")
        agent.add("kept")
        journal = next(tmp_path.rglob("main.ndjson")).with_name(".purged.ndjson")
        words = ["yesterday", "2026-01-11T14:30:00Z" + " " * 99, FIRST]
        lines = [b'{"purged":"%d","ts":"%s"}\n' % (at, word.encode()) for at, word in enumerate(words)]
        journal.write_bytes(b"".join([*lines, b'{"purged":"9","ts":7}\n', b'{"purged":"8"}\n']))
        assert len(agent.purge_times(START - timedelta(days=999))) == 1


def test_a_purge_travels_with_its_time_and_two_of_one_entry_are_one(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3)
    devices.agent(0).add("first", id="a")
    devices.sync(0, 1, 2, 0)
    for number in (0, 1):
        devices.agent(number).purge("a")
    devices.settled()
    times = [devices.agent(number).purge_times(START) for number in range(3)]
    assert [len(found) for found in times] == [1, 1, 1]
    assert times[2] in times[:2]
    journals = {path: path.read_bytes() for path in tmp_path.rglob(".purged.ndjson")}
    devices.sync(0, 1, 2)
    assert {path: path.read_bytes() for path in journals} == journals
