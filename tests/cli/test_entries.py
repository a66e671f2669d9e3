"""``add``, ``update``, ``delete``, ``purge`` and ``history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import keepstone

if TYPE_CHECKING:
    from .conftest import Command


def test_an_added_text_is_an_entry_of_the_session_main(cli: Command) -> None:
    entry = cli.json("add", "Maya prefers short answers")
    assert (entry["agent"], entry["session"], entry["type"]) == ("default", "main", "note")
    assert "Maya prefers short answers" in (cli.sessions() / "main.ndjson").read_text("utf-8")


def test_add_says_where_it_put_the_entry(cli: Command) -> None:
    result = cli("add", "text", "--session", "plans", "--type", "finding")
    assert result.stdout.startswith("added finding ")
    assert result.stdout.endswith(" in session plans\n")


def test_add_keeps_type_tags_priority_and_payload(cli: Command) -> None:
    entry = cli.json(
        "add", "Use OAuth", "--type", "decision", "--tag", "auth", "--tag", "api", "--priority", "0.9"
    )
    assert (entry["type"], entry["tags"], entry["priority"]) == ("decision", ["auth", "api"], 0.9)


def test_add_takes_a_payload_without_a_text(cli: Command) -> None:
    entry = cli.json("add", "--type", "decision", "--data", '{"decision": "Use OAuth", "by": "Maya"}')
    assert entry["data"] == {"decision": "Use OAuth", "by": "Maya"}


def test_add_reads_standard_input_for_a_dash(cli: Command) -> None:
    cli.json("add", "-", text="two\nlines\n")
    assert "two\nlines" in cli("sessions", "show", "main", "--json").stdout.replace("\\n", "\n")


def test_add_says_what_the_entry_contradicts(cli: Command) -> None:
    old = cli.json("add", "Maya likes coffee")
    assert "conflicts" not in old
    assert f"contradicts {old['id']} in session main" in cli("add", "Maya does not like coffee").stdout
    again = cli.json("add", "maya likes coffee")
    assert {"id": old["id"], "session": "main", "kind": "duplicate"} in again["conflicts"]


def test_supersede_replaces_an_entry_and_reinstate_undoes_it(cli: Command) -> None:
    old = cli.json("add", "Maya lives in Paris", "--type", "fact")
    new = cli.json("supersede", old["id"], "Maya lives in Rome", "--valid-from", "2026-01-01")
    assert (new["type"], new["links"]) == ("fact", [{"to": old["id"], "rel": "supersedes"}])
    assert [hit["entry"]["id"] for hit in cli.json("recall", "Maya")["hits"]] == [new["id"]]
    assert cli("supersede", old["id"], "Oslo").exit_code == 2
    assert "valid_to" not in cli.json("reinstate", old["id"])
    assert [hit["entry"]["id"] for hit in cli.json("recall", "Maya")["hits"]] == [old["id"]]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["x", "--data", "{"],
        ["x", "--data", "[1]"],
        ["x", "--priority", "high"],
        ["x", "--session", ""],
        ["x", "--type", ""],
        ["\ud800"],
    ],
)
def test_a_wrong_addition_is_refused_and_leaves_no_log(cli: Command, words: list[str]) -> None:
    assert cli("add", *words).exit_code == 2
    assert list(cli.sessions().glob("*.ndjson")) == []


def test_input_that_is_not_utf8_is_bad_input(cli: Command) -> None:
    result = cli("add", "-", text=b"\xff\xfe")
    assert (result.exit_code, "not UTF-8" in result.stderr) == (2, True)


def test_update_replaces_the_text_and_keeps_the_id(cli: Command) -> None:
    before = cli.json("add", "first wording")
    after = cli.json("update", before["id"], "--text", "second wording")
    assert after["id"] == before["id"]
    assert "second wording" in cli("sessions", "show", "main").stdout
    assert "first wording" not in cli("sessions", "show", "main").stdout


def test_update_of_tags_leaves_the_text_alone(cli: Command) -> None:
    entry = cli.json("add", "the text", "--tag", "old")
    cli.json("update", entry["id"], "--tag", "new")
    shown = cli.json("sessions", "show", "main")["entries"][0]
    assert (shown["tags"], "the text" in str(shown)) == (["new"], True)


def test_update_without_a_change_is_bad_input(cli: Command) -> None:
    entry = cli.json("add", "text")
    assert cli.error("update", entry["id"]) == (2, "invalid_argument")


def test_a_deleted_entry_is_hidden_but_in_its_history(cli: Command) -> None:
    entry = cli.json("add", "once said")
    assert cli.json("delete", entry["id"]) == {"id": entry["id"], "deleted": True}
    assert cli.json("sessions", "show", "main")["entries"] == []
    versions = cli.json("history", entry["id"])["versions"]
    assert [version["deleted"] for version in versions] == [False, True]


def test_history_shows_each_wording_with_its_time(cli: Command) -> None:
    entry = cli.json("add", "first wording")
    cli("update", entry["id"], "--text", "second wording")
    shown = cli("history", entry["id"]).stdout
    assert shown.index("first wording") < shown.index("second wording")


def test_history_says_what_each_version_changed(cli: Command) -> None:
    old = cli.json("add", "first wording")["id"]
    cli("update", old, "--text", "second wording", "--priority", "0.5")
    new = cli.json("supersede", old, "third wording")["id"]
    rows = [line.split("\t")[1] for line in cli("history", old).stdout.splitlines()]
    assert rows == ["change", "added", "priority: 0.5, text edited", f"superseded by {new}"]


def test_values_of_keys_are_words_and_not_python(cli: Command) -> None:
    with keepstone.open(cli.home) as home:
        agent = home.agent("default")
        agent.add("Use passkeys", id="auth", tags=["login"])
        agent.update("auth", pinned=True, tags=["login", "web"])
        agent.update("auth", pinned=None)
    rows = [line.split("\t")[1] for line in cli("history", "auth").stdout.splitlines()]
    assert rows == ["change", "added", "pinned, tags edited", "pinned taken away"]
    shown = cli("changes").stdout
    for line in ("pinned: none -> yes", "tags: login -> login, web", "pinned: yes -> none"):
        assert f"  {line}\n" in shown


def test_a_purged_entry_is_in_no_file_any_more(cli: Command) -> None:
    entry = cli.json("add", "unspeakable")
    assert cli.json("purge", entry["id"], "--yes") == {"id": entry["id"], "purged": True}
    files = [path for path in cli.home.rglob("*") if path.is_file()]
    assert [path for path in files if b"unspeakable" in path.read_bytes()] == []


def test_purge_without_yes_and_terminal_changes_nothing(cli: Command) -> None:
    entry = cli.json("add", "kept")
    result = cli("purge", entry["id"])
    assert (result.exit_code, "--yes" in result.stderr) == (2, True)
    assert len(cli.json("sessions", "show", "main")["entries"]) == 1


@pytest.mark.parametrize(
    "words",
    [["update", "--tag", "x"], ["delete"], ["purge", "--yes"], ["history"]],
    ids=lambda words: words[0],
)
def test_an_unknown_id_is_an_entry_not_found(cli: Command, words: list[str]) -> None:
    cli.json("add", "something")
    assert cli.error(words[0], "nobody", *words[1:]) == (1, "entry_not_found")


def test_an_id_in_two_sessions_needs_the_session(cli: Command) -> None:
    for session in ("a", "b"):
        (cli.sessions() / f"{session}.ndjson").write_text('{"id":"x","type":"note","text":"hi"}\n', "utf-8")
    assert cli.error("delete", "x") == (2, "ambiguous_id")
    assert cli.json("delete", "x", "--session", "a")["deleted"]
    assert len(cli.json("sessions", "show", "b")["entries"]) == 1


def test_purge_by_a_text_says_what_it_would_take_and_then_takes_it(cli: Command) -> None:
    entry = cli.json("add", "unspeakable")
    cli.json("delete", entry["id"])
    cli.json("add", "harmless")
    cli("files", "write", "notes.md", "also Unspeakable")
    found = {"entries": [{"session": "main", "id": entry["id"]}], "sessions": [], "files": ["notes.md"]}
    assert cli.json("purge", "--match", "UNSPEAKABLE", "--dry-run") == {"purged": False, **found}
    assert cli.error("purge", "--match", "unspeakable") == (2, "invalid_argument")
    assert "unspeakable" in (cli.sessions() / "main.ndjson").read_text("utf-8")
    assert cli.json("purge", "--match", "unspeakable", "--yes") == {"purged": True, **found}
    assert "unspeakable" not in (cli.sessions() / "main.ndjson").read_text("utf-8")


def test_purge_by_a_text_names_what_it_takes_and_nothing_else(cli: Command) -> None:
    cli("files", "write", "notes.md", "unspeakable")
    told = cli("purge", "--match", "unspeakable", "--dry-run").stdout
    assert told.split() == "would purge 1 file file notes.md".split()


def test_purge_of_a_text_that_nothing_holds_says_so(cli: Command) -> None:
    cli.json("add", "harmless")
    result = cli("purge", "--match", "unspeakable", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "nothing contains this text\n")


@pytest.mark.parametrize("words", [[], ["x", "--match", "y"], ["x", "--dry-run"], ["--match", ""]])
def test_purge_takes_an_id_or_a_text(cli: Command, words: list[str]) -> None:
    cli.json("add", "something")
    assert cli.error("purge", *words, "--yes") == (2, "invalid_argument")


def test_a_deleted_entry_is_restored(cli: Command) -> None:
    entry = cli.json("add", "Maya prefers short answers", "--tag", "style")
    cli.json("delete", entry["id"])
    restored = cli.json("restore", entry["id"])
    assert restored == entry | {"ts": restored["ts"]}


def test_sessions_are_renamed_forked_and_exported(cli: Command) -> None:
    entry = cli.json("add", "one", "--session", "old")
    cli.json("add", "two", "--session", "old")
    assert cli.json("sessions", "rename", "old", "new") == {"id": "new"}
    assert cli.json("sessions", "copy", "new", "copy") == {"id": "copy"}
    cli.json("sessions", "fork", "new", "fork", "--until", entry["id"])
    lines = cli.json("sessions", "export", "fork")["lines"]
    assert [line["text"] for line in lines] == ["one"]


def test_watch_ends_after_idle_seconds(cli: Command) -> None:
    cli.json("add", "one")
    assert cli("watch", "--timeout", "0", "--json").stdout == ""


def test_lists_leave_out_what_is_superseded(cli: Command) -> None:
    old = cli.json("add", "Maya lives in Bern", "--type", "fact")
    new = cli.json("supersede", old["id"], "Maya lives in Rome")
    shown = {
        command: [entry["id"] for entry in cli.json(*command.split())["entries"]]
        for command in ("entries list", "sessions show main")
    }
    assert shown == {"entries list": [new["id"]], "sessions show main": [new["id"]]}
    assert cli.json("entries", "count")["count"] == 1
    assert cli.json("entries", "count", "--include-superseded")["count"] == 2
    assert len(cli.json("sessions", "show", "main", "--include-superseded")["entries"]) == 2
    assert cli.json("entries", "purge", "--type", "fact", "--dry-run")["count"] == 2
