"""How many tokens a text has: as a provider's tokenizer counts, or as a conservative estimate."""

from __future__ import annotations

import importlib
import logging
from typing import Protocol

from keepstone.model import BYTES_PER_TOKEN


class Counter(Protocol):
    """Counts the tokens that a text has for the model that will read it; any such function is one."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens, from 0."""


ENCODING = "o200k_base"
"""What OpenAI's present models cut texts with, where no model is named."""

log = logging.getLogger("keepstone.context")


def estimate_tokens(text: str) -> int:
    """Return how many tokens a text has at most: one for every three bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def counter_of(model: str) -> Counter:
    """Return what counts tokens as a model does, where its tokenizer is installed, else the estimate.

    Only OpenAI's tokenizer can be installed (``pip install tiktoken``). Without it, or where it has no
    vocabulary on this machine and cannot fetch it, the answer is ``estimate_tokens``, and the log says so.

    Args:
        model: ``"openai"``, ``"openai:MODEL"``, or any other name, which gives the estimate.

    Example:
        >>> agent.context("sign-in", counter=keepstone.counter_of("openai:gpt-4o"))
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
        tokens = counter(text)
        if isinstance(tokens, bool) or not isinstance(tokens, int):
            raise TypeError(f"counter must return a whole number of tokens, not {tokens!r:.80}")
        if tokens < 0:
            raise ValueError(f"counter must not return a negative number of tokens: {tokens}")
        return tokens

    return count
