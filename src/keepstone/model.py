"""Value types of the public API, most of them frozen dataclasses, and functions on their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

from keepstone.vector import Vector, decode

T = TypeVar("T")

Record = dict[str, Any]
"""A JSON object with the keys of a log line."""


RELEVANT = 0.3
"""The minimum relevance of an entry that counts as relevant to a question."""

STANDING = ("preference", "decision")
"""Types whose entries are in every context, independent of the query."""

SUPERSEDES = "supersedes"
"""The relation of an entry to the older one that it replaces."""

COLUMNS = ("time", "session", "type", "id", "text")
"""The columns of a table of entries."""

BOUNDS = frozenset({"valid_from", "valid_to", "expires"})
"""The keys that limit when an entry is valid."""

CHAT = frozenset({"message", "event", "conversation", "tool"})
"""Types whose entries often repeat each other; conflict reviews skip them."""

BYTES_PER_TOKEN = 3
"""Estimated number of UTF-8 bytes per token in prompts of notes. Tokenizers make fewer tokens of prose."""


_TIME = re.compile(
    r"(\d{4})(-?)(\d\d)\2(\d\d)"
    r"(?:[Tt _](\d\d)(?:(:?)(\d\d)(?:\6(\d\d)(?:[.,](\d+))?)?)?"
    r"(?:([Zz])|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?",
    re.ASCII,
)
"""RFC 3339 and common variants: without seconds, zone or time, or without separators.

Not ``fromisoformat``, which differs between versions of Python and from the TypeScript package.
"""
_USUAL = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3}(?:\d{3})?)?(?:Z|\+00:00)", re.ASCII
)
"""The formats of ``format_time`` and of most other programs, which all Python versions read alike.

Hour 24 is excluded: Python 3.14 and later read it as the next day.
"""
_LEAP_SECOND = 60


def read_time(value: object) -> datetime | None:
    """Return the instant of an RFC 3339 time in a log line, or None if the value is not such a time.

    A time without a time zone is read as UTC.
    """
    try:
        if not isinstance(value, str):
            return None
        return datetime.fromisoformat(value) if _USUAL.fullmatch(value) else parsed_time(value)
    except (ValueError, OverflowError):
        return None


def parsed_time(text: str) -> datetime:
    """Parse a time; without a time zone, it is UTC. Raises ValueError or OverflowError."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text:.80} is not a time")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.group(1, 3, 4, 5, 7, 8))
    # A leap second becomes the second before it, as datetime has no second 60.
    moment = datetime(year, month, day, hour, minute, 59 if second == _LEAP_SECOND else second, tzinfo=UTC)
    micros = int((found[9] or "")[:6].ljust(6, "0"))
    ahead = timedelta(hours=int(found[12] or 0), minutes=int(found[13] or 0))
    return moment.replace(microsecond=micros) - (-ahead if found[11] == "-" else ahead)


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a small HTML table for notebooks. All texts are escaped, and long texts are cut.

    Examples:
        >>> html_table("1 hit", ["text"], [["a < b"]]).partition("<tbody>")[2]
        '<tr><td>a &lt; b</td></tr></tbody></table>'
    """

    def row(cells: Sequence[object], tag: str) -> str:
        shown = "".join(f"<{tag}>{escape(str(_shortened(str(cell))))}</{tag}>" for cell in cells)
        return f"<tr>{shown}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    head = f"<thead>{row(columns, 'th')}</thead>"
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


TRUST = ("user", "program", "model", "import", "tool")
"""The levels of trust, by who said an entry; the most trusted first."""
PROGRAM, MODEL, LEAST = "program", "model", TRUST[-1]
TRUSTED = MODEL
"""The minimum trust of entries that a context shows as trusted."""
DERIVED = "derived_from"
"""The relation of an entry to a source, in a link with the digest of the source."""
_KEYS = ("by", "via", "from", "vouched")


def least(words: Iterable[str]) -> str:
    """Return the lowest of several levels of trust; ``user`` if none is given.

    Examples:
        >>> least(["user", "tool", "model"])
        'tool'
    """
    return max(words, key=TRUST.index, default=TRUST[0])


def is_at_least(word: str, level: str) -> bool:
    """Return whether a level of trust is at least another level."""
    return TRUST.index(word) <= TRUST.index(level)


def trust_level(value: Any) -> str:
    """Validate and return a level of trust; TypeError or ValueError if it is unknown."""
    if not isinstance(value, str):
        raise TypeError(f"trust must be a string, not {type(value).__name__}: {value!r:.80}")
    if value not in TRUST:
        raise ValueError(f"trust must be one of {', '.join(TRUST)}, not {value!r:.80}")
    return value


def own_trust(record: Mapping[str, Any]) -> str:
    """Return the trust given by an entry's own origin; the lowest for a damaged or unknown origin.

    Examples:
        >>> own_trust({"origin": {"by": "model"}}), own_trust({}), own_trust({"origin": "web"})
        ('model', 'program', 'tool')
    """
    origin = record.get("origin")
    if origin is None:
        return PROGRAM
    by = origin.get("by") if isinstance(origin, Mapping) else None
    return by if isinstance(by, str) and by in TRUST else LEAST


def sources_of(record: Mapping[str, Any]) -> list[str]:
    """Return the ids of the entries that an entry was derived from."""
    origin = record.get("origin")
    found = origin.get("from") if isinstance(origin, Mapping) else None
    return [source for source in found if isinstance(source, str)] if isinstance(found, list) else []


def origin_of(value: Any) -> dict[str, Any]:
    """Validate and return a caller's origin. A string is short for ``{"by": …}``.

    Raises:
        TypeError: The origin is neither a string nor a mapping, or one of its values has the wrong type.
        ValueError: ``by`` is unknown, or the origin has an unknown key.
    """
    if isinstance(value, str):
        value = {"by": value}
    if not isinstance(value, Mapping):
        raise TypeError(f"origin must be a string or a mapping, not {type(value).__name__}: {value!r:.80}")
    if unknown := [key for key in value if key not in _KEYS]:
        raise ValueError(f"origin has the unknown key {unknown[0]!r:.80}; its keys are {', '.join(_KEYS)}")
    by, via, sources = value.get("by", PROGRAM), value.get("via"), value.get("from")
    if not isinstance(by, str) or by not in TRUST:
        raise ValueError(f"origin must be by one of {', '.join(TRUST)}, not {by!r:.80}")
    if via is not None and not (isinstance(via, str) and via):
        raise TypeError(f"via of an origin must be a text, not {via!r:.80}")
    if sources is not None and not (
        isinstance(sources, list | tuple) and all(isinstance(source, str) for source in sources)
    ):
        raise TypeError(f"from of an origin must be a list of ids, not {sources!r:.80}")
    vouched = {"vouched": True} if value.get("vouched") is True else {}
    return {
        "by": by,
        **({"via": via} if via else {}),
        **({"from": [*sources]} if sources else {}),
        **vouched,
    }


@dataclass(frozen=True, slots=True)
class Writer:
    """The surface that writes, which sets the origin of its entries."""

    by: str | None = None
    """Who writes; None for a program, whose items may have any origin."""
    via: str | None = None
    """The surface, such as ``mcp/claude-code``."""
    may_cite: bool = True
    """Whether entries may cite files of the project. A citation lets the writer learn the file's content."""

    def origin(self, given: Mapping[str, Any] | None, sources: Iterable[str] = ()) -> dict[str, Any] | None:
        """Return the origin to write; None for ``program`` alone, which is the default.

        ``given`` is the origin that an item names. Its trust is lowered to the writer's if it is higher; its
        other keys are kept, but only a program keeps ``vouched``.

        Examples:
            >>> Writer("import", "import/mem0").origin({"by": "user", "via": "chat"})
            {'by': 'import', 'via': 'chat'}
        """
        said: Mapping[str, Any] = given or {}
        by = said.get("by", self.by or PROGRAM)
        found: dict[str, Any] = {"by": by if self.by is None else least((by, self.by))}
        if via := said.get("via", self.via):
            found["via"] = via
        if named := list(dict.fromkeys([*said.get("from", ()), *sources])):
            found["from"] = named
        if said.get("vouched") and self.by is None:
            found["vouched"] = True
        return None if found == {"by": PROGRAM} else found


ANY = Writer()
"""A program, which may write entries of any origin."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An existing entry that repeats or contradicts an entry that was added or updated."""

    id: str
    session: str
    kind: Literal["duplicate", "contradiction"]


class Judging(Protocol):
    """Computes an entry's trust and staleness, which depend on other entries and on cited files."""

    def trust(self, agent: str, session: str | None, record: Record) -> str:
        """Return the trust of an entry."""

    def stale(self, agent: str, session: str | None, record: Record) -> str | None:
        """Return why an entry may be outdated, or None."""


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One entry: a line in a session's log, merged with later lines of the same id.

    The envelope and the reserved keys are attributes; the payload is ``data``.

    Examples:
        >>> entry = session.add("decision", {"decision": "Use OAuth"}, tags=["auth"])
        >>> entry.data["decision"], entry.tags
        ('Use OAuth', ('auth',))
    """

    agent: str
    session: str
    id: str
    ts: datetime
    """The time when the entry was made: an aware datetime in UTC. Later puts and patches do not change it."""
    type: str
    text: str
    """The text that is indexed and shown."""
    data: Record
    """The payload, as a copy."""
    line: Record
    """The folded log line of the entry; ``as_dict`` returns a copy."""
    _conflicts: tuple[Conflict, ...] | Callable[[Entry], tuple[Conflict, ...]] = field(
        default=(), compare=False, kw_only=True
    )
    """The conflicts, or a function that finds them on first access."""
    _judge: Judging | None = field(default=None, compare=False, kw_only=True)
    """Computes ``trust`` and ``stale`` of an entry that was derived from other entries or cites files."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id} {self.type} in {self.agent}/{self.session}, "
            f"{_moment(self.ts)}: {_begin(self.text)}>"
        )

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "id", self.id
        yield "type", self.type
        yield "session", self.session
        yield "ts", _moment(self.ts)
        yield "text", _shortened(self.text)
        if self.data:
            yield "data", _shortened(self.data)

    def _repr_html_(self) -> str:
        return html_table("1 entry", COLUMNS, [self.cells()])

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the entry in its home: agent, session and id."""
        return self.agent, self.session, self.id

    def cells(self) -> tuple[str, ...]:
        """Return the entry's values for tables, in the order of ``COLUMNS``."""
        return _moment(self.ts), self.session, self.type, self.id, self.text

    def as_dict(self) -> Record:
        """Return a copy of the entry in the format of its log line, without the internal key ``life``."""
        return {key: value for key, value in self.line.items() if key != "life"}

    @property
    def summary(self) -> str | None:
        """A summary given by the caller, or None."""
        return _of_type(self.line.get("summary"), str)

    @property
    def priority(self) -> float | None:
        """The stored priority, before any decay; None if none was given."""
        value = self.line.get("priority")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            return float(value)
        except OverflowError:  # Another program wrote an integer beyond the range of floats.
            return math.inf if value > 0 else -math.inf

    @property
    def access(self) -> int:
        """How many times ``SessionMemory`` returned the entry."""
        return _of_type(self.line.get("access"), int) or 0

    @property
    def pinned(self) -> bool:
        """Whether the entry is included in every context, and never archived for its age."""
        return self.line.get("pinned") is True

    @property
    def deleted(self) -> bool:
        """Whether this version is a deletion; true only in ``history``."""
        return self.line.get("deleted") is True

    @property
    def tags(self) -> tuple[str, ...]:
        """The entry's tags, in the order they were given."""
        value = self.line.get("tags")
        return tuple(tag for tag in value if isinstance(tag, str)) if isinstance(value, list) else ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the entry's subject. They are indexed like words of its text."""
        value = self.line.get("aliases")
        return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()

    @property
    def links(self) -> tuple[Any, ...]:
        """Links to other entries, as in the log."""
        value = self.line.get("links")
        return tuple(value) if isinstance(value, list) else ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The valid entries that repeat or contradict this entry, if it was just added or updated; else none.

        They are searched on first access, and not stored. Conflicts are not resolved automatically; see
        ``Agent.supersede``.

        Examples:
            >>> first = session.add("fact", text="The lease of the office ends in 2027")
            >>> session.add("fact", text="The lease of the office ends in 2029").conflicts
            (Conflict(id='…', session='main', kind='contradiction'),)
        """
        if not isinstance(self._conflicts, tuple):
            object.__setattr__(self, "_conflicts", self._conflicts(self))
        return self._conflicts if isinstance(self._conflicts, tuple) else ()

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The ids of the entries that this entry replaces, according to its links."""
        links = (link for link in self.links if isinstance(link, dict) and link.get("rel") == SUPERSEDES)
        return tuple(link["to"] for link in links if isinstance(link.get("to"), str))

    @property
    def origin(self) -> Record | None:
        """The entry's origin, as a copy: ``by``, ``via``, ``from``, ``vouched``; None if it has none."""
        value = self.line.get("origin")
        return dict(value) if isinstance(value, dict) else None

    @property
    def trust(self) -> str:
        """The entry's level of trust: ``user``, ``program``, ``model``, ``import`` or ``tool``.

        It is the lowest level of the entry's own origin and of all entries it was derived from. An entry
        without an origin has ``program``. Outside a home, for example in a copy, an entry with sources has
        the lowest trust.

        Examples:
            >>> page = session.add("note", text="The deploy key is in CI", origin="tool")
            >>> session.add("note", text="CI deploys", derived_from=[page.id]).trust
            'tool'
        """
        if not sources_of(self.line):
            return own_trust(self.line)
        return LEAST if self._judge is None else self._judge.trust(self.agent, self.session, self.line)

    @property
    def stale(self) -> str | None:
        """Why the entry may be outdated, as text; None if there is no reason.

        An entry is stale if an entry that it was derived from no longer exists, was edited, superseded or
        expired, or is stale itself; or if a text that it cites changed.
        """
        return None if self._judge is None else self._judge.stale(self.agent, self.session, self.line)

    @property
    def valid_from(self) -> datetime | None:
        """The time from which the entry is valid: an aware datetime in UTC, or None."""
        return read_time(self.line.get("valid_from"))

    @property
    def valid_to(self) -> datetime | None:
        """The time until which the entry is valid: an aware datetime in UTC, or None."""
        return read_time(self.line.get("valid_to"))

    @property
    def expires(self) -> datetime | None:
        """The time when the entry expires: an aware datetime in UTC, or None."""
        return read_time(self.line.get("expires"))

    @property
    def modified(self) -> datetime:
        """The time of the last put or patch, in UTC, not counting access counts; ``ts`` if there was none."""
        return read_time(self.line.get("modified")) or self.ts

    @property
    def embedding(self) -> Vector | None:
        """A copy of the vector given with the entry, as float32 of unit length; None if none was given."""
        found = decode(self.line.get("embedding"))
        return None if found is None else found[1]


_SHOWN = 80
"""Maximum number of characters of a text in a ``repr``."""
_SHOWN_BY_RICH = 400
"""Maximum number of characters of a text shown by rich and in HTML tables."""


def _begin(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _shortened(value: Any) -> Any:
    """Return a value with long texts, such as pictures in Base64, cut for a terminal."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    is_long = isinstance(value, str) and len(value) > _SHOWN_BY_RICH
    return f"{value[:_SHOWN_BY_RICH]}…" if is_long else value


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _of_type(value: object, kind: type[T]) -> T | None:
    return value if isinstance(value, kind) else None


@dataclass(frozen=True, slots=True, repr=False)
class Version(Entry):
    """The state of an entry after one of its log lines, returned by ``history``."""

    written: datetime
    """The time when the line was written: an aware datetime in UTC."""


@dataclass(frozen=True, slots=True, repr=False)
class SessionInfo:
    """A session in a list."""

    id: str
    modified: datetime
    """The time of the last change of the log: an aware datetime in UTC."""
    size: int
    """The size of the log in bytes."""

    def __repr__(self) -> str:
        return f"<SessionInfo {self.id!r}, {self.size:,} bytes, {_moment(self.modified)}>"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "id", self.id
        yield "modified", _moment(self.modified)
        yield "size", self.size


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """The title, counts and preview of a session, for lists."""

    id: str
    title: str | None
    """The given title, else the start of the first message of a user; None if there is neither."""
    named: bool
    """Whether the title was given."""
    entries: int
    """Number of live entries."""
    changed: datetime
    """The time of the newest entry, or of the last change of the log if the session is empty."""
    preview: str
    """The start of the newest entry's text; empty if texts were not requested."""
    is_chat: bool = False
    """Whether a person started the session in keepstone's chat; False if texts were not requested."""


class Comparison(Protocol):
    """One condition of a ``where``; ``keepstone.log.where`` makes the conditions."""

    @property
    def key(self) -> str:
        """A key of the payload, a dotted path into it, or a reserved key."""

    @property
    def operator(self) -> str:
        """The operator that compares the value at the key, such as ``"gte"``."""

    @property
    def value(self) -> Any:
        """The value to compare with."""

    def matches(self, record: Record) -> bool:
        """Return whether an entry, in the format of its log line, meets the condition."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The entries that a call may access: entries of exactly one agent, restricted by filters.

    None means no filter; an empty tuple matches nothing.
    """

    agent: str
    sessions: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    """Entries must have all of these tags."""
    where: tuple[Comparison, ...] = ()
    """Conditions on values of the payload and reserved keys, all of which entries must meet."""
    since: datetime | None = None
    """Only entries made at this instant or later."""
    until: datetime | None = None
    """Only entries made before this instant."""
    ids: tuple[str, ...] | None = None
    valid_at: datetime | None = None
    """Only entries valid at this instant: from ``valid_from`` on, before ``valid_to`` and ``expires``."""

    @property
    def limits_within_a_session(self) -> bool:
        """Whether filters on type, tags or time may exclude some entries of a session."""
        has_kind = self.types is not None or self.tags is not None
        return has_kind or self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of a hit."""

    ranks: Mapping[str, int]
    """The entry's rank, from 1, in each candidate list that found it."""
    words: tuple[str, ...] = ()
    """The words of the query that the entry contains, in any inflected form."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The parts that add up to the score: words, vector, neighbours in the session, boosts."""
    cosine: float | None = None
    """The cosine of the entry's vector and the query's, from -1 to 1; None if they were not compared."""
    boosts: tuple[str, ...] = ()
    """Boosts of the score, such as ``"speaker: Ada"``."""
    supersedes: tuple[str, ...] = ()
    """The ids of the entries that the entry replaced."""

    def __str__(self) -> str:
        lists = list(self.ranks) + (["neighbours"] if "neighbours" in self.parts else [])
        found = [f"{name} #{self.ranks[name]}" if name in self.ranks else name for name in lists]
        only = "" if self.ranks else "only "
        reasons = [f"found {only}by {' and '.join(found)}"] if found else []
        reasons += [f"words: {', '.join(self.words)}"] if self.words else []
        reasons += [f"cosine {self.cosine:.2f}"] if self.cosine is not None else []
        replaced = [f"supersedes {', '.join(self.supersedes)}"] if self.supersedes else []
        return "; ".join((*reasons, *self.boosts, *replaced))


class ConflictingPair(tuple["Entry", "Entry"]):  # noqa: SLOT001  A tuple of two, with an attribute.
    """Two entries, the newer one first, that repeat or contradict each other.

    Attributes:
        kind: ``"duplicate"`` or ``"contradiction"``.
    """

    kind: Literal["duplicate", "contradiction"]

    def __new__(cls, entry: Entry, other: Entry, kind: Literal["duplicate", "contradiction"]) -> Self:
        """Create the pair of two entries."""
        made = super().__new__(cls, (entry, other))
        made.kind = kind
        return made


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a text file: a bullet, a paragraph, or a piece of a long paragraph."""

    kind: str
    """``"file"`` for one of the agent's own files, ``"note"`` for a note."""
    path: str
    """The path: relative, as in ``Agent.files``, for one of the agent's own files; absolute for notes."""
    line: int
    """The number of its first line, from 1; in a hit, of its first line with the most words of the query."""
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One hit of a recall."""

    entry: Entry
    """The entry; None in a hit of a file or a note, which recall returns only if ``include`` names them."""
    score: float
    """The score; higher is better. Scores are comparable within one recall only."""
    why: Why
    neighbours: tuple[Entry, ...] = ()
    """The entries before and after it in its session, in order, if ``neighbours`` requested them."""
    excerpt: Excerpt | None = None
    """The excerpt of a file or of notes that was found; None in a hit of an entry."""
    relevance: float = 0.0
    """How likely the hit is about the query, from 0 to 1; comparable across queries and homes."""
    _find_passage: Callable[[str], str] = field(default=str, compare=False, kw_only=True)
    """A function that finds the ``passage`` in a text."""

    @property
    def kind(self) -> str:
        """The kind of the hit: ``"entry"``, ``"file"`` or ``"note"``."""
        return "entry" if self.excerpt is None else self.excerpt.kind

    @property
    def text(self) -> str:
        """The text that was found."""
        return self.entry.text if self.excerpt is None else self.excerpt.text

    @property
    def agent(self) -> str | None:
        """The agent whose entry was found; None in a hit of a file or a note."""
        return self.entry.agent if self.excerpt is None else None

    @property
    def passage(self) -> str:
        """The part of the text with the most words of the query, at most 400 characters.

        A text of at most 400 characters is its own passage. If the text has no word of the query, the passage
        is its beginning. The passage is searched on each access.
        """
        return self._find_passage(self.text)

    @property
    def path(self) -> str | None:
        """The path of the file or notes file; None for an entry."""
        return None if self.excerpt is None else self.excerpt.path

    @property
    def line(self) -> int | None:
        """The line in that file, from 1; None for an entry."""
        return None if self.excerpt is None else self.excerpt.line

    def cells(self) -> tuple[str, ...]:
        """Return the hit's values for tables, in the order of ``COLUMNS``."""
        if self.excerpt is None:
            return self.entry.cells()
        return "", self.excerpt.path, self.excerpt.kind, f"line {self.excerpt.line}", self.excerpt.text

    def __repr__(self) -> str:
        return f"<Hit {self.score:.2f} {self.excerpt or self.entry!r}>"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "score", round(self.score, 2)
        yield "relevance", round(self.relevance, 2)
        yield "why", str(self.why)
        yield self.kind, self.excerpt or self.entry


class Hits(list[Hit]):
    """The hits of a recall, best first, with information about the search.

    Attributes:
        lexical_only: True if only words were searched.
        embedder: The id of the space that was searched; None without vector search.
        reason: Why this embedder, or none, was used, as text for people.
        pending: Number of entries in scope without a vector.
        searched: How vectors were searched, ``"exact"`` or ``"hnsw"``; None if they were not searched.
        stale: True if the index is behind the logs.
        skipped: Paths of the agent's files that were not searched, as they are not text or exceed 1 MiB in
            total.
        took_ms: Duration of the recall in milliseconds.
    """

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        *,
        embedder: str | None = None,
        reason: str = "",
        pending: int = 0,
        searched: str | None = None,
        stale: bool = False,
        skipped: tuple[str, ...] = (),
        took_ms: float = 0.0,
    ) -> None:
        super().__init__(hits)
        self.lexical_only = embedder is None
        self.embedder = embedder
        self.reason = reason
        self.pending = pending
        self.searched = searched
        self.stale = stale
        self.skipped = skipped
        self.took_ms = took_ms

    @property
    def nothing_relevant(self) -> bool:
        """Whether no hit is relevant: the memory probably has nothing about the question."""
        return not any(hit.relevance >= RELEVANT for hit in self)

    def __repr__(self) -> str:
        shown = "".join(f"\n  {hit!r}" for hit in self)
        by = "words" if self.lexical_only else "words and vectors"
        count = _counted(len(self), "hit")
        return f"<Hits {count} by {by} in {self.took_ms:.1f} ms{shown}>"

    def __rich_repr__(self) -> Iterator[object]:
        yield from self

    def _repr_html_(self) -> str:
        columns = ("score", "relevance", "found", *COLUMNS)
        rows = [(f"{hit.score:.2f}", f"{hit.relevance:.2f}", hit.why, *hit.cells()) for hit in self]
        return html_table(_counted(len(self), "hit"), columns, rows)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of memory that was proposed, for a person to accept or reject."""

    id: str
    do: str
    """``"merge"``, ``"supersede"``, ``"delete"``, ``"tag"``, ``"pin"`` or ``"add"``."""
    entries: tuple[str, ...]
    """The ids of the entries to change."""
    item: Record | None
    """The new entry, or the tags to add."""
    why: str
    evidence: tuple[str, ...]
    """The basis of the proposal: ids of entries, or other references."""
    by: str | None
    """Who proposed it; None if not given."""
    ts: datetime
    """The time of the proposal: an aware datetime in UTC."""
    state: str
    """``"open"``, ``"accepted"``, ``"rejected"``, ``"undone"``, or ``"outdated"`` if its entries changed."""
    decided_by: str | None = None
    """Who accepted, rejected or undid it."""
    decided: datetime | None = None
    """The time of that decision."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of ``Home.doctor``."""

    level: str
    """``"ok"``, ``"warning"`` or ``"error"``."""
    subject: str
    """The agent, session or file of the home that was checked."""
    message: str
    remedy: str = ""
    """The remedy, as a command if there is one."""
    cost: str = ""
    """The consequence of ignoring the finding."""
    agent: str | None = None
    """The agent concerned; None for the whole home."""


@dataclass(frozen=True, slots=True)
class Purged:
    """The result of ``Agent.purge`` and ``Agent.purge_matching``."""

    entries: tuple[tuple[str, str], ...]
    """The session and id of each entry that was purged, or that contained the text."""
    sessions: tuple[str, ...] = ()
    """The ids of the sessions whose id contained the text; they were removed with all their entries."""
    files: tuple[str, ...] = ()
    """The paths of the agent's files whose path or content contained the text."""
    suggestions: tuple[str, ...] = ()
    """The ids of the agent's suggestions that contained the text."""

    def __bool__(self) -> bool:
        """Return whether anything was purged or contained the text."""
        return bool(self.entries or self.sessions or self.files or self.suggestions)


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """The result of ``Home.backup``."""

    folder: Path
    """The folder of the copy. The copy is a home."""
    agents: int
    sessions: int
    entries: int
    """Number of live entries."""
    files: int
    """Number of agents' own files."""
    size: int
    """Total size in bytes."""
    findings: tuple[Finding, ...] = ()
    """Damage that the doctor found in the copy. The home has the same damage."""
