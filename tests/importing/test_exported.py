"""Exports of keepstone in Markdown and SQLite, read back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import auto, items, read, reasons

import keepstone
from keepstone.agent import Agent
from keepstone.importing.exported import is_export, read_export
from keepstone.importing.origin import Origin
from keepstone.operations.exporting.tables import APPLICATION_ID

SECTION = """
## note, 2026-01-11 14:31 UTC
<!-- keepstone {"session": "s", "id": "%s", "ts": "2026-01-11T14:31:00Z", "type": "note", "at": ["text"]} -->

%s
"""


def markdown(folder: Path, *sections: str, name: str = "s.md") -> Path:
    head = '---\ntype: "session"\nkeepstone: "md"\n---\n\n# s\n'
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(head + "".join(sections), encoding="utf-8")
    return folder


def sqlite(path: Path, *lines: str, mark: int = APPLICATION_ID) -> Path:
    with closing(apsw.Connection(str(path))) as database:
        database.execute(f"PRAGMA application_id = {mark}; CREATE TABLE entries(session, line)")
        database.executemany("INSERT INTO entries VALUES('s', ?)", [(line,) for line in lines])
    return path


def test_text_with_headings_and_blank_lines_comes_back(tmp_path: Path) -> None:
    text = "first\n\n## note, 2026\n\nlast"
    folder = markdown(tmp_path / "x", SECTION % ("a", text), SECTION % ("b", "other"))
    found = items(read_export, folder)
    assert [(item.session, item.line["id"], item.line["text"]) for item in found] == [
        ("s", "a", text),
        ("s", "b", "other"),
    ]
    assert all(item.exported for item in found)


def test_an_edited_text_is_the_text_of_its_entry(tmp_path: Path) -> None:
    folder = markdown(tmp_path / "x", SECTION % ("a", "old"))
    path = folder / "s.md"
    path.write_text(path.read_text().replace("old", "new\nlines"))
    assert [item.line["text"] for item in items(read_export, folder)] == ["new\nlines"]


def test_carriage_returns_that_an_editor_added_are_removed(tmp_path: Path) -> None:
    folder = markdown(tmp_path / "x", SECTION % ("a", "one\ntwo"))
    path = folder / "s.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert [item.line["text"] for item in items(read_export, folder)] == ["one\ntwo"]


def test_a_damaged_section_leaves_the_others(tmp_path: Path) -> None:
    broken = (SECTION % ("a", "lost")).replace('"at"', "at")
    found = read(read_export, markdown(tmp_path / "x", broken, SECTION % ("b", "kept")))
    assert [place for place, _ in reasons(found)] == ["s.md:9"]
    assert "the comment is not JSON" in reasons(found)[0][1]
    assert len(found) == 2


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    folder = markdown(tmp_path / "x", SECTION % ("a", "one\ntwo"))
    path = folder / "s.md"
    path.write_bytes(path.read_bytes().replace(b"two", b"\xff"))
    found = read(read_export, folder)
    assert reasons(found) == [("s.md:12", "the line is not UTF-8")]


def test_a_row_that_is_not_an_object_is_named(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "x.db", '{"id": "a", "text": "Tea"}', "[1]", "{")
    found = read(read_export, path)
    (_, not_object), (place, not_json) = reasons(found)
    assert (not_object, place) == ("its line is not an object", "x.db: row 3")
    assert not_json.startswith("its line is not JSON")
    assert len(found) == 3


@pytest.mark.parametrize("mark", [0, APPLICATION_ID + 1])
def test_an_sqlite_file_of_another_application_is_no_export(tmp_path: Path, mark: int) -> None:
    assert not is_export(Origin(sqlite(tmp_path / "x.db", mark=mark)))
    assert is_export(Origin(sqlite(tmp_path / "y.db")))


def test_notes_without_the_mark_are_no_export(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('---\ntitle: x\n---\nkeepstone: "md"\n')
    assert not is_export(Origin(tmp_path))


def test_an_exported_session_comes_back_whole(agent: Agent, tmp_path: Path) -> None:
    session = agent.session("odd/name")
    session.add("message", {"role": "user", "content": "Which sign-in?\n<!-- keepstone {} -->"})
    session.add("note", {"n": [1, None]}, text="Use passkeys", tags=["a"], pinned=True)
    agent.export(tmp_path / "out", "md")
    other = keepstone.open(tmp_path / "other", embedder="none").agent("a")
    assert auto(other, tmp_path / "out", "keepstone").imported == 2
    kept = ("id", "ts", "type", "text", "data", "tags", "pinned", "role", "content")
    before, after = (
        [{key: entry.line.get(key) for key in kept} for entry in one.session("odd/name").entries()]
        for one in (agent, other)
    )
    assert after == before
