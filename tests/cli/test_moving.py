"""``keepstone import`` and ``export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.importing.sources import FIXTURES, jsonl


def test_import_answers_what_the_design_says(cli: Command, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", [{"id": "a", "body": "Use pnpm"}, [1]])
    words = ("import", "auto", str(source), "--agent", "coder", "--map", "text=body")
    answer = cli.json(*words)
    assert answer == {
        "source": "jsonl",
        "imported": 1,
        "unchanged": 0,
        "failed": [{"place": "x.jsonl:2", "reason": answer["failed"][0]["reason"]}],
    }
    assert cli.json(*words, "--dry-run")["unchanged"] == 1
    assert cli.json("entries", "list", "--agent", "coder")["entries"][0]["text"] == "Use pnpm"


def test_a_source_that_cannot_be_read_is_bad_input(cli: Command, tmp_path: Path) -> None:
    assert cli.error("import", "chatgpt", str(tmp_path / "missing.zip")) == (2, "invalid_argument")
    assert cli.error("import", "nothing", str(FIXTURES / "agents.db")) == (2, "invalid_argument")
    assert cli.error("import", "jsonl", str(FIXTURES / "agents.db"), "--map", "text") == (
        2,
        "invalid_argument",
    )
    assert not cli.home.exists()


def test_failures_are_shown_with_their_place(cli: Command, tmp_path: Path) -> None:
    result = cli("import", "jsonl", str(jsonl(tmp_path / "x.jsonl", [[1]])))
    assert "1 failed" in result.stdout
    assert "x.jsonl:1" in result.stdout


@pytest.mark.parametrize(
    ("source", "name", "content"),
    [
        ("auto", "x.jsonl", b"[1]\n[2]\n"),
        ("auto", "x.jsonl", b""),
        ("csv", "x.csv", b"text\n"),
        ("jsonl", "x.jsonl", bytes(range(256)) * 9),
        ("mem0", "x.db", bytes(range(256)) * 9),
        ("chatgpt", "conversations.json", b"[null, 1]"),
        ("claude", "conversations.json", b"[]"),
    ],
)
def test_a_source_without_anything_to_import_is_bad_input(
    cli: Command, tmp_path: Path, source: str, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    for more in ([], ["--dry-run"]):
        assert cli("import", source, str(tmp_path / name), *more).exit_code == 2


def test_a_source_of_which_a_part_failed_is_done(cli: Command, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", [[1], {"id": "a", "text": "Use pnpm"}])
    for _ in range(2):
        assert cli("import", "jsonl", str(path)).exit_code == 0


def test_vectors_left_out_are_said_with_the_option_that_takes_them(cli: Command, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", [{"id": "a", "text": "Use pnpm", "embedding": [1, 2]}])
    answer = cli.json("import", "jsonl", str(path), "--agent", "a")
    assert "--vectors" in answer["notes"][0]
    assert "notes" not in cli.json("import", "jsonl", str(path), "--agent", "a", "--vectors")


def test_export_to_standard_output_prints_the_lines_only(cli: Command, tmp_path: Path) -> None:
    cli.json("import", "openai-agents", str(FIXTURES / "agents.db"), "--agent", "coder")
    lines = cli("export", "--agent", "coder", "--out", "-").stdout.splitlines()
    assert [json.loads(line)["session"] for line in lines] == ["user-7"] * 4 + ["user-8"]
    assert cli.json("export", "--out", str(tmp_path / "all"), "--format", "okf") == {
        "entries": 5,
        "format": "okf",
        "out": str(tmp_path / "all"),
    }
    assert cli.error("export", "--out", str(tmp_path / "all")) == (2, "invalid_argument")


def test_agent_from_gives_each_user_an_agent(cli: Command, tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "x.jsonl", [{"text": "Tea", "user_id": "ada"}, {"text": "Mate", "user_id": "bob"}]
    )
    cli.json("import", "jsonl", str(source), "--agent-from", "user_id")
    assert cli.json("agents", "list")["agents"] == ["ada", "bob"]
    assert cli.error("import", "jsonl", str(source), "--agent-from", "owner") == (2, "invalid_argument")
