"""Which embedder a home uses, and what its vectors are of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Home

pytestmark = pytest.mark.usefixtures("patient")


def remember(home: Home, *texts: str) -> None:
    home.agent("a").session("s").add_many(
        {"type": "event", "id": str(n), "content": text} for n, text in enumerate(texts)
    )


def recalled(home: Home, query: str = "my sibling") -> list[str]:
    """Return the ids of the hits, once the vectors are made, for which a recall waits a moment only."""
    for _ in range(100):
        hits = home.agent("a").recall(query)
        if hits.lexical_only or not hits.pending:
            break
    return [hit.entry.id for hit in hits]


def test_an_entry_is_found_by_its_meaning_right_after_it_was_added(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "nothing of note", "her brother came")
        hits = home.agent("a").recall("my sibling")
        assert (hits[0].entry.id, hits[0].why.ranks["vectors"]) == ("1", 1)
        assert (hits.lexical_only, hits.embedder, hits.pending) == (False, "concepts", 0)
        assert hits[0].why.cosine == pytest.approx(1.0, abs=1e-3)


def test_an_add_asks_the_embedder_nothing(tmp_path: Path) -> None:
    embedder = Concepts()
    embedder.fails = AssertionError("an add asked the embedder")
    with keepstone.open(tmp_path, embedder=embedder) as home:
        remember(home, "her brother came")
        home.agent("a").session("s").add("note", {"content": "one more"})
    assert embedder.asked == []


@pytest.mark.parametrize("named", ["auto", "none"])
def test_without_an_embedder_the_answer_is_by_words_and_says_so(tmp_path: Path, named: str) -> None:
    with keepstone.open(tmp_path, embedder=named) as home:
        remember(home, "her sibling came", "her brother came")
        hits = home.agent("a").recall("my sibling")
        assert (hits.lexical_only, hits.embedder, hits.pending) == (True, None, 0)
        assert "no embedder" in hits.reason


def test_auto_without_any_installed_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "auto")
    monkeypatch.setattr("keepstone.embed.choose.unusable", lambda name: f"{name} is missing")
    with keepstone.open(tmp_path) as home:
        remember(home, "her sibling came")
        hits = home.agent("a").recall("sibling")
        assert (hits.lexical_only, hits.reason) == (
            True,
            "minilm is missing; e5 is missing; static is missing",
        )


def test_another_embedder_than_the_homes_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "her brother came")
    with pytest.raises(keepstone.SpaceMismatchError, match=r"'concepts', not 'others'.*--re-embed"):
        keepstone.open(tmp_path, embedder=Concepts("others"))
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        assert recalled(home) == ["0"]


def test_auto_in_a_home_of_an_unknown_embedder_is_words_only_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "her brother came")
        assert recalled(home) == ["0"]
    monkeypatch.delenv("KEEPSTONE_EMBEDDER")
    with keepstone.open(tmp_path) as home:
        hits = home.agent("a").recall("my sibling")
        assert (list(hits), hits.lexical_only) == ([], True)
        assert "'concepts'" in hits.reason
        assert [finding.level for finding in home.doctor()] == ["ok", "ok", "warning"]


def test_the_record_of_the_space_may_be_lost(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "her brother came")
        assert recalled(home) == ["0"]
    recorded = json.loads((tmp_path / ".keepstone/space.json").read_text("utf-8"))
    assert (recorded["id"], recorded["dim"]) == ("concepts", 5)
    shutil.rmtree(tmp_path / ".keepstone")
    shutil.rmtree(tmp_path / ".index")
    with keepstone.open(tmp_path, embedder=Concepts("others")) as home:
        assert recalled(home) == ["0"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "[" * 4000, '{"id": 5, "dim": 5}', '{"id": "x", "dim": -1}', '{"id": "x", "dim": 5}'],
)
def test_a_damaged_record_of_the_space_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".index").mkdir()
    (tmp_path / ".index/.space.json").write_text(content, "utf-8")
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "her brother came")
        assert recalled(home) == ["0"]


@pytest.mark.parametrize("error", [OSError("no model file"), ValueError("bad"), MemoryError()])
def test_an_embedder_that_raises_leaves_recall_to_words_and_says_why(
    tmp_path: Path, error: Exception
) -> None:
    embedder = Concepts()
    with keepstone.open(tmp_path, embedder=embedder) as home:
        remember(home, "her sibling came")
        embedder.fails = error
        hits = home.agent("a").recall("my sibling")
        assert ([hit.entry.id for hit in hits], hits.lexical_only) == (["0"], True)
        assert type(error).__name__ in hits.reason


def test_an_embedder_of_the_wrong_shape_leaves_recall_to_words(tmp_path: Path) -> None:
    embedder = Concepts()
    embedder.dim = 9
    with keepstone.open(tmp_path, embedder=embedder) as home:
        remember(home, "her sibling came")
        hits = home.agent("a").recall("my sibling")
        assert ([hit.entry.id for hit in hits], hits.lexical_only) == (["0"], True)
        assert "shape" in hits.reason


def test_a_given_vector_counts_as_the_named_embedders_own(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        session = home.agent("a").session("s")
        entry = session.add("note", {"content": "unlike"}, embedding=[1, 0, 0, 0, 0])
        assert entry.line["embedding"]["space"] == "concepts"
        assert recalled(home)[0] == entry.id
        with pytest.raises(keepstone.EmbeddingDimMismatchError, match="concepts"):
            session.add("note", {"content": "three"}, embedding=[1, 0, 0])


def test_a_given_vector_under_auto_takes_the_space_of_the_embedder_at_hand_if_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "auto")
    with keepstone.open(tmp_path / "one") as home, keepstone.open(tmp_path / "two") as other:
        best = home.agent("a").vectors().embedder()
        if best is None:
            pytest.skip("no embedder is installed here")
        fits = home.agent("a").session("s").add("note", {"content": "x"}, embedding=[1.0] * best.dim)
        small = other.agent("a").session("s").add("note", {"content": "x"}, embedding=[1.0, 2.0])
        assert fits.line["embedding"]["space"] == best.id
        assert small.line["embedding"]["space"] == "given:2"


def test_without_an_embedder_vectors_alone_find_what_was_given(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("note", {"content": "east"}, id="e", embedding=[1, 0])
        session.add("note", {"content": "north"}, id="n", embedding=[0, 1])
        for query in (None, ""):
            hits = home.agent("a").recall(query, vector=[0.1, 1])
            assert ([hit.entry.id for hit in hits], hits.embedder) == (["n", "e"], "given:2")
        with pytest.raises(keepstone.EmbeddingDimMismatchError):
            home.agent("a").recall(None, vector=[1, 2, 3])
        with pytest.raises(keepstone.InvalidEmbeddingError):
            home.agent("a").recall(None, vector=[0, 0])


@pytest.mark.parametrize("query", [None, "", " "])
def test_a_query_without_words_and_vector_finds_nothing(tmp_path: Path, query: str | None) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "our brother in porto")
        assert home.agent("a").recall(query) == []


def test_words_and_meaning_find_more_together_than_each_alone(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        remember(home, "E4711 was seen", "our brother in porto", "nothing", "the zoo")
        assert set(recalled(home, "E4711 of my sibling")[:2]) == {"0", "1"}


def test_a_vector_alone_finds_the_nearest_entries_whatever_surrounds_them(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        angles = [0.3, 0.0, 0.5, 0.1, 0.4, 0.2]
        items = ({"id": str(n), "embedding": [1.0, angle]} for n, angle in enumerate(angles))
        home.agent("a").session("s").add_many(
            {"type": "event", "content": "Ann: hi"} | item for item in items
        )
        hits = home.agent("a").recall(None, vector=[1, 0])
        assert [hit.entry.id for hit in hits] == ["1", "3", "5", "0", "4", "2"]
        assert hits[1].score == hits[1].why.cosine == pytest.approx(1 / (1 + 0.1**2) ** 0.5)
