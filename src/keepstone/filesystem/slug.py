"""Agent slugs for names that are not slugs, such as user ids and email addresses."""

from __future__ import annotations

import base64
import hashlib
import re

_MARK = "u."
"""Prefix of every encoded slug. The prefix and the escapes below are on disk and must never change."""
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,126}[a-z0-9_-]|[a-z0-9]")
_ESCAPED = re.compile(rb"[^a-z0-9.-]|\.\Z")
_PIECE = re.compile(r"_u[a-z]|__|_[0-9a-f]{2}|[a-z0-9.-]")
_LONGEST = 128
_DIGEST = "_z"
_DIGEST_LENGTH = 32
"""Characters of a digest: 160 bits of SHA-256 in base32."""


def slug(text: str) -> str:
    """Return a valid agent slug for any text: readable, and the same one for the same text.

    Different texts have different slugs, even on a file system that folds letter case. Valid slugs in lower
    case are returned unchanged, unless they begin with ``u.``, which marks encoded texts. Encoding turns a
    capital letter into ``_u`` and the small letter, ``_`` into ``__``, and every other UTF-8 byte outside
    ``a-z 0-9 . -`` into ``_`` and two hexadecimal digits. A slug that would be longer than 128 characters
    is cut and ends in ``_z`` and a digest.

    Raises:
        TypeError: ``text`` is not a string.
        ValueError: ``text`` is empty.

    Examples:
        >>> slug("ada@example.com"), slug("auth0|4711"), slug("coder")
        ('u.ada_40example.com', 'u.auth0_7c4711', 'coder')
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, not {type(text).__name__}: {text!r:.80}")
    if not text:
        raise ValueError("text must not be empty")
    if not text.startswith(_MARK) and _PLAIN.fullmatch(text):
        return text
    # Every string has a slug, even one with a lone surrogate, which a file name may contain.
    raw = text.encode("utf-8", "surrogatepass")
    # A byte becomes one to three characters, so bytes beyond the first ``_LONGEST`` never appear in the slug.
    encoded = _MARK + _ESCAPED.sub(_escape, raw[:_LONGEST]).decode()
    if len(raw) <= _LONGEST and len(encoded) <= _LONGEST:
        return encoded
    digest = base64.b32encode(hashlib.sha256(raw).digest())[:_DIGEST_LENGTH].decode().lower()
    return _beginning(encoded, _LONGEST - len(_DIGEST) - _DIGEST_LENGTH) + _DIGEST + digest


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found[0]
    if byte == b"_":
        return b"__"
    return b"_u" + byte.lower() if byte.isalpha() else b"_%02x" % byte[0]


def _beginning(encoded: str, length: int) -> str:
    """Return the first characters of an encoded text, without a partial escape at the end."""
    end = len(_MARK)
    while (piece := _PIECE.match(encoded, end)) and piece.end() <= length:
        end = piece.end()
    return encoded[:end]


def unslug(slug: str) -> str:
    """Return the text from which ``slug`` made a slug.

    Raises:
        TypeError: ``slug`` is not a string.
        ValueError: It is not a slug that ``keepstone.slug`` returns, or it ends in a digest, from which the
            text cannot be recovered.

    Examples:
        >>> unslug("u.ada_40example.com")
        'ada@example.com'
    """
    if not isinstance(slug, str):
        raise TypeError(f"slug must be a string, not {type(slug).__name__}: {slug!r:.80}")
    text = _decoded(slug.removeprefix(_MARK)) if slug.startswith(_MARK) else slug
    # Several strings would decode to one text; only the one that ``slug`` returns is accepted.
    if not text or _slug_of(text) != slug:
        raise ValueError(
            f"{slug!r:.150} does not hold a whole text: "
            "it is not what keepstone.slug returns, or it ends in a digest"
        )
    return text


_slug_of = slug


def _decoded(encoded: str) -> str:
    """Return the decoded text; the result for a string that is not encoded is undefined."""
    raw = b"".join(map(_byte, _PIECE.findall(encoded)))
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return ""


def _byte(piece: str) -> bytes:
    if piece.startswith("_u"):
        return piece[2:].upper().encode()
    if piece == "__":
        return b"_"
    return bytes.fromhex(piece[1:]) if piece[0] == "_" else piece.encode()
