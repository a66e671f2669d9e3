"""all-MiniLM-L6-v2: its vectors are those of the original."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keepstone.embed import minilm
from keepstone.embed.minilm import MiniLM, check_minilm
from keepstone.embed.tensors import read_tensors
from keepstone.errors import EmbedderUnavailableError

REFERENCE = Path(__file__).parent / "minilm_reference.json"


@pytest.fixture(scope="session")
def embedder(minilm_folder: Path) -> MiniLM:
    return MiniLM(minilm_folder)


def test_vectors_equal_the_reference_within_a_hundred_thousandth(embedder: MiniLM) -> None:
    reference = json.loads(REFERENCE.read_text("utf-8"))
    made = embedder.embed_documents(reference["texts"])
    assert made.dtype == np.float32
    assert made == pytest.approx(np.array(reference["vectors"]), abs=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: MiniLM) -> None:
    texts = ["word " * count for count in (300, 1, 40, 7)]
    made = embedder.embed_documents(texts)
    assert embedder.embed_query(texts[2]) == pytest.approx(made[2], abs=1e-6)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_only_the_first_256_tokens_of_a_text_count(embedder: MiniLM) -> None:
    long = "word " * 254
    one, other = embedder.embed_documents([long + "one", long + "other " * 100_000])
    assert np.allclose(one, other, atol=1e-6)


def test_no_texts_make_no_vectors(embedder: MiniLM) -> None:
    assert embedder.embed_documents([]).shape == (0, 384)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🦭" * 1000, " " * 20_000])
def test_odd_texts_have_finite_vectors(embedder: MiniLM, text: str) -> None:
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-6)


def test_threads_load_the_model_only_once(minilm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def read(path: Path) -> dict[str, Any]:
        loaded.append(path)
        return read_tensors(path)

    monkeypatch.setattr(minilm, "read_tensors", read)
    embedder, barrier = MiniLM(minilm_folder), threading.Barrier(3)

    def ask() -> None:
        barrier.wait(30)
        embedder.embed_query("text")

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 1


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_model_that_was_tampered_with_is_refused(minilm_folder: Path, tmp_path: Path, damage: str) -> None:
    folder = shutil.copytree(minilm_folder, tmp_path / "copy")
    with (folder / "model.safetensors").open("r+b") as file:
        if damage == "cut":
            file.truncate(50_000_000)
        file.seek(1_000_000)
        file.write(b"\xff")
    with pytest.raises(EmbedderUnavailableError, match=r"model.safetensors has a wrong hash"):
        MiniLM(folder).embed_query("text")


@pytest.mark.usefixtures("models")
def test_a_model_that_is_not_installed_is_named_with_the_command() -> None:
    with pytest.raises(
        EmbedderUnavailableError, match="'minilm' is not installed: run keepstone model install"
    ):
        MiniLM().embed_query("text")


def test_a_model_with_a_missing_file_is_said_to_be_damaged(models: Path) -> None:
    (models / "minilm").mkdir(parents=True)
    with pytest.raises(
        EmbedderUnavailableError, match="'minilm' is damaged: run keepstone model install minilm"
    ):
        check_minilm()
