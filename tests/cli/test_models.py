"""``keepstone model``: install, list and remove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.embed.tiny import TINY, everything_below, write_files

from keepstone.cli.models import complete_models
from keepstone.embed import embedder
from keepstone.embed.catalogue import MINILM, MODELS

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return write_files(tmp_path / "given")


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of models, where a tiny one takes the place of minilm."""
    folder = tmp_path / "models"
    monkeypatch.setenv("KEEPSTONE_MODELS", str(folder))
    monkeypatch.setitem(MODELS, "minilm", TINY)
    return folder


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package of an embedder seems to be installed."""
    monkeypatch.setattr(embedder, "find_spec", lambda _: None)


def test_a_model_is_installed_from_a_folder(cli: Command, given: Path, models: Path) -> None:
    document = cli.json("model", "install", "minilm", "--from", str(given))
    assert (document["model"], document["size"]) == ("minilm", TINY.size)
    assert document["folder"] == str(models / "tiny")
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


@pytest.mark.usefixtures("nothing")
def test_an_installed_model_that_cannot_be_used_yet_says_why(cli: Command, given: Path) -> None:
    result = cli("model", "install", "minilm", "--from", str(given))
    assert result.stdout.startswith("installed minilm in ")
    assert result.exit_code == 0


def test_a_tampered_model_is_refused_and_leaves_nothing(cli: Command, given: Path, models: Path) -> None:
    (given / "tokenizer.json").write_bytes(b"[]")
    assert cli.error("model", "install", "minilm", "--from", str(given)) == (3, "embedder_unavailable")
    assert everything_below(models) == []


def test_without_a_source_both_are_tried_and_named(
    cli: Command, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", ""), ("HF_ENDPOINT", "http://127.0.0.1:1")):
        monkeypatch.setenv(name, value)
    result = cli("model", "install", "minilm")
    assert result.exit_code == 3
    assert "could not download tiny-carrier==1.0" in result.stderr
    assert "could not download the model from http://127.0.0.1:1" in result.stderr
    assert everything_below(models) == []


@pytest.mark.parametrize("words", [("huge",), ("minilm", "--from", "/nowhere")])
def test_an_unknown_model_or_source_is_bad_input(cli: Command, words: tuple[str, ...]) -> None:
    assert cli.error("model", "install", *words) == (2, "invalid_argument")


def test_an_installed_model_can_be_removed_again(cli: Command, given: Path, models: Path) -> None:
    cli("model", "install", "minilm", "--from", str(given))
    assert cli.json("model", "remove", "minilm") == {"model": "minilm", "removed": True}
    assert everything_below(models) == []


def test_removing_what_is_not_installed_ends_with_1(cli: Command) -> None:
    result = cli("model", "remove", "minilm", "--json")
    assert (result.exit_code, json.loads(result.stdout)["removed"]) == (1, False)
    assert cli("model", "remove", "minilm").stdout == "minilm is not installed\n"


@pytest.mark.usefixtures("nothing")
def test_list_says_what_to_do_where_nothing_can_be_used(cli: Command) -> None:
    document = cli.json("model", "list")
    assert document["auto"] == "none"
    assert [model["name"] for model in document["models"]] == ["minilm", "e5", "static"]
    remedies = [
        "keepstone model install minilm",
        "keepstone model install e5",
        "keepstone model install static",
    ]
    assert all(words in model["remedy"] for words, model in zip(remedies, document["models"], strict=True))


def test_list_marks_the_model_that_auto_means(
    cli: Command, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "find_spec", lambda name: name)
    (models / "minilm").mkdir(parents=True)
    for file in MINILM.files:
        with (models / "minilm" / file.name).open("wb") as made:
            made.truncate(file.size)
    assert cli.json("model", "list")["auto"] == "minilm"
    shown = " ".join(cli("model", "list").stdout.split())
    assert "minilm yes 2.3 MiB usable e5 68.3 MiB embedder 'e5' is not installed" in shown


def test_the_shell_completes_the_names_of_models() -> None:
    assert complete_models("mini") == ["minilm"]
    assert complete_models("x") == []


def test_a_server_is_allowed_listed_and_disallowed(cli: Command) -> None:
    server = "http://localhost:11434/v1"
    assert cli.json("model", "allow", f"{server}?model=nomic") == {"server": server, "added": True}
    assert cli.json("model", "allow", server) == {"server": server, "added": False}
    assert cli.json("model", "list")["servers"] == [server]
    assert cli.json("model", "disallow", server) == {"server": server, "removed": True}
    assert cli("model", "disallow", server).exit_code == 1
    assert cli.json("model", "list")["servers"] == []


def test_a_model_of_this_machine_is_no_server_to_allow(cli: Command) -> None:
    assert cli.error("model", "allow", "minilm") == (2, "invalid_argument")
