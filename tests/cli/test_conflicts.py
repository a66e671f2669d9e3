"""``keepstone conflicts``."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import keepstone
from keepstone.cli.app import app


def test_pairs_are_printed_with_kind_and_texts(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        session = home.agent("default").session("s")
        session.add("fact", text="Ada drinks coffee", id="old")
        session.add("fact", text="Ada does not drink coffee", id="new")
    where = ["conflicts", "--home", str(tmp_path)]
    shown = CliRunner().invoke(app, where)
    assert (shown.exit_code, "Ada does not drink coffee" in shown.output) == (0, True)
    [pair] = json.loads(CliRunner().invoke(app, [*where, "--json"]).output)["conflicts"]
    assert (pair["kind"], [entry["id"] for entry in pair["entries"]]) == ("contradiction", ["new", "old"])
    assert json.loads(CliRunner().invoke(app, [*where, "--json", "--kind", "duplicate"]).output) == {
        "conflicts": []
    }
