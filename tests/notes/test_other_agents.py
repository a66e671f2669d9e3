import logging
import os
from pathlib import Path

import pytest

from keepstone import Notes
from keepstone.notes.other_agents import READ_LIMIT, OtherFile, others_in


def names(folder: Path) -> list[str]:
    return [Path(other.path).name for other in others_in(folder)]


def test_files_that_other_agents_read_are_found_in_order(tmp_path: Path) -> None:
    rules = tmp_path / ".cursor" / "rules"
    rules.mkdir(parents=True)
    for name in ("GEMINI.md", "CLAUDE.md", ".cursorrules", "README.md", "AGENTS.md"):
        (tmp_path / name).write_text(name, "utf-8")
    for name in ("b.mdc", "a.mdc", "c.txt"):
        (rules / name).write_text(name, "utf-8")
    assert names(tmp_path) == ["CLAUDE.md", "GEMINI.md", ".cursorrules", "a.mdc", "b.mdc"]


def test_a_file_is_given_with_its_whole_text(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_bytes(b"\xef\xbb\xbf# C\n\n- caf\xe9\n")
    assert others_in(tmp_path) == [OtherFile(str(tmp_path / "CLAUDE.md"), "# C\n\n- caf\ufffd\n")]


def test_a_large_file_is_read_to_the_end_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_bytes(b"nine byte\n" * 10_000)
    [other] = others_in(tmp_path)
    assert (len(other.text), other.is_cut) == (READ_LIMIT // 10 * 10, True)


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_file_without_text_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "CLAUDE.md").write_text(text, "utf-8")
    assert others_in(tmp_path) == []


def test_links_are_not_followed_to_anywhere(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.mdc").write_text("secret", "utf-8")
    project = tmp_path / "project"
    (project / ".cursor").mkdir(parents=True)
    (project / "CLAUDE.md").symlink_to(tmp_path / "secret" / "a.mdc")
    (project / ".cursor" / "rules").symlink_to(tmp_path / "secret")
    assert others_in(project) == []


def test_a_pipe_or_folder_of_that_name_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "CLAUDE.md")
    (tmp_path / "GEMINI.md").mkdir()
    assert others_in(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_that_cannot_be_read_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "CLAUDE.md").write_text("secret", "utf-8")
    (tmp_path / "CLAUDE.md").chmod(0)
    with caplog.at_level(logging.WARNING):
        assert others_in(tmp_path) == []
    assert "CLAUDE.md" in caplog.text


def test_a_copy_of_agents_md_is_not_a_source_of_its_own(tmp_path: Path) -> None:
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
        (tmp_path / name).write_text("Be kind." if name != "GEMINI.md" else "Be brief.", "utf-8")
    found = Notes(tmp_path, tmp_path / "user.md", others=True).sources()
    assert [source.kind for source in found] == ["Project", "User", "GEMINI.md"]


def test_reading_them_changes_no_file(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("- Be kind", "utf-8")
    before = (tmp_path / "CLAUDE.md").stat()
    Notes(tmp_path, tmp_path / "user.md", others=True).sources()
    after = (tmp_path / "CLAUDE.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CLAUDE.md"]
