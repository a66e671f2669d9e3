"""Entries that only repeat: a question that was asked before, and an answer that quotes memory.

They say nothing that memory does not have elsewhere, so they come after what they ask for or quote. An entry
that says word for word what is looked for, and is no question, comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from keepstone.model import Entry, Hit
from keepstone.text.tokenizer import words_of

QUOTES, ANSWERED = "quotes", "answered"
"""The relation of an answer's links to the entries that it quotes, and of a question's to such an answer."""

_ASKS = re.compile(
    r"\W*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should"
    r"|has|have|wer|wen|wem|welche[nmrs]?|wann|wo|wohin|warum|wieso|wie|ist|sind|hat|haben|kann)\b",
    re.IGNORECASE,
)
OFFLINE = "(offline, no model)"
"""How an answer begins that quotes memory."""
_ROLE = 80
"""Characters that a speaker before a text has at most."""
_KNOWN = 64
"""Characters that are known of a longer text."""
_MARKS = ("?", "\uff1f", "\u061f")


def is_question(text: str) -> bool:
    """Tell whether a text asks something, by its mark or, in English and German, by its first word.

    Examples:
        >>> is_question("Who carries the pager in May"), is_question("Ada carries the pager")
        (True, False)
    """
    return text.rstrip().endswith(_MARKS) or _ASKS.match(text) is not None


def says_same(text: str, query: str) -> bool:
    """Tell whether a text, without a speaker before it, has just the words of a query."""
    asked = words_of(query)
    return bool(asked) and any(words_of(said) == asked for said in (text, text.partition(": ")[2]))


def repeating(heads: Mapping[int, tuple[str, object]], query: str) -> Collection[int]:
    """Return the keys of the texts that repeat a question: the same one, and answers that quote memory."""
    if not is_question(query):
        return ()
    texts = {key: head for key, (head, _) in heads.items()}
    same = {
        key for key, text in texts.items() if len(text) <= 2 * len(query) + _ROLE and says_same(text, query)
    }
    return same | {key for key, text in texts.items() if text.startswith(f"assistant: {OFFLINE}")}


def verbatim(heads: Mapping[int, tuple[str, object]], query: str) -> Collection[int]:
    """Return the keys of texts that are a query, if it asks nothing; 64 characters of each are known."""
    if is_question(query):
        return ()
    asked = words_of(query)
    return [
        key
        for key, (head, _) in heads.items()
        if says_same(head, query) or (len(head) >= _KNOWN and _begins(asked, head))
    ]


def _begins(asked: Sequence[str], head: str) -> bool:
    """Tell whether words begin as a text does whose last known word may be cut off."""
    said = [words_of(part)[:-1] for part in (head, head.partition(": ")[2])]
    return any(part and list(asked[: len(part)]) == list(part) for part in said)


def lowered(echoes: Sequence[Hit], others: Sequence[Hit]) -> list[Hit]:
    """Return echoes as hits that come after the others: none is about the question."""
    least = min((hit.score for hit in others), default=0.0)
    return [replace(hit, score=min(hit.score, least), relevance=0.0) for hit in echoes]


def is_echo(entry: Entry, query: str) -> bool:
    """Tell whether an entry is a question, or quotes from memory, and so says nothing about a query."""
    if "links" in entry.line:
        relations = {link.get("rel") for link in entry.links if isinstance(link, dict)}
        if QUOTES in relations or (ANSWERED in relations and is_question(entry.text)):
            return True
    text = entry.text
    return len(text) <= 2 * len(query) + _ROLE and is_question(text) and says_same(text, query)
