"""``files list``, ``read``, ``write``, ``append`` and ``delete``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Command


def test_a_written_file_is_read_back_byte_for_byte(cli: Command) -> None:
    assert cli.json("files", "write", "plan.md", "1. Measure\r\n") == {"path": "plan.md", "bytes": 12}
    assert cli("files", "read", "plan.md").stdout_bytes == b"1. Measure\r\n"
    assert cli.json("files", "read", "plan.md") == {"path": "plan.md", "content": "1. Measure\r\n"}


@pytest.mark.parametrize("words", [[], ["-"]])
def test_content_is_read_from_standard_input(cli: Command, words: list[str]) -> None:
    cli("files", "write", "plan.md", *words, text="from a pipe\n")
    assert cli("files", "read", "plan.md").stdout == "from a pipe\n"


def test_append_makes_a_file_and_then_adds_to_it(cli: Command) -> None:
    cli("files", "append", "diary.md", "one\n")
    assert cli("files", "append", "diary.md", "two\n").stdout == "appended 4 bytes: diary.md\n"
    assert cli("files", "read", "diary.md").stdout == "one\ntwo\n"


def test_files_are_listed_by_path(cli: Command) -> None:
    for path in ("b.md", "a/c.md"):
        cli("files", "write", path, "text")
    assert cli("files", "list").stdout == "a/c.md\nb.md\n"
    assert cli.json("files", "list") == {"files": ["a/c.md", "b.md"]}


def test_an_agent_without_files_says_so(cli: Command) -> None:
    assert cli("files", "list").stdout == "no files yet\n"


def test_a_deleted_file_is_not_found_any_more(cli: Command) -> None:
    cli("files", "write", "plan.md", "text")
    assert cli.json("files", "delete", "plan.md") == {"path": "plan.md", "deleted": True}
    assert cli.error("files", "read", "plan.md") == (1, "memory_file_not_found")
    assert cli.error("files", "delete", "plan.md") == (1, "memory_file_not_found")


@pytest.mark.parametrize("path", ["../out.md", "/etc/passwd", "a/../../b"])
def test_a_path_that_leaves_the_folder_is_bad_input(cli: Command, path: str) -> None:
    assert cli.error("files", "write", path, "text") == (2, "path_escape")
    assert list(cli.home.rglob("*.md")) == []


def test_a_folder_is_not_read_as_a_file(cli: Command) -> None:
    cli("files", "write", "folder/plan.md", "text")
    assert cli.error("files", "read", "folder") == (2, "is_a_folder")


def test_an_empty_path_is_bad_input(cli: Command) -> None:
    assert cli.error("files", "write", "", "text") == (2, "invalid_argument")
