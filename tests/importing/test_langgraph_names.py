"""LangGraph's namespaces and keys, as sessions and ids of entries."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.importing.langgraph_names import (
    id_of,
    kept_vectors,
    kept_with,
    key_of,
    namespace_of,
    session_id,
    session_name,
)

LABELS = st.lists(st.text(min_size=1, max_size=20), max_size=4).map(tuple)


@given(LABELS)
def test_a_namespace_comes_back_from_its_session(namespace: tuple[str, ...]) -> None:
    assert namespace_of(session_name(namespace)) == namespace


@given(st.text(max_size=10))
def test_a_key_comes_back_from_its_id(key: str) -> None:
    assert id_of(key)
    assert key_of(id_of(key)) == key


@given(st.sampled_from(["", "=", "==", "a", "a="]), st.sampled_from(["", "=", "==", "a", "a="]))
def test_two_keys_have_two_ids(one: str, other: str) -> None:
    assert (id_of(one) == id_of(other)) == (one == other)


def test_a_slash_in_a_label_begins_no_other_label() -> None:
    assert session_name(("a/b",)) != session_name(("a", "b"))
    assert session_name(("a%2Fb",)) != session_name(("a/b",))


@pytest.mark.parametrize("session", ["main", "langgraph", "", "Langgraph/a"])
def test_another_session_is_no_namespace(session: str) -> None:
    assert namespace_of(session) is None


def test_a_short_namespace_is_said_by_its_session_alone() -> None:
    assert kept_with(("users", "ada")) == {}
    assert session_id(("users", "ada")) == "langgraph/users/ada"


def test_lines_say_a_namespace_that_is_too_long_for_an_id() -> None:
    long = ("x" * 90,) * 3
    assert kept_with(long) == {"namespace": [*long]}
    assert namespace_of(session_id(long)) is None
    assert session_id(long) != session_id(("x" * 90,) * 2 + ("x" * 89 + "y",))


def test_vectors_are_kept_as_base64_with_their_dimension() -> None:
    kept = kept_vectors(2, b"\0\0\x80\x3f\0\0\0\0")
    assert kept == {"dim": 2, "f32": base64.b64encode(b"\0\0\x80\x3f\0\0\0\0").decode()}
