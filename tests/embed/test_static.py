"""Static word vectors: the mean of a text's token vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keepstone.embed import embedder as embedders
from keepstone.embed.catalogue import STATIC_MODEL
from keepstone.embed.static import Static, check_static
from keepstone.errors import EmbedderUnavailableError

REFERENCE = Path(__file__).parent / "static_reference.json"


@pytest.fixture(scope="session")
def embedder(static_folder: Path) -> Static:
    return Static(static_folder)


def test_vectors_equal_those_that_the_package_makes(embedder: Static) -> None:
    reference = json.loads(REFERENCE.read_text("utf-8"))
    made = embedder.embed_documents(reference["texts"])
    assert made.dtype == np.float32
    assert made == pytest.approx(np.array(reference["vectors"]), abs=1e-6)


def test_the_id_of_its_space_is_that_of_existing_homes() -> None:
    assert (Static.id, Static.dim) == ("static:wordllama-0.4-l2_supercat_256", 256)


def test_near_words_are_nearer_than_others(embedder: Static) -> None:
    cat, kitten, invoice = embedder.embed_documents(["cat", "kitten", "invoice"])
    assert cat @ kitten > cat @ invoice


@pytest.mark.parametrize("text", ["", "\ud800", "\0", "x " * 500_000])
def test_odd_texts_have_finite_vectors(embedder: Static, text: str) -> None:
    assert np.isfinite(embedder.embed_query(text)).all()


def test_no_texts_make_no_vectors() -> None:
    assert Static().embed_documents([]).shape == (0, 256)


def test_other_weights_than_ours_are_refused(tmp_path: Path) -> None:
    for file in STATIC_MODEL.files:
        (tmp_path / file.name).write_bytes(b"others")
    with pytest.raises(EmbedderUnavailableError, match="has a wrong hash"):
        Static(tmp_path).embed_query("text")


@pytest.mark.usefixtures("models")
def test_a_missing_model_is_named_with_its_command() -> None:
    for use in (check_static, lambda: Static().embed_query("text")):
        with pytest.raises(EmbedderUnavailableError, match="run keepstone model install static"):
            use()


def test_a_missing_package_is_named_with_its_command(
    static_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    with pytest.raises(
        EmbedderUnavailableError, match=r"'static' needs .* pip install 'keepstone\[static\]'"
    ):
        Static(static_folder).embed_query("text")


GROWTH = """
import random, resource, sys
from pathlib import Path
from keepstone.embed.static import Static

model, chance = Static(Path(sys.argv[1])), random.Random(1)
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
for count in (20, 8000):
    model.embed_documents(["".join(chance.choices("abcdefgh ", k=200)) for _ in range(count)])
    print(most())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what ru_maxrss counts differs elsewhere")
def test_texts_that_were_embedded_are_not_kept_in_memory(static_folder: Path) -> None:
    command = [sys.executable, "-c", GROWTH, str(static_folder)]
    told = subprocess.check_output(command, text=True, timeout=300)
    before, after = map(float, told.split())
    assert after - before < 30
