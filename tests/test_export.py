"""Exports and imports from Python, and agents of users."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import AgentNotFoundError, Home, ImportResult, SourceError

SUFFIXES = {"ndjson": ".ndjson", "csv": ".csv", "sqlite": ".sqlite", "md": "", "okf": ""}


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none", durability="os") as home:
        home.agent("ada").add("Ada likes tea", id="a", tags=["drinks"])
        home.agent("ada").supersede("a", {"text": "Ada likes coffee", "id": "b"})
        home.agent("bob").add("Bob likes water")
        yield home


def lines(home: Home, agent: str) -> list[dict[str, Any]]:
    entries = home.agent(agent).entries(include_superseded=True)
    return sorted((entry.as_dict() for entry in entries), key=lambda line: line["id"])


def said(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines without what an import adds: that they came by it."""
    return [{key: value for key, value in line.items() if key != "origin"} for line in lines]


@pytest.mark.parametrize("form", SUFFIXES)
def test_an_exported_agent_is_imported_as_it_was(home: Home, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"ada{SUFFIXES[form]}"
    assert home.agent("ada").export(out, form) == 2
    result = home.import_from("auto", out, agent="copy")
    assert (type(result), result.imported, result.unchanged, result.failed) == (ImportResult, 2, 0, [])
    assert said(lines(home, "copy")) == lines(home, "ada")
    assert {line["origin"]["by"] for line in lines(home, "copy")} == {"import"}
    assert home.import_from(result.source, str(out), agent="ada").unchanged == 2


def test_an_exported_home_has_a_folder_for_each_agent(home: Home, tmp_path: Path) -> None:
    assert home.export(tmp_path / "all", "csv") == 3
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.csv"))
    assert found == ["all/ada/entries.csv", "all/bob/entries.csv"]


@pytest.mark.parametrize("form", SUFFIXES)
def test_an_export_is_the_user_s_alone_whatever_the_umask_is(home: Home, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"ada{SUFFIXES[form]}"
    before = os.umask(0)
    try:
        home.agent("ada").export(out, form)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o077 for path in (out, *out.rglob("*"))} == {0}


def test_an_export_replaces_nothing_unless_forced(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "ada.ndjson"
    out.write_text("mine")
    for export in (home.export, home.agent("ada").export):
        with pytest.raises(FileExistsError, match="choose another path"):
            export(out)
    assert out.read_text() == "mine"
    assert home.agent("ada").export(str(out), force=True) == 2


def test_an_unknown_agent_or_format_exports_nothing(home: Home, tmp_path: Path) -> None:
    with pytest.raises(AgentNotFoundError, match="'eve'"):
        home.agent("eve").export(tmp_path / "eve")
    with pytest.raises(ValueError, match="unknown format 'xml'"):
        home.agent("ada").export(tmp_path / "ada", "xml")
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == []


def test_a_source_that_cannot_be_read_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        home.import_from("mem0", tmp_path / "missing")
    assert home.agents() == ["ada", "bob"]


def test_a_user_has_the_agent_of_its_slug(home: Home) -> None:
    name = "ada@example.com"
    home.user(name).add("Likes tea")
    assert home.user(name) is home.agent(keepstone.slug(name))
    assert [keepstone.unslug(slug) for slug in home.agents()][-1] == name
    with pytest.raises(ValueError, match="must not be empty"):
        home.user("")
