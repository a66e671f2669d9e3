"""Echoes: entries that only repeat an earlier question, or an answer that quotes memory.

Echoes add nothing that memory does not have elsewhere, so they are ranked after the entries that they ask
for or quote. If the query is not a question, an entry with exactly its words comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from keepstone.model import Entry, Hit
from keepstone.store.reader import Candidate
from keepstone.text.tokenizer import words_of

QUOTES, ANSWERED = "quotes", "answered"
"""Link relations: from an answer to the entries that it quotes, and from a question to such an answer."""

_ASKS = re.compile(
    r"\W*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should"
    r"|has|have|wer|wen|wem|welche[nmrs]?|wann|wo|wohin|warum|wieso|wie|ist|sind|hat|haben|kann)\b",
    re.IGNORECASE,
)
OFFLINE = "(offline, no model)"
"""The prefix of an answer that quotes memory."""
_QUOTING = f"assistant: {OFFLINE}"
_ROLE = 80
"""Maximum length, in characters, of a speaker's name before a text."""
_KNOWN = 64
"""Number of characters that are available of a longer text."""
_MARKS = ("?", "\uff1f", "\u061f")
_TOKENS = re.compile(r"\w+")


def is_question(text: str) -> bool:
    """Return whether a text asks something, by its mark or, in English and German, by its first word.

    Examples:
        >>> is_question("Who carries the pager in May"), is_question("Ada carries the pager")
        (True, False)
    """
    return text.rstrip().endswith(_MARKS) or _ASKS.match(text) is not None


def says_same(text: str, query: str) -> bool:
    """Return whether a text, with or without its speaker, has exactly the words of a query."""
    words = words_of(query)
    return bool(words) and any(words_of(said) == words for said in (text, text.partition(": ")[2]))


def repeating(heads: Mapping[int, tuple[str, object]], query: str) -> Collection[int]:
    """Return the keys of texts that repeat a question or quote memory; none if the query asks nothing."""
    if not is_question(query):
        return ()
    return _same(heads, query) | {key for key, (head, _) in heads.items() if head.startswith(_QUOTING)}


def verbatim(heads: Mapping[int, tuple[str, object]], query: str) -> Collection[int]:
    """Return the keys of texts equal to a query that is not a question; only 64 characters are compared."""
    return () if is_question(query) else _same(heads, query)


def _same(heads: Mapping[int, tuple[str, object]], query: str) -> set[int]:
    words = words_of(query)
    if not words:
        return set()
    # There are many short ASCII texts, so they are compared without the index's slower tokenizer.
    tokens = _TOKENS.findall(query.lower()) if query.isascii() else None
    begin = words[0] if words[0].isascii() else ""
    found = set()
    for key, (head, _) in heads.items():
        text = head.lower()
        if tokens is not None and len(head) < _KNOWN and head.isascii():
            is_same = tokens in (_TOKENS.findall(text), _TOKENS.findall(text.partition(": ")[2]))
        else:
            is_same = begin in text and _begins(words, head)
        if is_same:
            found.add(key)
    return found


def _begins(words: list[str], head: str) -> bool:
    """Return whether a text, known by its head, has exactly these words.

    If the head may be cut, it is enough that these words begin with the head's words except the last.
    """
    said = [words_of(part) for part in (head, head.partition(": ")[2])]
    if words in said:
        return True
    cut = [part[:-1] for part in said if len(part) > 1] if len(head) >= _KNOWN else []
    return any(words[: len(part)] == part for part in cut)


def leaving_out(echoes: Collection[int], found: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the candidates of a list without echoes."""
    return [candidate for candidate in found if candidate.key not in echoes]


def lowered(echoes: Sequence[Hit], others: Sequence[Hit]) -> list[Hit]:
    """Return echoes with relevance 0 and scores not above the other hits', as they answer nothing."""
    least = min([hit.score for hit in others], default=0.0)
    return [replace(hit, score=min(hit.score, least), relevance=0.0) for hit in echoes]


def is_echo(entry: Entry, query: str) -> bool:
    """Return whether an entry quotes memory, or is the query itself or a question answered from memory."""
    if "links" in entry.line:
        relations = {link.get("rel") for link in entry.links if isinstance(link, dict)}
        if QUOTES in relations or (ANSWERED in relations and is_question(entry.text)):
            return True
    text = entry.text
    # A longer text cannot be the question alone, so its words are not compared.
    return len(text) <= 2 * len(query) + _ROLE and is_question(text) and says_same(text, query)
