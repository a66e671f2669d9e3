"""Elements of SVG charts, in colours that are readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

TEXT, OURS, THEIRS = "#7d8590", "#d9730d", "#7c93b8"
"""Colours of texts and grid lines, of keepstone, and of peers."""
NAMES = {
    "chroma": "Chroma",
    "fts5": "FTS5 alone",
    "lancedb": "LanceDB",
    "langgraph": "LangGraph InMemoryStore",
    "qdrant_edge": "Qdrant Edge",
    "sqlite_vec": "sqlite-vec",
    "sqlite_vec_partition": "sqlite-vec, partitioned",
    "zvec": "Zvec",
}


def name_of(peer: str) -> str:
    """Return the display name of a peer."""
    return NAMES.get(peer, peer)


def document(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Return a complete SVG document."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label={quoteattr(title)}>\n{body}\n</svg>\n'
    )


def text(across: float, down: float, words: str, *, bold: bool = False, end: bool = False) -> str:
    """Return a text that begins, or with ``end`` ends, at a position."""
    look = ' font-weight="bold"' * bold + ' text-anchor="end"' * end
    return f'<text x="{across:.1f}" y="{down:.1f}" fill="{TEXT}"{look}>{escape(words)}</text>'


def rule(across: float, down: float, to_across: float, to_down: float) -> str:
    """Return a thin line that stays in the background."""
    place = f'x1="{across:.1f}" y1="{down:.1f}" x2="{to_across:.1f}" y2="{to_down:.1f}"'
    return f'<line {place} stroke="{TEXT}" stroke-opacity="0.3"/>'
