"""Moving a home from one store to another, byte by byte and with verification.

Each session is moved in one step: it arrives whole or not at all. A session that the target already has with
the same lines is skipped, so an interrupted move continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from tempfile import TemporaryFile
from typing import NamedTuple, Protocol

from keepstone.errors import NotTextError, StoreError
from keepstone.log.fold import Fold
from keepstone.log.line import dump_read, entry_of, format_time, id_of, parse, read_time
from keepstone.log.scan import Line, Scan
from keepstone.log.sides import Purged, Side
from keepstone.log.union import merged
from keepstone.model import Record
from keepstone.store.protocol import Files, Store
from keepstone.store.removal_marks import DroppedMark, PurgedIds, digest
from keepstone.store.sharing.changes_of_grants import naming_damage
from keepstone.store.suggestion_lines import united

_VECTORS_AT_ONCE = 1_000
_AT_ONCE = 2
"""Number of sessions that are moved at a time."""


class RawLine(NamedTuple):
    """One line as it is stored."""

    line: Line
    archived: bool

    @property
    def id(self) -> str | None:
        """The id of the line's entry, even if the bytes lack it; None for a damaged line."""
        return id_of(self.line.record or {})

    @property
    def ts(self) -> datetime | None:
        """The time at which the line was written, even if the bytes lack it."""
        return read_time((self.line.record or {}).get("ts"))

    def explicit(self) -> bytes:
        """Return the bytes, completed by the derived id and time if they lack these."""
        said = parse(self.line.raw) if self.line.derived else None
        if said is None or self.id is None or self.ts is None:
            return self.line.raw
        derived = {"id": self.id} if id_of(said) is None else {}
        derived |= {"ts": format_time(self.ts)} if read_time(said.get("ts")) is None else {}
        return dump_read(said | derived)[:-1]


class MovableStore(Store, Protocol):
    """A store whose sessions can be moved byte by byte."""

    def raw_lines(self, agent: str, session: str) -> Iterator[RawLine]:
        """Yield the lines of a session's archive, then those of its log, in the order of writing."""

    def take_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> None:
        """Replace a session's lines by these, all or nothing; create the session if it is missing."""

    def holds_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> bool:
        """Return whether a session has exactly these lines, byte by byte."""

    def purged(self, agent: str) -> PurgedIds:
        """Return the records of an agent's purges."""

    def take_purged(self, agent: str, found: PurgedIds) -> None:
        """Add another home's records of an agent's purges."""

    def vanished_agents(self) -> list[str]:
        """Return the agents for which a purge of the whole agent is recorded."""

    def dropped_marks(self, agent: str) -> frozenset[DroppedMark]:
        """Return the marks of an agent's dropped sessions."""

    def take_dropped(self, agent: str, marks: frozenset[DroppedMark]) -> None:
        """Add another home's marks of dropped sessions."""

    def take_language(self, language: str) -> None:
        """Set and record the stemming language of a home without agents."""


@dataclass
class Moved:
    """The result of a move."""

    agents: int = 0
    sessions: int = 0
    entries: int = 0
    lines: int = 0
    files: int = 0
    vectors: int = 0
    unchanged: int = 0
    """Number of sessions that the target already had with the same lines."""
    skipped: list[str] = field(default_factory=list)
    """Files that are not text."""
    differing: list[str] = field(default_factory=list)
    """Files that the target already had with another text, which it keeps."""

    def add(self, more: Moved) -> None:
        """Add the counts of one session."""
        self.entries += more.entries
        self.lines += more.lines
        self.vectors += more.vectors
        self.unchanged += more.unchanged


def move(
    source: MovableStore,
    target: MovableStore,
    *,
    merge: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Moved:
    """Copy all of a home into another home, and verify the result. ``progress`` receives sessions.

    With ``merge``, the target may have entries: its sessions get the lines that they lack, except lines of
    entries that either home is known to have purged.

    Raises:
        StoreError: The target has entries and ``merge`` is not given, or the copy differs from the source.
    """
    if not merge and any(target.entry_counts(agent) for agent in target.agents()):
        raise StoreError(
            "the target has entries: give --merge to add to them, or to go on with an interrupted migration"
        )
    agents, moved = source.agents(), Moved()
    sessions = [(agent, info.id) for agent in agents for info in source.sessions(agent)]
    space = source.home_space()
    if space is not None and target.home_space() is None:
        target.set_home_space(space)
    if target.language != source.language and not target.agents():
        target.take_language(source.language)
    # Purges come first, so that no session brings back an entry that the other home purged.
    gone = {agent: _move_purges(source, target, agent) for agent in {*agents, *source.vanished_agents()}}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # One session is read and folded here while the database writes another session.
        moves = [
            pool.submit(_move_session, source, target, agent, session, gone[agent])
            for agent, session in sorted(sessions)
        ]
        try:
            for done, move_of_one in enumerate(moves, 1):
                moved.add(move_of_one.result())
                if progress is not None:
                    progress(done, len(sessions))
        finally:
            # After an error or Ctrl-C, sessions that have not begun are not moved.
            pool.shutdown(cancel_futures=True)
    for agent in agents:
        _move_files(source, target, agent, moved)
        target.take_dropped(agent, source.dropped_marks(agent))
        _move_suggestions(source, target, agent)
        _move_grants(source, target, agent)
    target.sync()
    for agent in gone:
        _check_marks(source, target, agent)
    moved.agents, moved.sessions = len(agents), len(sessions)
    return moved


def _move_suggestions(source: MovableStore, target: MovableStore, agent: str) -> None:
    lines = source.suggestion_lines(agent) if source.keeps_suggestions else []
    purged = target.purged(agent).ids
    if lines:
        target.change_suggestions(
            agent, lambda present: united(present, lines, lambda *key: digest(*key) in purged)
        )


def _move_grants(source: MovableStore, target: MovableStore, agent: str) -> None:
    """Add the grants that the target lacks."""
    if not source.has_agents:
        return
    with naming_damage(agent):
        present = target.grants(agent)
        for grant in source.grants(agent):
            if grant not in present:
                target.add_grant(agent, grant, drop_later=False)


def _move_purges(source: MovableStore, target: MovableStore, agent: str) -> Mapping[str, int]:
    """Apply the source's purges to the target, then record them; return the purges of both homes."""
    target_purged, source_purged = target.purged(agent), source.purged(agent)
    purged = _most(
        _most(target_purged.ids, target_purged.vanished), _most(source_purged.ids, source_purged.vanished)
    )
    # An id may have been used again after its purge, so compare the numbers of lives.
    new = {key: life for key, life in purged.items() if life > target_purged.ids.get(key, 0)}
    for info in target.sessions(agent) if new else []:
        lives = _side_of(target.raw_lines(agent, info.id)).lives
        gone = [entry_id for entry_id, life in lives.items() if life <= new.get(digest(info.id, entry_id), 0)]
        target.purge(agent, info.id, sorted(gone))
    # For an agent that no longer exists, only its removal is recorded, and no agent is created.
    target.take_purged(agent, source_purged if agent in source.agents() else source_purged._replace(ids={}))
    return purged


def _most(counts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {key: max(counts.get(key, 0), others.get(key, 0)) for key in {*counts, *others}}


def _side_of(lines: Iterable[RawLine]) -> Side:
    side = Side()
    for line in lines:
        side.add(line.line, archived=line.archived)
    return side


def _check_marks(source: MovableStore, target: MovableStore, agent: str) -> None:
    """Compare the records of removed entries and sessions in both homes."""
    wanted, arrived = source.purged(agent), target.purged(agent)
    lacking_ids = {key for key, life in wanted.ids.items() if life > arrived.ids.get(key, 0)}
    lacking_ids = lacking_ids if agent in source.agents() else set()
    if lacking_ids or any(life > arrived.vanished.get(key, 0) for key, life in wanted.vanished.items()):
        raise StoreError(f"the digests of what agent {agent!r} purged did not all arrive: try again")
    lacking = source.dropped_marks(agent) - target.dropped_marks(agent)
    if lacking:
        raise StoreError(
            f"{len(lacking):,} marks of dropped sessions of agent {agent!r} did not arrive, such as the mark "
            f"of session {min(lacking)[0]!r:.80}: try again"
        )


def _move_session(
    source: MovableStore, target: MovableStore, agent: str, session: str, erased: Mapping[str, int]
) -> Moved:
    def purged(entry_id: str) -> int:
        return erased.get(digest(session, entry_id), 0)

    moved, side = Moved(), Side()
    lines: list[RawLine] = []
    for line in source.raw_lines(agent, session):
        made = side.add(line.line, archived=line.archived)
        life = made.life if made is not None else None
        # A damaged line has no life, and is moved unchanged.
        if life is None or life[1] > purged(life[0]):
            lines.append(line)
    is_there = target.session(agent, session) is not None
    present = list(target.raw_lines(agent, session)) if is_there else []
    wanted = lines if not present else _united(present, side, purged)
    if is_there and are_same(present, wanted):
        moved.unchanged += 1
    else:
        target.take_raw_lines(agent, session, wanted)
        if not target.holds_raw_lines(agent, session, wanted):
            raise StoreError(f"session {session!r:.80} of agent {agent!r} arrived damaged: try again")
    live = Fold().take(raw.line for raw in lines if not raw.archived).entries
    if not present and target.entry_counts(agent, session).get(session, 0) != len(live):
        raise StoreError(
            f"session {session!r:.80} of agent {agent!r} has {len(live):,} entries, and not all arrived: "
            "run keepstone doctor on both homes"
        )
    moved.lines += len(lines)
    moved.entries += len(live)
    moved.vectors += _move_vectors(
        source, target, agent, session, [folded.record for folded in live.values()]
    )
    return moved


def _united(present: Sequence[RawLine], more: Side, purged: Purged) -> Sequence[RawLine]:
    """Return a session's lines merged with another session's; the same object if that adds nothing."""
    result = merged(_side_of(present), more, purged)
    if not result.log_changed and not result.archive_changed:
        return present
    found: list[RawLine] = []
    for raw, archived in ((result.archive, True), (result.log, False)):
        # A scan reads from a descriptor, and derives missing ids and times as for a log.
        with TemporaryFile() as file:
            file.writelines(raw)
            file.flush()
            found += [RawLine(line, archived) for line in Scan(file.fileno(), unfinished=True)]
    return found


def are_same(lines: Iterable[RawLine], others: Iterable[RawLine]) -> bool:
    """Return whether both have the same lines, byte by byte, including derived ids and times."""
    return all(
        line is not None
        and other is not None
        and line.archived == other.archived
        and line.explicit() == other.explicit()
        for line, other in zip_longest(lines, others)
    )


def _move_vectors(
    source: MovableStore, target: MovableStore, agent: str, session: str, records: Sequence[Record]
) -> int:
    """Copy the computed vectors to the target; vectors that callers gave are in the lines."""
    count = 0
    for space in source.spaces(agent) if records else []:
        lacking = [record for record in records if (record.get("embedding") or {}).get("space") != space.id]
        for begin in range(0, len(lacking), _VECTORS_AT_ONCE):
            batch = lacking[begin : begin + _VECTORS_AT_ONCE]
            made = source.vectors(agent, session, space.id, [record["id"] for record in batch])
            kept = [
                (entry_of(agent, session, record), made[record["id"]])
                for record in batch
                if record["id"] in made
            ]
            if kept:
                count += target.keep_vectors(agent, space.id, kept)
    return count


def _move_files(source: MovableStore, target: MovableStore, agent: str, moved: Moved) -> None:
    before, after = source.files(agent), target.files(agent)
    present = set(after.list())
    for path in before.list():
        try:
            text = before.read(path)
        except NotTextError:
            moved.skipped.append(f"{agent}/{path}")
            continue
        if path not in present:
            after.write(path, text)
            if after.read(path) != text:
                raise StoreError(f"file {path!r:.80} of agent {agent!r} arrived damaged: try again")
        elif _text_of(after, path) != text:
            moved.differing.append(f"{agent}/{path}")
            continue
        moved.files += 1


def _text_of(files: Files, path: str) -> str | None:
    try:
        return files.read(path)
    except NotTextError:
        return None
