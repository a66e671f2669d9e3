"""Homes as earlier versions of keepstone wrote them, and as later ones may."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.store.formats.make import HERE, LAYOUTS, state

import keepstone
from keepstone.errors import StoreError


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("version", ["1"])
def test_a_home_of_every_format_opens_and_says_the_same(tmp_path: Path, version: str, layout: str) -> None:
    shutil.copytree(HERE / version / layout, tmp_path / "home")
    expected = json.loads((HERE / version / f"{layout}.json").read_text("utf-8"))
    assert json.loads(json.dumps(state(layout, tmp_path / "home"))) == expected


def test_an_index_of_another_version_is_left_alone(tmp_path: Path) -> None:
    shutil.copytree(HERE / "1" / "default", tmp_path / "home")
    for name in ("v1", "v999"):
        other = tmp_path / "home" / ".index" / "default" / name
        other.mkdir(parents=True)
        (other / "index.sqlite3").write_bytes(b"of another version")
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        assert home.agent("default").recall("passkeys")[0].entry.id == "d1"
    assert {path.parent.name for path in tmp_path.rglob("index.sqlite3")} >= {"v1", "v999"}
    assert [path.read_bytes() for path in tmp_path.rglob("v*9/index.sqlite3")] == [b"of another version"]


@pytest.mark.parametrize("mark", ['{"format": 2}', '{"format": "x"}', "not json", "[]"])
def test_a_newer_home_is_refused_and_untouched(tmp_path: Path, mark: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(HERE / "1" / "default", home)
    (home / ".format.json").write_text(mark, "utf-8")
    before = {path: path.read_bytes() if path.is_file() else b"" for path in home.rglob("*")}
    with pytest.raises(StoreError, match=r"format"):
        keepstone.open(home, embedder="none")
    assert {path: path.read_bytes() if path.is_file() else b"" for path in home.rglob("*")} == before


def test_a_home_that_names_this_format_opens(tmp_path: Path) -> None:
    (tmp_path / ".format.json").write_text('{"format": 1}', "utf-8")
    with keepstone.open(tmp_path, embedder="none") as home:
        assert home.agents() == []
