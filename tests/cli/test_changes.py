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


def test_a_change_names_the_way_by_which_it_came_in(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        agent = home.agent("default")
        agent.add("Use OAuth", id="auth", origin={"by": "model", "via": "mcp/claude-code"})
    assert "added in session main by a model, via mcp/claude-code\n" in cli("changes").stdout
    [added] = cli.json("changes")["changes"]
    assert added["origin"] == {"by": "model", "via": "mcp/claude-code"}


def test_purged_entries_are_counted_by_day_without_their_words(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        agent = home.agent("default")
        for name in ("walnut", "almond"):
            agent.add(f"{name} text", id=name)
            agent.purge(name)
    shown = cli("changes").stdout
    assert ": 0 changes, 2 entries purged\n" in shown
    [day] = cli.json("changes")["purged"]
    assert (day["entries"], shown.partition(":")[0]) == (2, day["day"])
    assert cli("changes", "--since", "2025-01-01", "--until", "2026-01-01").stdout == "no changes\n"
