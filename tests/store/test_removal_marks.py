"""What is recorded of removed entries, as digests."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keepstone.store.removal_marks import GoneIds, digest, digests_of

names = st.text(max_size=5)


def test_a_digest_does_not_change_between_versions() -> None:
    assert digest("main", "a") == "338e6bf8" + digest("main", "a")[8:]
    assert len(digest("main", "a")) == 64


@given(names, names, names, names)
def test_a_digest_tells_every_pair_of_session_and_id_apart(a: str, b: str, c: str, d: str) -> None:
    assert (digest(a, b) == digest(c, d)) is ((a, b) == (c, d))


def test_lives_are_named_by_digests() -> None:
    assert digests_of("s", {"a": 2, "b": 1}) == {digest("s", "a"): 2, digest("s", "b"): 1}


def test_an_id_is_gone_by_its_name_or_by_its_digest_in_this_session() -> None:
    gone = GoneIds("s", {"deleted"}, {digest("s", "purged"): 1, digest("other", "live"): 1})
    assert [name in gone for name in ("deleted", "purged", "live", "none")] == [True, True, False, False]


def test_nothing_but_a_text_is_an_id() -> None:
    number: Any = 7
    assert number not in GoneIds("s", {"7"}, {})
