"""Markdown as HTML that runs nothing, loads nothing, and leads only to the web."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepstone.web.preview import MOST, rendered

TAGS = frozenset(
    "a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split()
)
HOSTILE = (
    *(
        "<script>",
        "<img src=x onerror=y>",
        "![x](http://x)",
        "[x](javascript:y)",
        "[x](http://x",
        "<http://x>",
    ),
    *(
        ")",
        "`",
        "*",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "# ",
        "|a|b|\n|-|-|\n",
        "[a]: data:x",
        "&lt;",
        "x",
        "\\",
    ),
)


class Seen(HTMLParser):
    """The tags and the attributes of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_headings_lists_and_tables_are_rendered() -> None:
    seen = Seen(rendered("# Plan\n\n- one\n- two\n\n|a|b|\n|-|-|\n|1|2|\n"))
    assert {"h1", "ul", "li", "table", "td"} <= seen.tags


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/a/coder/settings", "vbscript:x"],
)
def test_a_link_to_anything_but_the_web_stays_a_text(url: str) -> None:
    assert Seen(rendered(f"[here]({url}) <{url}>")).tags == {"p"}


@pytest.mark.parametrize("url", ["http://x.invalid/", "HTTPS://x.invalid/", "mailto:ada@x.invalid"])
def test_a_link_to_the_web_or_to_an_address_is_one(url: str) -> None:
    assert Seen(rendered(f"[here]({url})")).tags == {"p", "a"}


def test_an_image_stays_a_text_with_a_link() -> None:
    assert "img" not in Seen(rendered("![secret](https://x.invalid/a.png?leak=1)")).tags


def test_a_hidden_character_is_shown() -> None:
    assert rendered("red\u202eder") == "<p>red\\u202eder</p>\n"


def test_only_the_beginning_of_a_long_text_is_rendered() -> None:
    assert rendered("x" * MOST + "end") == f"<p>{'x' * MOST}</p>\n"


@given(st.lists(st.sampled_from(HOSTILE), max_size=30).map("".join))
@example('[x](http://x "a onmouseover=y")')
def test_no_text_makes_html_that_runs_or_loads(text: str) -> None:
    seen = Seen(rendered(text))
    assert seen.tags <= TAGS
    for name, value in seen.attributes:
        assert name in {"href", "title", "class", "start", "style"}, name
        if name == "href":
            assert str(value).lower().startswith(("http://", "https://", "mailto:"))
        if name == "style":
            assert str(value).startswith("text-align:")
