"""``doctor``, ``backup``, ``index`` and ``compact``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepstone.home import Home
from keepstone.model import Finding
from keepstone.text.pasting import split_commands

if TYPE_CHECKING:
    from .conftest import Command


def test_doctor_finds_a_healthy_home_healthy(cli: Command) -> None:
    cli.json("add", "text")
    assert cli.json("doctor")["healthy"] is True


def test_doctor_names_a_line_that_is_not_json(cli: Command) -> None:
    cli.json("add", "text")
    with (cli.sessions() / "main.ndjson").open("a", encoding="utf-8") as log:
        log.write("no json\n")
    result = cli("doctor", "--json")
    document = json.loads(result.stdout)
    subjects = [finding["subject"] for finding in document["findings"] if finding["level"] == "error"]
    assert (result.exit_code, document["healthy"], subjects) == (1, False, ["default/main"])


def test_doctor_ends_with_1_after_an_error(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Finding("error", "agent default", "the log is a folder", "move it away")
    monkeypatch.setattr(Home, "doctor", lambda *_, **__: [broken])
    result = cli("doctor")
    assert (result.exit_code, "move it away" in result.stdout) == (1, True)


def test_a_deleted_index_is_rebuilt(cli: Command) -> None:
    cli.json("add", "apple")
    shutil.rmtree(cli.home / ".index")
    assert cli.json("index", "--rebuild") == {"rebuilt": True, "sessions": 1, "vectors_made": None}
    assert len(cli.json("recall", "apple")["hits"]) == 1


def levels(cli: Command) -> list[str]:
    return [finding["level"] for finding in cli.json("doctor")["findings"]]


def test_index_takes_in_what_an_editor_wrote(cli: Command) -> None:
    cli.json("add", "pear")
    with (cli.sessions() / "main.ndjson").open("a", encoding="utf-8") as log:
        log.write('{"id":"1","type":"note","text":"apple"}\n')
    assert levels(cli) == ["ok", "ok", "warning", "ok"]
    assert cli("index").stdout == "the index is up to date\n"
    assert levels(cli) == ["ok", "ok", "ok"]


def damage(cli: Command) -> None:
    cli.json("add", "text")
    with (cli.sessions() / "main.ndjson").open("a", encoding="utf-8") as log:
        log.write("no json\n")


def test_doctor_mends_when_asked_and_is_content_afterwards(cli: Command) -> None:
    damage(cli)
    document = cli.json("doctor", "--fix", "--deep")
    assert document["healthy"] is True
    assert document["findings"][0]["message"].startswith("mended: took 1 unreadable line out; it was kept")
    assert len(list((cli.sessions() / ".archive").glob("main.ndjson.*.original"))) == 1


@pytest.mark.parametrize(("size", "words"), [(33_000, "stop reading at 32.0 KiB"), (None, "folder")])
def test_doctor_warns_of_notes_that_agents_do_not_read(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "AGENTS.md"
    file.mkdir() if size is None else file.write_text("x" * size)
    document = cli.json("doctor")
    [finding] = [found for found in document["findings"] if found["subject"] == "AGENTS.md"]
    assert (finding["level"], document["healthy"], words in finding["message"]) == ("warning", True, True)


def test_doctor_says_what_damage_costs_and_what_mends_it(cli: Command) -> None:
    damage(cli)
    result = cli("doctor")
    assert "their content is not remembered; all other lines are" in result.stdout
    assert "keepstone doctor --fix" in result.stdout


def test_a_secret_is_a_warning_that_shows_no_secret(cli: Command) -> None:
    token = "ghp_" + "a1B2" * 9
    entry = cli.json("add", token)
    result = cli("doctor")
    assert (result.exit_code, token in result.stdout) == (0, False)
    assert f"keepstone purge {entry['id']} --session main --agent default" in result.stdout


def test_backup_makes_a_home_that_answers(cli: Command, tmp_path: Path) -> None:
    cli.json("add", "apple")
    document = cli.json("backup", str(tmp_path / "copy"))
    counts = {key: document[key] for key in ("agents", "sessions", "entries", "files", "findings")}
    assert counts == {"agents": 1, "sessions": 1, "entries": 1, "files": 0, "findings": []}
    assert document["folder"] == str(tmp_path / "copy")
    assert len(cli.json("recall", "apple", "--home", str(tmp_path / "copy"))["hits"]) == 1


def test_backup_tells_people_what_it_copied(cli: Command, tmp_path: Path) -> None:
    cli.json("add", "apple")
    result = cli("backup", str(tmp_path / "copy"))
    assert result.stdout.startswith("copied 1 agent, 1 session, 1 entry and 0 files (")
    assert result.stdout.endswith(f" to {tmp_path / 'copy'}\n")


def test_backup_of_a_damaged_home_ends_with_1(cli: Command, tmp_path: Path) -> None:
    damage(cli)
    result = cli("backup", str(tmp_path / "copy"))
    assert (result.exit_code, "1 unreadable line, skipped" in result.stdout) == (1, True)
    assert (tmp_path / "copy").is_dir()


def test_backup_into_a_folder_that_is_not_empty_is_bad_input(cli: Command) -> None:
    cli.json("add", "apple")
    assert cli.error("backup", str(cli.home.parent)) == (2, "invalid_argument")


def test_compact_shortens_a_log_and_keeps_the_entry(cli: Command) -> None:
    entry = cli.json("add", "first wording")
    for number in range(5):
        cli.json("update", entry["id"], "--text", f"wording {number}")
    before = (cli.sessions() / "main.ndjson").stat().st_size
    document = cli.json("compact", "--session", "main")
    assert (document["sessions"], document["saved_bytes"] > 0) == (1, True)
    assert (cli.sessions() / "main.ndjson").stat().st_size < before
    assert "wording 4" in cli("sessions", "show", "main").stdout


def test_compact_takes_all_sessions_by_itself(cli: Command) -> None:
    for session in ("a", "b"):
        cli.json("add", "text", "--session", session)
    assert cli("compact").stdout.startswith("compacted 2 sessions, saved ")


def test_compact_of_a_missing_session_is_not_found(cli: Command) -> None:
    assert cli.error("compact", "--session", "nowhere") == (1, "session_not_found")


def write_aged(cli: Command, *entries: str) -> None:
    """Write a log of January 2020 by hand: entries are the rest of their lines."""
    line = '{{"id":"{}","ts":"2020-01-15T12:00:00Z","type":"decision",{}}}\n'
    log = "".join(line.format(number, entry) for number, entry in enumerate(entries))
    (cli.sessions() / "main.ndjson").write_text(log, "utf-8")


def test_compact_archives_faded_entries_but_no_pinned_ones(cli: Command) -> None:
    write_aged(cli, '"text":"old"', '"text":"old and pinned","pinned":true')
    cli.json("add", "fresh")
    document = cli.json("compact", "--archive")
    assert (document["sessions"], document["archived"]) == (1, 1)
    left = cli.json("sessions", "show", "main")["entries"]
    assert [entry["text"] for entry in left] == ["old and pinned", "fresh"]
    assert "old" in (cli.sessions() / ".archive" / "main.ndjson").read_text("utf-8")


def test_compact_says_how_many_entries_it_archived(cli: Command) -> None:
    write_aged(cli, '"text":"one"', '"text":"two"')
    assert cli("compact", "--archive").stdout.endswith(", archived 2 entries\n")


def test_compact_by_itself_leaves_old_entries_in_the_log(cli: Command) -> None:
    write_aged(cli, '"text":"old"')
    assert cli.json("compact")["archived"] == 0
    assert len(cli.json("sessions", "show", "main")["entries"]) == 1


def test_an_entry_that_was_used_often_fades_later(cli: Command) -> None:
    write_aged(cli, '"text":"used","priority":20,"access":10', '"text":"worth it","priority":1e300')
    cli.json("compact", "--archive")
    left = cli.json("sessions", "show", "main")["entries"]
    assert [entry["text"] for entry in left] == ["worth it"]


def test_doctor_fits_100_columns_but_for_commands_to_copy(cli: Command) -> None:
    damage(cli)
    token = "ghp_" + "a1B2" * 9
    cli.json("add", token)
    remedies = {finding["remedy"] for finding in json.loads(cli("doctor", "--json").stdout)["findings"]}
    commands = {piece for words in remedies for kind, piece in split_commands(words) if kind == "command"}
    lines = cli("doctor").stdout.splitlines()
    assert [line for line in lines if len(line) > 100 and line.strip() not in commands] == []
    assert commands
    assert commands <= {line.strip() for line in lines}


def test_doctor_counts_one_entry_in_the_singular(cli: Command) -> None:
    cli.json("add", "apple")
    assert "1 entry, every line readable" in cli("doctor").stdout


def test_doctors_commands_work_when_pasted_anywhere(cli: Command, tmp_path: Path) -> None:
    damage(cli)
    home = tmp_path / "home"
    result = cli("doctor", "--home", str(home))
    assert f"keepstone doctor --home {home} --fix" in result.stdout
    assert cli("doctor", "--home", str(home), "--fix").exit_code == 0
