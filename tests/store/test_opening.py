"""A home is opened by the scheme of its target."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import keepstone
from keepstone.errors import StoreError
from keepstone.filesystem.layout import FORMAT_FILE


def test_file_url_opens_the_folder_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "my home"
    with keepstone.open(f"file://{tmp_path}/my%20home", embedder="none") as home:
        home.agent("a").session("s").add("note", text="walnut")
        assert home.root == folder
    with keepstone.open(folder, embedder="none") as home:
        assert home.agent("a").session("s").entries()[0].text == "walnut"


def test_file_url_of_another_host_is_refused() -> None:
    with pytest.raises(ValueError, match="names the host 'elsewhere'; write file:///path"):
        keepstone.open("file://elsewhere/home")


def test_path_with_a_colon_is_a_folder(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "work:home", embedder="none") as home:
        assert home.root.name == "work:home"


@pytest.mark.parametrize("target", ["file", "file/home", "link", "link/home"])
def test_a_home_where_a_file_is_in_the_way_says_what_to_do(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(
        ValueError, match=r"target .*/(file|link) is a file; choose a folder, or move the file"
    ):
        keepstone.open(tmp_path / target)


@pytest.mark.parametrize("target", ["mysql://ada:secret@host/db", "HTTP://ada:secret@host"])
def test_unknown_scheme_is_refused_with_the_known_ones(target: str) -> None:
    with pytest.raises(
        ValueError, match="unknown scheme .* use a path or one of file:, postgresql:"
    ) as refused:
        keepstone.open(target)
    assert "secret" not in f"{refused.value!r}"


@pytest.mark.parametrize("target", ["postgresql://ada:secret@host/db", "postgres://ada:secret@host/db"])
def test_database_names_the_extra_to_install_and_no_password(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_HOME", target)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "keepstone.store.postgres.postgres_store", raising=False)
    monkeypatch.delitem(sys.modules, "keepstone.store.postgres.connecting", raising=False)
    for given in (target, None, Path(target)):
        with pytest.raises(StoreError, match=r"pip install 'keepstone\[postgres\]'") as refused:
            keepstone.open(given)
        assert "secret" not in f"{refused.value!r}"


def test_target_of_bytes_is_refused_without_repeating_it() -> None:
    with pytest.raises(TypeError, match="target must be a path, not bytes") as refused:
        keepstone.open(b"postgresql://ada:secret@host/db")  # type: ignore[arg-type]
    assert "secret" not in f"{refused.value!r}"


def test_opening_a_database_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("keepstone.store.postgres.schema.POOL_SECONDS", 0)
    with pytest.raises(StoreError):
        keepstone.open("postgresql://ada:secret@127.0.0.1:1/db")
    assert os.listdir(tmp_path) == []


def test_a_pipe_says_no_format(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FORMAT_FILE)
    with pytest.raises(StoreError, match="no regular file"):
        keepstone.open(tmp_path)
