"""Embedders that are known by their answer to a fixed text, and spaces that callers name."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.recall.concepts import Concepts

import keepstone
from keepstone import EmbedderUnavailableError, Home, SpaceMismatchError
from keepstone.embed.openai import OpenAIEmbedder
from keepstone.recall import selection
from keepstone.recall.selection import Choice

pytestmark = pytest.mark.usefixtures("patient")

DIM = 32


class Model:
    """Makes vectors of words, other ones for each seed, with a little noise as other hardware has it."""

    def __init__(self, seed: int = 0, noise: float = 0.0) -> None:
        self._seed = seed
        self._noise = noise

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([self._of(text) for text in texts])

    def _of(self, text: str) -> NDArray[np.float32]:
        rows = [
            np.random.default_rng(self._seed + zlib.crc32(word.encode())) for word in text.lower().split()
        ]
        made = sum((row.standard_normal(DIM) for row in rows), np.zeros(DIM))
        return (made + self._noise * np.ones(DIM)).astype(np.float32)


def remember(home: Home) -> None:
    home.agent("a").session("s").add("note", text="her brother came", id="it")
    assert home.agent("a").recall("her brother")[0].why.cosine == pytest.approx(1, abs=0.4)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A home with vectors of a bound method."""
    with keepstone.open(tmp_path, embedder=Model().encode) as home:
        remember(home)
    return tmp_path


SAME: dict[str, Callable[[list[str]], Any]] = {
    "method": Model(noise=0.01).encode,
    "lambda": lambda texts: Model().encode(texts),
    "partial": partial(Model.encode, Model()),
}


@pytest.mark.parametrize("function", SAME.values(), ids=SAME)
def test_the_same_model_opens_its_home_in_any_form(made: Path, function: Callable[..., Any]) -> None:
    with keepstone.open(made, embedder=function) as home:
        hits = home.agent("a").recall("her brother")
    assert (hits.pending, hits[0].entry.id) == (0, "it")
    assert hits.embedder is not None
    assert hits.embedder.startswith("unnamed:")


def test_another_model_is_refused_with_its_cosine(made: Path) -> None:
    with pytest.raises(SpaceMismatchError, match=r"answer to the probe text differs \(cosine -?0\.\d\d\)"):
        keepstone.open(made, embedder=Model(seed=1).encode)


def test_a_failing_embedder_without_an_id_cannot_open_a_home(tmp_path: Path) -> None:
    def fail(_: list[str]) -> Any:
        raise OSError("no model")

    with pytest.raises(EmbedderUnavailableError, match="OSError: no model"):
        keepstone.open(tmp_path, embedder=partial(fail))
    assert list(tmp_path.iterdir()) == []


def test_a_space_that_is_named_by_hand_is_compared_by_its_name(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Model().encode, space="ours-1") as home:
        remember(home)
    with keepstone.open(tmp_path, embedder=Model(noise=0.3).encode, space="ours-1") as home:
        assert home.agent("a").recall("her brother").embedder == "ours-1"
    with pytest.raises(SpaceMismatchError, match="'ours-1', not 'ours-2'"):
        keepstone.open(tmp_path, embedder=Model().encode, space="ours-2")


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_a_space_is_named_together_with_its_embedder(tmp_path: Path, embedder: str) -> None:
    with pytest.raises(ValueError, match="give embedder=, too"):
        keepstone.open(tmp_path, embedder=embedder, space="ours-1")


def test_a_home_whose_embedder_is_not_here_says_how_to_mend_it(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "auto")
    command = "keepstone index --re-embed --embedder NAME"
    with keepstone.open(made) as home:
        hits = home.agent("a").recall("her brother")
        [finding] = [one for one in home.doctor() if one.subject == "embedder"]
    assert hits.lexical_only
    assert command in hits.reason
    assert (finding.level, finding.remedy) == ("warning", command)


def test_an_agent_with_given_vectors_says_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="her brother came", embedding=[1.0, 0.0])
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "auto")
    monkeypatch.setattr(selection, "best", lambda: Choice(Concepts(), "the best that is installed here"))
    with keepstone.open(tmp_path) as home:
        reason = home.agent("a").recall("brother").reason
        [finding] = [one for one in home.doctor() if one.subject == "a" and "given:2" in one.message]
    assert "keepstone index --re-embed --embedder concepts" in reason
    assert finding.remedy == "keepstone index --re-embed --embedder concepts"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers on some ports: those below 9000 have one model, the others another one."""

    def model(self: OpenAIEmbedder) -> Model:
        return Model(seed=int(":9" in str(self._base_url)))

    monkeypatch.setattr(OpenAIEmbedder, "dim", DIM)
    monkeypatch.setattr(OpenAIEmbedder, "embed_documents", lambda self, texts: model(self).encode(texts))
    monkeypatch.setattr(OpenAIEmbedder, "embed_query", lambda self, text: model(self).encode([text])[0])


def at(port: int) -> str:
    return f"http://localhost:{port}/v1?model=m"


@pytest.mark.usefixtures("servers")
def test_the_same_model_at_another_port_opens_its_home(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=at(8000)) as home:
        home.agent("a").session("s").add("note", text="her brother came", id="it")
        home.embed()
    with keepstone.open(tmp_path, embedder=at(8001)) as home:
        hits = home.agent("a").recall("her brother")
    assert (hits.embedder, hits.pending, hits[0].entry.id) == (at(8000), 0, "it")


@pytest.mark.usefixtures("servers")
def test_another_model_at_another_port_is_refused(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=at(8000)) as home:
        home.agent("a").session("s").add("note", text="her brother came")
        home.embed()
    with pytest.raises(SpaceMismatchError, match=r":8000.*not.*:9000.*probe text differs"):
        keepstone.open(tmp_path, embedder=at(9000))
