"""Embedders: the protocol, its providers, and ``choose``, which resolves a name to an embedder."""

from keepstone.embed.embedder import Embedder, EmbedderLike, check_embedder, embed_query, embed_texts

__all__ = ["Embedder", "EmbedderLike", "check_embedder", "embed_query", "embed_texts"]
