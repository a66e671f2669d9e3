"""Embedders: what makes vectors of texts, and how they are asked."""

from recollect.embed.base import Embedder, check_embedder, embed_texts

__all__ = ["Embedder", "check_embedder", "embed_texts"]
