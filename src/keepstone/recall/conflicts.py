"""Conflict search: entries that repeat or contradict one another, found without a model.

Conflicts are reported and never resolved. A word search in the index returns a bounded number of
candidates. Two entries are compared by their payloads if these name a subject or a field, else by
their texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Literal

from keepstone.log.arguments import Clock
from keepstone.log.line import instant
from keepstone.model import Conflict, Entry, Scope
from keepstone.store.protocol import Store
from keepstone.store.reader import Reader, with_reader
from keepstone.store.trust import Judge
from keepstone.store.validity import is_valid
from keepstone.text.tokenizer import STOP_WORDS, stem, words_of

Kind = Literal["duplicate", "contradiction"]

CANDIDATES = 24
"""Maximum number of entries that each search for conflicts compares."""
_MOST = 64 * CANDIDATES
"""Number of candidates up to which a search that finds too few valid entries is widened."""
_TERMS = 6
"""Maximum number of words in a search for conflicts: the longest words, which are usually rare."""
_LONGEST = 2000
"""Number of characters of a text that are compared; longer texts are not single sentences."""
_SENTENCE = 60
"""Maximum number of content words in texts that may differ and still be alike."""
_SHORTEST = 3
"""Minimum words of a sentence that can contradict by a number: "page 2" does not contradict "page 1"."""
_ALIKE = 0.7
"""Minimum similarity of the word order of two alike texts, from 0 to 1."""

_FIELDS = frozenset("field attribute property predicate relation key setting".split())
_IDENTITY = _FIELDS | frozenset("subject entity name topic who person user project scope".split())
"""Keys of a payload that name its subject; entries about different subjects are never in conflict."""
_PROSE = frozenset("preference content text message note description summary decision value".split())
"""Keys whose values are sentences, compared as texts unless the payload names the field of the value."""
_ASIDE = frozenset("id ts time timestamp created_at updated_at source by author role confidence".split())
"""Keys that are not part of the fact itself."""

_WORD = re.compile(r"[^\W_]+(?:[.,:/'-][^\W_]+)*")
_NUMBER = re.compile(r"[v$€£]?\d[\d.,:/-]*(?:st|nd|rd|th|am|pm|%|[a-z]{1,2})?")
_VERSION = re.compile(r"v\d[\d.]*|\d+\.\d+\.\d[\d.]*")
_DATE = re.compile(r"(?:19|20)\d\d-\d\d-\d\d")
_SAYING = frozenset(
    "is was are be until till by due from since ends expires begins starts ist bis ab seit".split()
)
"""Words that make a date after them the statement itself, not the time of an event."""
_NAMING = frozenset(
    """
    worker workers invoice order ticket issue case version build release room floor page chapter step
    part section task job run test item user customer client account id number no nr num server node
    host machine line row column sprint lesson episode season volume apartment flat gate platform track
    phase stage level round team group unit device sensor file commit request bug article bus train
    flight model batch shard instance container pod partition slot table cell question answer exercise
    example figure appendix contract booking receipt parcel shipment house rechnung bestellung zimmer
    seite kapitel schritt aufgabe kunde nummer raum etage gleis zug haus folge auftrag vertrag paket
    sensor maschine zeile fall
    """.split()
)
"""Words after which a number is a name."""
_KEYS = frozenset(
    "id ids uuid code ref reference url link path date day time when hash sha serial email phone".split()
)
"""Keys, or last words of keys, whose values identify things."""
_SHORT_VALUE = 6
"""Maximum number of words of a value that counts as a setting; longer values are texts."""
_VALUES = frozenset(
    """
    january february march april june july august september october november december jan feb mar apr jun
    jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday one two three four
    five six seven eight nine ten eleven twelve twenty thirty hundred thousand
    """.split()
)
"""Words for numbers, months and weekdays, which are compared like digits."""
_NEGATIONS = frozenset(
    """
    not no never neither nor without none nobody nothing cannot nicht kein keine keinen keiner keinem nie
    niemals ohne
    """.split()
)
_WITH_NEGATION = frozenset({"longer", "anymore"})
_CONTRACTED = {"can't": "can not", "won't": "will not"}


class ConflictFinder:
    """Finds the conflicts of an entry that was added or changed, when they are first asked for."""

    def __init__(self, store: Store, clock: Clock, judge: Judge) -> None:
        self._store = store
        self._clock = clock
        self._judge = judge

    def attach(self, entries: list[Entry]) -> list[Entry]:
        """Attach the finder to entries that were just added or changed, and return the entries."""
        for entry in entries:
            # Entries are frozen; the finder is not part of their value.
            object.__setattr__(entry, "_conflicts", self)
        return self._judge.attach(entries)

    def __call__(self, entry: Entry) -> tuple[Conflict, ...]:
        """Return an entry's current conflicts, contradictions first."""
        return conflicts_of(self._store, entry, self._clock)

    def __reduce__(self) -> tuple[type[tuple[Conflict, ...]], tuple[()]]:
        """Leave the store behind when an entry is pickled or copied: the copy has no conflicts."""
        return tuple, ()


class NoConflicts(ConflictFinder):
    """Finds no conflicts. Used for other agents' memory, where a conflict could name an unshared entry."""

    def __init__(self) -> None:
        """Create a finder without a store."""

    def attach(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries unchanged."""
        return entries


def conflicts_of(store: Store, entry: Entry, clock: Clock) -> tuple[Conflict, ...]:
    """Return the conflicts of an entry with the currently valid entries of its agent."""
    now = instant(clock(), "the clock's time")

    def near(reader: Reader) -> list[Entry]:
        found = [other for terms, scope in _searches(entry) for other in _valid(reader, terms, scope, now)]
        # An entry that several searches find is compared once.
        return list({(other.session, other.id): other for other in found}.values())

    found = []
    for other in with_reader(store, entry.agent, near):
        same = (other.session, other.id) == (entry.session, entry.id)
        replaced = other.session == entry.session and (
            other.id in entry.supersedes or entry.id in other.supersedes
        )
        if same or replaced:
            continue
        kind = compared(entry, other)
        if kind is not None:
            found.append(Conflict(other.id, other.session, kind))
    # Contradictions come before duplicates, as kinds sort by name.
    return tuple(sorted(found, key=lambda conflict: (conflict.kind, conflict.session, conflict.id)))


def _valid(reader: Reader, terms: list[str], scope: Scope, now: datetime) -> list[Entry]:
    """Return the best currently valid entries for some words; invalid ones do not count toward the limit."""
    most, known = CANDIDATES, dict[int, Entry]()
    while True:
        keys = [candidate.key for candidate in reader.search(terms, scope, most)]
        known |= reader.load([key for key in keys if key not in known])
        valid = [known[key] for key in keys if key in known and is_valid(known[key].line, now)]
        if len(valid) >= CANDIDATES or len(keys) < most or most > _MOST:
            return valid[:CANDIDATES]
        # Entries that are no longer valid took up the list, so search for a longer one.
        most *= 4


def _searches(entry: Entry) -> Iterator[tuple[list[str], Scope]]:
    """Yield the words and the scope of each search for possible conflicts of an entry."""
    if terms := _terms(entry.text[:_LONGEST]):
        yield terms, Scope(entry.agent)
    # Texts on one subject may share no word, so subject and keys are searched, too.
    about = [str(value) for key, value in entry.data.items() if key in _IDENTITY]
    keys = [key for key in entry.data if key not in _IDENTITY | _PROSE | _ASIDE]
    if terms := _terms(" ".join(about + keys)):
        yield terms, Scope(entry.agent, types=(entry.type,))


def _terms(text: str) -> list[str]:
    words = set(words_of(text))
    return sorted(words - STOP_WORDS or words, key=lambda word: (-len(word), word))[:_TERMS]


def compared(new: Entry, old: Entry) -> Kind | None:
    """Return the kind of conflict between two entries; None if there is no conflict."""
    if new.data and old.data and not _IDENTITY.isdisjoint(new.data.keys() | old.data.keys()):
        about = _IDENTITY & (new.data.keys() | old.data.keys())
        if any(_plain(new.data.get(key)) != _plain(old.data.get(key)) for key in about):
            return None
        kind = _of_fields(new.data, old.data, about)
        if kind == "contradiction" or not ("text" in new.line and "text" in old.line):
            return kind
    elif new.type == old.type:
        kind = _of_settings(new.data, old.data)
        if kind is not None:
            return kind
    return compared_texts(new.text, old.text)


def _of_fields(new: Mapping[str, Any], old: Mapping[str, Any], about: Collection[str]) -> Kind | None:
    """Compare payloads that name the same subject."""
    left_out = _IDENTITY | _ASIDE | (_PROSE if _FIELDS.isdisjoint(about) else frozenset())
    if any(_plain(new[key]) != _plain(old[key]) for key in (new.keys() & old.keys()) - left_out):
        return "contradiction"
    said = [
        " ".join(str(value) for key, value in sorted(given.items()) if key not in _IDENTITY | _ASIDE)
        for given in (new, old)
    ]
    return compared_texts(*said)


def _of_settings(new: Mapping[str, Any], old: Mapping[str, Any]) -> Kind | None:
    """Compare payloads whose keys describe their values, such as ``{"theme": "dark"}``."""
    settings = new.keys() - _ASIDE
    if "value" in settings and "preference" in settings:
        return None if _plain(new["preference"]) != _plain(old.get("preference")) else _differing(new, old)
    if not settings or settings != old.keys() - _ASIDE or settings & _PROSE:
        return None
    changed = [key for key in settings if _plain(new[key]) != _plain(old[key])]
    if not changed:
        return None  # The texts decide whether they are duplicates.
    return "contradiction" if len(changed) == 1 and not _is_name(changed[0], new[changed[0]]) else None


def _is_name(key: str, value: Any) -> bool:
    """Return whether a payload's value identifies a thing, or is not a single short value."""
    last = words_of(key.replace("_", " "))[-1:]
    if not last or last[0] in _NAMING or last[0] in _KEYS or not isinstance(value, str | int | float):
        return True
    return len(words_of(str(value))) > _SHORT_VALUE


def _differing(new: Mapping[str, Any], old: Mapping[str, Any]) -> Kind:
    return "duplicate" if _plain(new.get("value")) == _plain(old.get("value")) else "contradiction"


def _plain(value: Any) -> Any:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The features of a text that are compared."""

    words: tuple[str, ...]
    """The stems of the text's content words, in order; a number, date or identifier is ``#``."""
    values: tuple[str, ...]
    """The text's numbers and dates, in order."""
    names: tuple[str, ...]
    """Numbers and identifiers that name a thing ("worker 7"): texts on different things never conflict."""
    is_negated: bool
    length: int
    """Number of the text's words other than numbers and dates, including stop words."""


def compared_texts(new: str, old: str) -> Kind | None:
    """Return how two texts conflict: they say the same, or differ only by a negation, a number or a date.

    Examples:
        >>> compared_texts("Ada doesn't drink coffee", "Ada drinks coffee.")
        'contradiction'
        >>> compared_texts("The server listens on 8081", "The server listens on 8080")
        'contradiction'
        >>> compared_texts("the user prefers dark mode", "User prefers dark mode.")
        'duplicate'
    """
    a, b = _sentence(new), _sentence(old)
    if not a.words or not b.words or 1 in (a.length + len(a.values), b.length + len(b.values)):
        return None  # A single word is not a statement that could be repeated or contradicted.
    if Counter(a.names) != Counter(b.names) or not _is_alike(a, b):
        return None
    if a.is_negated != b.is_negated:
        return "contradiction" if a.values == b.values else None
    if Counter(a.values) == Counter(b.values):
        return "duplicate"
    return "contradiction" if a.words == b.words and a.length >= _SHORTEST else None


def _is_alike(a: _Sentence, b: _Sentence) -> bool:
    """Return whether two texts have the same content words, except a few that one of them adds."""
    if a.words == b.words:
        return True
    if max(len(a.words), len(b.words)) > _SENTENCE:
        return False
    if set(a.words) - set(b.words) and set(b.words) - set(a.words):
        return False  # A quick check that ends nearly all comparisons; the exact one is below.
    more, fewer = Counter(a.words) - Counter(b.words), Counter(b.words) - Counter(a.words)
    if more and fewer:
        return False  # With one word replaced by another, it is another fact.
    if (more + fewer).total() > min(len(a.words), len(b.words)) // 4:
        return False
    # Without autojunk: this heuristic of difflib ignores frequent words of long texts.
    return SequenceMatcher(None, a.words, b.words, autojunk=False).ratio() >= _ALIKE


def _names(tokens: list[str], place: int, before: list[str]) -> bool:
    """Return whether a number names a thing (after a word or as a version) or is the day of an event."""
    token, last = tokens[place], tokens[place - 1] if place else ""
    if _VERSION.fullmatch(token) or last in _NAMING:
        return True
    if _DATE.fullmatch(token):
        return _SAYING.isdisjoint(tokens[:place])
    # Right after the first content word, as in "kitchen 2", a number names the thing.
    is_subject = before in ([], [stem(last)]) and last not in STOP_WORDS
    return is_subject and token not in _VALUES


@lru_cache(maxsize=4 * CANDIDATES)
def _sentence(text: str) -> _Sentence:
    # Curly apostrophes become straight ones, so that contractions are found.
    plain = unicodedata.normalize("NFC", text[:_LONGEST]).casefold().replace("\u2019", "'")
    for contracted, whole in _CONTRACTED.items():
        plain = plain.replace(contracted, whole)
    tokens = _WORD.findall(plain.replace("n't", " not"))
    negations = sum(token in _NEGATIONS for token in tokens)
    # "No longer" and "not anymore" are each one negation.
    skipped = STOP_WORDS | _NEGATIONS | (_WITH_NEGATION if negations else frozenset())
    words: list[str] = []
    values: list[str] = []
    names: list[str] = []
    for place, token in enumerate(tokens):
        if token in _VALUES or _NUMBER.fullmatch(token):
            values.append(token)
            if _names(tokens, place, words):
                names.append(token)
            # Several numbers in a row count as one word.
            if not words or words[-1] != "#":
                words.append("#")
        elif any(map(str.isdigit, token)) and token not in skipped:
            names.append(token)  # An identifier: "kx-2210".
            words.append("#")
        elif token not in skipped:
            words.append(stem(token))
    # Two negations cancel each other.
    return _Sentence(tuple(words), tuple(values), tuple(names), negations % 2 == 1, len(tokens) - len(values))
