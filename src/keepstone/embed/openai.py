"""Embedders of OpenAI and of servers with a compatible API.

Texts are sent to the named server only. Keys come from the environment and never
appear in messages, ids or files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from keepstone.embed.embedder import check_package, encodable, finite
from keepstone.embed.lazy import Lazy
from keepstone.errors import EmbedderUnavailableError, InvalidEmbeddingError
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    from openai import OpenAI

_DIMS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""The dimensions of known models."""
_AT_ONCE = 64
"""Maximum texts per request."""
_CHARACTERS = 8_000
"""Maximum characters of a text, about 2,000 tokens: servers reject longer inputs."""
_TIMEOUT, _RETRIES = 60.0, 3
"""Timeout in seconds and number of retries, for documents."""
_QUERY_TIMEOUT, _QUERY_RETRIES = 10.0, 1
"""Timeout in seconds and number of retries, for queries, where the caller waits."""


class OpenAIEmbedder:
    """Embedder behind an OpenAI-compatible API. Safe to share between threads.

    Args:
        model: The server's name of the model.
        base_url: The server's address, such as ``http://localhost:11434/v1``; default:
            $OPENAI_BASE_URL, else OpenAI. A server given here gets the key $KEEPSTONE_EMBED_KEY,
            never $OPENAI_API_KEY.
        dim: The dimension of the vectors; if it is unknown, the server is queried once.

    Raises:
        EmbedderUnavailableError: The package ``openai`` is not installed, or OpenAI's key is not set.
    """

    is_remote = True

    def __init__(self, model: str, base_url: str | None = None, dim: int | None = None) -> None:
        check_package("openai", "openai", "openai")
        self.id = f"openai:{model}" if base_url is None else f"{base_url}?model={model}"
        self._model = model
        self._base_url = base_url
        self._key = _key_for(base_url)
        # Known dimensions apply to OpenAI only: another server may have a different model of that name.
        self._dim = Lazy(lambda: dim or (_DIMS.get(model) if base_url is None else None) or self._asked_dim())
        self._client = Lazy(lambda: self._connected(_TIMEOUT, _RETRIES))
        self._quick = Lazy(lambda: self._connected(_QUERY_TIMEOUT, _QUERY_RETRIES))

    @property
    def dim(self) -> int:
        """The dimension of the vectors.

        Raises:
            EmbedderUnavailableError, InvalidEmbeddingError: The server was queried for the dimension
                and failed.
        """
        return self._dim()

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), dim)``.

        Raises:
            EmbedderUnavailableError: The server cannot be reached, refuses the request, or times out.
            InvalidEmbeddingError, EmbeddingDimMismatchError: The response does not have such vectors.
        """
        import numpy as np

        client, made = self._client(), np.empty((len(texts), self.dim), np.float32)
        for begin in range(0, len(texts), _AT_ONCE):
            batch = texts[begin : begin + _AT_ONCE]
            rows = finite(self._ask(client, batch), self.id, (len(batch), self.dim))
            made[begin : begin + _AT_ONCE] = rows
        return made

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text; errors as for ``embed_documents``, after a shorter timeout."""
        import numpy as np

        rows = finite(self._ask(self._quick(), [text]), self.id, (1, self.dim))
        vector: Vector = rows[0].astype(np.float32)
        return vector

    def _connected(self, timeout: float, retries: int) -> OpenAI:
        from openai import OpenAI

        client = OpenAI(api_key=self._key, base_url=self._base_url, timeout=timeout, max_retries=retries)
        if self._base_url is not None:
            # The package reads organization and project from the environment, but they are for OpenAI only.
            client.organization = client.project = None
        return client

    def _asked_dim(self) -> int:
        vectors = self._ask(self._quick(), ["dimension"])
        if len(vectors) != 1 or not isinstance(vectors[0], list) or not vectors[0]:
            raise InvalidEmbeddingError(f"embedder {self.id!r:.200} returned no vector for a text")
        return len(vectors[0])

    def _ask(self, client: OpenAI, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of texts as the server sent them, in order."""
        from openai import OpenAIError

        # Some servers reject an empty text; none rejects a space.
        words = [encodable(text[:_CHARACTERS]) or " " for text in texts]
        try:
            # By default the package asks for base64, which a compatible server may not know.
            answer = client.embeddings.create(model=self._model, input=words, encoding_format="float")
            # Sort by index, as a server may return vectors in another order.
            return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        except OpenAIError as error:
            # The server's message and chained errors may contain the key.
            raise self._failed(error) from None
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidEmbeddingError(
                f"embedder {self.id!r:.200} sent an invalid response: {self._without_key(error)}"
            ) from None

    def _failed(self, error: Exception) -> EmbedderUnavailableError:
        words = self._without_key(error)
        return EmbedderUnavailableError(f"embedder {self.id!r:.200} failed: {type(error).__name__}: {words}")

    def _without_key(self, error: Exception) -> str:
        return str(error).replace(self._key, "***")[:300]


def _key_for(base_url: str | None) -> str:
    if base_url is not None:
        # The package requires a key, also for servers that need none.
        return os.environ.get("KEEPSTONE_EMBED_KEY") or "no-key"
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise EmbedderUnavailableError("embedder 'openai' needs a key: set OPENAI_API_KEY")
    return key


def server_named(address: str) -> OpenAIEmbedder:
    """Return the embedder of an address such as ``http://localhost:11434/v1?model=nomic-embed-text``.

    ``&dim=768`` sets the dimension. The default of ``model`` is $KEEPSTONE_EMBED_MODEL.

    Raises:
        ValueError: The address is malformed, or names no model.
        EmbedderUnavailableError: The package ``openai`` is not installed.
    """
    base_url = base_url_of(address)
    wanted = parse_qs(urlsplit(address).query)
    model = wanted.get("model", [os.environ.get("KEEPSTONE_EMBED_MODEL", "")])[-1]
    if not model:
        raise ValueError(f"{address!r:.200} names no model: add ?model=NAME, or set KEEPSTONE_EMBED_MODEL")
    return OpenAIEmbedder(model, base_url, _dim_of(wanted.get("dim", [""])[-1]))


def base_url_of(address: str) -> str:
    """Return the server's part of an embedder's address, without model and dimension.

    Raises:
        ValueError: The address is malformed.
    """
    parts = urlsplit(address)
    wanted = parse_qs(parts.query)
    # The address becomes the id of a space, which homes store and share, so it must not contain a password.
    if not parts.hostname or "@" in parts.netloc or parts.fragment or not wanted.keys() <= {"model", "dim"}:
        raise ValueError(
            "an embedder's address must be http://HOST:PORT/v1?model=NAME, optionally with &dim=N; "
            "put a key into KEEPSTONE_EMBED_KEY"
        )
    # A slash at the end names the same server, so it must not change the id.
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _dim_of(word: str) -> int | None:
    if not word:
        return None
    # ``int`` also accepts signs, underscores and digits of other scripts.
    if not word.isascii() or not word.isdecimal() or not int(word):
        raise ValueError(f"dim must be a positive whole number, not {word!r:.80}")
    return int(word)
