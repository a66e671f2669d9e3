import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from keepstone.notes.bullets import Bullet, Bullets, sameness

PARSER = MarkdownIt("commonmark").disable("inline")
LINES = [
    "- a",
    "* b",
    "+ c",
    "  - nested",
    "  more",
    "    code",
    "para",
    "",
    "",
    "# H",
    "## Memories",
    "---",
    "> - quoted",
    "1. one",
    "-",
    "-   wide",
    "-\ttab",
    "- [ ] task",
    "  - indented",
    "```\n- no\n```",
    "- ```\n  x\n  ```",
    "<!--\n- no\n-->",
]
DAMAGED = [*LINES, "```", "  ~~~", "<!-- open", "   ## Next", "\ufeff", "<div>"]
MARKUP = [
    "- ",
    "* ",
    "1. ",
    "```",
    "~~~",
    "## Memories",
    "---",
    "> ",
    "<!--",
    "<div>",
    "\n",
    "\n\n",
    "\t",
    " ",
    "    ",
]
CONTENT = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=5)), min_size=1).map("".join)
NOTE = CONTENT.map(lambda text: re.sub(r"\r\n?", "\n", text).strip()).filter(bool)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])


def contents(raw: bytes, section: str | None = "Memories") -> list[str]:
    return [bullet.content for bullet in Bullets(raw, section).found]


def in_memories(text: str) -> list[str]:
    return contents(f"# Rules\n\n## Memories\n\n{text}".encode())


@given(st.lists(st.sampled_from(LINES), max_size=9))
def test_bullets_are_those_of_a_full_parser(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    items = [token.map for token in PARSER.parse(text) if token.type == "list_item_open" and token.level == 1]
    full = {
        start + 1 for start, _ in filter(None, items) if re.match(r" {0,3}[-*+]", text.split("\n")[start])
    }
    found = Bullets(text.encode()).found
    empty = {line for line in full if text.split("\n")[line - 1] == "-"}
    assert full - empty <= {bullet.line for bullet in found} <= full


@given(
    st.lists(st.sampled_from(DAMAGED), max_size=8),
    st.lists(NOTE, min_size=1, max_size=3),
    NEWLINES,
    st.sampled_from([None, "Memories"]),
)
@example(["```"], ["x\n```"], "\n", None)
@example(["```\n- no\n```", ""], ["new"], "\r", None)
@example(["## Memories", "  ## Next"], ["new"], "\r\n", "Memories")
def test_added_notes_read_back_and_nothing_else_changes(
    lines: list[str], notes: list[str], newline: str, section: str | None
) -> None:
    raw = newline.join(lines).encode()
    before, expected = raw, contents(raw, section)
    for note in notes:
        if "-->" in note and "<!-- open" in lines:
            continue
        raw, line = Bullets(raw, section).with_added(note)
        expected.append(note)
        assert [(bullet.content, bullet.line) for bullet in Bullets(raw, section).found][-1] == (note, line)
    assert contents(raw, section) == expected
    assert is_subsequence(before, raw)


def is_subsequence(part: bytes, whole: bytes) -> bool:
    rest = iter(whole)
    return all(byte in rest for byte in part)


@given(st.lists(st.sampled_from(LINES), max_size=9), NEWLINES, st.data())
def test_removing_takes_the_lines_of_a_bullet_only(
    lines: list[str], newline: str, data: st.DataObject
) -> None:
    raw = newline.join(lines).encode()
    bullets = Bullets(raw)
    gone = data.draw(st.lists(st.sampled_from(bullets.found), unique=True)) if bullets.found else []
    taken = {number for one in gone for number in range(one.line, one.line + height(bullets, one))}
    kept = [
        line for number, line in enumerate(raw.decode().splitlines(keepends=True), 1) if number not in taken
    ]
    left = [bullet.content for bullet in bullets.found if bullet not in gone]
    plain, result = "".join(kept).encode(), bullets.without(gone)
    if [bullet.content for bullet in Bullets(plain).found] == left:
        assert result == plain
    else:  # What follows would become part of the bullet before it.
        assert [bullet.content for bullet in Bullets(result).found] == left
        assert result.split() == plain.split()


def test_removing_a_wide_bullet_does_not_nest_the_next_one() -> None:
    bullets = Bullets(b"- a\n-   wide\n  - next\n    more\n")
    assert bullets.without([bullets.found[1]]) == b"- a\n- next\n  more\n"


@given(st.lists(st.sampled_from(LINES), max_size=9), NEWLINES, st.data())
def test_a_removed_note_comes_back_to_its_line_or_to_the_end_and_tears_nothing_apart(
    lines: list[str], newline: str, data: st.DataObject
) -> None:
    bullets = Bullets(newline.join(lines).encode())
    if not bullets.found:
        return
    gone = data.draw(st.sampled_from(bullets.found))
    raw = bullets.without([gone])
    left = Bullets(raw)
    after, line = left.with_added(gone.content, gone.line)
    expected = [bullet.content for bullet in left.found]
    expected.insert(sum(bullet.line < line for bullet in left.found), gone.content)
    assert contents(after, None) == expected
    assert line == gone.line or expected[-1] == gone.content
    assert is_subsequence(raw, after)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", ["- a\n- b\n- c\n", "# H\n\n- a\n\n- b\n  more\n\n- c\n\nend", "x\n\n- a\n"])
def test_a_removed_note_that_comes_back_leaves_the_file_as_it_was(text: str, newline: str) -> None:
    raw = text.replace("\n", newline).encode()
    bullets = Bullets(raw)
    for gone in bullets.found:
        assert Bullets(bullets.without([gone])).with_added(gone.content, gone.line) == (raw, gone.line)


@pytest.mark.parametrize(
    ("text", "line"), [("a\nb\n", 2), ("```\na\n```\n", 2), ("- a\n  b\n", 2), ("- a\n", 9)]
)
def test_a_note_for_a_line_where_none_can_begin_is_the_last(text: str, line: int) -> None:
    raw = text.encode()
    assert Bullets(raw).with_added("new", line) == Bullets(raw).with_added("new")


@given(st.lists(st.sampled_from(LINES), max_size=9), NOTE, NEWLINES, st.data())
@example(["- a", "- b"], "---", "\n", None)
def test_a_replaced_note_keeps_the_place_of_the_old_one(
    lines: list[str], note: str, newline: str, data: st.DataObject | None
) -> None:
    raw = newline.join(lines).encode()
    bullets = Bullets(raw)
    if not bullets.found:
        return
    old = data.draw(st.sampled_from(bullets.found)) if data else bullets.found[0]
    after = bullets.with_replaced(old, note)
    expected = [note if one is old else one.content for one in bullets.found]
    assert contents(after, None) == expected
    numbers = range(old.line - 1, old.line - 1 + height(bullets, old))
    before = raw.decode().splitlines(keepends=True)
    assert after.decode().startswith("".join(before[: numbers.start]))
    assert after.decode().endswith("".join(before[numbers.stop :]))


def test_a_note_that_would_swallow_what_follows_is_refused() -> None:
    bullets = Bullets(b"<!-- open\n\n- a\n")
    with pytest.raises(ValueError, match="would change the meaning"):
        bullets.with_replaced(bullets.found[0], "x -->")


def height(bullets: Bullets, bullet: Bullet) -> int:
    return len(bullets.text[bullet.start : bullet.end].splitlines())


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("- a\n- b\n", ["a", "b"]),
        ("- a\n  more\n\n  end\n- b", ["a\nmore\n\nend", "b"]),
        ("- a\n  - nested\n", ["a\n- nested"]),
        ("* a\n+ b\n- c\n", ["a", "b", "c"]),
        ("- a\nlazy\n", ["a\nlazy"]),
        ("- [a](b.md)\n", ["[a](b.md)"]),
        ("-\ttab\n\tmore\n", ["tab\nmore"]),
        ("-   wide\n    more\n", ["wide\nmore"]),
        ("1. no\n\n> - no\n\n    - no\n", []),
        ("- - -\n* * *\n-\n", []),
        ("- a\n\n## Next\n\n- no\n", ["a"]),
        ("- a\n\n### Deeper\n\n- b\n", ["a", "b"]),
        ("- a\n\nNext\n====\n\n- no\n", ["a"]),
    ],
)
def test_only_bullets_of_the_section_are_notes(text: str, notes: list[str]) -> None:
    assert in_memories(text) == notes
    assert in_memories(text.replace("\n", "\r\n")) == notes


@pytest.mark.parametrize(
    "fenced", ["```\n- no\n```", "  ~~~\n- no\n~~~", "<!--\n- no\n-->", "> ```\n> - no\n> ```"]
)
def test_a_bullet_in_a_fence_is_not_a_note(fenced: str) -> None:
    assert in_memories(f"- a\n\ntext\n{fenced}\n\n- b\n") == ["a", "b"]
    assert contents(f"- a\n\ntext\n{fenced}\n\n- b\n".encode(), None) == ["a", "b"]


def test_a_section_in_a_fence_is_not_a_section() -> None:
    raw = b"```\n## Memories\n- no\n```\n"
    assert contents(raw) == []
    assert Bullets(raw, "Memories").with_added("a")[0] == raw + b"\n## Memories\n\n- a\n"


@pytest.mark.parametrize("opener", ["```", "~~~ sh", "<!-- open"])
def test_an_unclosed_fence_swallows_no_note(opener: str) -> None:
    raw = f"{opener}\n\n## Memories\n\n- a\n<?open\n- b\n".encode()
    assert contents(raw) == ["a", "b"]
    assert contents(Bullets(raw, "Memories").with_added("c\n```\n~~~")[0]) == ["a", "b", "c\n```\n~~~"]


def test_a_note_that_would_close_an_open_comment_is_refused() -> None:
    with pytest.raises(ValueError, match="close that first"):
        Bullets(b"<!-- open\n\n- a\n").with_added("see -->")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Memories\n\n- new\n"),
        ("# Rules", "# Rules\n\n## Memories\n\n- new\n"),
        ("# Rules\n\n", "# Rules\n\n## Memories\n\n- new\n"),
        ("## Memories\n", "## Memories\n\n- new\n"),
        ("## Memories\n\n\n## Next\n", "## Memories\n\n- new\n\n\n## Next\n"),
        ("## Memories\n- a\n\n## Next\n- no\n", "## Memories\n- a\n- new\n\n## Next\n- no\n"),
        ("## Memories\n- a", "## Memories\n- a\n- new\n"),
        ("## Memories\n- a\n\ntext\n", "## Memories\n- a\n\ntext\n\n- new\n"),
        ("\ufeff# Rules\r\n", "\ufeff# Rules\r\n\r\n## Memories\r\n\r\n- new\r\n"),
        ("## Memories\r\n* a\r\n", "## Memories\r\n* a\r\n- new\r\n"),
        ("## Memories\n- a\n## Memories\n- b\n", "## Memories\n- a\n## Memories\n- b\n- new\n"),
    ],
)
def test_a_note_is_spliced_in_after_the_last_one(before: str, after: str) -> None:
    assert Bullets(before.encode(), "Memories").with_added("new")[0].decode() == after


def test_lines_of_a_note_continue_its_bullet_indented() -> None:
    assert Bullets(b"").with_added("one\n\ntwo\n  three")[0] == b"- one\n\n  two\n    three\n"


def test_a_note_of_dashes_is_a_bullet_and_no_rule() -> None:
    assert Bullets(b"").with_added("---")[0] == b"+ ---\n"


@pytest.mark.parametrize("same", ["use PNPM", "Use  pnpm.", "use\n  pnpm", " use pnpm ."])
def test_case_spaces_and_full_stop_make_no_difference(same: str) -> None:
    found = Bullets(b"- other\n- use pnpm\n- Use pnpm.\n").same_as(same)
    assert found is not None
    assert found.line == 2


@pytest.mark.parametrize("other", ["use pnpm..", "use pnp", "pnpm", "don't use pnpm", "use pnpm now"])
def test_notes_that_say_more_or_less_are_not_the_same(other: str) -> None:
    assert Bullets(b"- use pnpm\n").same_as(other) is None


@given(st.lists(NOTE, max_size=4), NOTE)
def test_the_quick_search_for_the_same_note_misses_none(notes: list[str], wanted: str) -> None:
    raw = b""
    for note in notes:
        raw = Bullets(raw).with_added(note)[0]
    same = Bullets(raw).same_as(wanted)
    assert (same.content if same else None) == next(
        (one for one in notes if sameness(one) == sameness(wanted)), None
    )


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("## Memories\npara text\n- [ ] task\n-\n- [x] done", "[ ] task"),
        ("## Memories\r\npara text\r\n- a\r\n-\r\n- b\r\n", "a"),
    ],
)
def test_taking_one_bullet_out_leaves_all_others(text: str, gone: str) -> None:
    before = Bullets(text.encode(), "Memories")
    wanted = [bullet for bullet in before.found if bullet.content == gone]
    after = Bullets(before.without(wanted), "Memories")
    assert [bullet.content for bullet in after.found] == [
        bullet.content for bullet in before.found if bullet.content != gone
    ]


def test_long_notes_are_the_same_only_if_all_their_words_are(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = re.search

    def told(pattern: str, text: str) -> re.Match[str] | None:
        searched.append(len(pattern))
        return search(pattern, text)

    monkeypatch.setattr("keepstone.notes.bullets.re.search", told)
    note = " ".join(f"word{number}" for number in range(1000))
    bullets = Bullets(f"- {note}\n".encode())
    same = bullets.same_as(f"{note.upper().replace(' ', '  ')}.")
    assert same is not None
    assert same.content == note
    assert bullets.same_as(note + " more") is None
    assert max(searched) < 1000
