"""What an update makes of an entry."""

from typing import Any

import pytest

from keepstone.log.merging import merged
from keepstone.model import Record

HEAD = {"id": "a", "ts": "2026-01-11T14:31:00.000000Z", "type": "note"}
BOTH = {"text": "Hi", "data": {"n": 1, "by": "Ada"}}
FLAT = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("body", "change", "later"),
    [
        (BOTH, {"text": "Ho"}, {"text": "Ho", "data": {"n": 1, "by": "Ada"}}),
        (BOTH, {"data": {"m": 2}}, {"text": "Hi", "data": {"m": 2}}),
        (BOTH, {"data_merge": {"n": 2, "by": None}}, {"text": "Hi", "data": {"n": 2}}),
        (BOTH, {"data_merge": {"none": None}}, {}),
        (BOTH, {"type": "fact"}, {"type": "fact", **BOTH}),
        (BOTH, {"text": "Hi", "pinned": True}, {"pinned": True}),
        (BOTH, {"text": "Ho", "pinned": True}, {"text": "Ho", "data": BOTH["data"], "pinned": True}),
        (BOTH | {"tags": ["x"]}, {"tags": ["x"], "summary": None}, {}),
        (BOTH | {"pinned": True}, {"pinned": None}, {"pinned": None}),
        (FLAT, {"data_merge": {"content": "Ho"}}, {"role": "user", "content": "Ho"}),
        (FLAT, {"data_merge": {"tags": 1}}, {"data": FLAT | {"tags": 1}}),
        (FLAT, {"text": "Ho"}, {"data": FLAT, "text": "Ho"}),
        (FLAT, {"data": {"m": 2}}, {"data": {"m": 2}}),
        ({"text": "Hi"}, {"data_merge": {"n": 1}}, {"text": "Hi", "data": {"n": 1}}),
        ({"data": {"flag": True}}, {"data_merge": {"flag": 1}}, {"data": {"flag": 1}}),
        ({"data": {"n": 1}, "beside": 2}, {"data": {"m": 2}}, {"data": {"m": 2}, "beside": 2}),
    ],
)
def test_a_change_keeps_what_it_does_not_name(body: Record, change: Record, later: Record) -> None:
    assert merged(HEAD | body, change) == later


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({"text": "Hi"}, {"text": ""}),
        ({"data": {"n": 1}}, {"data": {}}),
        ({"data": {"n": 1}}, {"data_merge": {"n": None}}),
        (FLAT, {"data_merge": {"role": None, "content": None}}),
    ],
)
def test_a_change_that_leaves_neither_text_nor_payload_is_refused(
    body: Record, change: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="needs a text or a payload"):
        merged(HEAD | body, change)
