"""``keepstone suggest``, ``suggestions`` and ``review``."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command

import keepstone


def suggested(home: Path, *texts: str) -> list[str]:
    """Add entries, suggest to pin each of them, and return the suggestions' ids."""
    with keepstone.open(home) as opened:
        agent = opened.agent("default")
        return [agent.suggest("pin", [agent.add(text).id], why=f"about {text}").id for text in texts]


def test_suggest_lists_what_it_made(cli: Command) -> None:
    for text in ("Ada drinks coffee", "Ada does not drink coffee"):
        cli("add", text, "--type", "fact")
    [made] = cli.json("suggest")["suggestions"]
    assert (made["do"], made["state"], made["by"]) == ("merge", "open", "keepstone")
    assert cli.json("suggest") == {"suggestions": []}
    assert cli.json("suggestions") == {"suggestions": [made]}
    assert "contradict" in cli("suggestions").stdout


def test_review_asks_one_by_one(cli: Command) -> None:
    yes, no, _ = suggested(cli.home, "Use OAuth", "Use passkeys", "Use links")
    shown = cli("review", "--by", "Ada", text="y\nn\n\n")
    assert "why: about Use OAuth" in shown.stderr
    assert "pinned: none -> yes" in shown.stderr
    assert "accepted 1, rejected 1, open 1" in shown.stdout
    decided = {one["id"]: one for one in cli.json("suggestions", "--state", "all")["suggestions"]}
    assert (decided[yes]["state"], decided[yes]["decided_by"]) == ("accepted", "Ada")
    assert decided[no]["state"] == "rejected"


def test_review_shows_the_words_that_go_and_come(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        agent = home.agent("default")
        agent.suggest("supersede", [agent.add("Use OAuth").id], "Use passkeys", why="newer")
    shown = cli("review", text="q\n").stderr
    assert "- Use OAuth" in shown
    assert "+ Use passkeys" in shown


@pytest.mark.parametrize(
    ("keys", "states"), [("y\nu\nq\n", ["undone", "open"]), ("n\nu\ny\nq\n", ["accepted", "open"])]
)
def test_review_takes_back_the_last_decision(cli: Command, keys: str, states: list[str]) -> None:
    suggested(cli.home, "Use OAuth", "Use passkeys")
    cli("review", text=keys)
    found = cli.json("suggestions", "--state", "all")["suggestions"]
    assert [one["state"] for one in found] == states


@pytest.mark.parametrize(("keys", "state"), [("y\nu\n", "undone"), ("n\nu\nq\n", "open")])
def test_review_takes_back_the_decision_about_the_only_suggestion(
    cli: Command, keys: str, state: str
) -> None:
    suggested(cli.home, "Use OAuth")
    cli("review", text=keys)
    [found] = cli.json("suggestions", "--state", "all")["suggestions"]
    assert found["state"] == state


def test_review_goes_on_after_a_suggestion_that_was_undone(cli: Command) -> None:
    suggested(cli.home, "Use OAuth", "Use passkeys", "Use links")
    shown = cli("review", text="n\ny\nu\nu\nn\nn\nn\n")
    assert "is undone already" in shown.stderr
    assert "accepted 0, rejected 2, open 0" in shown.stdout


def test_review_goes_on_after_an_outdated_suggestion(cli: Command) -> None:
    suggested(cli.home, "Use OAuth", "Use passkeys")
    with keepstone.open(cli.home) as home:
        agent = home.agent("default")
        [first, _] = agent.suggestions()
        again = agent.suggest("tag", first.entries, {"tags": ["auth"]}, why="x")
    shown = cli("review", text="y\ny\ny\n")
    assert "changed since" in shown.stderr
    assert [one["id"] for one in cli.json("suggestions", "--state", "outdated")["suggestions"]] == [again.id]


def test_without_suggestions_review_says_so(cli: Command) -> None:
    cli("add", "Use OAuth")
    assert "no suggestions" in cli("review").stdout
    assert cli.json("review") == {"accepted": [], "rejected": []}


def test_purge_match_names_suggestions(cli: Command) -> None:
    [made] = suggested(cli.home, "Use OAuth")
    document = cli.json("purge", "--match", "about use oauth", "--dry-run")
    assert (document["entries"], document["suggestions"]) == ([], [made])
    assert f"suggestion {made}" in cli("purge", "--match", "about use oauth", "--yes").stdout
    assert cli.json("suggestions") == {"suggestions": []}
