"""``keepstone grant``, ``revoke``, ``grants``, ``share``, and ``--shared``."""

from tests.cli.conftest import Command

import keepstone


def filled(cli: Command) -> None:
    with keepstone.open(cli.home, embedder="none") as home:
        home.agent("team").add("walnut on Fridays", id="open", type="decision")
        home.agent("team").add("walnut salaries", id="note")
        home.agent("coder").add("my walnut", id="own")


def test_a_grant_is_given_listed_and_withdrawn(cli: Command) -> None:
    filled(cli)
    given = cli.json(
        "grant", "coder", "--agent", "team", "--type", "decision", "--until", "7d", "--by", "Ada"
    )
    assert (given["to"], given["may"], given["types"], given["by"]) == ("coder", "read", ["decision"], "Ada")
    assert cli.json("grants", "--agent", "team") == {"grants": [given]}
    assert "coder" in cli("grants", "--agent", "team").stdout
    assert cli.json("revoke", "coder", "--agent", "team") == {"to": "coder", "revoked": True}
    assert cli.json("revoke", "coder", "--agent", "team") == {"to": "coder", "revoked": False}
    assert cli("grants", "--agent", "team").stdout == "nothing is granted\n"


def test_shared_memory_is_named_in_what_is_found(cli: Command) -> None:
    filled(cli)
    cli.json("grant", "coder", "--agent", "team", "--type", "decision")
    of = ("--agent", "coder", "--shared", "team")
    found = cli.json("recall", "walnut", *of)
    assert sorted(hit["entry"]["agent"] for hit in found["hits"]) == ["coder", "team"]
    assert "team/main" in cli("recall", "walnut", *of).stdout
    assert "coder/main" not in cli("recall", "walnut", *of).stdout
    assert [entry["id"] for entry in cli.json("entries", "list", *of)["entries"]] == ["open", "own"]
    assert "team/main" in cli("entries", "list", *of).stdout
    assert cli.json("entries", "count", *of) == {"count": 2}
    assert "walnut on Fridays" in cli.json("context", "walnut on Fridays", *of)["text"]


def test_without_a_grant_every_command_is_refused(cli: Command) -> None:
    filled(cli)
    for other in ("team", "absent"):
        of = ("--agent", "coder", "--shared", other)
        for words in (("recall", "walnut"), ("context", "walnut"), ("entries", "list"), ("entries", "count")):
            assert cli.error(*words, *of) == (3, "not_granted")
        assert cli.error("share", "own", "--agent", "coder", "--to", other) == (3, "not_granted")


def test_an_entry_is_copied_to_another_agent(cli: Command) -> None:
    filled(cli)
    cli.json("grant", "coder", "--agent", "team", "--may", "write")
    copied = cli.json("share", "own", "--agent", "coder", "--to", "team")
    assert (copied["agent"], copied["text"], copied["links"][0]["to"]) == ("team", "my walnut", "own")


def test_a_wrong_grant_is_refused(cli: Command) -> None:
    assert cli.error("grant", "team", "--agent", "team") == (2, "invalid_argument")
    assert cli.error("grant", "*", "--agent", "team") == (2, "invalid_agent_id")
    assert cli("grant", "coder", "--may", "all").exit_code == 2
