"""``keepstone token``."""

from datetime import timedelta
from typing import Any

import pytest

from keepstone.cli.tokens import lifetime_of
from keepstone.server.tokens import Tokens


def test_a_token_is_made_listed_and_revoked(cli: Any) -> None:
    made = cli.json("token", "create", "--agents", "coder, writer", "--read-only", "--expires", "30d")
    secret = made.pop("token")
    assert (made["agents"], made["read_only"]) == (["coder", "writer"], True)
    assert cli.json("token", "list") == {"tokens": [made]}
    assert Tokens(cli.home).holder(secret) is not None
    assert cli.json("token", "revoke", made["id"]) == {"id": made["id"], "revoked": True}
    assert Tokens(cli.home).holder(secret) is None


def test_the_token_alone_is_printed_so_that_a_script_can_take_it(cli: Any) -> None:
    secret = cli("token", "create").stdout.strip()
    assert Tokens(cli.home).holder(secret) is not None


def test_revoking_what_is_not_there_says_so(cli: Any) -> None:
    result = cli("token", "revoke", "none")
    assert (result.exit_code, result.stdout) == (1, "no token none: see keepstone token list\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--expires", "soon"],
        ["--expires", "0d"],
        ["--expires", "1d", "--forever"],
        ["two\nlines"],
        ["x" * 81],
        ["--agents", "../x"],
        ["--agents", ","],
    ],
)
def test_no_token_is_made_of_bad_input(cli: Any, words: list[str]) -> None:
    assert cli.error("token", "create", *words)[0] == 2
    assert cli.json("token", "list") == {"tokens": []}


def test_a_lifetime_is_a_number_with_its_unit() -> None:
    assert lifetime_of("90m") == timedelta(minutes=90)
    assert lifetime_of(" 8w") == timedelta(weeks=8)


def test_a_token_has_a_name_in_the_list(cli: Any) -> None:
    assert cli.json("token", "create", "laptop")["name"] == "laptop"
    assert "laptop" in cli("token", "list").stdout


@pytest.mark.parametrize(("words", "lifetime"), [([], timedelta(days=90)), (["--forever"], None)])
def test_a_token_is_valid_for_90_days_unless_asked_otherwise(
    cli: Any, words: list[str], lifetime: timedelta | None
) -> None:
    cli("token", "create", *words)
    [token] = Tokens(cli.home).all()
    assert (token.expires and token.expires - token.created) == lifetime
