"""Messages made valid for a provider: given ones as they are, others written again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from keepstone.model import Record
from keepstone.text.messages.converting import (
    Dialect,
    arguments_text,
    converted,
    has_blocks_of,
    image_url,
    returned_text,
    said,
)
from keepstone.text.messages.parts import parts_of
from keepstone.text.messages.turns import Turn

PNG = "data:image/png;base64,iVBORw0KGgo="


def write(turn: Turn, own: Record | None) -> Iterator[Record]:
    """Write a turn with the kinds of its parts; ``own`` tells of a message that was cut."""
    yield {"role": turn.role, "content": " ".join(part.kind for part in turn.parts), "cut": own is not None}


DIALECT = Dialect(
    takes=lambda message: "ours" in message,
    given=lambda message: {key: value for key, value in message.items() if key != "usage"},
    write=write,
)
ALTERNATING = replace(DIALECT, is_alternating=True)
CALL = {"id": "t1", "name": "look", "args": {}}


def test_a_message_that_the_provider_takes_stays_but_for_keys_of_answers() -> None:
    message = {"role": "user", "content": "Hi", "ours": 1, "usage": 9}
    assert converted([message], DIALECT) == [{"role": "user", "content": "Hi", "ours": 1}]


def test_any_other_message_is_written() -> None:
    assert converted([{"role": "user", "content": "Hi"}], DIALECT) == [
        {"role": "user", "content": "text", "cut": False}
    ]


def test_a_given_message_that_lost_a_call_is_written_from_itself() -> None:
    message = {"role": "assistant", "content": "On it", "tool_calls": [CALL], "ours": 1}
    assert converted([message], DIALECT) == [{"role": "assistant", "content": "text", "cut": True}]


def test_messages_before_the_first_of_a_user_are_left_out_where_roles_alternate() -> None:
    messages = [{"role": "assistant", "content": "Welcome"}, {"role": "user", "content": "Hi"}]
    assert [found["role"] for found in converted(messages, ALTERNATING)] == ["user"]
    assert [found["role"] for found in converted(messages, DIALECT)] == ["assistant", "user"]
    assert converted(messages[:1], ALTERNATING) == []


def test_written_messages_of_one_role_are_joined_where_roles_alternate() -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    text = {"type": "text", "text": "text"}
    assert converted(messages, ALTERNATING) == [{"role": "user", "content": [text, text]}]


def test_given_messages_of_one_role_are_not_joined() -> None:
    messages = [{"role": "user", "content": name, "ours": 1} for name in ("one", "two")]
    assert converted(messages, ALTERNATING) == messages


# Contents


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"type": "text", "text": "x"}], True),
        ([], True),
        ([{"type": "text"}], False),
        ([{"type": "other", "text": "x"}], False),
        ([{"text": "x"}], False),
        (["x"], False),
        ("x", False),
    ],
)
def test_blocks_need_a_known_type_with_its_key(content: Any, expected: bool) -> None:  # noqa: FBT001
    assert has_blocks_of(content, {"text": "text"}) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("18 degrees", "18 degrees"),
        (None, ""),
        ({"c": 18, "city": "Zürich"}, '{"c": 18, "city": "Zürich"}'),
        ([1, 2], "[1, 2]"),
        ([{"type": "text", "text": "18"}, {"type": "text", "text": "21"}], "18\n21"),
        ({"type": "text", "text": "18"}, "18"),
        ([], ""),
    ],
)
def test_what_a_tool_returned_is_one_text(value: Any, text: str) -> None:
    assert returned_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [({"city": "Zürich"}, '{"city": "Zürich"}'), (None, "{}"), ("{bad", "{bad")]
)
def test_arguments_are_json_and_a_text_stays(value: Any, text: str) -> None:
    assert arguments_text(value) == text


# Files


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "Hi"}, "Hi"),
        ({"type": "file", "filename": "plan.pdf"}, "[file: plan.pdf]"),
        ({"type": "file", "file": {"filename": "plan.pdf", "file_data": "AA"}}, "[file: plan.pdf]"),
        ({"type": "document", "source": {"url": "https://x.example/a"}}, "[file: https://x.example/a]"),
        ({"type": "document", "source": {"url": PNG}}, "[document]"),
        ({"type": "input_audio"}, "[input_audio]"),
    ],
)
def test_a_file_is_named_and_never_shown(block: Record, text: str) -> None:
    (part,) = parts_of(block)
    assert said(part) == text


@pytest.mark.parametrize(
    ("block", "url"),
    [
        ({"type": "image_url", "image_url": {"url": PNG}}, PNG),
        ({"type": "input_image", "image_url": "https://x.example/a.png"}, "https://x.example/a.png"),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA"}},
            "data:image/gif;base64,AA",
        ),
        ({"type": "image", "image": "AA"}, "data:image/png;base64,AA"),
        ({"type": "file", "mediaType": "image/png", "url": PNG}, PNG),
    ],
)
def test_an_image_has_one_address_in_each_format(block: Record, url: str) -> None:
    (part,) = parts_of(block)
    assert image_url(part) == url


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": PNG},
        {"type": "file", "mediaType": "application/pdf", "url": "https://x.example/a.pdf"},
        {"type": "file", "url": PNG},
        {"type": "image"},
    ],
)
def test_any_other_part_has_no_address_of_an_image(block: Record) -> None:
    (part,) = parts_of(block)
    assert image_url(part) is None
