"""Tests of memory: each line of a home's ``tests.ndjson`` is a question with its expected hits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import TESTS, TESTS_LOCK, TESTS_TEMPORARY
from keepstone.filesystem.lock import Lock
from keepstone.log.arguments import count_of, name_of, names_of
from keepstone.text.tokenizer import containing

LIMIT = 5
"""Number of hits that a test checks by default."""


@dataclass(frozen=True, slots=True)
class MemoryTest:
    """One question, and the hits that it must or must not have."""

    id: str
    agent: str
    ask: str
    expect: tuple[str, ...] = ()
    """Ids or texts that must each match a hit."""
    never: tuple[str, ...] = ()
    """Ids or texts that must match no hit."""
    nothing: bool = False
    """Whether the recall must find nothing relevant."""
    limit: int = LIMIT
    as_of: str | None = None
    note: str = ""

    def line(self) -> dict[str, Any]:
        """Return the test in the shape of its line."""
        given = {"expect": [*self.expect], "never": [*self.never], "nothing": self.nothing}
        given |= {
            "limit": None if self.limit == LIMIT else self.limit,
            "as_of": self.as_of,
            "note": self.note,
        }
        head = {"id": self.id, "agent": self.agent, "ask": self.ask}
        return head | {key: value for key, value in given.items() if value}


def test_of(line: object) -> MemoryTest:
    """Return the test in a line.

    Raises:
        TypeError, ValueError: The line has no ``ask``, nothing to check, or a value of a wrong type.
    """
    if not isinstance(line, Mapping):
        raise TypeError("a test must be a JSON object")
    if not isinstance(line.get("ask"), str) or not line["ask"].strip():
        raise ValueError("a test needs ask, the question")
    expect, never = (names_of(line.get(key, ()), key) or () for key in ("expect", "never"))
    nothing = line.get("nothing", False)
    if not isinstance(nothing, bool):
        raise TypeError(f'the key "nothing" must be true or false, not {nothing!r:.80}')
    if not (expect or never or nothing):
        raise ValueError('a test needs "expect", "never" or "nothing": name what must be found, or must not')
    if expect and nothing:
        raise ValueError('a test cannot have both "expect" and "nothing": leave one of them out')
    as_of = line.get("as_of")
    return MemoryTest(
        name_of(line.get("id", line["ask"]), "id"),
        name_of(line.get("agent", "default"), "agent"),
        line["ask"],
        expect,
        never,
        nothing,
        count_of(line.get("limit", LIMIT), "limit", least=1),
        None if as_of is None else name_of(as_of, "as_of"),
        str(line.get("note", "")),
    )


def read_tests(file: Path) -> list[MemoryTest]:
    """Return the tests in a file, in order; none if the file is missing.

    Raises:
        ValueError: A line is damaged or is not a test; the message has the line's number.
    """
    with border(file):
        if file.exists() and not file.is_file():
            raise ValueError(f"{file} is no regular file: it cannot hold tests")
        text = file.read_text("utf-8", "surrogateescape") if file.exists() else ""
    found = []
    # Split at newlines only, as JSON strings may contain other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(test_of(json.loads(line)))
            except (ValueError, TypeError, RecursionError) as error:
                raise ValueError(f"line {number} of {file.name} is not a test: {error}") from None
    return found


def add_test(root: Path, test: MemoryTest, name: str = TESTS) -> None:
    """Append a test to the file of a home; create the file if it is missing."""
    line = json.dumps(test.line(), ensure_ascii=False).encode() + b"\n"

    def added(lines: list[bytes]) -> list[bytes]:
        return [*lines, line]

    rewrite(root, added, name, create=True)


def remove_test(root: Path, test_id: str) -> None:
    """Remove the tests with an id from the file of a home."""

    def without(lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if _id_of(line) != test_id]

    rewrite(root, without)


def purge_ids(root: Path, agent: str, ids: Collection[str]) -> None:
    """Remove purged ids from the tests of a home; also remove tests with nothing left to check."""
    gone = set(ids)

    def without(lines: list[bytes]) -> list[bytes]:
        return [line for given in lines for line in _without(given, agent, gone)]

    rewrite(root, without)


def purge_text(root: Path, agent: str, text: str) -> None:
    """Remove an agent's tests that contain a text, ignoring case."""
    contains = containing(text)

    def without(lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if not (_is_of(line, agent) and contains(_readable(line)))]

    rewrite(root, without)


def _without(line: bytes, agent: str, gone: set[str]) -> Iterator[bytes]:
    test = _parsed(line)
    if not _is_of(line, agent) or test is None:
        yield line
        return
    kept = {
        key: [entry_id for entry_id in value if entry_id not in gone] if key in ("expect", "never") else value
        for key, value in test.items()
    }
    if kept == test:
        yield line
    # A test with nothing left to check is removed.
    elif any(kept.get(key) for key in ("expect", "never", "nothing")):
        yield json.dumps(kept, ensure_ascii=False).encode() + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _id_of(line: bytes) -> object:
    """Return the id of a test, which is the question by default."""
    test = _parsed(line) or {}
    return test.get("id", test.get("ask"))


def _is_of(line: bytes, agent: str) -> bool:
    test = _parsed(line)
    # A damaged line may belong to any agent, so a purge of a text in it removes it.
    return test is None or test.get("agent", "default") == agent


def _readable(line: bytes) -> str:
    test = _parsed(line)
    return line.decode("utf-8", "replace") if test is None else json.dumps(test, ensure_ascii=False)


def rewrite(
    root: Path, change: Callable[[list[bytes]], list[bytes]], name: str = TESTS, *, create: bool = False
) -> None:
    """Replace the lines of a home's tests by the result of a function, under their lock."""
    if not create and not (root / name).exists():
        return
    with Folder(root, create=True) as folder, closing(Lock(folder, TESTS_LOCK)) as lock, lock.hold():
        try:
            with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            lines = []
        # A last line without a newline would be joined with an added line.
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        new = change(lines)
        if new != lines:
            replace_file(folder, name, new, temporary=TESTS_TEMPORARY)
