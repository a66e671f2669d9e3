import json
import math
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.log.line import (
    MAX_LINE,
    RESERVED,
    apply,
    create,
    dump,
    dump_read,
    format_time,
    from_microseconds,
    id_of,
    instant,
    is_put,
    is_tombstone,
    microseconds,
    parse,
    payload_of,
    plain,
    read_time,
    text_of,
    type_of,
)
from keepstone.model import parsed_time

TS = "2026-01-11T14:31:00.000000Z"
LATER = "2026-02-02T00:00:00.000000Z"
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
records = st.dictionaries(st.text(), values)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


@given(records)
def test_a_dumped_record_is_parsed_back_equal(record: dict[str, Any]) -> None:
    assert parse(dump(plain(record))) == record


@given(records)
def test_a_dumped_record_is_one_line(record: dict[str, Any]) -> None:
    raw = dump(record)
    assert raw.count(b"\n") == 1
    assert raw.endswith(b"\n")


@given(st.binary())
def test_any_bytes_are_an_object_or_nothing(raw: bytes) -> None:
    assert isinstance(parse(raw), dict | None)


@given(records)
def test_what_was_read_is_written_as_it_would_be_given(record: dict[str, Any]) -> None:
    assert dump_read(record) == dump(record)


@pytest.mark.parametrize(
    "raw",
    [b"", b" ", b"[]", b"1", b'"a"', b"null", b"{", b'{"a":1} {}', b'{"a":NaN}', b'{"a":-Infinity}',
     b'{"a":1e999}', b"\xff\xfe", b'{"a":"\xff"}', b"\0{}", b'{"a":"\x01"}'],
)  # fmt: skip
def test_a_line_that_is_not_a_json_object_is_unreadable(raw: bytes) -> None:
    assert parse(raw) is None


def test_a_byte_order_mark_is_not_part_of_an_object() -> None:
    assert parse(b'\xef\xbb\xbf{"id":"a"}') == {"id": "a"}


def test_a_line_above_the_limit_is_unreadable() -> None:
    raw = json.dumps({"text": "x" * MAX_LINE}).encode()
    assert parse(raw) is None


def test_a_line_that_nests_endlessly_is_unreadable() -> None:
    assert parse(b'{"a":' + b"[" * 100_000) is None
    assert parse(dump({"a": nested(sys.getrecursionlimit() // 2)})) is None


def test_the_deepest_value_that_may_be_written_is_read_back() -> None:
    data = {"data": plain(nested(201))}
    assert parse(dump(data)) == data
    with pytest.raises(ValueError, match="deeper than 200 levels: flatten them"):
        plain(nested(202))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    record = {"a": [[[]]] * 1000, "text": "[" * 1000}
    assert parse(dump(record)) == record


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="has no JSON form: store None or a string instead"):
        plain({"a": [number]})


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), datetime(2026, 1, 1, tzinfo=UTC), 1j])
def test_a_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no JSON form"):
        plain({"a": value})


@pytest.mark.parametrize("key", [1, None, True, (1, 2), b"a"])
def test_a_key_that_is_not_a_string_is_refused(key: object) -> None:
    with pytest.raises(TypeError, match="keys must be strings"):
        plain({"a": {key: 1}})


def test_a_lone_surrogate_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match=r"lone surrogate '\\ud800', which cannot be stored: remove it"):
        dump({"text": "before \ud800 after"})


def test_an_entry_of_17_megabytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the entry has 17,000,012 bytes; the maximum is .*: split it"):
        dump({"text": "x" * 17_000_000})


def test_the_longest_entry_has_room_for_a_mark_and_a_patch() -> None:
    longest = dump({"text": "x" * 16_000_000})
    assert len(longest) + 50_000 < MAX_LINE
    assert parse(longest) is not None


def test_tuples_and_mappings_become_plain_lists_and_dicts() -> None:
    assert plain({"a": (1, 2)}) == {"a": [1, 2]}


def test_a_lone_surrogate_of_another_program_is_written_back_as_an_escape() -> None:
    raw = '{"text":"\\ud800 äöü \\" \\\\ 😀"}'.encode()
    record = parse(raw)
    assert record is not None
    assert dump_read(record) == raw + b"\n"


def test_data_is_the_payload_if_it_is_an_object() -> None:
    assert payload_of({"id": "a", "data": {"k": 1}, "other": 2}) == {"k": 1}
    assert payload_of({"id": "a", "ts": TS, "priority": 1, "data": [1], "k": 2}) == {"data": [1], "k": 2}


@pytest.mark.parametrize("value", ["", None, 5, ["a"]])
def test_an_id_or_type_that_is_not_a_word_counts_as_missing(value: object) -> None:
    assert id_of({"id": value}) is None
    assert type_of({"type": value}) is None


@pytest.mark.parametrize("later", [{"type": "t"}, {"text": "x"}, {"data": {}}, {"k": None}, {"data": None}])
def test_a_line_with_a_type_or_payload_is_a_put(later: dict[str, Any]) -> None:
    assert is_put({"id": "a", "ts": TS, "priority": 1.0} | later)


def test_the_reserved_keys_are_those_of_the_format() -> None:
    page = Path(__file__).parents[2] / "docs" / "formats" / "log.md"
    [row] = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| reserved |")]
    assert set(re.findall("`([a-z_]+)`", row)) == RESERVED
    assert {"aliases", "modified"} <= RESERVED


def test_a_line_with_reserved_keys_only_is_a_patch() -> None:
    assert not is_put({"id": "a", "ts": TS} | dict.fromkeys(RESERVED, 1))


@pytest.mark.parametrize("deleted", [False, None, 1, "true", {}])
def test_only_true_makes_a_tombstone(deleted: object) -> None:
    assert is_tombstone({"id": "a", "deleted": True})
    assert not is_tombstone({"id": "a", "deleted": deleted})


def test_a_creating_line_has_its_envelope_first_and_no_batch() -> None:
    made = create({"k": 1, "batch": [1, 2], "ts": TS, "id": "a"})
    assert list(made.items()) == [("id", "a"), ("ts", TS), ("type", "event"), ("k", 1)]


def test_a_put_keeps_id_time_and_the_reserved_keys_it_does_not_name() -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "text": "old", "k": 1, "tags": ["t"], "access": 2})
    after = apply(entry, {"id": "a", "ts": LATER, "data": {"content": "new"}, "access": 3})
    assert after == {
        "id": "a", "ts": TS, "type": "note", "tags": ["t"], "access": 3, "data": {"content": "new"},
        "modified": LATER,
    }  # fmt: skip


def test_a_put_with_a_type_alone_leaves_no_payload() -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "text": "old", "k": 1})
    assert apply(entry, {"id": "a", "ts": LATER, "type": "fact"}) == {
        "id": "a", "ts": TS, "type": "fact", "modified": LATER,
    }  # fmt: skip


def test_a_patch_sets_its_keys_and_leaves_type_and_payload() -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "text": "old"})
    assert apply(entry, {"id": "a", "ts": LATER, "pinned": True}) == entry | {
        "pinned": True,
        "modified": LATER,
    }


def test_access_counts_are_no_modification() -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "text": "old"})
    assert apply(entry, {"id": "a", "ts": LATER, "access": 3}) == entry | {"access": 3}


@pytest.mark.parametrize("key", sorted(RESERVED - {"deleted", "batch"}))
def test_null_removes_a_reserved_key(key: str) -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "text": "x", key: 1})
    assert key not in apply(entry, {"id": "a", "ts": LATER, key: None})


def test_null_in_a_payload_is_a_value() -> None:
    entry = create({"id": "a", "ts": TS, "type": "note", "k": None})
    assert apply(entry, {"id": "a", "pinned": True})["k"] is None


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"text": "first", "data": {"content": "second"}}, "first"),
        ({"data": {"content": "second", "text": "third"}}, "second"),
        ({"data": {"text": "third", "k": "v"}}, "third"),
        ({"content": "flat"}, "flat"),
        ({"data": {"k": "v", "n": 5, "list": ["a", {"b": "c"}]}}, "k: v\nlist: a\nb: c"),
        ({"data": {"role": "user", "content": "Hi"}}, "user: Hi"),
        ({"data": {"name": "Ann", "role": "user", "content": "Hi"}}, "Ann: Hi"),
        ({"text": "Hi", "speaker": "Bo", "name": "Ann"}, "Bo: Hi"),
        ({"data": {"speaker": " ", "name": "Ann", "k": "v"}}, "Ann: speaker:  \nk: v"),
        ({"text": 5, "data": {"content": 6, "k": "v"}}, "k: v"),
        ({"priority": 0.5, "summary": "no payload"}, ""),
    ],
)
def test_the_text_of_an_entry_is_the_first_that_is_there(record: dict[str, Any], text: str) -> None:
    assert text_of({"id": "a", "ts": TS, "type": "note"} | record) == text


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-01-11T14:31:00Z", datetime(2026, 1, 11, 14, 31, tzinfo=UTC)),
        ("2026-01-11t14:31:00z", datetime(2026, 1, 11, 14, 31, tzinfo=UTC)),
        ("2026-01-11 14:31:00+00:00", datetime(2026, 1, 11, 14, 31, tzinfo=UTC)),
        ("2026-01-11T14:31:00.5+01:30", datetime(2026, 1, 11, 13, 1, 0, 500_000, tzinfo=UTC)),
        ("2026-01-11T14:31:00.123456789Z", datetime(2026, 1, 11, 14, 31, 0, 123_456, tzinfo=UTC)),
        ("2026-01-11T14:31:00-00:00", datetime(2026, 1, 11, 14, 31, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_every_rfc_3339_time_is_read_as_utc(written: str, moment: datetime) -> None:
    assert read_time(written) == instant(written) == moment


@pytest.mark.parametrize("written", ["2026-01-11T14:31:00", "2026-01-11T14:31:60"])
def test_a_time_without_zone_is_utc_in_a_log_and_refused_from_a_caller(written: str) -> None:
    assert str(read_time(written)).startswith("2026-01-11 14:31")
    with pytest.raises(ValueError, match="has no time zone: .*; add one, such as Z for UTC"):
        instant(written)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "yesterday",
        "2026-13-01T00:00:00Z",
        "2026-01-11T24:00:00Z",
        "0001-01-01T00:00:00+23:00",
        "\ud800",
        5,
        None,
        {},
    ],
)
def test_anything_but_a_time_reads_as_none(written: object) -> None:
    assert read_time(written) is None


def test_a_caller_may_give_a_date_or_an_aware_datetime() -> None:
    midnight = datetime(2026, 1, 11, tzinfo=UTC)
    assert instant("2026-01-11") == instant(midnight) == midnight


@pytest.mark.parametrize(
    ("given_time", "error"),
    [(5, TypeError), ("soon", ValueError), ("2026-01-1x", ValueError), (datetime(2026, 1, 1), ValueError),  # noqa: DTZ001
     ("0001-01-01T00:00:00+23:00", ValueError)],
)  # fmt: skip
def test_a_callers_time_that_is_none_is_refused_by_name(given_time: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="^since "):
        instant(given_time, "since")


@given(moments)
def test_a_written_time_is_read_back_equal(moment: datetime) -> None:
    written = format_time(moment)
    assert len(written) == len(TS)
    assert read_time(written) == moment
    assert from_microseconds(microseconds(moment)) == moment


@given(
    moment=moments,
    detail=st.sampled_from(["auto", "seconds", "milliseconds", "microseconds"]),
    is_zulu=st.booleans(),
)
def test_times_as_other_programs_write_them_are_read_as_the_pattern_says(
    moment: datetime, detail: str, *, is_zulu: bool
) -> None:
    written = moment.astimezone(UTC).isoformat(timespec=detail)
    written = written.removesuffix("+00:00") + "Z" if is_zulu else written
    found = read_time(written)
    assert found is not None
    assert (found, found.tzinfo) == (parsed_time(written), UTC)


@given(moments, st.timedeltas(min_value=timedelta(hours=-23), max_value=timedelta(hours=23)))
def test_written_times_sort_like_the_times(moment: datetime, span: timedelta) -> None:
    other = moment + span
    assert (format_time(moment) <= format_time(other)) == (moment <= other)
