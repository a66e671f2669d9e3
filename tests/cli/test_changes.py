"""``keepstone changes``."""

from tests.cli.conftest import Command

import keepstone


def test_changes_are_shown_by_day_with_their_words(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        home.agent("default").add("Use OAuth", id="auth")
        home.agent("default").update("auth", "Use passkeys")
    shown = cli("changes").stdout
    assert "2 changes" in shown
    assert "- Use OAuth" in shown
    assert "+ Use passkeys" in shown
    [edited, added] = cli.json("changes", "--since", "1h")["changes"]
    assert (edited["kind"], edited["before"]["text"], edited["after"]["text"]) == (
        "edited",
        "Use OAuth",
        "Use passkeys",
    )
    assert (added["kind"], added["before"], added["session"]) == ("added", None, "main")


def test_without_changes_it_says_so(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        home.agent("default").add("long ago", ts="2026-01-11")
    assert cli("changes", "--until", "2026-01-01", "--since", "2025-01-01").stdout == "no changes\n"
