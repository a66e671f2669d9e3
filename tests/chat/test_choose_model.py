"""Which model answers."""

from __future__ import annotations

import pytest

from keepstone.chat import ModelError, choose
from keepstone.chat.anthropic_model import AnthropicModel
from keepstone.chat.offline import OfflineResponder
from keepstone.chat.openai_model import OpenAIModel

pytest.importorskip("openai")
pytest.importorskip("anthropic")
KEYS = {"OPENAI_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": "sk-other"}


@pytest.mark.parametrize(
    ("variables", "kind", "name"),
    [
        ({}, OfflineResponder, "offline"),
        (KEYS, OfflineResponder, "offline"),
        ({**KEYS, "OPENAI_MODEL": "gpt-x"}, OpenAIModel, "openai:gpt-x"),
        ({**KEYS, "ANTHROPIC_MODEL": "claude-x"}, AnthropicModel, "anthropic:claude-x"),
        ({**KEYS, "OPENAI_MODEL": "a", "KEEPSTONE_CHAT_MODEL": "offline"}, OfflineResponder, "offline"),
        ({"KEEPSTONE_CHAT_MODEL": "http://h:1/v1?model=m"}, OpenAIModel, "m at h:1"),
        ({"OPENAI_MODEL": "llama", "OPENAI_BASE_URL": "http://h:1/v1"}, OpenAIModel, "openai:llama"),
    ],
)
def test_the_environment_names_a_model_and_a_key_alone_does_not(
    variables: dict[str, str], kind: type, name: str
) -> None:
    choice = choose(None, variables)
    assert (type(choice.model), choice.model.name) == (kind, name)


def test_a_model_that_is_named_beats_the_environment() -> None:
    assert choose("offline", {**KEYS, "OPENAI_MODEL": "gpt-x"}).model.name == "offline"


def test_without_a_model_the_reason_says_how_to_name_one() -> None:
    assert "--model or $KEEPSTONE_CHAT_MODEL" in choose(None, KEYS).reason


@pytest.mark.parametrize(
    ("word", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_names_its_variable(word: str, variable: str) -> None:
    with pytest.raises(ModelError, match=f"set {variable}"):
        choose(word, {})


@pytest.mark.parametrize(
    "word",
    [
        "gpt-5",
        "openai:",
        "anthropic:",
        "",
        "http://h/v1",
        "http:///v1?model=m",
        "http://me:word@h/v1?model=m",
        "http://:word@h/v1?model=m",
        "http://h/v1?model=m&key=word",
        "ftp://h?model=m",
    ],
)
def test_a_name_of_another_form_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="model"):
        choose(word, KEYS)


def test_a_model_shows_no_key() -> None:
    for word in ("openai:m", "anthropic:m"):
        model = choose(word, KEYS).model
        assert "sk-" not in repr(model) + repr(vars(model))
