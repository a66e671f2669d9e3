"""The text by whose words an entry is found."""

from typing import Any

import pytest

from keepstone.log.searched_text import searched_text


def test_a_text_without_aliases_and_names_stays_as_it_is() -> None:
    assert searched_text("walnut and pecan", {}) == "walnut and pecan"


def test_aliases_follow_the_text_one_a_line() -> None:
    assert searched_text("walnut", {"aliases": ["nut", "juglans regia"]}) == "walnut\nnut\njuglans regia"


def test_a_name_in_camel_case_is_found_by_its_parts() -> None:
    assert {"get", "User", "Name"} <= set(searched_text("It calls getUserName.", {}).split())


def test_a_name_among_the_aliases_is_found_by_its_parts() -> None:
    assert {"user", "Name"} <= set(searched_text("login", {"aliases": ["userName"]}).split())


@pytest.mark.parametrize("aliases", ["nut", None, {"nut": 1}, [1, None, ["nut"]]])
def test_aliases_of_another_form_are_left_out(aliases: Any) -> None:
    assert searched_text("walnut", {"aliases": aliases}) == "walnut"
