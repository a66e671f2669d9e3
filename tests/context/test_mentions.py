import re
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from keepstone.context.mentions import neutralised

BARE = re.compile(r"(?:^|\s)@[^\s`]")
"""The pattern of agents that include files: a mention at the start or after white space."""


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
def test_no_mention_follows_white_space_outside_code(text: str) -> None:
    assert not BARE.search(neutralised(text))


@given(st.text("@`a ", max_size=40))
def test_nothing_but_backticks_and_spaces_is_added(text: str) -> None:
    def bare(shown: str) -> str:
        return shown.replace("`", "").replace(" ", "")

    assert bare(neutralised(text)) == bare(text)


READERS = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table"))
PIECES = (
    '``` ~~~ ```` ` `` @x \\ <div> <!-- --> <pre> </pre> <a\u00a0b=" "> | a === # * . [a]( [a]: ) - > 1.'
).split(" ")
SPACES = ("@x", "@x", " ", "    ", "\t", "\n", "\n", "\n\n", "\r", "- ", "> ", "1. ", "\n|-|\n")


def live(tokens: Sequence[Token]) -> Iterator[str]:
    """The text that a reader of Markdown shows, and HTML in which a mention is alone."""
    for token in tokens:
        if token.type in {"text", "text_special"}:
            yield token.content
        elif token.type.startswith("html") and BARE.search(token.content):
            yield "@x"
        yield from live(token.children or ())


@given(st.lists(st.sampled_from([*(piece.replace("\u00a0", " ") for piece in PIECES), *SPACES]), max_size=20))
def test_no_reader_of_markdown_finds_a_live_mention(pieces: list[str]) -> None:
    text = neutralised("".join(pieces))
    for reader in READERS:
        assert not any(re.search(r"(?<!\w)@x", shown) for shown in live(reader.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "a ` b\n\n@x ` c",
        "`\na ` @x `",
        "> ```\n@x\n> ```",
        "- a\n  ```\n@x\n  ```",
        "  ```\n    ```\n  @x\n  ```",
        "- ```\n  ```\n  @x\n  ```",
        "\\` @x `",
        '<a href="`"> @x `',
        "<div>\n```\n@x\n```",
        "| ` | @x ` |",
        "```\n@x",
    ],
)
def test_code_that_may_not_be_code_to_a_reader_hides_no_mention(text: str) -> None:
    assert "@x`" in neutralised(text)


@pytest.mark.parametrize(
    "text",
    [
        "- [1] (2026-01-11, note) use `npm i @x` and ``@y``\n  ```sh\n  npm i @z\n  ```\n",
        "1. `@a`\n2. `@b` | `@c`\n\n~~~~ js\n```\n@d\n~~~~\r\n`@e`",
    ],
)
def test_code_in_a_list_stays_as_it_is(text: str) -> None:
    assert neutralised(text) == text


SHAPES: dict[str, Callable[[int], str]] = {
    "open fences": lambda size: "@x\n" + "```a\n" * (size // 5),
    "longer and longer runs": lambda size: (
        "@x\n" + "".join(f"{'`' * (3 + n)}x\n" for n in range(int(size**0.5)))
    ),
    "runs on one line": lambda size: "@x " + " ".join("`" * n for n in range(1, int(size**0.5))),
    "falling tildes": lambda size: "@x\n" + "".join(f"{'~' * n}\n" for n in range(int(size**0.5), 3, -1)),
    "backticks before a backtick": lambda size: "@x\n" + "`" * size + " `",
    "markers": lambda size: "@x\n" + "> " * size + "`",
    "mentions": lambda size: "@x " * size,
    "at signs": lambda size: "@" * size,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_length_of_the_text(shape: str) -> None:
    def effort(size: int) -> float:
        text, times = SHAPES[shape](size), []
        for _ in range(3):
            begin = time.process_time()
            neutralised(text)
            times.append(time.process_time() - begin)
        return min(times) / len(text)

    assert effort(240_000) < 8 * effort(8_000)
