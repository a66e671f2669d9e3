"""The values that keepstone gives out and takes in: plain, frozen, without behaviour of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from keepstone.vector import Vector, decode

T = TypeVar("T")

Record = dict[str, Any]
"""One JSON object of a log, folded or not: the keys of a log line and their values."""


STANDING = ("preference", "decision")
"""Types whose entries stand in every context, whatever is asked."""

SUPERSEDES = "supersedes"
"""The relation of an entry to the older one that it replaces."""

CHAT = frozenset({"message", "event", "conversation", "tool"})
"""Types whose entries repeat one another all the time."""

BYTES_PER_TOKEN = 3
"""What a prompt of notes counts: tokenizers make fewer tokens of prose than a third of its UTF-8 bytes."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry that repeats or contradicts one that was added."""

    id: str
    session: str
    kind: Literal["duplicate", "contradiction"]


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One remembered thing: a line in a session's log, with its later lines folded in.

    The envelope and the reserved keys are attributes; what the caller stored is ``data``.

    Example:
        >>> entry = session.add("decision", {"decision": "Use OAuth"}, tags=["auth"])
        >>> entry.data["decision"], entry.tags
        ('Use OAuth', ('auth',))
    """

    agent: str
    session: str
    id: str
    ts: datetime
    """When the entry was made: an aware datetime in UTC. Later puts and patches keep it."""
    type: str
    text: str
    """The text that is indexed and shown."""
    data: Record
    """The payload as it was stored; a copy, so changing it changes no memory."""
    line: Record
    """The log line that says all of this entry; ``as_dict`` gives a copy."""
    _conflicts: tuple[Conflict, ...] | Callable[[Entry], tuple[Conflict, ...]] = field(
        default=(), compare=False, kw_only=True
    )
    """What ``conflicts`` returns, or finds it."""

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

    def as_dict(self) -> Record:
        """Return the entry in the shape of its log line, as a dictionary of its own."""
        return dict(self.line)

    @property
    def summary(self) -> str | None:
        """A shorter wording that the caller gave, or None."""
        return _of_type(self.line.get("summary"), str)

    @property
    def priority(self) -> float | None:
        """The stored priority, before any decay; None if none was given."""
        value = self.line.get("priority")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            return float(value)
        except OverflowError:  # A whole number of another program's, beyond what a float can say.
            return math.inf if value > 0 else -math.inf

    @property
    def access(self) -> int:
        """How often the entry was returned by ``SessionMemory``."""
        return _of_type(self.line.get("access"), int) or 0

    @property
    def pinned(self) -> bool:
        """Whether the entry is always part of the context and never archived for age."""
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
    def links(self) -> tuple[Any, ...]:
        """Relations to other entries, as they stand in the log."""
        value = self.line.get("links")
        return tuple(value) if isinstance(value, list) else ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The entries that hold and that repeat or contradict this one, if it was just added; else none.

        They are looked up on first access, and are not stored. Nothing is resolved: see ``Agent.supersede``.

        Example:
            >>> first = session.add("fact", text="The lease of the office ends in 2027")
            >>> session.add("fact", text="The lease of the office ends in 2029").conflicts
            (Conflict(id='…', session='main', kind='contradiction'),)
        """
        if not isinstance(self._conflicts, tuple):
            object.__setattr__(self, "_conflicts", self._conflicts(self))
        return self._conflicts if isinstance(self._conflicts, tuple) else ()

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The ids of the entries that this one replaces, as its links name them."""
        links = (link for link in self.links if isinstance(link, dict) and link.get("rel") == SUPERSEDES)
        return tuple(link["to"] for link in links if isinstance(link.get("to"), str))

    @property
    def valid_from(self) -> str | None:
        """From when the entry holds (RFC 3339), or None."""
        return _of_type(self.line.get("valid_from"), str)

    @property
    def valid_to(self) -> str | None:
        """Until when the entry holds (RFC 3339), or None."""
        return _of_type(self.line.get("valid_to"), str)

    @property
    def expires(self) -> str | None:
        """When the entry may be forgotten (RFC 3339), or None."""
        return _of_type(self.line.get("expires"), str)

    @property
    def embedding(self) -> Vector | None:
        """The vector that a caller gave with the entry: float32 of unit length, a copy; None without one."""
        found = decode(self.line.get("embedding"))
        return None if found is None else found[1]


_SHOWN = 80
"""Characters of a text that a ``repr`` shows."""
_SHOWN_BY_RICH = 400
"""Characters of a text that rich shows."""


def _begin(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _shortened(value: Any) -> Any:
    """Return a value whose long texts, such as pictures in Base64, are cut for a terminal."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    is_long = isinstance(value, str) and len(value) > _SHOWN_BY_RICH
    return f"{value[:_SHOWN_BY_RICH]}…" if is_long else value


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _of_type(value: object, kind: type[T]) -> T | None:
    return value if isinstance(value, kind) else None


@dataclass(frozen=True, slots=True, repr=False)
class Version(Entry):
    """An entry as one line of its log left it, given by ``history``."""

    written: datetime
    """When the line was written: an aware datetime in UTC."""


@dataclass(frozen=True, slots=True, repr=False)
class SessionInfo:
    """A session as listings show it."""

    id: str
    modified: datetime
    """When its log last changed: an aware datetime in UTC."""
    size: int
    """The length of its log in bytes."""

    def __repr__(self) -> str:
        return f"<SessionInfo {self.id!r}, {self.size:,} bytes, {_moment(self.modified)}>"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "id", self.id
        yield "modified", _moment(self.modified)
        yield "size", self.size


@dataclass(frozen=True, slots=True)
class Scope:
    """Which entries a call may touch: always exactly one agent, then what else is named.

    None means no limit; an empty tuple allows nothing.
    """

    agent: str
    sessions: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    """Entries must carry all of these."""
    where: Mapping[str, Any] | None = None
    """Top-level payload keys and the values they must equal."""
    since: datetime | None = None
    """Entries made at this instant or later."""
    until: datetime | None = None
    """Entries made before this instant."""

    @property
    def limits_within_a_session(self) -> bool:
        """Whether it may hold some entries of a session and not others, ``where`` aside."""
        has_kind = self.types is not None or self.tags is not None
        return has_kind or self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Why:
    """Why recall returned an entry."""

    ranks: Mapping[str, int]
    """The place, from 1, that the entry had in each candidate list that found it."""
    words: tuple[str, ...] = ()
    """The words of the query that the entry holds, in any form."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the score is the sum of: its words, its vector, its neighbours in the session, boosts."""
    cosine: float | None = None
    """How near its vector is to the query's, from -1 to 1; None if they were not compared."""
    boosts: tuple[str, ...] = ()
    """What in the query spoke for it besides words and meaning, such as ``"speaker: Ada"``."""
    supersedes: tuple[str, ...] = ()
    """The ids of the entries that it replaced."""

    def __str__(self) -> str:
        lists = list(self.ranks) + (["neighbours"] if "neighbours" in self.parts else [])
        found = [f"{name} #{self.ranks[name]}" if name in self.ranks else name for name in lists]
        reasons = [f"found by {' and '.join(found)}"] if found else []
        reasons += [f"words: {', '.join(self.words)}"] if self.words else []
        reasons += [f"cosine {self.cosine:.2f}"] if self.cosine is not None else []
        replaced = [f"supersedes {', '.join(self.supersedes)}"] if self.supersedes else []
        return "; ".join((*reasons, *self.boosts, *replaced))


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One result of a recall."""

    entry: Entry
    score: float
    """How well the entry fits, higher is better; comparable within one recall only."""
    why: Why
    neighbours: tuple[Entry, ...] = ()
    """The entries around it in its session, by their places, as many as the recall asked for."""

    def __repr__(self) -> str:
        return f"<Hit {self.score:.2f} {self.entry!r}>"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "score", round(self.score, 2)
        yield "why", str(self.why)
        yield "entry", self.entry


class Hits(list[Hit]):
    """The results of a recall, best first, with how the answer came about.

    Attributes:
        lexical_only: True if only words were searched.
        embedder: The id of the space that was searched by meaning, None if none was.
        reason: Why that embedder was used, or why none was, for people.
        pending: Entries in scope that have no vector yet.
        searched: How vectors were compared, ``"exact"`` or by a graph, ``"hnsw"``; None if none were.
        stale: True if the index could not take in everything the logs hold.
        took_ms: How long the recall took, in milliseconds.
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
        took_ms: float = 0.0,
    ) -> None:
        super().__init__(hits)
        self.lexical_only = embedder is None
        self.embedder = embedder
        self.reason = reason
        self.pending = pending
        self.searched = searched
        self.stale = stale
        self.took_ms = took_ms

    def __repr__(self) -> str:
        shown = "".join(f"\n  {hit!r}" for hit in self)
        by = "words" if self.lexical_only else "words and vectors"
        count = f"{len(self)} hit" if len(self) == 1 else f"{len(self)} hits"
        return f"<Hits {count} by {by} in {self.took_ms:.1f} ms{shown}>"

    def __rich_repr__(self) -> Iterator[object]:
        yield from self


@dataclass(frozen=True, slots=True)
class Item:
    """One entry, or one file's notes, in a part of a context."""

    source: str
    """The session and id of an entry (``"main/019b…"``), or the path of a file."""
    tokens: int
    """What it takes of the budget, as the context's counter counts."""
    remark: str = "whole"
    """``"whole"``, ``"shortened"``, or how much of a file it is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What did not go into a context, and why."""

    kind: str
    """The part it would have stood in."""
    source: str
    """As ``Item.source``."""
    reason: str
    """Why, for people."""
    count: int = 1
    """How many entries or passages this speaks of."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a context block."""

    kind: str
    """``"notes"``, ``"pinned"``, ``"standing"``, ``"notes for the query"``, ``"recalled"`` or ``"newest"``.

    What stands are preferences and decisions.
    """
    text: str
    entries: tuple[Entry, ...] = ()
    tokens: int = 0
    """What the text takes of the budget."""
    items: tuple[Item, ...] = ()
    """What it is made of, in the order of the text."""


@dataclass(frozen=True, slots=True)
class ContextSource:
    """Which entry a short reference in a context stands for."""

    ref: str
    """The reference without its brackets: ``"3"`` for ``[3]``."""
    session: str
    id: str


@dataclass(frozen=True, slots=True)
class Context:
    """The text block that goes into a system prompt."""

    text: str
    tokens: int
    """What the text takes: by the counter that was given, else as ``estimate_tokens`` says."""
    parts: tuple[Part, ...]
    stable: int = 0
    """How many characters at the start of the text are the same for every query.

    They change with notes, with pinned entries, and with preferences and decisions. A provider's prompt
    cache is to be told to break after them.
    """
    left_out: tuple[LeftOut, ...] = ()
    """What did not go in, and why."""
    sources: tuple[ContextSource, ...] = ()
    """Which entry each short reference in the text stands for, in the order of the text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that ``Home.doctor`` looked at."""

    level: str
    """``"ok"``, ``"warning"`` or ``"error"``."""
    subject: str
    """What was looked at: an agent, a session or a file of the home."""
    message: str
    remedy: str = ""
    """What to do about it, as a command where there is one."""
    cost: str = ""
    """What it means to leave it as it is."""
    agent: str | None = None
    """The agent that it concerns; None for the home as a whole."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What ``Agent.purge_matching`` removed, or would remove."""

    entries: tuple[tuple[str, str], ...]
    """The session and id of each entry that held the text."""
    sessions: tuple[str, ...] = ()
    """The sessions whose names held it, which are gone with all their entries."""
    files: tuple[str, ...] = ()
    """The paths of the agent's files that held it, in their names or their contents."""

    def __bool__(self) -> bool:
        """Tell whether anything held the text."""
        return bool(self.entries or self.sessions or self.files)


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """What ``Home.backup`` copied."""

    folder: Path
    """Where the copy lies: a home, to be opened like any other."""
    agents: int
    sessions: int
    entries: int
    """How many live entries the copy has."""
    files: int
    """How many files of the agents' own it has."""
    size: int
    """Bytes of all of it."""
    findings: tuple[Finding, ...] = ()
    """What the doctor found wrong with the copy, which is then wrong with the home as well."""
