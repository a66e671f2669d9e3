"""``context`` and its explanation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without notes, in which the command runs: those of this repository are none of a test's."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    """A project folder with one note, in which the command runs."""
    (folder / "AGENTS.md").write_text("## Memories\n\n- Use pnpm\n", "utf-8")
    return folder


def test_context_prints_the_block_and_nothing_else(cli: Command) -> None:
    cli.json("add", "passkeys replace passwords")
    document = cli.json("context", "passkeys")
    assert "passkeys replace passwords" in document["text"]
    assert cli("context", "passkeys").stdout == document["text"]
    assert set(document) == {"text", "tokens", "stable", "parts", "left_out", "sources"}


def test_context_without_a_query_shows_the_newest(cli: Command) -> None:
    cli.json("add", "the newest thing")
    assert "the newest thing" in cli("context").stdout


def test_context_begins_with_the_notes_of_the_folder(cli: Command, project: Path) -> None:
    cli.json("add", "the newest thing")
    document = cli.json("context", "--dir", str(project))
    assert [part["kind"] for part in document["parts"]] == ["notes", "newest"]
    assert (
        document["text"].index("Use pnpm") < document["stable"] < document["text"].index("the newest thing")
    )


@pytest.mark.usefixtures("project")
def test_context_takes_the_notes_of_the_working_directory(cli: Command) -> None:
    assert "Use pnpm" in cli("context").stdout


def test_context_takes_the_users_notes_from_another_file(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("- My name is Alice\n", "utf-8")
    assert "My name is Alice" in cli("context", "--user-file", str(tmp_path / "mine.md")).stdout


def test_files_of_other_agents_are_in_it_when_asked_for(cli: Command, project: Path) -> None:
    (project / "GEMINI.md").write_text("Be brief.\n", "utf-8")
    assert ["Be brief." in cli("context", *words).stdout for words in ([], ["--others"])] == [False, True]


def test_context_keeps_to_its_budget(cli: Command) -> None:
    for number in range(6):
        cli.json("add", f"thing number {number} {'x' * 100}")
    document = cli.json("context", "--budget", "200")
    assert 0 < len(document["text"].encode()) <= 600
    assert document["tokens"] <= 200


@pytest.mark.usefixtures("project")
def test_explain_shows_what_went_in_and_from_where(cli: Command) -> None:
    entry = cli.json("add", "passkeys replace passwords", "--type", "finding")
    rows = [line.split() for line in cli("context", "passkeys", "--explain").stdout.splitlines()]
    assert ["part", "tokens", "source", "how", "much"] in rows
    assert {(row[0], row[2]) for row in rows if row[-1:] == ["whole"]} == {
        ("notes", str(Path.cwd() / "AGENTS.md")),
        ("recalled", f"main/{entry['id']}"),
    }


def test_explain_shows_what_did_not_go_in_and_why(cli: Command) -> None:
    for number in range(6):
        cli.json("add", f"apple {number} {'x' * 100}")
    shown = cli("context", "apple", "--explain", "--budget", "150").stdout
    document = cli.json("context", "apple", "--explain", "--budget", "150")
    assert shown.count("no room: ") == len(document["left_out"]) > 0
    assert {left["count"] for left in document["left_out"]} == {1}


@pytest.mark.usefixtures("project")
def test_explain_tells_the_total_and_the_length_of_the_prefix(cli: Command) -> None:
    cli.json("add", "passkeys")
    document = cli.json("context")
    total = f"{document['tokens']} of 2,000 tokens; the first {document['stable']} characters"
    assert f"{total} are the same for every query" in cli("context", "--explain").stdout


def test_an_explanation_of_nothing_is_not_a_failure(cli: Command) -> None:
    result = cli("context", "--explain")
    assert (result.exit_code, "0 of 2,000 tokens" in result.stdout) == (0, True)


def test_tokens_are_estimated_where_no_tokenizer_is_known(cli: Command) -> None:
    cli.json("add", "passkeys")
    assert cli.json("context", "--count-as", "some-model") == cli.json("context")


@pytest.mark.parametrize("words", [["--budget", "-1"], ["--budget", "many"], ["--dir", "/nowhere/at/all"]])
def test_a_wrong_option_of_context_is_bad_input(cli: Command, words: list[str]) -> None:
    assert cli.error("context", *words)[0] == 2


def test_ids_are_in_the_block_if_asked_for(cli: Command) -> None:
    added = cli.json("add", "passkeys replace passwords", "--session", "main")
    assert added["id"] not in cli.json("context", "passkeys")["text"]
    assert f"main/{added['id']}" in cli.json("context", "passkeys", "--ids")["text"]
