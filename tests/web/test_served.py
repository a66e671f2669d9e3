"""The pages of ``keepstone serve``, with the model that the environment names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

import keepstone
from keepstone import Home, Notes
from keepstone.chat import ModelError
from keepstone.web.served import pages


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(("word", "error"), [("gpt-5", ValueError), ("anthropic:m", ModelError)])
def test_a_model_that_cannot_answer_is_reported_before_there_are_pages(
    home: Home, monkeypatch: pytest.MonkeyPatch, word: str, error: type[Exception]
) -> None:
    monkeypatch.setenv("KEEPSTONE_CHAT_MODEL", word)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    app, before = FastAPI(), len(FastAPI().routes)
    with pytest.raises(error, match="model"):
        pages(home, Notes(home.root), home.root)(app)
    assert len(app.routes) == before
