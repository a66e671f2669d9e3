"""Recall in an agent's files and in notes, beside its entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Hits, Notes
from keepstone.model import RELEVANT, Scope
from keepstone.recall.excerpts import LARGEST, sections_of

ALL = ("entries", "files", "notes")
PLAN = "# Plan\n\nThe walnut table ships in May.\n\n## Budget\n\nServers first:\n- 10 racks\n- 2 routers\n"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        yield home.agent("a")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    notes = Notes(tmp_path, tmp_path / "user.md")
    notes.add("Oil the walnut table twice a year", "Project")
    notes.add("Answer in French", "User")
    return notes


def found(hits: Hits) -> list[tuple[str, str | None, int | None]]:
    return [(hit.kind, hit.path, hit.line) for hit in hits]


def test_a_recall_searches_entries_unless_told_otherwise(agent: Agent) -> None:
    agent.files.write("plan.md", PLAN)
    entry = agent.session("s").add("note", text="walnut oil")
    (hit,) = agent.recall("walnut")
    assert (hit.kind, hit.entry, hit.text, hit.path, hit.line) == ("entry", entry, "walnut oil", None, None)


def test_hits_of_files_and_notes_name_path_and_line(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    agent.files.write("plans/may.md", PLAN)
    hits = agent.recall("walnut", include=("files", "notes"), notes=notes)
    assert sorted(found(hits)) == [("file", "plans/may.md", 3), ("note", str(tmp_path / "AGENTS.md"), 3)]
    assert {hit.text for hit in hits} == {
        "The walnut table ships in May.",
        "Oil the walnut table twice a year",
    }
    assert [hit.entry for hit in hits] == [None, None]
    assert all(hit.why.words == ("walnut",) for hit in hits)


def test_an_excerpt_that_fits_better_ranks_above_an_entry_and_a_worse_one_below(agent: Agent) -> None:
    session = agent.session("s")
    session.add("note", text="the walnut table was sanded and is waiting for oil")
    agent.files.write("plan.md", "The walnut table ships in May.\n\nA chair made of ash.\n\nAn old table.\n")
    hits = agent.recall("when does the walnut table ship", include=("entries", "files"))
    assert [(hit.kind, hit.line) for hit in hits] == [("file", 1), ("entry", None), ("file", 5)]
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)


def test_the_limit_counts_all_kinds_together(agent: Agent, notes: Notes) -> None:
    agent.files.write("plan.md", PLAN)
    agent.session("s").add("note", text="walnut")
    for limit in range(4):
        assert len(agent.recall("walnut", limit=limit, include=ALL, notes=notes)) == limit


def test_a_hit_points_to_the_line_of_a_paragraph_that_has_the_words(agent: Agent) -> None:
    agent.files.write("log.txt", "monday: oak\r\ntuesday: walnut\r\nwednesday: walnut oil\r\n")
    (hit,) = agent.recall("walnut oil", include=["files"])
    assert (hit.path, hit.line) == ("log.txt", 3)


@pytest.mark.parametrize("query", ["budget routers", "autumn routers"])
def test_headings_and_file_names_count_as_words_of_what_is_below(agent: Agent, query: str) -> None:
    agent.files.write("autumn.md", PLAN)
    agent.files.write("june.md", "- 3 routers\n")
    best = agent.recall(query, include=["files"])[0]
    assert (best.path, best.text) == ("autumn.md", "- 2 routers")


@pytest.mark.parametrize("query", ["walunt", "the wlanut tbale"])
def test_two_exchanged_letters_still_find_files_and_notes(agent: Agent, notes: Notes, query: str) -> None:
    agent.files.write("plan.md", PLAN)
    hits = agent.recall(query, include=("files", "notes"), notes=notes)
    assert {hit.kind for hit in hits} == {"file", "note"}
    assert all("walnut" in hit.why.words for hit in hits)


def test_a_word_that_entries_hold_is_not_corrected_for_files(agent: Agent) -> None:
    agent.session("s").add("note", text="the trial was short")
    agent.files.write("plan.md", "The trail is long.\n")
    assert agent.recall("trial", include=("files",)) == []


def test_files_are_found_as_they_are_now(agent: Agent) -> None:
    agent.files.write("plan.md", "walnut")
    agent.files.write("plan.md", "oak")
    assert agent.recall("walnut", include=["files"]) == []
    assert found(agent.recall("oak", include=["files"])) == [("file", "plan.md", 1)]


def test_files_of_another_agent_are_not_searched(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("b").files.write("plan.md", "walnut")
        assert home.agent("a").recall("walnut", include=["files"]) == []


def test_files_that_are_too_large_or_not_text_are_named(agent: Agent, tmp_path: Path) -> None:
    agent.files.write("small.md", "walnut")
    agent.files.write("large.md", "walnut " * (LARGEST // 7 + 1))
    (tmp_path / "home/agents/a/files/picture").write_bytes(b"\xff\xd8walnut")
    hits = agent.recall("walnut", include=["files"])
    assert (found(hits), hits.skipped) == ([("file", "small.md", 1)], ("large.md", "picture"))


def test_vectors_find_excerpts_in_other_words(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts()) as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="lunch was good")
        agent.files.write("plan.md", "the weather is fine\n\nmy sibling is here\n")
        best = agent.recall("sister", include=("entries", "files"))[0]
        assert (best.path, best.line, best.why.words) == ("plan.md", 3, ())
        assert best.why.cosine is not None


def test_a_reranker_scores_excerpts_and_entries_alike(tmp_path: Path) -> None:
    def by_length(_: str, texts: list[str]) -> list[float]:
        return [float(len(text)) for text in texts]

    with keepstone.open(tmp_path, embedder="none", reranker=by_length) as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="walnut, long")
        agent.files.write("plan.md", "walnut, longer\n\nwalnut\n")
        hits = agent.recall("walnut", include=("entries", "files"))
        assert [hit.text for hit in hits] == ["walnut, longer", "walnut, long", "walnut"]


@pytest.mark.parametrize(
    ("include", "message"),
    [(("entry",), "'entry'"), ((), "empty"), (("notes",), "pass notes="), (("entries", "x"), "'x'")],
)
def test_include_rejects_what_cannot_be_searched(
    agent: Agent, include: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        agent.recall("walnut", include=include)
    with pytest.raises(TypeError, match="include"):
        agent.recall("walnut", include="files")


def test_files_and_notes_cannot_be_searched_as_of_another_time(agent: Agent) -> None:
    with pytest.raises(ValueError, match="as_of"):
        agent.recall("walnut", include=["files"], as_of="2026-01-01")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n\n# Alone\n", []),
        ("one\ntwo\n\nthree", [(1, "one\ntwo"), (4, "three")]),
        ("- a\n  more\n- b\n1. c\n", [(1, "- a\n  more"), (3, "- b"), (4, "1. c")]),
        ("```\n# not a heading\n- no bullet\n```\n", [(1, "```\n# not a heading\n- no bullet\n```")]),
        ("a\r\rb", [(1, "a"), (3, "b")]),
    ],
)
def test_a_file_is_cut_into_paragraphs_and_bullets(text: str, expected: list[tuple[int, str]]) -> None:
    assert [(one.excerpt.line, one.excerpt.text) for one in sections_of("f", text)] == expected


def test_long_paragraphs_are_cut_and_nothing_is_lost() -> None:
    lines = [f"word{number} " * 9 for number in range(200)]
    texts = [one.excerpt.text for one in sections_of("f", "\n".join([*lines, "x" * 2500]))]
    assert max(map(len, texts)) <= 1001
    assert "".join("".join(texts).split()) == "".join([*lines, "x" * 2500]).replace(" ", "")


def test_a_hit_of_a_long_paragraph_has_its_best_passage(agent: Agent) -> None:
    agent.files.write("plan.md", "Then we had tea. " * 40 + "The table is walnut. " + "We met at noon. " * 40)
    hits = agent.recall("walnut table", include=("files",))
    assert "The table is walnut." in hits[0].passage
    assert len(hits[0].passage) <= 400


@pytest.mark.parametrize("embedder", [None, Concepts])
def test_excerpts_that_say_what_is_asked_are_relevant_and_others_not(
    tmp_path: Path, notes: Notes, embedder: type[Concepts] | None
) -> None:
    with keepstone.open(tmp_path / "home", embedder=embedder() if embedder else "none") as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "note", "text": f"lunch number {n} was good"} for n in range(20))
        agent.vectors().fill(Scope("a"))
        agent.files.write("plan.md", PLAN)
        hits = agent.recall("When does the walnut table ship?", include=ALL, notes=notes)
        relevance = {hit.text: hit.relevance for hit in hits}
        assert relevance.pop("The walnut table ships in May.") > 0.6
        assert relevance.pop("Oil the walnut table twice a year") > RELEVANT
        assert max(relevance.values(), default=0.0) < RELEVANT


def test_the_least_relevance_holds_for_excerpts_too(agent: Agent, notes: Notes) -> None:
    agent.files.write("plan.md", PLAN)
    kinds = ("files", "notes")
    hits = agent.recall("Which plumber repaired the table?", include=kinds, notes=notes)
    assert hits
    assert hits.nothing_relevant
    assert (
        agent.recall("Which plumber repaired the table?", include=kinds, notes=notes, min_relevance=0.3) == []
    )


def test_times_in_words_and_speakers_do_not_lower_relevance_of_excerpts(agent: Agent) -> None:
    agent.session("s").add("message", {"speaker": "Ann", "content": "The walnut is a tree."})
    agent.files.write("plan.md", PLAN)
    plain = agent.recall("walnut table", include=("entries", "files"))
    named = agent.recall("Ann walnut table yesterday", include=("entries", "files"))
    relevance = [next(hit.relevance for hit in hits if hit.kind == "file") for hits in (plain, named)]
    assert relevance[0] == pytest.approx(relevance[1])
