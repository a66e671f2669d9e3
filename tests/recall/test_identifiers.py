"""Identifiers in a question: the entries that hold them come first, whatever else speaks for others."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import keepstone
from keepstone import Agent, Hits
from keepstone.recall.query import identifiers_of

NAMES = ("ORD-48213", "kz07f2", "ECONNREFUSED", "parse_url", "getUserName", "app.models.User", "src/main.py")


class Misleading:
    """Vectors that have every question near to what says "noise", and far from all else."""

    id, dim = "misleading", 2

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        return np.array([[1, 0] if "noise" in text else [-1, 0.1] for text in texts], np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:  # noqa: ARG002
        return np.array([1, 0], np.float32)


@pytest.fixture(params=["none", "misleading"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    embedder = Misleading() if request.param == "misleading" else "none"
    with keepstone.open(tmp_path, durability="os", embedder=embedder) as home:
        agent = home.agent("a")
        texts = (
            f"noise about the status and the failure of what happened there, number {n}" for n in range(80)
        )
        agent.session("s").add_many(
            {"id": f"n{n}", "type": "note", "content": text} for n, text in enumerate(texts)
        )
        yield agent


def ids(hits: Hits) -> list[str]:
    return [hit.entry.id for hit in hits]


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_with_the_identifier_comes_first_whatever_the_vectors_say(agent: Agent, name: str) -> None:
    agent.session("t").add("note", {"content": f"It was {name}, in the end."}, id="it")
    hits = agent.recall(f"What happened to {name}, what is its status, and why the failure?")
    assert ids(hits)[0] == "it"
    assert "rare words found" in str(hits[0].why)


@pytest.mark.parametrize("name", ["ORD-48213", "parse_url", "app.models.User", "src/main.py"])
def test_a_whole_identifier_ranks_above_its_parts_elsewhere(agent: Agent, name: str) -> None:
    words = name.replace("-", " and ").replace("_", " and ").replace(".", " and ").replace("/", " and ")
    agent.session("t").add_many(
        {"id": f"part{n}", "type": "note", "content": f"{words} {words} {words}"} for n in range(20)
    )
    agent.session("u").add_many(
        {"id": f"whole{n}", "type": "note", "content": f"{n} times {name} in it"} for n in range(7)
    )
    assert {found[:5] for found in ids(agent.recall(name, limit=7))} == {"whole"}


def test_the_best_of_many_entries_with_an_identifier_comes_first(agent: Agent) -> None:
    why = "The old timeout was too short for slow disks, so that many users saw half of their files, " * 3
    agent.session("t").add("note", {"content": f"{why}as set in main.py"}, id="it")
    agent.session("t").add_many(
        {"id": f"other{n}", "type": "note", "content": f"main.py {n}"} for n in range(150)
    )
    agent.session("u").add_many(
        {"id": f"disk{n}", "type": "note", "content": f"timeout of disks {n}"} for n in range(9)
    )
    assert ids(agent.recall("Why is there a timeout for disks in main.py?"))[0] == "it"


def test_the_entry_with_all_rare_words_comes_first_whatever_the_vectors_say(agent: Agent) -> None:
    agent.session("t").add("note", {"content": "The mirror hangs in the corridor."}, id="it")
    agent.session("u").add("note", {"content": "Another mirror is for sale."}, id="half")
    assert ids(agent.recall("Where does the mirror hang?"))[0] == "it"


def test_an_identifier_with_a_camel_case_part_is_found_whole(agent: Agent) -> None:
    agent.session("t").add("note", {"content": "see app.UserService.find there"}, id="it")
    agent.session("u").add_many(
        {"id": f"part{n}", "type": "note", "content": "find the UserService app, find"} for n in range(7)
    )
    assert ids(agent.recall("app.UserService.find"))[0] == "it"


def test_an_identifier_outside_the_scope_is_not_found(agent: Agent) -> None:
    agent.session("t").add("note", {"content": "kz07f2"}, id="it")
    assert "it" not in ids(agent.recall("kz07f2", sessions=["s"]))


@pytest.mark.parametrize("name", NAMES)
def test_identifiers_are_recognized_in_a_question(name: str) -> None:
    assert identifiers_of(f"What became of {name}?") == [name]


@pytest.mark.parametrize(
    "query",
    [
        "How does sign-in work and/or fail?",
        "In 2023 on 2023-05-04 at noon",
        "WHY DOES IT FAIL",
        "Name ONLY and ONLY three of THEM",
        "on 19.01.2024",
        "U.S. and e.g.",
        "",
    ],
)
def test_prose_and_dates_are_not_identifiers(query: str) -> None:
    assert identifiers_of(query) == []


def test_a_stressed_stop_word_does_not_put_entries_first(agent: Agent) -> None:
    agent.session("t").add("note", {"content": "the walnut tree is in the garden"}, id="it")
    agent.session("t").add("note", {"content": "walnut walnut walnut, and only that"}, id="only")
    for hit in agent.recall("Mention ONLY the tree, a walnut in a garden"):
        assert "exact" not in hit.why.parts or hit.entry.id == "it"


def test_a_word_with_a_digit_that_many_entries_hold_is_a_word_like_others(agent: Agent) -> None:
    agent.session("t").add_many(
        {"id": f"k{n}", "type": "note", "content": f"k8s node {n}"} for n in range(20)
    )
    hits = agent.recall("k8s node")
    assert all("exact" not in hit.why.parts for hit in hits)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("getUserName", "user"),
        ("parse_url", "url"),
        ("app.models.Invoice", "invoice"),
        ("src/walnut.py", "walnut"),
        ("HTTPServerError", "the server"),
    ],
)
def test_an_identifier_is_found_by_its_parts(agent: Agent, name: str, part: str) -> None:
    agent.session("t").add("note", {"content": f"We call {name} twice."}, id="it")
    hits = agent.recall(part)
    assert ids(hits)[0] == "it"
    assert hits[0].why.words == (part.rsplit(maxsplit=1)[-1],)


def test_an_entry_is_found_by_its_aliases(agent: Agent) -> None:
    agent.session("t").add("note", {"content": "It runs on Kubernetes."}, id="it", aliases=["k8s", "kube"])
    for alias in ("k8s", "kube"):
        [best, *_] = agent.recall(f"how do we do it with {alias}?")
        assert (best.entry.id, best.why.words, best.entry.aliases) == ("it", (alias,), ("k8s", "kube"))


def test_aliases_given_later_are_found_and_those_taken_away_are_not(agent: Agent) -> None:
    session = agent.session("t")
    session.add("note", {"content": "Services run on Kubernetes."}, id="it")
    assert all(hit.why.words == () for hit in agent.recall("kube"))
    session.update("it", aliases=["kube"])
    assert ids(agent.recall("kube"))[0] == "it"
    session.update("it", aliases=None)
    assert all(hit.why.words == () for hit in agent.recall("kube"))
