"""Embedders: what makes vectors of texts, and how one is asked. ``choose`` finds the one that is named."""

from keepstone.embed.embedder import Embedder, EmbedderLike, check_embedder, embed_query, embed_texts

__all__ = ["Embedder", "EmbedderLike", "check_embedder", "embed_query", "embed_texts"]
