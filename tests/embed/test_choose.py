"""From a name or an object to an embedder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keepstone.embed import embedder
from keepstone.embed.catalogue import E5_MODEL, MINILM, STATIC_MODEL, Model
from keepstone.embed.choose import CHOICES, embedder_of, is_remote, unusable
from keepstone.embed.e5 import E5
from keepstone.embed.minilm import SPACE, MiniLM
from keepstone.embed.openai import OpenAIEmbedder
from keepstone.embed.static import Static
from keepstone.embed.wrapped import Wrapped
from keepstone.errors import EmbedderUnavailableError


class Own:
    id = "own"
    dim = 1

    def embed_documents(self, texts: list[str]) -> Any:
        raise AssertionError(texts)

    def embed_query(self, text: str) -> Any:
        raise AssertionError(text)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that seem to be installed: a list that the test changes."""
    packages = ["tokenizers", "openai"]
    monkeypatch.setattr(embedder, "find_spec", lambda name: name if name in packages else None)
    return packages


@pytest.fixture
def minilm(models: Path) -> Path:
    """A folder that looks like the installed model."""
    return pretended(models, MINILM)


@pytest.fixture
def static(models: Path) -> Path:
    """A folder that looks like the installed static vectors."""
    return pretended(models, STATIC_MODEL)


def pretended(models: Path, model: Model) -> Path:
    folder = models / model.name
    folder.mkdir(parents=True)
    for file in model.files:
        with (folder / file.name).open("wb") as made:
            made.truncate(file.size)
    return folder


@pytest.mark.parametrize("nothing", [None, "none"])
def test_none_means_no_embedder(nothing: str | None) -> None:
    assert embedder_of(nothing) is None


def test_an_embedder_of_ones_own_stays_itself() -> None:
    own = Own()
    assert embedder_of(own) is own
    assert is_remote(own) is False


def test_a_function_becomes_an_embedder_without_being_called() -> None:
    def never(texts: list[str]) -> Any:
        raise AssertionError(texts)

    assert isinstance(embedder_of(never), Wrapped)


def test_embeddings_of_langchain_become_an_embedder() -> None:
    class Chain(Own):
        id = None  # type: ignore[assignment]

    made = embedder_of(Chain())
    assert made is not None
    assert made.id == "langchain:" + Chain.__qualname__


@pytest.mark.parametrize("value", [5, b"minilm", object(), ["minilm"]])
def test_what_can_make_no_vectors_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="is not an embedder: give an object with"):
        embedder_of(value)


@pytest.mark.parametrize(
    "name", ["", "MiniLM", "openai", "openai:", "ftp://host", "given:384", "minilm:other"]
)
def test_a_word_that_names_no_embedder_lists_the_choices(name: str) -> None:
    with pytest.raises(ValueError, match="unknown embedder") as raised:
        embedder_of(name)
    assert all(choice in str(raised.value) for choice in CHOICES)


@pytest.mark.usefixtures("here", "minilm", "static")
def test_auto_is_the_model_where_it_is_installed() -> None:
    assert isinstance(embedder_of("auto"), MiniLM)
    assert (unusable("minilm"), unusable("static")) == (None, None)


@pytest.mark.usefixtures("here")
def test_auto_is_the_multilingual_model_where_only_that_is_installed(models: Path) -> None:
    pretended(models, E5_MODEL)
    assert isinstance(embedder_of("auto"), E5)
    assert isinstance(embedder_of(E5.id), E5)


@pytest.mark.usefixtures("here", "static")
def test_auto_is_static_where_only_that_is_installed() -> None:
    assert isinstance(embedder_of("auto"), Static)


@pytest.mark.usefixtures("here", "models")
def test_auto_is_none_if_no_model_is_installed() -> None:
    assert embedder_of("auto") is None


@pytest.mark.usefixtures("minilm", "static")
def test_auto_is_none_if_nothing_can_be_used(here: list[str]) -> None:
    here.clear()
    assert embedder_of("auto") is None
    assert "pip install 'keepstone[minilm]'" in str(unusable("minilm"))
    assert "pip install 'keepstone[static]'" in str(unusable("static"))


@pytest.mark.usefixtures("here", "models")
def test_a_named_model_that_is_not_installed_names_the_command() -> None:
    for name, model in (("minilm", "minilm"), (SPACE, "minilm"), ("static", "static"), (Static.id, "static")):
        with pytest.raises(EmbedderUnavailableError, match=f"keepstone model install {model}"):
            embedder_of(name)


@pytest.mark.usefixtures("minilm", "static")
@pytest.mark.parametrize(
    ("name", "extra"),
    [("minilm", "minilm"), ("static", "static"), ("openai:m", "openai"), ("http://h/v1?model=m", "openai")],
)
def test_a_named_embedder_without_its_package_names_the_extra(here: list[str], name: str, extra: str) -> None:
    here.clear()
    with pytest.raises(EmbedderUnavailableError, match=rf"pip install 'keepstone\[{extra}\]'"):
        embedder_of(name)


@pytest.mark.usefixtures("here", "minilm", "static")
@pytest.mark.parametrize(
    "name", ["minilm", "static", "openai:text-embedding-3-small", "http://h:1/v1?model=m"]
)
def test_the_id_of_a_space_names_its_embedder_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    made = embedder_of(name)
    assert made is not None
    again = embedder_of(made.id)
    assert again is not None
    assert (type(again), again.id) == (type(made), made.id)


@pytest.mark.usefixtures("here")
def test_a_server_is_known_to_be_remote() -> None:
    made = embedder_of("https://host/v1?model=m")
    assert isinstance(made, OpenAIEmbedder)
    assert is_remote(made) is True
