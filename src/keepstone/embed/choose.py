"""Embedder selection: resolve a name or object to an embedder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keepstone.embed import e5, minilm, static
from keepstone.embed.embedder import Embedder
from keepstone.embed.openai import OpenAIEmbedder, server_named
from keepstone.embed.wrapped import wrapped_function, wrapped_langchain
from keepstone.errors import EmbedderUnavailableError

CHOICES = ("auto", "none", "minilm", "e5", "static", "openai:MODEL", "http://HOST:PORT/v1?model=MODEL")
"""The names of embedders. ``embedder_of`` also accepts the id of an embedder's space."""

_LOCAL: dict[str, tuple[Callable[[], None], Callable[[], Embedder]]] = {
    "minilm": (minilm.check_minilm, minilm.MiniLM),
    "e5": (e5.check_e5, e5.E5),
    "static": (static.check_static, static.Static),
}
"""Local embedders, best first: a check whether each is usable, and its factory."""
LOCAL = tuple(_LOCAL)
"""The names of local embedders, in the order in which ``"auto"`` tries them."""
_SPACES = {minilm.SPACE: "minilm", e5.SPACE: "e5", static.SPACE: "static"}


def embedder_of(value: Any) -> Embedder | None:
    """Return the embedder for a value, or None if none is to be used. Nothing is loaded or connected yet.

    Args:
        value: An embedder, a function from a list of texts to their vectors, a LangChain
            ``Embeddings``, None, or one of ``CHOICES``. ``"auto"`` is the best local one that is
            usable: minilm, else e5, else static, else none.

    Raises:
        TypeError: The value has another type.
        ValueError: The name is unknown.
        EmbedderUnavailableError: The named embedder is not usable here; the message has the remedy.

    Examples:
        >>> os.environ["OPENAI_API_KEY"] = "sk-…"
        >>> embedder_of("openai:text-embedding-3-small").dim
        1536
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _named(value)
    # Both Keepstone's protocol and LangChain's have these two methods; only Keepstone's has an id.
    if callable(getattr(value, "embed_documents", None)) and callable(getattr(value, "embed_query", None)):
        return value if isinstance(getattr(value, "id", None), str) else wrapped_langchain(value)
    if callable(value):
        return wrapped_function(value)
    raise TypeError(
        f"{value!r:.80} is not an embedder: give an object with id, dim, embed_documents(texts) and "
        f"embed_query(text), a function from texts to vectors, or one of {', '.join(CHOICES)}"
    )


def unusable(name: str) -> str | None:
    """Return why a local embedder is not usable, with the remedy; None if it is usable."""
    check, _ = _LOCAL[name]
    try:
        check()
    except EmbedderUnavailableError as error:
        return str(error)
    return None


def is_local(embedder: Embedder) -> bool:
    """Return whether an embedder is one of the built-in local ones."""
    return isinstance(embedder, minilm.MiniLM | e5.E5 | static.Static)


def is_remote(embedder: Embedder) -> bool:
    """Return whether an embedder is known to call a server, so that a recall should not await it."""
    return isinstance(embedder, OpenAIEmbedder)


def _named(name: str) -> Embedder | None:
    if name == "none":
        return None
    if name == "auto":
        return next((make() for local, (_, make) in _LOCAL.items() if unusable(local) is None), None)
    # A home records the id of its space, which also names the embedder.
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
    raise ValueError(f"unknown embedder {name!r:.80}: choose from {', '.join(CHOICES)}")
