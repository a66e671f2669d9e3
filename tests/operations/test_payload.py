from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone.operations.payload import unindexed


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        ({"role": "user", "content": "Hi"}, []),
        ({"content": "Hi", "n": 0, "ok": False, "none": None}, ["n", "ok", "none"]),
        ({"decision": "OAuth", "by": {"name": "Ada", "votes": 3}}, ["by"]),
        ({"content": "Hi", "other": "unsaid"}, ["other"]),
        ({"a": "b", "empty": []}, ["empty"]),
    ],
)
def test_values_that_the_text_does_not_say_are_listed(tmp_path: Path, data: Any, rest: list[str]) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        entry = home.agent("coder").session("s").add("fact", data)
        assert [key for key, _ in unindexed(entry)] == rest
