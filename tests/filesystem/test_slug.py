"""Agent slugs for names that are not slugs."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import keepstone
from keepstone import InvalidAgentIdError, slug, unslug
from keepstone.filesystem.layout import LAYOUTS

ANY = st.text(st.characters(), min_size=1) | st.text("aA0._-u @|/é😀", min_size=1, max_size=200)
SHORT = ANY.filter(lambda text: len(text.encode("utf-8", "surrogatepass")) <= 40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("coder", "coder"),
        ("ada@example.com", "u.ada_40example.com"),
        ("auth0|4711", "u.auth0_7c4711"),
        ("Ada Lovelace", "u._uada_20_ulovelace"),
        ("snake_case", "snake_case"),
        ("Snake_Case", "u._usnake___ucase"),
        ("u.ada", "u.u.ada"),
        ("a.", "u.a_2e"),
        (".", "u._2e"),
        ("Zoë", "u._uzo_c3_ab"),
    ],
)
def test_a_slug_is_readable_and_never_changes(text: str, expected: str) -> None:
    assert (slug(text), unslug(expected)) == (expected, text)


@given(ANY)
@example("x" * 128)
@example("x" * 129)
@example("é" * 64)
@example("a" * 124 + "._")
@example("\ud800")
def test_every_text_has_a_valid_lower_case_slug(text: str) -> None:
    made = slug(text)
    assert LAYOUTS["default"].check_agent(made) == made == made.lower()
    assert slug(text) == made


@given(SHORT)
def test_a_short_text_comes_back_from_its_slug(text: str) -> None:
    assert unslug(slug(text)) == text


@given(ANY, ANY)
@example("Ada", "ada")
@example("ADA", "Ada")
@example("x" * 200, "x" * 200 + "y")
@example("_u", "U")
@example("u.ada_40x", "ada@x")
def test_different_texts_have_different_slugs(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


def test_a_long_text_keeps_its_beginning_and_ends_in_a_digest() -> None:
    made = slug("Ada Lovelace " * 20)
    assert made.startswith("u._uada_20_ulovelace_20_uada")
    assert len(made) <= 128
    with pytest.raises(ValueError, match="digest"):
        unslug(made)


@given(ANY)
@example("u._4")
@example("u._41")
@example("u.A")
@example("u._ff")
@example("u.")
@example("Coder")
def test_only_what_slug_returns_can_be_turned_back(text: str) -> None:
    try:
        found = unslug(text)
    except ValueError:
        return
    assert slug(found) == text


@pytest.mark.parametrize("wrong", ["u._4", "u._41", "u._ff", "u.", "Coder", "u.ada@x", ""])
def test_a_text_that_slug_never_returns_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"keepstone\.slug"):
        unslug(wrong)


@pytest.mark.parametrize("call", [slug, unslug])
def test_a_name_must_be_a_string(call: object) -> None:
    with pytest.raises(TypeError, match="must be a string, not int"):
        call(4711)  # type: ignore[operator]


def test_an_empty_text_has_no_slug() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        slug("")


def test_a_name_that_is_not_a_slug_is_refused_with_the_way_to_make_one(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home") as home:
        with pytest.raises(InvalidAgentIdError, match=r"keepstone\.slug\(text\)"):
            home.agent("ada@example.com")
        home.agent(slug("ada@example.com")).session("s").add("note", text="x")
        assert [unslug(name) for name in home.agents()] == ["ada@example.com"]
