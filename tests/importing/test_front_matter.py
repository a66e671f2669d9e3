"""YAML front matter: what is read as YAML says it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keepstone.importing.front_matter import parse_yaml, split_front_matter
from keepstone.operations.exporting.parts import flow

WRITTEN = [
    "a: 1\nb: 1.5\nc: true\nd: null\ne: ~\nf:\ng: -3\n",
    "quoted: \"with \\\"quotes\\\" # and hash\"\nsingle: 'it''s'\n",
    "tags:\n  - one\n  - two words\n  - 'three: 3'\n",
    "tags:\n- one\n- two\nnext: x\n",
    "flow: [a, 'b, c', 3]\nmap: {k: v, n: 2}\n",
    "deep:\n  inner:\n    - x: 1\n      y: 2\n    - x: 3\n  more: z\n",
    "text: |\n  line one\n  line two\nend: x\n",
    "url: http://example.org/a#b\n# a comment\nafter: comment # here\n",
    "wrapped: one\n  two\n\n  three\nquoted: 'one\n  two'\nnext: x\n",
    "base: &b {k: v, n: 1}\nsame: *b\nmerged:\n  <<: *b\n  n: 2\n",
    "folded: >-\n  one\n  two\nkept: |+\n  one\n\n",
    "? asked\n: answer\nstr: !!str 1\n",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_front_matter_says_what_yaml_says(text: str) -> None:
    expected: Any = yaml.safe_load(text)
    found = parse_yaml(text)
    assert {key: value.strip() if isinstance(value, str) else value for key, value in found.items()} == {
        key: value.strip() if isinstance(value, str) else value for key, value in expected.items()
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_exported_front_matter_is_yaml_and_comes_back(value: Any) -> None:
    line = f"key: {flow(value)}"
    assert parse_yaml(line) == {"key": value}
    assert yaml.safe_load(line) == {"key": value}


@given(st.text(max_size=200))
def test_any_front_matter_is_understood_or_refused(text: str) -> None:
    split_front_matter(f"---\n{text}\n---\nbody")
    try:
        parse_yaml(text)
    except ValueError:
        return


def test_apostrophes_do_not_join_the_items_of_a_list() -> None:
    assert parse_yaml("a: [it's, that's, 'x, ''y''', \"p, q\"]") == {
        "a": ["it's", "that's", "x, 'y'", "p, q"]
    }


REFUSED = {
    "a tag": ("a: !!python/object/apply:os.system [ls]", "tag .*os.system"),
    "an alias to itself": ("a: &a [*a]", "is missing or incomplete"),
    "an unknown alias": ("a: *a", "is missing or incomplete"),
    "a mapping as a key": ("{a: 1}: b", "as a key"),
    "depth": ("a: " + "[" * 100_000, "deeper than 50"),
    "length": ("a: " + "x" * (1 << 20), "more than 1,048,576 characters"),
    "a list": ("- a", "not a mapping"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_front_matter_that_could_harm_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_yaml(text)


def test_aliases_that_multiply_are_refused() -> None:
    lists = "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]\n" for n in range(1, 10))
    long = f"k: &k {'x' * 100_000}\n" + "".join(f"l{n}: *k\n" for n in range(100))
    for text in ("k0: &k0 x\n" + lists, long):
        with pytest.raises(ValueError, match="aliases repeat too much"):
            parse_yaml(text)


@pytest.mark.parametrize("text", ["yes", "12:30", "2026-01-11", "007", "1e999", "NaN", ".5", "1_000"])
def test_plain_words_that_only_old_yaml_changes_stay(text: str) -> None:
    assert parse_yaml(f"key: {text}\nother: it's") == {"key": text, "other": "it's"}


def test_keys_of_an_export_may_be_longer_than_yaml_allows() -> None:
    value = {"x" * 2000: [1.5, None, "é"]}
    assert parse_yaml(f"keepstone: {flow(value)}\nother: 1") == {"keepstone": value, "other": 1}


@pytest.mark.parametrize(
    ("text", "head", "rest"),
    [
        ("---\na: 1\n---\nbody\n", "a: 1", "body\n"),
        ("---  \na: 1\n... \nbody", "a: 1", "body"),
        ("\ufeff---\na: 1\n---\nbody", "a: 1", "body"),
        ("---\n---\nbody", "", "body"),
        ("---\na: 1\n", None, "---\na: 1\n"),
        ("body\n---\na: 1\n---\n", None, "body\n---\na: 1\n---\n"),
        ("----\na: 1\n---\n", None, "----\na: 1\n---\n"),
        ("", None, ""),
    ],
)
def test_front_matter_is_between_the_first_fences(text: str, head: str | None, rest: str) -> None:
    assert split_front_matter(text) == (head, rest)


def test_the_line_of_a_mistake_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 of the front matter is not YAML"):
        parse_yaml("a: it's\nb: ]")


@pytest.mark.parametrize("text", ["", "# only a comment", "null"])
def test_front_matter_that_says_nothing_is_empty(text: str) -> None:
    assert parse_yaml(text) == {}


def test_own_keys_go_before_merged_ones_in_any_order() -> None:
    text = "base: &b {k: base, n: 1}\nmore: &m {k: more, o: 2}\nx:\n  k: own\n  <<: [*b, *m]\n"
    assert parse_yaml(text)["x"] == {"k": "own", "n": 1, "o": 2}


def test_of_two_merged_mappings_the_first_counts() -> None:
    text = "base: &b {k: base}\nmore: &m {k: more, o: 2}\nx:\n  <<: [*b, *m]\n"
    assert parse_yaml(text)["x"] == {"k": "base", "o": 2}


def test_only_the_first_document_is_read() -> None:
    assert parse_yaml("a: it's\n--- \nb: 2\n") == {"a": "it's"}
