import copy
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone import Entry, Hit, Hits, Why


def entry(**keys: Any) -> Entry:
    line = {"id": "a", "ts": "2026-01-11T14:31:00.000000Z", "type": "note", "data": {"n": 1}, **keys}
    moment = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
    return Entry("coder", "s1", "a", moment, "note", "", line["data"], line)


def test_an_entry_without_reserved_keys_has_their_defaults() -> None:
    plain = entry()
    assert (plain.tags, plain.links, plain.access, plain.pinned, plain.deleted) == ((), (), 0, False, False)
    assert (plain.summary, plain.priority, plain.expires, plain.valid_from, plain.valid_to) == (None,) * 5


def test_an_entry_shows_its_reserved_keys_as_attributes() -> None:
    full = entry(tags=["x"], links=[{"to": "b"}], access=2, pinned=True, summary="s", priority=1)
    assert (full.tags, full.links, full.access, full.pinned) == (("x",), ({"to": "b"},), 2, True)
    assert (full.summary, full.priority) == ("s", 1.0)


KEYS = "tags links access pinned deleted summary priority expires valid_from valid_to modified".split()
anything = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text()
    | st.lists(st.integers())
)


@given(st.dictionaries(st.sampled_from(KEYS), anything))
def test_whatever_another_program_wrote_the_attributes_have_their_types(keys: dict[str, Any]) -> None:
    odd = entry(**keys)
    assert all(isinstance(tag, str) for tag in odd.tags)
    assert isinstance(odd.links, tuple)
    assert isinstance(odd.access, int)
    assert {type(odd.pinned), type(odd.deleted)} == {bool}
    assert isinstance(odd.priority, float | None)
    assert isinstance(odd.summary, str | None)
    times = (odd.expires, odd.valid_from, odd.valid_to, odd.modified)
    assert all(moment is None or moment.tzinfo is UTC for moment in times)


def test_as_dict_is_the_log_line_in_a_dictionary_of_its_own() -> None:
    one = entry(tags=["x"])
    line = one.as_dict()
    assert line == {
        "id": "a",
        "ts": "2026-01-11T14:31:00.000000Z",
        "type": "note",
        "data": {"n": 1},
        "tags": ["x"],
    }
    line["type"] = "changed"
    assert one.as_dict()["type"] == "note"


def test_an_entry_cannot_be_changed_by_attribute() -> None:
    with pytest.raises(FrozenInstanceError):
        entry().type = "fact"  # type: ignore[misc]


def test_an_entry_can_be_copied_and_sent_to_another_process() -> None:
    one = entry(tags=["x"])
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one  # noqa: S301  Our own bytes.


def test_hits_are_a_list_that_knows_how_it_came_about() -> None:
    hit = Hit(entry(), 0.5, Why({"words": 1}, ("walnut",), {"words": 0.5}))
    hits = Hits([hit], stale=True, took_ms=1.5)
    assert hits == [hit]
    assert (hits.stale, hits.took_ms, hits.pending, hits.lexical_only) == (True, 1.5, 0, True)


def test_a_reason_reads_as_a_sentence_for_people() -> None:
    assert str(Why({"words": 3}, ("oauth", "login"))) == "found by words #3; words: oauth, login"


def test_rich_cuts_long_texts_of_an_entry_and_keeps_short_ones() -> None:
    data = {
        "role": "user",
        "content": [{"type": "image", "data": "A" * 9000}, {"type": "text", "text": "door"}],
    }
    shown = dict(entry(data=data).__rich_repr__())
    assert shown["data"] == {
        "role": "user",
        "content": [{"type": "image", "data": "A" * 400 + "…"}, {"type": "text", "text": "door"}],
    }
