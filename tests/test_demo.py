"""``keepstone demo`` and the sample that it writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keepstone.cli import demo, sample
from keepstone.cli.app import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["demo", *words], env={"COLUMNS": "80"})


def logs(root: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in sorted(root.rglob("*.ndjson"))
    }


def truth(root: Path) -> dict[Path, bytes]:
    """Return everything but the index."""
    files = [path for path in root.rglob("*") if path.is_file() and ".index" not in path.parts]
    return {path: path.read_bytes() for path in files}


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / demo.PLACE


def test_the_sample_spans_three_weeks_in_six_sessions() -> None:
    turns = [turn for name in sample.SESSIONS for turn in sample.turns(name)]
    times = [datetime.fromisoformat(turn["ts"]) for turn in turns]
    assert (len(sample.SESSIONS), times == sorted(times)) == (6, True)
    assert 200 <= len(turns) <= 250
    assert timedelta(days=17) < times[-1] - times[0] < timedelta(days=21)


def test_the_last_session_of_the_sample_was_yesterday() -> None:
    last = datetime.fromisoformat(sample.turns(sample.SESSIONS[-1])[-1]["ts"])
    assert datetime.now(UTC).date() - last.date() == timedelta(days=1)


def test_every_turn_of_the_sample_has_an_id_and_a_wording_of_its_own() -> None:
    turns = [turn for name in sample.SESSIONS for turn in sample.turns(name)]
    assert len({turn["id"] for turn in turns}) == len(turns)
    assert len({json.dumps(turn["data"]) for turn in turns}) == len(turns)


def test_the_sample_has_decisions_findings_and_preferences() -> None:
    kinds = [turn["type"] for name in sample.SESSIONS for turn in sample.turns(name)]
    assert min(kinds.count(kind) for kind in ("decision", "finding", "preference")) >= 5
    assert set(kinds) == {"message", "decision", "finding", "preference"}


def test_the_demo_writes_sessions_and_a_file_that_can_be_read(somewhere: Path) -> None:
    assert run().exit_code == 0
    assert set(logs(somewhere)) == {*sample.SESSIONS, sample.CALLS}
    assert next(somewhere.rglob("runbook.md")).read_text("utf-8").startswith("# Runbook")


def test_the_demo_shows_first_what_answers_each_question() -> None:
    document = json.loads(run("--json").stdout)
    shown = [found["hits"][0]["entry"]["id"] for found in document["questions"]]
    assert shown == ["passkeys", "double-charge", "lena-summaries"]


def test_the_demo_shows_reasons_context_places_and_next_steps() -> None:
    shown = run().stdout
    for words in (*sample.QUESTIONS, sample.TOPIC, "found by", "KEEPSTONE_HOME", "doctor"):
        assert words in shown


def test_the_demo_names_the_files_of_all_five_memories(somewhere: Path) -> None:
    shown = run().stdout
    for path in (
        "agents/default/memory/sessions/kickoff.ndjson",
        "agents/default/files/runbook.md",
        "project/AGENTS.md",
        "user/memory.md",
        ".bmad/sessions/storm-week.jsonl",
        "agents/harbour-desk/memory/sessions/calls.ndjson",
    ):
        assert (path in shown, (somewhere / path).is_file()) == (True, True)


def test_the_notes_of_the_demo_stay_in_its_folder(somewhere: Path, user_folder: Path) -> None:
    document = json.loads(run("--json").stdout)
    assert {Path(note["source"]) for note in document["notes"]} == {
        somewhere / "project" / "AGENTS.md",
        somewhere / "user" / "memory.md",
    }
    assert [path for path in user_folder.rglob("*") if path.suffix == ".md"] == []


def test_the_demo_writes_no_note_twice(somewhere: Path) -> None:
    document = json.loads(run("--json").stdout)
    assert len(document["notes"]) == len(sample.TYPED_MESSAGES) - 1
    assert (somewhere / "project" / "AGENTS.md").read_text("utf-8").casefold().count("fridays") == 1
    assert "Not saved: project/AGENTS.md:8 already says" in run().stdout


def test_entries_of_the_demo_fade_and_what_is_asked_for_stays() -> None:
    fading = json.loads(run("--json").stdout)["fading"]
    worth = {entry["type"]: entry["priorities"] for entry in fading}
    assert [round(priority, 2) for priority in worth["finding"]] == [0.9, 0.51, 0.27]
    assert all(values == sorted(values, reverse=True) for values in worth.values())
    assert [entry["type"] for entry in fading if entry["archived"]] == ["conversation"]


def test_vectors_of_the_demo_find_what_shares_no_word_with_the_question() -> None:
    similar = json.loads(run("--json").stdout)["similar"]
    asked = set(sample.QUESTION_OF_A_CALLER.casefold().split())
    assert [memory["id"] for memory in similar[:2]] == ["password-field", "new-phone"]
    assert not asked & set(similar[0]["text"].casefold().strip(".").split())
    assert "These vectors are handmade" in run().stdout


def test_the_demo_prints_no_more_than_two_screens() -> None:
    assert len(run().stdout.splitlines()) <= 130


def test_the_demo_fits_a_terminal_of_80_columns() -> None:
    assert max(len(line) for line in run().stdout.splitlines()) <= 80


def test_a_second_run_starts_clean_and_writes_the_same(somewhere: Path) -> None:
    told, before = run().stdout, truth(somewhere)
    (somewhere / "agents" / "default" / "files" / "mine.md").write_text("mine", "utf-8")
    again = run()
    assert (again.exit_code, again.stdout) == (0, told)
    assert truth(somewhere) == before


def test_a_folder_that_is_not_a_demo_is_left_alone(somewhere: Path) -> None:
    somewhere.mkdir()
    (somewhere / "thesis.txt").write_text("years of work", "utf-8")
    result = run()
    assert (result.exit_code, "choose another folder with --home" in result.stderr) == (2, True)
    assert [path.name for path in somewhere.iterdir()] == ["thesis.txt"]


def test_a_forged_marker_of_other_words_is_not_a_demo(somewhere: Path) -> None:
    somewhere.mkdir()
    (somewhere / demo.MARKER).write_text("my own file of that name", "utf-8")
    assert run().exit_code == 2
    assert (somewhere / demo.MARKER).exists()


def test_a_link_to_a_demo_is_not_followed(somewhere: Path, tmp_path: Path) -> None:
    run("--home", str(tmp_path / "real"))
    somewhere.symlink_to(tmp_path / "real")
    assert run().exit_code == 2
    assert (tmp_path / "real" / demo.MARKER).exists()


def test_a_file_in_the_place_of_the_demo_is_left_alone(somewhere: Path) -> None:
    somewhere.write_text("a file", "utf-8")
    assert run().exit_code == 2
    assert somewhere.read_text("utf-8") == "a file"


def test_an_empty_folder_may_become_the_demo(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("--home", "empty").exit_code == 0


@pytest.mark.parametrize("place", [".", ""])
def test_the_folder_one_works_in_is_not_removed(tmp_path: Path, place: str) -> None:
    (tmp_path / demo.MARKER).write_text(demo.SIGNATURE, "utf-8")
    result = run("--home", place)
    assert (result.exit_code, "contains the working directory" in result.stderr) == (2, True)
    assert (tmp_path / demo.MARKER).exists()


def test_what_the_demo_says_to_type_works(somewhere: Path) -> None:
    run()
    found = CliRunner().invoke(
        app, ["recall", "how long is an unpaid hold kept", "--json", "--home", str(somewhere)]
    )
    assert json.loads(found.stdout)["hits"][0]["entry"]["id"] == "hold-ten-minutes"
