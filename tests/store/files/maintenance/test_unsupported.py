"""A store without maintenance says so, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone.errors import StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.home import Home
from keepstone.store.files.file_store import FileStore
from keepstone.store.unsupported import UnsupportedMaintenance
from keepstone.testing import check_backup, check_rebuild_and_doctor


class WithoutMaintenance(FileStore):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, LAYOUTS["default"])
        self.maintenance: Any = UnsupportedMaintenance("PostgreSQL", {"backup": "use pg_dump"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(
        "keepstone.home.open_store", lambda *_, **__: (WithoutMaintenance(tmp_path / "home"), tmp_path)
    )
    return keepstone.open(tmp_path, embedder="none")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda home: home.backup("copy"), "PostgreSQL has no backup of its own: use pg_dump"),
        (lambda home: home.doctor(), "no doctor of its own: use the tools of the database"),
        (lambda home: home.rebuild(), "no rebuild of its own"),
    ],
)
def test_missing_operation_names_itself_and_the_remedy(
    home: Home, act: Callable[[Home], object], message: str
) -> None:
    with home, pytest.raises(StoreError, match=message):
        act(home)


def test_store_without_maintenance_stores_and_recalls(home: Home) -> None:
    with home:
        home.agent("a").session("s").add("note", text="walnut")
        assert home.agent("a").recall("walnut")[0].entry.text == "walnut"


@pytest.mark.parametrize("check", [check_backup, check_rebuild_and_doctor])
def test_the_suite_accepts_a_store_that_lacks_maintenance(check: Any, tmp_path: Path) -> None:
    check(lambda: closing(WithoutMaintenance(tmp_path)))


def test_the_suite_refuses_an_error_that_names_no_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("not here")

    monkeypatch.setattr(UnsupportedMaintenance, "_refuse", refuse)
    with pytest.raises(AssertionError, match="the error names backup"):
        check_backup(lambda: closing(WithoutMaintenance(tmp_path)))
