"""The journal of begun and deleted files, which a home publishes when it syncs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from keepstone.files import AgentFiles
from keepstone.filesystem.layout import SYNC
from keepstone.store.files import file_deletions as journal
from keepstone.store.files.file_deletions import Beginning, Deletion


@pytest.fixture
def synced(tmp_path: Path) -> Path:
    """A home that synced before."""
    folder = tmp_path / SYNC
    folder.mkdir(parents=True)
    (folder / journal.VERSIONS).write_text("{}")
    return tmp_path


def test_a_home_that_never_synced_records_nothing(tmp_path: Path) -> None:
    journal.begin(tmp_path, "a", "x.md", durable=False)
    journal.record(tmp_path, "a", "x.md", b"text", durable=False)
    assert (journal.read(tmp_path), list(tmp_path.iterdir())) == ([], [])


def test_a_deletion_is_recorded_with_digests_alone(synced: Path) -> None:
    journal.record(synced, "ada", "secret.md", b"secret text", durable=False)
    (found,) = journal.read(synced)
    assert isinstance(found, Deletion)
    assert found.name == journal.name_digest("secret.md")
    assert found.sha256 == hashlib.sha256(journal.packed("secret.md", b"secret text")).hexdigest()
    journals = [path.read_bytes() for path in (synced / SYNC).iterdir() if path.is_file()]
    assert not any(b"secret" in raw or b"ada" in raw for raw in journals)


def test_two_files_of_one_name_begin_with_marks_of_their_own(synced: Path) -> None:
    journal.begin(synced, "a", "x.md", durable=False)
    journal.begin(synced, "a", "x.md", durable=False)
    first, second = journal.read(synced)
    assert isinstance(first, Beginning)
    assert isinstance(second, Beginning)
    assert (first.name, first.agent) == (second.name, second.agent)
    assert first.mark != second.mark


def test_the_same_text_under_two_names_has_two_digests() -> None:
    assert journal.packed("a", b"\nb") != journal.packed("a\n", b"b")
    assert journal.name_digest("a") != journal.name_digest("b")


def test_all_files_of_a_purged_agent_are_recorded_though_the_home_never_synced(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path / "files", root=tmp_path)
    for name in ("x.md", "plans/y.md"):
        files.write(name, "text")
    journal.record_all(tmp_path, "a", files)
    names = {found.name for found in journal.read(tmp_path)}
    assert names == {journal.name_digest("x.md"), journal.name_digest("plans/y.md")}


def test_a_sync_forgets_what_it_took_and_nothing_newer(synced: Path) -> None:
    journal.record(synced, "a", "x.md", b"text", durable=False)
    taken = journal.read(synced)
    journal.begin(synced, "a", "y.md", durable=False)
    journal.forget(synced, taken)
    assert [found.name for found in journal.read(synced)] == [journal.name_digest("y.md")]


def test_lines_of_another_form_are_left_out(synced: Path) -> None:
    journal.begin(synced, "a", "x.md", durable=False)
    (file,) = (path for path in (synced / SYNC).iterdir() if path.suffix == ".ndjson")
    with file.open("ab") as raw:
        raw.write(b'no line\n{"agent":"a"}\n{"agent":1,"name":"n","mark":"m"}\n')
    assert len(journal.read(synced)) == 1
