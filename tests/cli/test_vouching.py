"""``keepstone vouch``, ``why`` and ``verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keepstone

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def chain(cli: Command) -> Command:
    """The command on a home in which one entry was derived from another by a model."""
    with keepstone.open(cli.home, embedder="none") as home:
        agent = home.agent("default")
        agent.add("The meeting was at nine", id="source")
        writer = agent.on_behalf("model", "page")
        writer.add("Meetings begin at nine", id="derived", derived_from=["source"])
    return cli


def test_vouching_raises_the_trust_to_that_of_a_user(chain: Command) -> None:
    assert chain.json("vouch", "derived")["trust"] == "user"
    assert chain("vouch", "derived").stdout == "vouched for derived: its trust is user\n"


def test_why_names_sources_and_what_was_derived(chain: Command) -> None:
    down, up = chain.json("why", "derived"), chain.json("why", "source")
    assert ([one["id"] for one in down["sources"]], down["derived"]) == (["source"], [])
    assert ([one["id"] for one in up["derived"]], up["sources"]) == (["derived"], [])


def test_why_names_a_source_that_is_gone(chain: Command) -> None:
    chain.json("delete", "source")
    assert chain.json("why", "derived")["gone"] == ["source"]
    assert "derived from source, which is gone" in chain("why", "derived").stdout


@pytest.mark.parametrize("command", ["vouch", "why"])
def test_an_entry_that_does_not_exist_is_not_found(cli: Command, command: str) -> None:
    assert cli.error(command, "missing") == (1, "entry_not_found")


def test_verify_without_citations_succeeds(chain: Command) -> None:
    assert chain.json("verify") == {"citations": [], "broken": 0}
    assert chain("verify").stdout == "no citations\n"


def test_verify_fails_once_a_cited_text_has_changed_until_it_is_accepted(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.md").write_text("Retry three times\n")
    monkeypatch.chdir(tmp_path)
    with keepstone.open(cli.home, embedder="none", project=tmp_path) as home:
        home.agent("default").add("We retry thrice", id="retry", cites=["policy.md#L1"])
    assert cli("verify").exit_code == 0
    (tmp_path / "policy.md").write_text("Retry five times\n")
    result = cli("verify", "--json")
    assert (result.exit_code, json.loads(result.stdout)["broken"]) == (1, 1)
    assert cli("verify", "--accept", "retry").exit_code == 0
    assert cli("verify").exit_code == 0
