"""``recall``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from keepstone import Agent, Hits
from keepstone.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Command


def test_recall_finds_what_was_added_and_shows_its_id(cli: Command) -> None:
    entry = cli.json("add", "passkeys replace passwords", "--type", "decision")
    cli.json("add", "the ferry leaves at nine", "--session", "other")
    shown = cli("recall", "why passkeys").stdout
    assert (entry["id"] in shown, "passkeys replace passwords" in shown) == (True, True)
    assert "ferry" not in shown


def test_hits_are_listed_by_the_relevance_that_is_shown(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.json("add", "walnut cake")
    cli.json("add", "walnut bread")

    recall = Agent.recall

    def swapped(self: Agent, query: str, **keys: Any) -> Hits:
        found = recall(self, query, **keys)
        found[:] = [replace(hit, relevance=value) for hit, value in zip(found, (0.1, 0.9), strict=True)]
        return found

    monkeypatch.setattr(Agent, "recall", swapped)
    assert re.findall("strong|weak", cli("recall", "walnut cake").stdout) == ["strong", "weak"]


def test_recall_gives_hits_with_reasons_as_json(cli: Command) -> None:
    entry = cli.json("add", "passkeys replace passwords")
    document = cli.json("recall", "passkeys")
    hit = document["hits"][0]
    assert (hit["entry"]["id"], hit["entry"]["session"]) == (entry["id"], "main")
    assert set(hit["why"]) >= {"ranks", "words", "parts", "text"}
    assert set(document) >= {"hits", "lexical_only", "pending", "stale", "took_ms"}


def test_the_least_relevance_leaves_out_what_is_not_about_the_question(cli: Command) -> None:
    cli.json("add", "The mirror hangs in the corridor")
    question = ("recall", "which plumber repaired the mirror in the boiler room?")
    assert "Nothing certain" in cli(*question).stdout
    found = cli.json(*question)
    assert found["nothing_relevant"]
    assert found["hits"][0]["relevance"] < 0.3
    assert cli.json(*question, "--min-relevance", "0.3")["hits"] == []
    assert "Nothing certain" not in cli("recall", "where does the mirror hang?").stdout


def test_explain_says_why_a_hit_was_found(cli: Command) -> None:
    cli.json("add", "passkeys replace passwords")
    assert "query words" not in cli("recall", "passkeys").stdout
    heading, row, *_ = cli("recall", "passkeys", "--explain").stdout.strip().splitlines()
    assert heading.split()[:3] == ["score", "words", "meaning"]
    assert row.split()[:4] == ["1", "1.00", "1.00", "#1"]


def test_a_recall_without_hits_is_not_a_failure(cli: Command) -> None:
    cli.json("add", "apple")
    result = cli("recall", "anything")
    assert (result.exit_code, result.stdout) == (0, "nothing found\n")
    assert cli.json("recall", "anything")["hits"] == []


def test_a_recall_in_a_home_that_does_not_exist_ends_with_1(cli: Command) -> None:
    result = cli("recall", "anything")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"there is no home at {cli.home}: create one with keepstone add" in result.stderr
    assert cli.error("recall", "anything") == (1, "home_not_found")
    assert not cli.home.exists()


def test_a_recall_in_an_empty_memory_says_where_to_look(cli: Command) -> None:
    cli.home.mkdir()
    said = cli("recall", "anything", "--agent", "stranger").stdout
    assert said.split() == (
        "nothing found: agent stranger has no sessions here; check --home and --agent".split()
    )


@pytest.mark.parametrize(
    ("option", "value"), [("--session", "right"), ("--type", "decision"), ("--tag", "chosen")]
)
def test_recall_stays_within_what_was_named(cli: Command, option: str, value: str) -> None:
    right = cli.json("add", "apple one", "--session", "right", "--type", "decision", "--tag", "chosen")
    cli.json("add", "apple two", "--session", "wrong", "--tag", "other")
    hits = cli.json("recall", "apple", option, value)["hits"]
    assert [hit["entry"]["id"] for hit in hits] == [right["id"]]


def test_recall_stays_between_since_and_until(cli: Command) -> None:
    line = '{{"id":"{0}","ts":"2026-0{0}-15T12:00:00Z","type":"note","text":"apple"}}\n'
    (cli.sessions() / "main.ndjson").write_text("".join(line.format(month) for month in (1, 2, 3)), "utf-8")
    hits = cli.json("recall", "apple", "--since", "2026-02-01", "--until", "2026-03-01T00:00:00Z")["hits"]
    assert [hit["entry"]["id"] for hit in hits] == ["2"]


def test_limit_bounds_the_number_of_hits(cli: Command) -> None:
    for number in range(4):
        cli.json("add", f"apple {number}")
    assert len(cli.json("recall", "apple", "--limit", "3")["hits"]) == 3


@pytest.mark.parametrize(
    "words", [["--limit", "-1"], ["--limit", "many"], ["--since", "soon"], ["--until", "2026-13-01"]]
)
def test_a_wrong_bound_is_bad_input(cli: Command, words: list[str]) -> None:
    result = cli("recall", "apple", *words)
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)


def test_another_agents_memory_is_not_found(cli: Command) -> None:
    cli.json("add", "apple", "--agent", "one")
    assert cli.json("recall", "apple", "--agent", "two")["hits"] == []


def test_a_lone_surrogate_in_a_query_is_harmless(cli: Command) -> None:
    cli.json("add", "apple")
    assert cli("recall", "apple \ud800").exit_code == 0


def test_control_characters_of_a_memory_do_not_reach_the_screen(cli: Command) -> None:
    cli.json("add", "apple \x1b[31mred\x1b[0m \u202eback [bold]markup[/bold] :smile:")
    shown = cli("recall", "apple").stdout
    assert r"apple \x1b[31mred\x1b[0m \u202eback [bold]markup[/bold] :smile:" in shown


def test_include_searches_files_and_notes(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("## Memories\n\n- Oil the walnut table\n")
    cli.json("add", "walnut")
    cli.json("files", "write", "plan.md", "The walnut table ships")
    words = ("recall", "walnut table", "--include", "files", "--include", "notes", "--dir", str(tmp_path))
    hits = cli.json(*words)["hits"]
    assert sorted((hit["kind"], hit["line"], hit["entry"]) for hit in hits) == [
        ("file", 1, None),
        ("note", 3, None),
    ]
    assert "plan.md:1" in cli(*words).stdout
    assert "plan.md:1: The walnut table ships" in cli(*words, "--explain").stdout


def test_since_and_until_take_ages_and_plain_words(cli: Command) -> None:
    cli.json("add", "walnuts were bought")
    for words, count in (("--since 7d", 1), ("--since yesterday", 1), ("--until yesterday", 0)):
        assert len(cli.json("recall", "walnuts", *words.split())["hits"]) == count
    refused = cli("recall", "walnuts", "--since", "soon")
    assert refused.exit_code == 2


def test_explanations_are_readable_in_80_columns(cli: Command) -> None:
    cli.json("add", "passkeys replace passwords")
    settings = {"KEEPSTONE_HOME": str(cli.home), "COLUMNS": "80"}
    shown = CliRunner().invoke(app, ["recall", "passkeys", "--explain"], env=settings).stdout
    assert "    passkeys replace passwords\n" in shown
    assert "    score 1.00 = words 1.00 (#1); words: passkeys\n    relevance 0." in shown


def test_what_was_superseded_is_found_only_if_included(cli: Command) -> None:
    old = cli.json("add", "Ada lives in Paris")
    new = cli.json("supersede", old["id"], "Ada lives in Rome")

    def found(*options: str) -> set[str]:
        return {hit["entry"]["id"] for hit in cli.json("recall", "where does Ada live", *options)["hits"]}

    assert found() == {new["id"]}
    assert found("--include-superseded") == {old["id"], new["id"]}


def test_a_missing_model_is_named_once_in_one_line(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_MODELS", str(tmp_path / "none"))
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "auto")
    cli("add", "We chose passkeys")
    told = [line for line in cli("recall", "passkeys").stdout.splitlines() if "model install" in line]
    assert told == ["By words only. For meaning: keepstone model install minilm"]
