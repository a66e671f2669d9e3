import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from keepstone.notes.outline import Outline, text_column

PARSER = MarkdownIt("commonmark").disable("inline")
BLOCKS = [
    "- a",
    "* b\n  more",
    "1. c",
    "  - nested",
    "   y",
    "    code",
    "para",
    "",
    "# One",
    "## Two ##",
    "   ### Three",
    "para\n---",
    "\n  para\n===",
    "***",
    "> quote",
    "```\n## no\n```",
    "  ~~~ sh\n# no\n~~~~",
    "- d\n  ```\n  ## no\n  ```",
    "1. ```\n   # no\n   ```",
    "<!--\n## no\n-->",
    "<div>\n## no\n</div>\n",
]


def levels(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in Outline("\n" + text).headings]


@given(st.lists(st.sampled_from(BLOCKS), max_size=9))
def test_headings_are_those_of_a_full_parser(blocks: list[str]) -> None:
    text = "\n".join(blocks) + "\n"
    outline = Outline("\n" + text)
    assume(outline.left_open == len(text) + 1)
    tokens = PARSER.parse(text)
    full = [
        token.map[0] for token in tokens if token.type == "heading_open" and not token.level and token.map
    ]
    assert [text.count("\n", 0, heading.start - 1) for heading in outline.headings] == full


@given(st.lists(st.sampled_from(BLOCKS), max_size=6), st.lists(st.sampled_from(BLOCKS), max_size=3))
def test_headings_above_the_wanted_ones_can_be_passed_over(above: list[str], below: list[str]) -> None:
    start = "\n" + "".join(f"{block}\n" for block in above)
    text = start + "\n".join(["## Memories", *below])
    full, late = Outline(text), Outline(text, headings_from=len(start))
    assert late.headings == [heading for heading in full.headings if heading.start >= len(start)]
    assert (late.opaque, late.left_open) == (full.opaque, full.left_open)


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# One\n## Two ##", [(1, "One"), (2, "Two")]),
        ("##\tMemories \n", [(2, "Memories")]),
        ("Memories\n--------\n", [(2, "Memories")]),
        ("#hash\n", []),
        ("- item\n---\n", []),
        ("    # code\n", []),
    ],
)
def test_a_heading_has_level_and_title(text: str, headings: list[tuple[int, str]]) -> None:
    assert levels(text) == headings


@pytest.mark.parametrize("opener", ["```", "~~~~ sh", "  ```", "<!-- a", "<script>", "<?php", "<![CDATA["])
def test_what_is_never_closed_hides_only_its_own_line(opener: str) -> None:
    outline = Outline(f"\n{opener}\n## Memories\n")
    assert levels(f"{opener}\n## Memories\n") == [(2, "Memories")]
    assert (len(outline.opaque), outline.left_open) == (1, 1)


def test_a_shorter_fence_does_not_close_a_longer_one() -> None:
    assert levels("````\n```\n## no\n````\n## yes\n") == [(2, "yes")]


def test_a_fence_that_an_item_leaves_open_ends_with_the_item() -> None:
    assert levels("- ```\n  code\n\n## yes\n\n```\n## no\n```\n") == [(2, "yes")]


def test_many_lines_that_never_close_are_read_in_one_pass() -> None:
    # Quadratic work on 20,000 lines would run into the time limit of the test.
    for line in ("```a", "  ```a", "<!-- a", "===", "<b"):
        assert Outline("\n- a\n" + f"{line}\n" * 20_000).headings == []


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("- a", 2),
        ("  *  a", 5),
        ("10) a", 4),
        ("-\ta", 4),
        ("-     code", 2),
        ("-", 2),
        ("- - -", None),
        ("-a", None),
    ],
)
def test_the_text_of_an_item_begins_in_its_column(line: str, column: int | None) -> None:
    assert text_column(line) == column
