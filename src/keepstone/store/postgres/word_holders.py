"""Per-reader cache of the entries that hold a rare word or an identifier.

The word index finds the entries that have all parts of an identifier, but not the order of the parts: that is
checked in the texts of the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keepstone.log.searched_text import searched_text
from keepstone.model import Entry, Scope
from keepstone.store.postgres.entry_lists import FROM, LOADED, conditions, loaded
from keepstone.store.postgres.entry_rows import tokens_of
from keepstone.store.postgres.vector_rows import Query
from keepstone.text.tokenizer import is_unspaced, stem, stems_of

_FIRST, _FURTHER = 200, 2_000
"""Maximum numbers of entries that are read for a word: by the first query, and by a further one."""

Rows = Sequence[tuple[Any, ...]]


class _Holders(NamedTuple):
    """Entries of a scope that hold a word."""

    scope: Scope
    keys: set[int]
    is_all: bool
    """Whether these are all the entries that hold the word."""


class WordHolders:
    """Cache of the entries that hold a word, by word.

    Args:
        agent: The agent.
        language: The home's language.
        read: Returns the rows of queries, in one round trip.
        found: The reader's cache of loaded entries, by key.
    """

    def __init__(
        self,
        agent: str,
        language: str,
        read: Callable[[Sequence[Query]], Sequence[Rows]],
        found: dict[int, Entry],
    ) -> None:
        self._agent = agent
        self._language = language
        self._read = read
        self._loaded = found
        self._known: dict[str, _Holders] = {}

    def is_known(self, word: str, scope: Scope) -> bool:
        """Return whether the result of ``first_look`` for a word in a scope is cached."""
        return word in self._known and self._known[word].scope == scope

    def learn(self, word: str, scope: Scope, keys: set[int]) -> None:
        """Cache all entries that hold a word."""
        self._known[word] = _Holders(scope, keys, is_all=True)

    def is_phrase(self, word: str) -> bool:
        """Return whether a word has several parts, which an entry must hold in sequence."""
        return len(stem(word, self._language).split()) > 1 and not is_unspaced(word)

    def first_look(self, word: str, scope: Scope) -> Query:
        """Return the first query for a word; ``take`` caches its rows."""
        sql, values = self._query(word, scope)
        return f"{sql} ORDER BY e.length, e.key LIMIT {_FIRST}", values

    def take(self, word: str, scope: Scope, rows: Rows) -> None:
        """Cache the rows of ``first_look``."""
        self._known[word] = _Holders(scope, self._holding(word, rows), is_all=len(rows) < _FIRST)

    def of(self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]) -> dict[str, set[int]]:
        """Return the keys of the entries that hold each word.

        If more than ``most`` entries hold a word, only keys in ``among`` are returned.
        """
        new = [word for word in dict.fromkeys(words) if not self.is_known(word, scope)]
        # A word without tokens would match every entry, as each array contains the empty array.
        for word in [word for word in new if not tokens_of(self._agent, word, self._language)]:
            self.learn(word, scope, set())
            new.remove(word)
        if new:
            answers = self._read([self.first_look(word, scope) for word in new])
            for word, rows in zip(new, answers, strict=True):
                self.take(word, scope, rows)
        self._look_further([word for word in words if not self._known[word].is_all], scope, most, among)
        holders = {word: self._known[word].keys for word in words}
        return {word: keys if len(keys) <= most else keys & {*among} for word, keys in holders.items()}

    def _look_further(self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]) -> None:
        """Check which entries in ``among`` hold the words; read more entries for words with few so far."""
        asked: list[tuple[str, bool, Query]] = []
        for word in words:
            sql, values = self._query(word, scope)
            asked.append((word, False, (f"{sql} AND e.key = ANY(%s)", [*values, list(among)])))
            if len(self._known[word].keys) <= most:
                rest = f"{sql} ORDER BY e.length, e.key LIMIT {_FURTHER} OFFSET {_FIRST}"
                asked.append((word, True, (rest, values)))
        answers = self._read([query for *_, query in asked]) if asked else []
        for (word, is_rest, _), rows in zip(asked, answers, strict=True):
            keys = self._known[word].keys | self._holding(word, rows)
            self._known[word] = _Holders(scope, keys, is_all=is_rest and len(rows) < _FURTHER)

    def _query(self, word: str, scope: Scope) -> tuple[str, list[Any]]:
        """Return the query for the entries that have all parts of a word; for a phrase, with records."""
        condition, values = conditions(scope)
        columns, source = (f", {LOADED}", FROM) if self.is_phrase(word) else ("", "FROM entries e")
        sql = f"SELECT e.key{columns} {source} WHERE {condition} AND e.terms @> %s::bigint[]"
        return sql, [*values, tokens_of(self._agent, word, self._language)]

    def _holding(self, word: str, rows: Rows) -> set[int]:
        """Return the keys of the entries that hold a word, among entries that have all its parts."""
        if not self.is_phrase(word):
            return {key for (key,) in rows}
        entries = {key: loaded(self._agent, row) for key, *row in rows}
        self._loaded |= entries
        return {key for key, entry in entries.items() if self._holds_phrase(entry, word)}

    def _holds_phrase(self, entry: Entry, word: str) -> bool:
        parts = stem(word, self._language).split()
        stems = stems_of(searched_text(entry.text, entry.line), self._language)
        return any(stems[at : at + len(parts)] == parts for at in range(len(stems) - len(parts) + 1))
