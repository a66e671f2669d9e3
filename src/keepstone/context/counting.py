"""Token counting: by a provider's tokenizer, or as a conservative estimate."""

from __future__ import annotations

import importlib
import logging
from typing import Protocol

from keepstone.log.arguments import count_of


class Counter(Protocol):
    """A function that counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens."""


ENCODING = "o200k_base"
"""The encoding of OpenAI's current models, used if no model is named."""

_PLAIN, _LONG = 0x80, 0xF0
"""The first UTF-8 byte beyond ASCII, and the first lead byte of four-byte characters."""


def _kind(byte: int) -> str:
    """Return the kind of a UTF-8 byte as one letter."""
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
"""Sixths of a token that a byte's kind, or a change of kind, adds to the two sixths of every byte."""

log = logging.getLogger("keepstone.context")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text conservatively, by the kinds of its characters.

    Words count one token per three bytes of UTF-8. Digits, punctuation, line ends and tabs count one token
    each, and emoji four. Keys, hashes and base64 count nearly one per letter, as case and kind change often.

    For digits, UUIDs, base64, code and JSON the estimate is at least nine tenths of the count of the
    tokenizers of Llama 2 and OpenAI, and at most about twice as much. Older tokenizers need more for
    scripts such as Greek or Amharic: pass a counter for these.
    """
    # ``translate`` and ``count`` run in C, as a context estimates each text several times.
    kinds = text.encode("utf-8", "replace").translate(_KINDS)
    sixths = 2 * len(kinds) + sum(cost * kinds.count(kind) for kind, cost in _SIXTHS.items())
    return -(-sixths // 6)


def counter_of(model: str) -> Counter:
    """Return a counter with a model's tokenizer if it is installed, else ``estimate_tokens``.

    Only OpenAI's tokenizer is supported (``pip install tiktoken``). If it is missing, or its vocabulary is
    not on this machine and cannot be downloaded, ``estimate_tokens`` is returned, and this is logged.

    Args:
        model: ``"openai"``, ``"openai:MODEL"``, or any other name, which gives the estimate.

    Examples:
        >>> context = agent.context("sign-in", counter=keepstone.counter_of("openai:gpt-4o"))
    """
    if not isinstance(model, str):
        raise TypeError(f"model must be a string such as 'openai:gpt-4o', not {model!r:.80}")
    provider, _, name = model.partition(":")
    return _of_openai(name) if provider == "openai" else estimate_tokens


def _of_openai(model: str) -> Counter:
    try:
        # tiktoken may not know the model (KeyError), or fail to download the vocabulary (OSError).
        tiktoken = importlib.import_module("tiktoken")
        encoding = tiktoken.encoding_for_model(model) if model else tiktoken.get_encoding(ENCODING)
    except (ImportError, KeyError, OSError) as error:
        log.info("tokens are estimated, not counted, for openai:%s: %r", model, error)
        return estimate_tokens
    # Names of special tokens are ordinary text in memory; ``encode`` would reject them.
    return lambda text: len(encoding.encode_ordinary(text))


def checked(counter: Counter | None) -> Counter:
    """Return a counter that validates its results; ``estimate_tokens`` for None.

    Raises:
        TypeError: The counter is not callable; or, when called, it does not return a whole number.
        ValueError: When called, the counter returns a negative number.
    """
    if counter is None:
        return estimate_tokens
    if not callable(counter):
        raise TypeError(f"counter must be a function from text to a number of tokens, not {counter!r:.80}")

    def count(text: str) -> int:
        return count_of(counter(text), "the counter's result")

    return count
