"""Markdown files of an export: names, headings, comments and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keepstone.importing.front_matter import split_front_matter
from keepstone.log.line import entry_of
from keepstone.model import Entry
from keepstone.operations.exporting.markdown_files import (
    BEGIN,
    END,
    SESSION_MARK,
    escaped,
    file_name,
    write_md,
    write_okf,
)


def entry(name: str = "a", session: str = "main", **line: Any) -> Entry:
    whole = {"id": name, "ts": "2026-01-11T14:31:00.000000Z", "type": "note", **({"text": "Tea"} | line)}
    return entry_of("coder", session, whole)


def written(folder: Path, *entries: Entry, session: str = "main") -> str:
    write_md(entries, folder)
    return (folder / f"{file_name(session)}.md").read_text("utf-8")


def comment(text: str) -> dict[str, Any]:
    (line,) = [line for line in text.split("\n") if line.startswith(BEGIN)]
    found: dict[str, Any] = json.loads(line.removeprefix(BEGIN).removesuffix(END))
    return found


def test_a_file_begins_with_its_session_and_the_mark_of_an_export(tmp_path: Path) -> None:
    head, body = split_front_matter(written(tmp_path, entry()))
    assert head is not None
    assert SESSION_MARK in head.split("\n")
    assert yaml.safe_load(head)["title"] == "main"
    assert body.startswith("\n# main\n\n## note, 2026-01-11 14:31 UTC\n")


def test_all_that_the_text_does_not_say_is_in_the_comment(tmp_path: Path) -> None:
    said = comment(written(tmp_path, entry(tags=["x"])))
    assert (said["session"], said["tags"], said["at"], "text" in said) == ("main", ["x"], ["text"], False)


def test_sessions_that_alternate_have_one_file_each(tmp_path: Path) -> None:
    assert write_md([entry("a", "x"), entry("b", "y"), entry("c", "x")], tmp_path) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"x.md", "y.md"}
    assert (tmp_path / "x.md").read_text().count(BEGIN) == 2
    assert (tmp_path / "x.md").read_text().count("# x\n") == 1


def test_a_comment_cannot_be_closed_from_within(tmp_path: Path) -> None:
    text = written(tmp_path, entry(tags=["--> <script>"]))
    assert "<script>" not in text
    assert comment(text)["tags"] == ["--> <script>"]


@pytest.mark.parametrize("text", ["one\rtwo", "nul\0", f"{BEGIN}x", "sep\u2028"])
def test_a_text_that_markdown_cannot_hold_is_whole_in_the_comment(tmp_path: Path, text: str) -> None:
    found = written(tmp_path, entry(text=text))
    assert comment(found)["line"]["text"] == text
    assert found.count(BEGIN) == 1


@pytest.mark.parametrize(("key", "who"), [("role", "user, "), ("speaker", "user, "), ("other", "")])
def test_a_heading_says_who_spoke(tmp_path: Path, key: str, who: str) -> None:
    said = entry(type="message", text=None, data={key: "user", "content": "Hi"})
    assert f"\n## {who}message, 2026" in written(tmp_path, said)


def test_a_speaker_with_control_characters_is_not_shown(tmp_path: Path) -> None:
    said = entry(type="message", text=None, data={"role": "a\nb", "content": "Hi"})
    assert "\n## message, 2026" in written(tmp_path, said)


@pytest.mark.parametrize(
    ("text", "literal"),
    [("a *b* [c](d)", r"a \*b\* \[c\]\(d\)"), ("a\n\n# b", r"a \# b"), ("<b>", r"\<b\>"), ("  a  ", "a")],
)
def test_a_heading_is_literal_and_on_one_line(text: str, literal: str) -> None:
    assert escaped(text) == literal


@pytest.mark.parametrize("name", ["main", "plan-2", "a_b", "x" * 150])
def test_a_plain_name_is_the_name_of_its_file(name: str) -> None:
    assert file_name(name) == name


@pytest.mark.parametrize("name", ["Main", "a/b", "index", "log", "-B", "ä", "x" * 151, "a.b"])
def test_another_name_ends_in_a_digest(name: str) -> None:
    made = file_name(name)
    assert made != name
    assert len(made.rpartition("-")[2]) == 16
    assert not made.startswith("-")


@given(st.lists(st.text(max_size=200), unique=True, min_size=2, max_size=5))
def test_two_names_never_share_a_file_in_any_case(names: list[str]) -> None:
    made = {file_name(name).casefold() for name in names}
    assert len(made) == len(names)
    assert all(len(name.encode()) < 200 and "/" not in name for name in made)


def test_a_bundle_numbers_entries_of_a_session_in_their_order(tmp_path: Path) -> None:
    assert write_okf([entry("b"), entry("a"), entry("c", "other")], tmp_path) == 3
    assert sorted(path.name for path in (tmp_path / "main").iterdir()) == [
        "0000001-b.md",
        "0000002-a.md",
        "index.md",
    ]
    assert (
        (tmp_path / "index.md")
        .read_text()
        .endswith("* [main](main/) - 2 entries\n* [other](other/) - 1 entry\n")
    )


def test_a_concept_without_a_text_is_titled_by_its_type(tmp_path: Path) -> None:
    write_okf([entry(text=None, data={"n": 1}, type="fact")], tmp_path)
    head, _ = split_front_matter((tmp_path / "main" / "0000001-a.md").read_text())
    assert head is not None
    keys: Any = yaml.safe_load(head)
    assert keys["title"]
    assert keys["keepstone"]["line"]["data"] == {"n": 1}
