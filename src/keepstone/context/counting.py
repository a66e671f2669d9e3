"""How many tokens a text has: as a provider's tokenizer counts, or as a conservative estimate."""

from __future__ import annotations

import importlib
import logging
from typing import Protocol

from keepstone.log.arguments import count_of


class Counter(Protocol):
    """Counts the tokens that a text has for the model that will read it; any such function is one."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens, from 0."""


ENCODING = "o200k_base"
"""What OpenAI's present models cut texts with, where no model is named."""

_PLAIN, _LONG = 0x80, 0xF0
"""The first byte of UTF-8 beyond ASCII, and the first that begins a character of four bytes."""


def _kind(byte: int) -> str:
    """Return the kind of a byte of UTF-8 as one letter."""
    if byte >= _LONG:
        return "4"
    if byte >= _PLAIN or byte == ord(" "):
        return " "
    letter = chr(byte)
    return "a" if letter.islower() else "A" if letter.isupper() else "0" if letter.isdigit() else "."


_KINDS = "".join(map(_kind, range(256))).encode()
_SIXTHS = (
    {b"A": 2, b"0": 4, b".": 4, b"4": 16}
    | dict.fromkeys((b"a0", b"0a", b"A0", b"0A", b" 0"), 4)
    | dict.fromkeys((b"aAA", b"AAa"), 5)
)
"""Sixths of a token that a kind, or a change of kind, costs beyond the two sixths of every byte."""

log = logging.getLogger("keepstone.context")


def estimate_tokens(text: str) -> int:
    """Return a conservative estimate of how many tokens a text has, by the kinds of its characters.

    Words take a token for three bytes of UTF-8. Digits, punctuation, line ends and tabs take one each, emoji
    four, and keys, hashes and base64, which change between letters and digits or cases, nearly one a letter.

    For digits, UUIDs, base64, code and JSON it is at least nine tenths of what the tokenizers of Llama 2 and
    of OpenAI's models count, and at most about twice as much. Old tokenizers need more for scripts that they
    saw little of, such as Greek or Amharic: give a counter there.
    """
    kinds = text.encode("utf-8", "replace").translate(_KINDS)
    sixths = 2 * len(kinds) + sum(cost * kinds.count(kind) for kind, cost in _SIXTHS.items())
    return -(-sixths // 6)


def counter_of(model: str) -> Counter:
    """Return what counts tokens as a model does, where its tokenizer is installed, else the estimate.

    Only OpenAI's tokenizer can be installed (``pip install tiktoken``). Without it, or where it has no
    vocabulary on this machine and cannot fetch it, the answer is ``estimate_tokens``, and the log says so.

    Args:
        model: ``"openai"``, ``"openai:MODEL"``, or any other name, which gives the estimate.

    Example:
        >>> context = agent.context("sign-in", counter=keepstone.counter_of("openai:gpt-4o"))
    """
    if not isinstance(model, str):
        raise TypeError(f"model must be a string such as 'openai:gpt-4o', not {model!r:.80}")
    provider, _, name = model.partition(":")
    return _of_openai(name) if provider == "openai" else estimate_tokens


def _of_openai(model: str) -> Counter:
    try:
        tiktoken = importlib.import_module("tiktoken")
        encoding = tiktoken.encoding_for_model(model) if model else tiktoken.get_encoding(ENCODING)
    except (ImportError, KeyError, OSError) as error:
        log.info("tokens are estimated, not counted, for openai:%s: %r", model, error)
        return estimate_tokens
    return lambda text: len(encoding.encode_ordinary(text))


def checked(counter: Counter | None) -> Counter:
    """Return a counter whose every answer is a whole number from 0; the estimate for None.

    Raises:
        TypeError: It cannot be called; or, when it is asked, it gives no whole number.
        ValueError: When it is asked, it gives a negative number.
    """
    if counter is None:
        return estimate_tokens
    if not callable(counter):
        raise TypeError(f"counter must be a function from text to a number of tokens, not {counter!r:.80}")

    def count(text: str) -> int:
        return count_of(counter(text), "the counter's result")

    return count
