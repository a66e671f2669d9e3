import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.context.counting import checked, counter_of, estimate_tokens


class Tokenizer:
    """What tiktoken offers of itself here: a token for every character."""

    def __init__(self, *, offline: bool = False) -> None:
        self._offline = offline

    def get_encoding(self, name: str) -> SimpleNamespace:
        if self._offline:
            raise OSError("no network")
        return SimpleNamespace(encode_ordinary=lambda text: [name, *text[1:]])

    def encoding_for_model(self, name: str) -> SimpleNamespace:
        if name != "gpt-4o":
            raise KeyError(name)
        return self.get_encoding(name)


@given(st.text())
def test_the_estimate_of_tokens_is_a_third_of_the_bytes_rounded_up(text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    assert size <= 3 * estimate_tokens(text) < size + 3


@pytest.mark.parametrize("model", ["openai", "openai:gpt-4o"])
def test_an_installed_tokenizer_counts_exactly(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", Tokenizer())
    assert counter_of(model)("seven c") == 7


@pytest.mark.parametrize("model", ["openai:unheard-of", "anthropic", "", "openai-like"])
def test_a_model_without_a_tokenizer_gets_the_estimate(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", Tokenizer())
    assert counter_of(model) is estimate_tokens


@pytest.mark.parametrize("tokenizer", [None, Tokenizer(offline=True)])
def test_a_tokenizer_that_cannot_be_used_leaves_the_estimate(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer | None
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", tokenizer)
    assert counter_of("openai") is estimate_tokens


def test_a_model_that_is_no_string_is_refused() -> None:
    with pytest.raises(TypeError, match="model must be a string"):
        counter_of(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("answer", "error"), [(1.5, TypeError), (True, TypeError), (-1, ValueError)])
def test_a_counter_must_answer_with_a_number_from_zero(answer: object, error: type[Exception]) -> None:
    count = checked(lambda _: answer)  # type: ignore[arg-type]
    with pytest.raises(error, match="counter must"):
        count("text")


def test_a_counter_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="counter must be a function"):
        checked(3)  # type: ignore[arg-type]
