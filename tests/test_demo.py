"""``recollect demo`` and the sample that it writes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recollect.cli import demo, sample
from recollect.cli.app import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["demo", *words], env={"COLUMNS": "80"})


def logs(root: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in root.rglob("*.ndjson")
    }


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / demo.PLACE


def test_the_sample_spans_three_months_in_six_sessions() -> None:
    turns = [turn for name in sample.SESSIONS for turn in sample.turns(name)]
    times = [datetime.fromisoformat(turn["ts"]) for turn in turns]
    assert (len(sample.SESSIONS), times == sorted(times)) == (6, True)
    assert 200 <= len(turns) <= 250
    assert timedelta(days=80) < times[-1] - times[0] < timedelta(days=95)


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
    assert set(logs(somewhere)) == set(sample.SESSIONS)
    assert next(somewhere.rglob("runbook.md")).read_text("utf-8") == sample.file_text()


def test_the_demo_shows_what_answers_each_question() -> None:
    document = json.loads(run("--json").stdout)
    shown = [{hit["entry"]["id"] for hit in found["hits"]} for found in document["questions"]]
    answers = ("passkeys", "idempotency-key", "lena-summaries")
    assert [answer in ids for answer, ids in zip(answers, shown, strict=True)] == [True, True, True]


def test_the_demo_shows_reasons_context_places_and_next_steps() -> None:
    shown = run().stdout
    for words in (*demo.QUESTIONS, "found by", "payments.ndjson", "runbook.md", "RECOLLECT_HOME", "doctor"):
        assert words in shown


def test_the_demo_fits_a_terminal_of_80_columns() -> None:
    assert max(len(line) for line in run().stdout.splitlines()) <= 80


def test_a_second_run_starts_clean_and_writes_the_same(somewhere: Path) -> None:
    run()
    before = logs(somewhere)
    (somewhere / "agents" / "default" / "files" / "mine.md").write_text("mine", "utf-8")
    assert run().exit_code == 0
    assert logs(somewhere) == before
    assert list(somewhere.rglob("mine.md")) == []


def test_a_folder_that_is_no_demo_is_left_alone(somewhere: Path) -> None:
    somewhere.mkdir()
    (somewhere / "thesis.txt").write_text("years of work", "utf-8")
    result = run()
    assert (result.exit_code, "choose another place with --home" in result.stderr) == (2, True)
    assert [path.name for path in somewhere.iterdir()] == ["thesis.txt"]


def test_a_forged_marker_of_other_words_is_no_demo(somewhere: Path) -> None:
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
    assert (result.exit_code, "you are inside" in result.stderr) == (2, True)
    assert (tmp_path / demo.MARKER).exists()


def test_what_the_demo_says_to_type_works(somewhere: Path) -> None:
    run()
    found = CliRunner().invoke(
        app, ["recall", "who carries the pager in May", "--json", "--home", str(somewhere)]
    )
    ids = [hit["entry"]["id"] for hit in json.loads(found.stdout)["hits"][:3]]
    assert "tomas-pager" in ids
