"""From what a caller names to the embedder that it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keepstone.embed import minilm, static
from keepstone.embed.embedder import Embedder
from keepstone.embed.openai import OpenAIEmbedder, server_named
from keepstone.embed.wrapped import wrapped_function, wrapped_langchain
from keepstone.errors import EmbedderUnavailableError

CHOICES = ("auto", "none", "minilm", "static", "openai:MODEL", "http://HOST:PORT/v1?model=MODEL")
"""What an embedder can be named by. The id of an embedder's space names it, too."""

_LOCAL: dict[str, tuple[Callable[[], None], Callable[[], Embedder]]] = {
    "minilm": (minilm.check_minilm, minilm.MiniLM),
    "static": (static.check_static, static.Static),
}
"""Embedders of this machine, best first: what looks whether one can be used, and what makes it."""
LOCAL = tuple(_LOCAL)
"""The names of the embedders of this machine, in the order in which ``"auto"`` tries them."""
_SPACES = {minilm.SPACE: "minilm", static.SPACE: "static"}


def embedder_of(value: Any) -> Embedder | None:
    """Return the embedder that a value means, None for none. Nothing is loaded or connected to yet.

    Args:
        value: An embedder, a function from a list of texts to their vectors, a LangChain
            ``Embeddings``, None, or one of ``CHOICES``. ``"auto"`` is the best one that can be
            used on this machine: minilm, else static, else none.

    Raises:
        TypeError: It is none of these.
        ValueError: It is a word that names no embedder.
        EmbedderUnavailableError: It names one that cannot be used here; the message says what to do.

    Example:
        >>> os.environ["OPENAI_API_KEY"] = "sk-…"
        >>> embedder_of("openai:text-embedding-3-small").dim
        1536
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _named(value)
    if callable(getattr(value, "embed_documents", None)) and callable(getattr(value, "embed_query", None)):
        return value if isinstance(getattr(value, "id", None), str) else wrapped_langchain(value)
    if callable(value):
        return wrapped_function(value)
    raise TypeError(
        f"{value!r:.80} is no embedder: give an object with id, dim, embed_documents(texts) and "
        f"embed_query(text), a function from texts to vectors, or one of {', '.join(CHOICES)}"
    )


def unusable(name: str) -> str | None:
    """Return why ``"minilm"`` or ``"static"`` cannot be used here and what to do, None if it can."""
    check, _ = _LOCAL[name]
    try:
        check()
    except EmbedderUnavailableError as error:
        return str(error)
    return None


def is_local(embedder: Embedder) -> bool:
    """Tell whether an embedder is one of ours that works on this machine."""
    return isinstance(embedder, minilm.MiniLM | static.Static)


def is_remote(embedder: Embedder) -> bool:
    """Tell whether an embedder is known to ask a server, so that nobody should wait for it."""
    return isinstance(embedder, OpenAIEmbedder)


def _named(name: str) -> Embedder | None:
    if name == "none":
        return None
    if name == "auto":
        return next((make() for local, (_, make) in _LOCAL.items() if unusable(local) is None), None)
    name = _SPACES.get(name, name)
    if name in _LOCAL:
        check, make = _LOCAL[name]
        check()
        return make()
    if name.startswith(("http://", "https://")):
        return server_named(name)
    kind, _, model = name.partition(":")
    if kind == "openai" and model:
        return OpenAIEmbedder(model)
    raise ValueError(f"no embedder is named {name!r:.80}: choose from {', '.join(CHOICES)}")
