"""A message's parts as the pages show them: texts, calls, results, and files as chips."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone import Entry
from keepstone.web.message_parts import image_of, is_held, part_views

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
PNG = b"\x89PNG" + bytes(range(256))
ANYTHING = st.text(alphabet=st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | ANYTHING,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=12,
)


def message(*blocks: Any, **more: Any) -> Entry:
    """Return the entry of a message with these blocks as its content."""
    return entry({"role": "assistant", "content": [*blocks], **more})


def entry(data: dict[str, Any], kind: str = "message", *, is_flat: bool = False) -> Entry:
    line = {"id": "e", "type": kind, **(data if is_flat else {"data": data})}
    return Entry("coder", "s", "e", NOW, kind, "", data, line)


def image(data: bytes = PNG, media: str = "image/png") -> dict[str, Any]:
    coded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": coded}}


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": "search", "input": arguments}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "1", "content": content, **more}


def test_an_entry_of_one_plain_text_has_no_parts() -> None:
    assert part_views(entry({"role": "user", "content": "Good morning"})) == []


def test_an_entry_that_is_no_message_has_no_parts() -> None:
    assert part_views(entry({"decision": "Use pnpm", "votes": [1, 2]}, "decision")) == []


def test_texts_and_reasoning_are_parts_in_their_order() -> None:
    views = part_views(
        message({"type": "thinking", "thinking": "Which one?"}, {"type": "text", "text": "pnpm"})
    )
    assert views == [{"kind": "reasoning", "text": "Which one?"}, {"kind": "text", "text": "pnpm"}]


def test_a_call_lists_its_arguments_by_name() -> None:
    [view] = part_views(message(call(query="passkeys", limit=3, tags=["auth"])))
    assert (view["kind"], view["name"]) == ("call", "search")
    assert view["arguments"] == [
        {"key": "query", "value": "passkeys"},
        {"key": "limit", "value": "3"},
        {"key": "tags", "value": '["auth"]'},
    ]


def test_a_call_whose_arguments_are_no_object_has_one_without_a_name() -> None:
    [view] = part_views(
        message({"type": "custom_tool_call", "call_id": "1", "name": "shell", "input": "ls -l"})
    )
    assert view["arguments"] == [{"key": "", "value": "ls -l"}]


def test_base64_in_an_argument_is_left_out() -> None:
    [view] = part_views(message(call(picture=base64.b64encode(bytes(300)).decode())))
    assert view["arguments"] == [{"key": "picture", "value": "…"}]


def test_a_digest_in_an_argument_is_shown_whole() -> None:
    [view] = part_views(message(call(digest="0f" * 64)))
    assert view["arguments"][0]["value"] == "0f" * 64


def test_a_result_of_blocks_is_the_text_of_the_blocks() -> None:
    [view] = part_views(message(result([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])))
    assert view == {"kind": "result", "name": "result", "text": "one\ntwo"}


@pytest.mark.parametrize(("failed", "name"), [(True, "search: failed"), (False, "search: result")])
def test_a_named_result_says_whether_it_failed(failed: bool, name: str) -> None:  # noqa: FBT001
    [view] = part_views(message(result("no such file", name="search", is_error=failed)))
    assert (view["name"], view["text"]) == (name, "no such file")


def test_a_result_that_is_no_message_is_shown_as_json() -> None:
    [view] = part_views(message(result([{"path": "a.md", "lines": 3}])))
    assert json.loads(view["text"]) == [{"path": "a.md", "lines": 3}]


def test_files_of_a_result_follow_it_as_chips() -> None:
    views = part_views(message(result([{"type": "text", "text": "drawn"}, image()])))
    assert [(view["kind"], view["text"]) for view in views] == [
        ("result", "drawn"),
        ("file", "image/png, 260 B"),
    ]


def test_images_are_numbered_among_the_parts_with_an_image() -> None:
    views = part_views(message(image(), {"type": "text", "text": "x"}, image(media="image/tiff"), image()))
    assert [view.get("image") for view in views] == [0, None, None, 1]


def test_an_image_is_returned_by_its_number() -> None:
    made = message(image(b"first" * 100), result([image(b"second" * 100, "image/webp")]))
    assert image_of(made, 0) == ("image/png", b"first" * 100)
    assert image_of(made, 1) == ("image/webp", b"second" * 100)
    assert image_of(made, 2) is None


def test_an_image_in_a_data_url_is_returned() -> None:
    url = f"data:image/gif;base64,{base64.b64encode(PNG).decode()}"
    assert image_of(message({"type": "image_url", "image_url": {"url": url}}), 0) == ("image/gif", PNG)


def test_an_image_of_the_url_alphabet_without_padding_is_returned() -> None:
    data = b"\xfb\xff\xfe" * 100 + b"x"
    coded = base64.urlsafe_b64encode(data).decode().rstrip("=")
    assert "-" in coded
    made = message({"type": "image", "source": {"media_type": "image/png", "data": coded}})
    assert image_of(made, 0) == ("image/png", data)


@pytest.mark.parametrize("media", ["image/svg+xml", "text/html", "application/pdf"])
def test_only_bitmaps_are_images(media: str) -> None:
    made = message(image(b"<script>alert(1)</script>" * 20, media))
    assert image_of(made, 0) is None
    assert "image" not in part_views(made)[0]


def test_an_image_of_another_length_than_base64_has_is_none() -> None:
    made = message({"type": "image", "source": {"media_type": "image/png", "data": "A" * 257}})
    assert image_of(made, 0) is None


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "file", "filename": "plan.pdf"}, "plan.pdf"),
        (
            {"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}},
            "image, https://x.invalid/a.png",
        ),
        ({"type": "document", "title": "Plan", "media_type": "text/plain"}, "Plan, text/plain"),
        ({"type": "hologram"}, "hologram"),
    ],
)
def test_a_file_is_a_chip_with_what_is_known_of_it(block: dict[str, Any], text: str) -> None:
    [view] = part_views(message({"type": "text", "text": ""}, block))[-1:]
    assert (view["kind"], view["text"]) == ("file", text)


def test_a_text_that_is_a_whole_data_url_is_a_chip() -> None:
    url = f" data:image/png;base64,{base64.b64encode(PNG).decode()}\n"
    [view] = part_views(message({"type": "text", "text": url}))
    assert (view["kind"], view["text"], view["image"]) == ("file", "image/png, 260 B", 0)


def test_results_inside_results_end_at_a_depth() -> None:
    deep: Any = [{"type": "text", "text": "bottom"}]
    for _ in range(30):
        deep = [result(deep)]
    [view] = part_views(message(*deep))
    assert "bottom" not in json.dumps(view)


def test_a_message_of_openai_without_a_role_is_read_by_the_type_of_its_entry() -> None:
    data = {"call_id": "1", "name": "search", "arguments": '{"q": "x"}'}
    [view] = part_views(entry(data, "function_call", is_flat=True))
    assert view["arguments"] == [{"key": "q", "value": "x"}]


@pytest.mark.parametrize(
    ("data", "key", "is_shown"),
    [
        ({"content": [call()], "role": "user"}, "content", True),
        ({"content": [call()], "role": "user"}, "role", False),
        ({"content": "plain", "role": "user"}, "content", False),
        ({"type": "function_call", "call_id": "1", "arguments": "{}"}, "arguments", True),
    ],
)
def test_a_value_that_parts_show_is_held(data: dict[str, Any], key: str, *, is_shown: bool) -> None:
    assert is_held(entry(data), key) is is_shown


@given(st.lists(JSON, max_size=4), ANYTHING)
def test_content_of_any_shape_can_be_sent(blocks: list[Any], kind: str) -> None:
    made = message({"type": "text", "text": kind}, *blocks, {"type": kind, "value": blocks}, result(blocks))
    json.dumps(part_views(made), ensure_ascii=False).encode()
