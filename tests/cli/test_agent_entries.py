"""``keepstone entries``."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import keepstone
from keepstone.cli.app import app


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with keepstone.open(tmp_path, embedder="none") as opened:
        for name in ("s1", "s2"):
            items = [{"type": "note", "id": f"{name}{n}", "data": {"n": n}, "tags": [name]} for n in range(3)]
            opened.agent("a").session(name).add_many(items)
    return tmp_path


def run(home: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, ["entries", *words, "--home", str(home), "--agent", "a", "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_entries_are_listed_page_by_page(home: Path) -> None:
    chosen = run(home, "list", "--where", '{"n": {"gte": 1}}')
    assert [entry["data"]["n"] for entry in chosen["entries"]] == [1, 2, 1, 2]
    assert chosen["next"] is None
    begin = run(home, "list", "--limit", "4")
    rest = run(home, "list", "--cursor", begin["next"])
    assert [len(page["entries"]) for page in (begin, rest)] == [4, 2]


def test_entries_are_counted_and_removed_by_filters(home: Path) -> None:
    assert run(home, "count", "--tag", "s1") == {"count": 3}
    assert run(home, "delete", "--tag", "s1", "--dry-run") == {"count": 3, "dry_run": True}
    assert run(home, "delete", "--tag", "s1") == {"count": 3, "dry_run": False}
    assert run(home, "purge", "--id", "s20", "--yes") == {"count": 1, "dry_run": False}
    assert run(home, "count") == {"count": 2}


@pytest.mark.parametrize("words", [("delete",), ("list", "--where", "{"), ("count", "--where", "[]")])
def test_removal_without_a_filter_and_bad_json_are_refused(home: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["entries", *words, "--home", str(home), "--agent", "a"])
    assert done.exit_code == 2


def test_entries_are_chosen_by_times_in_words(home: Path) -> None:
    for words, count in (("--since yesterday", 6), ("--since 7d", 6), ("--until yesterday", 0)):
        assert run(home, "count", *words.split())["count"] == count
    done = CliRunner().invoke(app, ["entries", "count", "--since", "soon", "--home", str(home)])
    assert done.exit_code == 2
