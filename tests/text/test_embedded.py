import pytest

from keepstone.text.embedded import LONGEST, ROLES, embedded_text


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_before_a_text_is_not_embedded(role: str) -> None:
    assert embedded_text(f"{role}: the walnut tree") == "the walnut tree"


@pytest.mark.parametrize("text", ["Ann: the walnut", "User: the walnut", "note: the walnut", "user:x"])
def test_the_name_of_a_person_is_embedded(text: str) -> None:
    assert embedded_text(text) == text


def test_only_the_first_characters_of_a_long_text_are_embedded() -> None:
    assert embedded_text("assistant: " + "ab" * LONGEST) == "ab" * (LONGEST // 2)


@pytest.mark.parametrize("text", ["user: ", "user:  \n", "", "   "])
def test_a_text_of_a_role_alone_is_embedded_as_it_is(text: str) -> None:
    assert embedded_text(text) == text
