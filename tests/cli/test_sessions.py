"""``sessions list``, ``new``, ``show``, ``clear`` and ``delete``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.text.messages.samples import ANTHROPIC
from typer.testing import CliRunner

from keepstone.cli.app import app

if TYPE_CHECKING:
    from .conftest import Command


def test_sessions_are_listed_the_one_with_the_newest_entry_first(cli: Command) -> None:
    for day, name in ((3, "new"), (1, "older"), (2, "old")):
        line = {"id": name, "ts": f"2026-01-0{day}T00:00:00Z", "type": "note", "text": "text"}
        (cli.sessions() / f"{name}.ndjson").write_text(json.dumps(line) + "\n", "utf-8")
    assert [info["id"] for info in cli.json("sessions", "list")["sessions"]] == ["new", "old", "older"]


def test_a_listed_session_has_its_time_and_size(cli: Command) -> None:
    cli.json("add", "text", "--session", "plans")
    [info] = cli.json("sessions", "list")["sessions"]
    assert info["size"] == (cli.sessions() / "plans.ndjson").stat().st_size
    assert info["modified"].endswith("Z")
    assert "plans" in cli("sessions", "list").stdout


def test_a_home_without_sessions_says_so(cli: Command) -> None:
    assert cli("sessions", "list").stdout == "no sessions yet\n"
    assert cli.json("sessions", "list") == {"sessions": []}


def test_a_new_session_is_empty_and_is_listed(cli: Command) -> None:
    session = cli("sessions", "new").stdout.strip()
    assert [info["id"] for info in cli.json("sessions", "list")["sessions"]] == [session]
    assert cli("sessions", "show", session).stdout == "no entries\n"


def test_show_gives_the_entries_oldest_first(cli: Command) -> None:
    for text in ("first", "second", "third"):
        cli.json("add", text)
    shown = cli("sessions", "show", "main").stdout
    assert shown.index("first") < shown.index("second") < shown.index("third")


def test_show_limited_keeps_the_newest_entries(cli: Command) -> None:
    ids = [cli.json("add", text)["id"] for text in ("first", "second", "third")]
    entries = cli.json("sessions", "show", "main", "--limit", "2")["entries"]
    assert [entry["id"] for entry in entries] == ids[1:]


def test_show_of_a_type_leaves_out_the_others(cli: Command) -> None:
    cli.json("add", "a note")
    cli.json("add", "a decision", "--type", "decision")
    entries = cli.json("sessions", "show", "main", "--type", "decision")["entries"]
    assert [entry["type"] for entry in entries] == ["decision"]


def test_a_negative_limit_is_bad_input(cli: Command) -> None:
    cli.json("add", "text")
    assert cli.error("sessions", "show", "main", "--limit", "-1") == (2, "invalid_argument")


def test_a_cleared_session_stays_with_zero_bytes(cli: Command) -> None:
    cli.json("add", "text")
    assert cli.json("sessions", "clear", "main", "--yes") == {"id": "main", "cleared": True}
    assert (cli.sessions() / "main.ndjson").stat().st_size == 0


def test_a_deleted_session_is_gone_from_disk_and_list(cli: Command) -> None:
    cli.json("add", "text")
    assert cli.json("sessions", "delete", "main", "--yes") == {"id": "main", "removed": True}
    assert not (cli.sessions() / "main.ndjson").exists()
    assert cli.json("sessions", "list")["sessions"] == []


@pytest.mark.parametrize("verb", ["clear", "delete"])
def test_without_yes_and_terminal_a_session_stays_whole(cli: Command, verb: str) -> None:
    cli.json("add", "text")
    before = (cli.sessions() / "main.ndjson").read_bytes()
    assert cli.error("sessions", verb, "main") == (2, "invalid_argument")
    assert (cli.sessions() / "main.ndjson").read_bytes() == before


@pytest.mark.parametrize(
    "words", [["show"], ["clear", "--yes"], ["delete", "--yes"]], ids=lambda words: words[0]
)
def test_a_session_that_is_not_there_is_not_found(cli: Command, words: list[str]) -> None:
    assert cli.error("sessions", words[0], "nowhere", *words[1:]) == (1, "session_not_found")


def test_an_id_that_no_file_can_carry_is_bad_input(cli: Command) -> None:
    assert cli.error("sessions", "show", "x" * 300) == (2, "invalid_session_id")


def test_a_flat_payload_with_an_agent_of_its_own_is_not_overwritten(cli: Command) -> None:
    line = '{"id":"1","type":"event","agent":"planner","content":"hello"}\n'
    (cli.sessions() / "main.ndjson").write_text(line, "utf-8")
    [entry] = cli.json("sessions", "show", "main")["entries"]
    assert (entry["agent"], entry["data"]) == ("default", {"agent": "planner", "content": "hello"})


def test_a_flat_payload_stays_flat_in_the_document(cli: Command) -> None:
    line = '{"id":"1","ts":"2026-01-11T14:31:00Z","type":"event","role":"user","content":"hello"}\n'
    (cli.sessions() / "main.ndjson").write_text(line, "utf-8")
    [entry] = cli.json("sessions", "show", "main")["entries"]
    assert (entry["role"], entry["content"], "data" in entry) == ("user", "hello", False)


def test_a_lone_surrogate_in_a_log_can_be_shown(cli: Command) -> None:
    (cli.sessions() / "main.ndjson").write_text('{"id":"1","type":"note","text":"a\\ud800b"}\n', "utf-8")
    result = cli("sessions", "show", "main")
    assert (result.exit_code, r"a\ud800b" in result.stdout) == (0, True)
    assert cli.json("sessions", "show", "main")["entries"][0]["text"] == "a\ud800b"


def test_messages_go_in_and_come_back_for_a_provider(cli: Command) -> None:
    added = cli.json("sessions", "add-messages", "talk", "-", text=json.dumps(ANTHROPIC))
    assert [entry["data"] for entry in added["entries"]] == ANTHROPIC
    assert cli.json("sessions", "messages", "talk") == {"id": "talk", "messages": ANTHROPIC}
    chat = cli.json("sessions", "messages", "talk", "--provider", "openai", "--limit", "3")["messages"]
    assert chat[0]["role"] == "assistant"
    assert cli("sessions", "messages", "talk", "--limit", "1").stdout.startswith('{"role": "assistant"')


def test_messages_that_are_not_a_list_are_bad_input(cli: Command) -> None:
    for wrong in ("{", '{"role": "user"}', "[1]"):
        assert cli.error("sessions", "add-messages", "talk", wrong) == (2, "invalid_argument")
    assert cli.error("sessions", "messages", "talk") == (1, "session_not_found")


def test_compacting_changes_no_order_of_sessions(cli: Command) -> None:
    for name in ("older", "newer"):
        cli.json("add", "one", "--session", name)
    cli.json("update", cli.json("sessions", "show", "older")["entries"][0]["id"], "--text", "two")
    order = [(info["id"], info["modified"]) for info in cli.json("sessions", "list")["sessions"]]
    cli.json("compact", "--session", "newer")
    assert [(info["id"], info["modified"]) for info in cli.json("sessions", "list")["sessions"]] == order


def test_show_prints_every_value_of_a_payload(cli: Command) -> None:
    cli.json("add", "--data", '{"issue": "slow", "seconds": 14, "of": {"runs": [1, 2]}}')
    shown = cli("sessions", "show", "main").stdout
    assert "seconds: 14" in shown
    assert 'of: {"runs": [1, 2]}' in shown


def test_a_session_is_created_with_a_name_once(cli: Command) -> None:
    assert cli.json("sessions", "new", "release plans") == {"id": "release plans"}
    assert [info["id"] for info in cli.json("sessions", "list")["sessions"]] == ["release plans"]
    assert cli.error("sessions", "new", "release plans") == (2, "invalid_argument")


def test_a_narrow_screen_lists_sessions_in_whole_lines(cli: Command) -> None:
    session = "0f0e1a9c-8a66-7d3a-b1e4-9e5ad287121a"
    cli("add", "Sales for the summer open at nine", "--session", session)
    cli("sessions", "title", session, "The day of the release")
    settings = {"KEEPSTONE_HOME": str(cli.home), "COLUMNS": "50"}
    lines = CliRunner().invoke(app, ["sessions", "list"], env=settings).stdout.splitlines()
    assert lines[:2] == ["The day of the release", f"  {session}"]
    assert lines[2].endswith("1 entry")
