import json
import sys
from base64 import b64encode
from hashlib import sha512
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


def noise(size: int) -> bytes:
    """Bytes without a pattern, the same on every run."""
    return b"".join(sha512(bytes([number])).digest() for number in range(size // 64 + 1))[:size]


def words(template: str, count: int = 40) -> str:
    """One word a number, made from hexadecimal noise or from the number's square."""
    return " ".join(
        template.format(noise(64 * number + 64)[-64:].hex(), str(number**5)) for number in range(count)
    )


CODE = """def retry(call, *, times=3, wait=0.5):
    for n in range(times):
        try:
            return call(attempt=n)
        except OSError as error:
            log.warning("%s failed: %r", call.__name__, error)
            time.sleep(wait * 2**n)
    raise RuntimeError(f"gave up after {times} attempts")
"""
COUNTED = {
    # The text, and how many tokens it has for Llama 2 (the vocabulary that wordllama 0.4.0 carries, read with
    # tokenizers 0.23.3) and in OpenAI's o200k_base and cl100k_base (npm gpt-tokenizer 4.0.0).
    "UUIDs": (words("{0:.8}-{0:.4}-7{0:.3}-8{0:.3}-{0:.12}"), (1346, 947, 948)),
    "digits": (words("{1}"), (292, 139, 139)),
    "times": (words("2026-03-04T{1:0>2.2}:05:06.{1:0>8}Z"), (1200, 719, 719)),
    "base64": (b64encode(noise(1200)).decode(), (1326, 1091, 1156)),
    "hashes": (noise(1200).hex(), (2161, 1370, 1365)),
    "code": (CODE * 4, (396, 316, 308)),
    "brackets": ("{[(x+y)*z];}\n" * 40, (400, 320, 320)),
    "minified": ("for(var f=0;f<d.length;f++){if(d[f]!==e){return!1}}" * 20, (580, 480, 460)),
    "JSON": (json.dumps([{"id": n**5, "ok": True, "tags": ["a", "b"]} for n in range(40)]), (1053, 901, 901)),
    "log lines": (words("[{1}] GET /v1/agents/{0:.6}?limit=20 200 {1}ms\n"), (1598, 1058, 1056)),
    "emoji": ("\U0001f600\U0001f389\U0001f468\u200d\U0001f469" * 40, (681, 320, 520)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_estimate_is_hardly_below_a_tokenizer_and_not_far_above(name: str) -> None:
    text, counts = COUNTED[name]
    assert 0.9 * max(counts) <= estimate_tokens(text) <= 2.2 * min(counts)


def test_the_estimate_of_plain_prose_is_a_third_of_its_bytes() -> None:
    assert estimate_tokens("we use pnpm instead of npm in this project") == 14


@given(st.text())
def test_the_estimate_is_at_least_a_third_of_the_bytes(text: str) -> None:
    assert 3 * estimate_tokens(text) >= len(text.encode("utf-8", "replace"))


@given(st.text("aB1. \n\u00e9\u4e16\U0001f600"), st.text("aB1. \n\u00e9\u4e16\U0001f600"))
def test_a_longer_text_never_has_a_lower_estimate(text: str, more: str) -> None:
    assert estimate_tokens(text) <= estimate_tokens(text + more)


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


def test_a_model_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(TypeError, match="model must be a string"):
        counter_of(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("answer", "error"), [(1.5, TypeError), (True, TypeError), (-1, ValueError)])
def test_a_counter_must_answer_with_a_number_from_zero(answer: object, error: type[Exception]) -> None:
    count = checked(lambda _: answer)  # type: ignore[arg-type]
    with pytest.raises(error, match="the counter's result must"):
        count("text")


def test_a_counter_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="counter must be a function"):
        checked(3)  # type: ignore[arg-type]
