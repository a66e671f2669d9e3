"""``keepstone set``, ``value`` and ``unset``."""

from tests.cli.conftest import Command


def test_a_value_is_set_read_and_unset(cli: Command) -> None:
    assert cli.json("set", "plan", "Free")["data"] == {"key": "plan", "value": "Free"}
    assert cli.json("set", "plan", "Pro")["links"]
    assert cli("value", "plan").stdout == "Pro\n"
    assert cli.json("unset", "plan") == {"key": "plan", "unset": True}
    assert cli.error("value", "plan")[0] == 1


def test_a_value_of_json_keeps_its_kind(cli: Command) -> None:
    cli.json("set", "seats", "--data", "3", "--session", "team")
    assert cli.json("value", "seats", "--session", "team") == {"key": "seats", "value": 3}


def test_a_value_is_given_once(cli: Command) -> None:
    assert cli.error("set", "seats", "3", "--data", "3")[0] == 2
    assert cli.error("set", "seats", "--data", "{")[0] == 2
