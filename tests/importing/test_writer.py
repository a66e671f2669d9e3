"""``import_memory``: what a run writes, and what a second run does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.importing.sources import chatgpt, jsonl, zipped

import keepstone
from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory
from keepstone.model import LEAST

ROWS = [{"id": f"r{number}", "ts": "2026-01-11T14:31:00Z", "text": f"row {number}"} for number in range(5)]


def texts(agent: Agent, session: str = "rows") -> list[str]:
    return [entry.text for entry in agent.session(session).entries()]


def test_a_second_run_adds_nothing(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", ROWS)
    first, second = import_memory(agent, "jsonl", source), import_memory(agent, "jsonl", source)
    assert (first.imported, first.unchanged, first.failed) == (5, 0, [])
    assert (second.imported, second.unchanged) == (0, 5)
    assert texts(agent) == [row["text"] for row in ROWS]


def test_a_changed_record_replaces_its_entry_and_keeps_its_time(agent: Agent, tmp_path: Path) -> None:
    import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", ROWS))
    changed = [*ROWS[:4], ROWS[4] | {"text": "changed"}]
    result = import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", changed))
    assert (result.imported, result.unchanged) == (1, 4)
    entry = agent.get("r4")
    assert (entry.text, entry.ts.isoformat()) == ("changed", "2026-01-11T14:31:00+00:00")


@pytest.mark.parametrize("compacted", [False, True])
def test_what_was_deleted_here_stays_deleted(agent: Agent, tmp_path: Path, *, compacted: bool) -> None:
    source = jsonl(tmp_path / "rows.jsonl", ROWS)
    import_memory(agent, "jsonl", source)
    agent.delete("r2")
    if compacted:
        agent.session("rows").compact()
    result = import_memory(agent, "jsonl", source)
    assert (result.imported, result.unchanged) == (0, 5)
    assert "row 2" not in texts(agent)


def test_an_entry_edited_here_keeps_the_edit(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", ROWS)
    import_memory(agent, "jsonl", source)
    agent.update("r2", text="edited here", tags=["mine"])
    assert import_memory(agent, "jsonl", source).imported == 0
    assert agent.get("r2").text == "edited here"


def test_a_dry_run_answers_the_same_counts_and_writes_nothing(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", [*ROWS, ROWS[0], {"id": "bad"}])
    dry = import_memory(agent, "jsonl", source, dry_run=True)
    assert agent.sessions() == []
    real = import_memory(agent, "jsonl", source)
    assert (dry.imported, dry.unchanged, dry.failed) == (real.imported, real.unchanged, real.failed)
    assert (real.imported, real.unchanged, len(real.failed)) == (5, 1, 1)


@pytest.mark.parametrize("before", [[], [{"id": "r", "text": "old"}]], ids=["new", "there before"])
def test_a_dry_run_counts_records_of_one_id_in_several_batches(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[dict[str, str]]
) -> None:
    monkeypatch.setattr("keepstone.importing.writer._BATCH", 1)
    import_memory(agent, "jsonl", jsonl(tmp_path / "before.jsonl", before), mapping={"session": "none"})
    said = ["one", "two", "two", "one", "three"]
    rows = [{"id": "r", "text": text, "session": "before"} for text in said]
    source = jsonl(
        tmp_path / "rows.jsonl", [*rows, {"id": "r", "text": "three", "tags": ["x"], "session": "before"}]
    )
    dry = import_memory(agent, "jsonl", source, dry_run=True)
    real = import_memory(agent, "jsonl", source)
    assert (dry.imported, dry.unchanged) == (real.imported, real.unchanged) == (4, 2)


def test_a_record_that_cannot_be_stored_is_listed_with_its_place(agent: Agent, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "fine"}\nnot json\n{"ts": "yesterday", "text": "x"}\n{"id": "e"}\n', "utf-8")
    result = import_memory(agent, "jsonl", source)
    assert result.imported == 1
    assert [one.place for one in result.failed] == ["rows.jsonl:2", "rows.jsonl:3", "rows.jsonl:4"]
    assert "yesterday" in result.failed[1].reason


def test_equal_records_without_ids_stay_apart_and_are_recognised(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", [{"text": "same"}, {"text": "same"}, {"text": "other"}])
    assert import_memory(agent, "jsonl", source).imported == 3
    assert import_memory(agent, "jsonl", source).unchanged == 3
    assert texts(agent) == ["same", "same", "other"]


def test_secrets_are_masked_or_refused(agent: Agent, tmp_path: Path) -> None:
    token = "ghp_" + 9 * "a1B2"
    source = jsonl(tmp_path / "rows.jsonl", [{"id": "a", "text": f"push with {token}"}, ROWS[0]])
    refused = import_memory(agent, "jsonl", source, secrets="refuse")
    assert (refused.imported, len(refused.failed)) == (1, 1)
    assert token not in refused.failed[0].reason
    assert import_memory(agent, "jsonl", source, secrets="mask").imported == 1
    assert import_memory(agent, "jsonl", source, secrets="mask").unchanged == 2
    assert texts(agent)[-1] == "push with [secret: GitHub token]"


def test_vectors_of_another_dimension_are_left_out_and_named(tmp_path: Path) -> None:
    agent = keepstone.open(tmp_path / "home", embedder="none").agent("a")
    agent.session("s").add("note", text="here", embedding=[1, 0, 0])
    rows = [
        {"id": "v", "text": "two", "embedding": [1, 0]},
        {"id": "w", "text": "zeros", "embedding": [0, 0, 0]},
    ]
    result = import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", rows))
    assert (result.imported, [one.place for one in result.failed]) == (2, ["vectors"])
    assert result.failed[0].reason.startswith("2 entries")
    assert agent.get("v").embedding is None


def test_a_resumed_import_compares_nothing_that_is_here(agent: Agent, tmp_path: Path) -> None:
    import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", ROWS[:3]))
    changed = jsonl(tmp_path / "rows.jsonl", [row | {"text": "changed"} for row in ROWS])
    result = import_memory(agent, "jsonl", changed, resume=True)
    assert (result.imported, result.unchanged) == (2, 3)


_KILLED = """
import sys, os, signal
import keepstone
from keepstone.importing import import_memory
def progress(done, total):
    if done >= 3000:
        os.kill(os.getpid(), signal.SIGKILL)
home = keepstone.open(sys.argv[1], embedder="none")
import_memory(home.agent("a"), "jsonl", sys.argv[2], progress=progress)
"""


def test_a_killed_import_is_finished_by_the_next(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", [{"id": f"r{n}", "text": f"row {n}"} for n in range(5_000)])
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, tmp_path / "home", source], check=False, env=os.environ
    )
    assert done.returncode == -signal.SIGKILL
    agent = keepstone.open(tmp_path / "home", embedder="none").agent("a")
    there = agent.count()
    assert 0 < there < 5_000
    result = import_memory(agent, "auto", source, resume=True)
    assert (result.imported, result.unchanged) == (5_000 - there, there)
    assert texts(agent) == [f"row {n}" for n in range(5_000)]


def test_a_damaged_archive_leaves_nothing_half_imported(agent: Agent, tmp_path: Path) -> None:
    many = [chatgpt()[0] | {"conversation_id": f"c{number}"} for number in range(2_000)]
    import json

    whole = json.dumps(many)
    source = zipped(tmp_path / "export.zip", {"conversations.json": whole[: len(whole) - 50]})
    with pytest.raises(SourceError, match="truncated"):
        import_memory(agent, "chatgpt", source)
    assert agent.sessions() == []


def test_a_record_without_a_time_has_that_of_the_one_before(agent: Agent, tmp_path: Path) -> None:
    rows = [{"id": "a", "ts": "2026-01-11T14:31:00Z", "text": "one"}, {"id": "b", "text": "two"}]
    import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", rows))
    assert agent.get("b").ts == agent.get("a").ts


def test_the_first_record_without_a_time_has_that_of_the_file(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", [{"id": "a", "text": "one"}])
    os.utime(source, (1768141860, 1768141860))
    import_memory(agent, "jsonl", source)
    assert agent.get("a").ts.isoformat() == "2026-01-11T14:31:00+00:00"


def test_an_origin_that_cannot_be_read_is_trusted_least(agent: Agent, tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one", "origin": {"by": "nobody known"}}]
    import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", rows), keep_origin=True)
    assert agent.get("a").origin == {"by": LEAST, "via": "import/jsonl"}


def test_of_many_failures_only_the_number_is_listed(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.importing.writer.MOST_FAILURES", 2)
    source = tmp_path / "rows.jsonl"
    source.write_text("x\n" * 5)
    result = import_memory(agent, "jsonl", source)
    assert [one.place for one in result.failed] == ["rows.jsonl:1", "rows.jsonl:2", "…"]
    assert result.failed[-1].reason == "3 more failures"


def test_a_later_record_of_one_id_in_one_run_replaces_the_earlier(agent: Agent, tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one", "tags": ["x"]}, {"id": "a", "text": "two"}]
    import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", rows))
    entry = agent.get("a")
    assert (entry.text, entry.tags) == ("two", ("x",))
    assert len(agent.history("a")) == 1


def test_a_session_that_cannot_be_made_is_named_with_its_records(agent: Agent, tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one", "session": ""}, {"id": "b", "text": "two", "session": "fine"}]
    result = import_memory(agent, "jsonl", jsonl(tmp_path / "rows.jsonl", rows))
    assert result.imported + len(result.failed) == 2
    assert agent.get("b").text == "two"
