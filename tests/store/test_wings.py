"""The two stores: each is loaded without what only the other needs."""

from __future__ import annotations

import subprocess
import sys

_LOADED = "import sys, keepstone.store.{0}; print(*sys.modules)"


def test_loading_the_database_store_loads_neither_sqlite_nor_the_index() -> None:
    loaded = loaded_with("postgres.postgres_store")
    assert "apsw" not in loaded
    assert not [name for name in loaded if name.startswith(("keepstone.index", "keepstone.store.files"))]


def test_loading_the_store_of_folders_loads_no_driver_of_postgresql() -> None:
    loaded = loaded_with("files.file_store")
    assert not [name for name in loaded if name.startswith(("psycopg", "keepstone.store.postgres"))]


def loaded_with(module: str) -> list[str]:
    command = [sys.executable, "-c", _LOADED.format(module)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
