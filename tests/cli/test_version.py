"""``keepstone --version``."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from keepstone.embed.catalogue import MINILM
from keepstone.filesystem.layout import FORMAT
from keepstone.index.database import SCHEMA

if TYPE_CHECKING:
    from .conftest import Command


def test_the_version_is_shown_without_a_home(cli: Command) -> None:
    result = cli("--version")
    assert (result.exit_code, result.stdout.startswith("keepstone ")) == (0, True)
    assert not cli.home.exists()


def test_json_of_the_version_names_library_formats_sqlite_and_models(cli: Command) -> None:
    assert list(cli.json("--version")) == ["library", "format", "index", "sqlite", "python", "models"]
    assert not cli.home.exists()


def test_json_of_the_version_has_what_the_parts_say(cli: Command) -> None:
    found = cli.json("--version")
    assert (found["library"], found["format"]) == (version("keepstone"), FORMAT)
    assert (found["index"], found["sqlite"]) == (SCHEMA, apsw.sqlite_lib_version())


def test_version_names_a_model_only_once_it_is_installed(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_MODELS", str(tmp_path))
    assert cli.json("--version")["models"] == {}
    (tmp_path / "minilm").mkdir()
    for file in MINILM.files:
        (tmp_path / "minilm" / file.name).touch()
        os.truncate(tmp_path / "minilm" / file.name, file.size)  # A hole: it takes no room on the disk.
    assert cli.json("--version")["models"] == {"minilm": "0.1.0"}
