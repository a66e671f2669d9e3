"""What the benchmark on LongMemEval reads, and how it counts, on questions made up here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def checkout_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts of the checkout be imported as they import one another."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def written(folder: Path, question_id: str = "q1", sessions: int = 40) -> Path:
    """Write a question whose answer is the second turn of its last session."""
    told = [[{"role": "user", "content": f"A quiet day, number {number}."}] for number in range(sessions)]
    told[-1].append({"role": "user", "content": "We signed in with passkeys.", "has_answer": True})  # type: ignore[dict-item]
    raw: dict[str, Any] = {
        "question_id": question_id,
        "question_type": "single-session-user",
        "question": "How did we sign in with passkeys?",
        "answer": "With passkeys",
        "question_date": "2023/05/30 (Tue) 23:42",
        "haystack_dates": [f"2023/05/{1 + number % 28:02} (Mon) 10:00" for number in range(sessions)],
        "haystack_session_ids": [f"s_{number}" for number in range(sessions)],
        "haystack_sessions": told,
        "answer_session_ids": [f"s_{sessions - 1}"],
    }
    path = folder / f"{sessions}_{question_id}.json"
    path.write_text(json.dumps(raw))
    return path


def test_a_question_is_read_with_turns_times_and_evidence(tmp_path: Path) -> None:
    from bench._longmemeval import read

    question = read(written(tmp_path))
    assert len(question.turns) == 41
    assert [turn.id for turn in question.turns if turn.has_answer] == ["s_39.39:1"]
    assert question.now.isoformat() == "2023-05-30T23:42:00+00:00"


def test_the_halves_are_apart_and_leave_nothing_out(tmp_path: Path) -> None:
    from bench._longmemeval import question_files

    written_files = {written(tmp_path, f"q{number}") for number in range(20)}
    halves = [set(question_files(tmp_path, half)) for half in ("development", "kept")]
    assert halves[0] | halves[1] == written_files
    assert not halves[0] & halves[1]


def test_files_with_evidence_only_are_not_taken(tmp_path: Path) -> None:
    from bench._longmemeval import question_files

    written(tmp_path, sessions=2)
    with pytest.raises(ValueError, match="has no files"):
        question_files(tmp_path, "development")


def test_a_session_is_found_where_its_first_turn_is(tmp_path: Path) -> None:
    from bench._longmemeval import Answer, Scores, read

    question, scores = read(written(tmp_path)), Scores.none()
    scores.add(question, Answer(["s_0.0:0", "s_0.0:0", "s_39.39:0"], 0.01, 0.9, "Passkeys, with luck."))
    row = scores.row()
    assert (row["any@5"], row["MRR"], row["turns@10"]) == (1.0, 0.5, 0.0)
    assert row["words in context"] == 1.0


def test_a_question_without_an_answer_counts_for_confidence_only(tmp_path: Path) -> None:
    from bench._longmemeval import Answer, Scores, read

    scores = Scores.none()
    scores.add(read(written(tmp_path, "q1_abs")), Answer(["s_39.39:1"], 0.01, 0.2))
    assert (scores.row()["any@5"], scores.confidence) == (None, [(False, 0.2)])


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([(True, 0.9), (False, 0.1)], 1.0),
        ([(True, 0.1), (False, 0.9)], 0.0),
        ([(True, 0.5), (False, 0.5)], 0.5),
    ],
)
def test_auroc_is_the_share_of_pairs_in_order(judged: list[tuple[bool, float]], expected: float) -> None:
    from bench._longmemeval import auroc

    assert auroc(judged) == expected
    assert auroc(judged[:1]) is None


@pytest.mark.parametrize("name", ["keepstone", "grep", "SQLite FTS5"])
def test_a_system_without_vectors_finds_the_turn_with_the_answer(tmp_path: Path, name: str) -> None:
    from bench._longmemeval import read
    from bench.rivals.systems import SYSTEMS
    from bench.rivals.vectors import CachedModel

    from keepstone.embed.minilm import MiniLM

    question = read(written(tmp_path))
    (tmp_path / "there").mkdir()
    system = SYSTEMS[name](tmp_path / "there", CachedModel(tmp_path, MiniLM()))
    system.load(question)
    assert system.find(question.text)[0] == "s_39.39:1"


def test_vectors_that_a_folder_keeps_are_not_made_again(tmp_path: Path) -> None:
    from bench.rivals.vectors import CachedModel

    class Counting:
        id, dim, documents = "counting", 2, 0

        def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
            self.documents += len(texts)
            return np.stack([self.embed_query(text) for text in texts])

        def embed_query(self, text: str) -> NDArray[np.float32]:
            return np.array([len(text), 1], np.float32)

    for made in (2, 0):
        counting = Counting()
        model = CachedModel(tmp_path, counting)
        model.prepare("q1", ["a", "bcd"], "who?")
        assert model.embed_documents(["bcd", "a"]).tolist() == [[3, 1], [1, 1]]
        assert model.embed_query("who?").tolist() == [4, 1]
        assert counting.documents == made
        assert model.embed_documents([]).shape == (0, 2)


def test_the_chart_has_a_bar_for_each_system_that_ran() -> None:
    from bench.rivals.chart import drawing

    drawn = drawing(
        {"keepstone": {"any@5": 0.9, "MRR": 0.8}, "grep": {"any@5": 0.5, "MRR": 0.4}, "x": {"error": "?"}}
    )
    assert drawn.count("<rect") == 4


def test_a_figure_below_its_floor_is_named() -> None:
    from bench.longmemeval import below

    row: dict[str, float | None] = {"any@5": 0.95, "MRR": 0.9, "abstention AUROC": None}
    assert below(row, ["any@5=0.9", "MRR=0.9"]) == []
    assert below(row, ["MRR=0.91"]) == ["MRR is 0.9, and must be 0.91 at least"]
