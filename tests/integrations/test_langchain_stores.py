"""LangChain's stores of bytes and documents on each store of keepstone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

import keepstone
from keepstone import Agent, Home
from keepstone.integrations.langchain import KeepstoneByteStore, KeepstoneVectorStore

TEXTS = ["Ada takes the ferry", "The ferry leaves at noon", "The harbour has a crane"]


class Counted(Embeddings):
    """Vectors with the counts of three words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*(float(word in text.lower()) for word in ("ada", "ferry", "crane")), 0.1] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


@pytest.fixture
def documents(home: Home) -> KeepstoneVectorStore:
    store = KeepstoneVectorStore(Counted(), home)
    store.add_texts(TEXTS, [{"page": page} for page in (1, 2, 3)], ids=["a", "b", "c"])
    return store


def contents(found: list[Document]) -> list[str]:
    return [document.page_content for document in found]


def test_documents_come_by_cosine(documents: KeepstoneVectorStore) -> None:
    found = documents.similarity_search_with_score("crane", k=2)
    assert contents([document for document, _ in found]) == [TEXTS[2], TEXTS[1]]
    assert found[0][1] == pytest.approx(1)
    assert documents.similarity_search_with_relevance_scores("crane", k=1)[0][1] == pytest.approx(1)


def test_documents_are_filtered_by_metadata(documents: KeepstoneVectorStore) -> None:
    assert contents(documents.similarity_search("crane", filter={"page": {"lt": 3}}, k=1)) == [TEXTS[1]]


def test_different_documents_are_preferred_on_request(documents: KeepstoneVectorStore) -> None:
    documents.add_texts(["Ada and the ferry again"], ids=["d"])
    found = documents.max_marginal_relevance_search("Ada takes the ferry", k=2, lambda_mult=0.1)
    assert len({*contents(found)} & {TEXTS[0], "Ada and the ferry again"}) == 1


def test_recall_finds_documents(documents: KeepstoneVectorStore, agent: Agent) -> None:
    hit = agent.recall("When does the ferry leave?")[0]
    assert (hit.entry.text, hit.entry.data, hit.entry.session) == (TEXTS[1], {"page": 2}, "documents")
    assert documents.get_by_ids([hit.entry.id])[0].metadata == {"page": 2}


def test_deleting_documents_leaves_other_sessions_alone(
    documents: KeepstoneVectorStore, agent: Agent
) -> None:
    agent.session("main").add("note", "Kept", id="a")
    documents.delete(["a", "missing"])
    assert documents.get_by_ids(["c", "a", "b"]) == documents.get_by_ids(["c", "b"])
    documents.delete()
    assert [entry.text for entry in agent.iter_entries()] == ["Kept"]


def test_a_replaced_document_has_its_new_vector(documents: KeepstoneVectorStore) -> None:
    documents.add_documents([Document(id="a", page_content="A crane for Ada")])
    assert contents(documents.similarity_search("Ada crane", k=1)) == ["A crane for Ada"]
    assert documents.get_by_ids(["a"])[0].metadata == {}


def test_empty_documents_are_kept(documents: KeepstoneVectorStore) -> None:
    (made,) = documents.add_documents([Document(page_content="")])
    assert documents.get_by_ids([made]) == [Document(id=made, page_content="", metadata={})]


def test_vectors_of_another_dimension_are_refused(documents: KeepstoneVectorStore, home: Home) -> None:
    class Short(Counted):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

    with pytest.raises(ValueError, match="2 numbers, and the space .* has 4"):
        KeepstoneVectorStore(Short(), home).add_texts(["x"])
    assert len(documents.similarity_search("x", k=9)) == 3


def test_too_few_ids_write_nothing(documents: KeepstoneVectorStore) -> None:
    with pytest.raises(ValueError, match="ids must have one item for each text, not 1 for 2 texts"):
        documents.add_texts(["x", "y"], ids=["x"])


def test_a_store_is_made_from_texts(home: Home) -> None:
    store = KeepstoneVectorStore.from_texts(TEXTS, Counted(), ids=["a", "b", "c"], home=home, name="books")
    assert contents(KeepstoneVectorStore(Counted(), home, name="books").similarity_search("Ada", k=1)) == [
        TEXTS[0]
    ]
    assert store.embeddings is not None


def test_bytes_are_kept_between_processes_and_not_recalled(target: str) -> None:
    with keepstone.open(target, embedder="none") as home:
        KeepstoneByteStore(home).mset([("page", b"the ferry"), ("", b"")])
    with keepstone.open(target, embedder="none") as home:
        assert KeepstoneByteStore(home).mget(["", "page", "x"]) == [b"", b"the ferry", None]
        assert home.agent("default").recall("page ferry") == []


def test_keys_are_listed_by_prefix(home: Home) -> None:
    store = KeepstoneByteStore(home)
    store.mset([(key, b"x") for key in ("b/1", "a/1", "a/2")])
    store.mdelete(["a/2"])
    assert [*store.yield_keys(prefix="a/")] == ["a/1"]


def test_stores_of_two_names_share_nothing(tmp_path: Path) -> None:
    KeepstoneByteStore(tmp_path, name="one").mset([("k", b"1")])
    assert KeepstoneByteStore(tmp_path, name="two").mget(["k"]) == [None]
