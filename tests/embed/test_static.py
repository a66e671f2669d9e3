"""Static word vectors, out of the package that carries them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from keepstone.embed import embedder, static
from keepstone.embed.static import Static
from keepstone.errors import EmbedderUnavailableError

pytestmark = pytest.mark.skipif(not find_spec("wordllama"), reason="pip install 'keepstone[static]'")
TEXTS = ["Use OAuth 2.0 with PKCE.", "which authentication did we choose?", "ü 🦭", "a"]

THEIRS = """
import pathlib, sys
import numpy, wordllama
folder = pathlib.Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
numpy.save(sys.argv[1], model.embed(sys.argv[2:]))
"""


def test_vectors_equal_those_that_the_package_makes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", THEIRS, str(tmp_path / "theirs.npy"), *TEXTS]
    subprocess.run(command, check=True, capture_output=True)
    made = Static().embed_documents(TEXTS)
    assert made.dtype == np.float32
    assert made == pytest.approx(np.load(tmp_path / "theirs.npy"), abs=1e-6)


def test_the_package_is_read_but_not_imported() -> None:
    script = (
        "import sys; from keepstone.embed.static import Static; "
        "Static().embed_query('text'); sys.exit('wordllama' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_near_words_are_nearer_than_others() -> None:
    cat, kitten, invoice = Static().embed_documents(["cat", "kitten", "invoice"])
    assert cat @ kitten > cat @ invoice


@pytest.mark.parametrize("text", ["", "\ud800", "\0", "x " * 500_000])
def test_odd_texts_have_finite_vectors(text: str) -> None:
    assert np.isfinite(Static().embed_query(text)).all()


def test_no_texts_make_no_vectors() -> None:
    assert Static().embed_documents([]).shape == (0, 256)


def test_other_weights_than_ours_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / static.WEIGHTS.name).write_bytes(b"others")
    monkeypatch.setattr(static, "_package_folder", lambda: tmp_path)
    with pytest.raises(EmbedderUnavailableError, match="has a wrong hash"):
        Static().embed_query("text")


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "find_spec", lambda _: None)
    with pytest.raises(
        EmbedderUnavailableError, match=r"'static' needs .* pip install 'keepstone\[static\]'"
    ):
        Static().embed_query("text")


GROWTH = """
import random, resource
from keepstone.embed.static import Static

model, chance = Static(), random.Random(1)
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
for count in (20, 8000):
    model.embed_documents(["".join(chance.choices("abcdefgh ", k=200)) for _ in range(count)])
    print(most())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what ru_maxrss counts differs elsewhere")
def test_texts_that_were_embedded_are_not_kept_in_memory() -> None:
    told = subprocess.check_output([sys.executable, "-c", GROWTH], text=True, timeout=300)
    before, after = map(float, told.split())
    assert after - before < 30
