"""Embedders: what makes vectors of texts, how one is chosen, and how it is asked."""

from recollect.embed.base import Embedder, check_embedder, embed_query, embed_texts
from recollect.embed.choose import CHOICES, LOCAL, embedder_of, is_remote, unusable

__all__ = [
    "CHOICES",
    "LOCAL",
    "Embedder",
    "check_embedder",
    "embed_query",
    "embed_texts",
    "embedder_of",
    "is_remote",
    "unusable",
]
