"""Edits of JSON with comments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.mcp import jsonc

PATH = ("servers", "ours")
VALUE = {"command": "keepstone", "args": ["mcp"]}

ODD = {
    "empty": "",
    "only a comment": "// nothing yet\n",
    "empty object": "{}",
    "empty servers": '{\n  "servers": {}\n}\n',
    "plain": '{\n  "servers": {\n    "other": {"command": "x"}\n  },\n  "after": 1\n}\n',
    "one line": '{"servers": {"other": {}}}',
    "tabs": '{\n\t"servers": {\n\t\t"other": {}\n\t}\n}\n',
    "comments": '// a\n{\n  /* b */ "servers": { // c\n    "other": {} // d\n    // e\n  } // f\n}\n// g\n',
    "trailing commas": '{\n  "servers": {\n    "other": {},\n  },\n}\n',
    "trailing comma and comment": '{\n  "servers": {\n    "other": {}, // "ours": {}\n  }\n}\n',
    "CRLF": '{\r\n  "servers": {\r\n    "other": {}\r\n  }\r\n}\r\n',
    "BOM": '\ufeff{\n  "servers": {}\n}\n',
    "signs in texts": '{\n  "servers": {"//": "/* }", "a": "\\"}{"}\n}',
    "keys twice": '{"servers": {}, "servers": {"other": {}}}',
    "no newline at the end": '{\n    "a": [1, 2, {"b": null}]\n}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_only_the_value_is_added(text: str) -> None:
    before, after = jsonc.load(text), jsonc.load(jsonc.put(text, PATH, VALUE))
    assert after == before | {"servers": before.get("servers", {}) | {"ours": VALUE}}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_every_byte_that_was_there_stays_in_order(text: str) -> None:
    rest = iter(jsonc.put(text, PATH, VALUE))
    assert all(letter in rest for letter in text if not letter.isspace())


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_putting_twice_changes_nothing_more(text: str) -> None:
    once = jsonc.put(text, PATH, VALUE)
    assert jsonc.put(once, PATH, VALUE) == once


@pytest.mark.parametrize("name", [name for name in ODD if name != "trailing comma and comment"])
def test_removing_what_was_put_gives_the_servers_back(name: str) -> None:
    text = ODD[name]
    removed = jsonc.remove(jsonc.put(text, PATH, VALUE), PATH)
    assert jsonc.load(removed) == {"servers": {}} | jsonc.load(text)
    if name in {"plain", "tabs", "comments", "trailing commas", "CRLF"}:
        assert removed == text


def test_a_changed_value_is_replaced_in_its_place() -> None:
    text = '{\n  "servers": {\n    "ours": {"command": "old"}, // mine\n    "other": {}\n  }\n}\n'
    assert jsonc.put(text, PATH, {"command": "new"}) == text.replace(
        '{"command": "old"}', '{\n      "command": "new"\n    }'
    )


def test_what_is_added_is_indented_like_the_rest() -> None:
    assert jsonc.put(ODD["tabs"], ("servers", "ours"), {"a": 1}) == (
        '{\n\t"servers": {\n\t\t"other": {},\n\t\t"ours": {\n\t\t\t"a": 1\n\t\t}\n\t}\n}\n'
    )


def test_line_ends_stay_those_of_the_file() -> None:
    assert "\n" not in jsonc.put(ODD["CRLF"], PATH, VALUE).replace("\r\n", "")


def test_removing_what_is_not_there_changes_nothing() -> None:
    for text in ODD.values():
        assert jsonc.remove(text, PATH) == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "}",
        "[1,,2]",
        '{"a" 1}',
        '{"a": }',
        "{'a': 1}",
        '{"a": 1} x',
        "{a: 1}",
        "[" * 100_000,
        '{"a": 01}',
        "/*",
    ],
)
def test_what_is_not_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not JSON|nested too deeply"):
        jsonc.load(text)


@pytest.mark.parametrize("text", ["[]", '{"servers": []}', '{"servers": null}'])
def test_servers_that_are_no_object_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not an object"):
        jsonc.put(text, PATH, VALUE)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 1, "\t"]),
)
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: Any) -> None:
    assert jsonc.load(json.dumps(value, indent=indent)) == value
