import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.context.mentions import neutralised

BARE = re.compile(r"(?:^|\s)@[^\s`]")
"""What agents that include files look for: a mention at the start or after white space."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@README", "`@README`"),
        ("see @docs/x.md, please", "see `@docs/x.md`, please"),
        ("(@~/.ssh/id_rsa)", "(`@~/.ssh/id_rsa`)"),
        ("two\n@./b.md", "two\n`@./b.md`"),
        ("é@x", "é@x"),
        ("@@x", "`@@x`"),
        ("@ alone", "@ alone"),
        ("a `tick and @x", "a `tick and ``@x``"),
        ("`@x", "` ``@x``"),
        ("@x`", "``@x`` `"),
    ],
)
def test_a_mention_of_a_path_becomes_code(text: str, expected: str) -> None:
    assert neutralised(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ask me@home.org",
        "`npm i @types/node`",
        "``a ` @b``",
        "```sh\nnpm i @types/node\n```",
        "~~~\n@x\n~~~",
    ],
)
def test_words_with_an_at_and_code_stay_as_they_are(text: str) -> None:
    assert neutralised(text) == text


def test_what_is_neutral_already_stays_as_it_is() -> None:
    once = neutralised("read @a.md and (@b/c), then `code` and @d")
    assert neutralised(once) == once


@given(st.text("@a/. \n", max_size=60))
def test_no_mention_stands_after_white_space_outside_code(text: str) -> None:
    assert not BARE.search(neutralised(text))


@given(st.text("@`a ", max_size=40))
def test_nothing_but_backticks_and_spaces_is_added(text: str) -> None:
    def bare(shown: str) -> str:
        return shown.replace("`", "").replace(" ", "")

    assert bare(neutralised(text)) == bare(text)
