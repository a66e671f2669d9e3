"""Merging two versions of a session: no line is lost, and a life that one side ended stays ended.

Invariant (docs/decisions/0028-an-id-has-lives.md): a session is the set of the lines that were ever written
to it, each of one life of an id, so a merge is the union of two sets. The lines of one life keep the order of
each side, and lines of different sides are ordered by their times; a later life of an id follows the earlier
life, whatever the times are. A tombstone is the last line of its life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from typing import NamedTuple

from keepstone.log.line import EPOCH, apply, create, dump_read, is_put, parse
from keepstone.log.sides import Key, Life, Purged, Side, SideLine, never_purged
from keepstone.log.titles import TITLE_ID
from keepstone.model import Record


class Merged(NamedTuple):
    """The files of our side after a merge."""

    log: list[bytes]
    """The lines of the log, each with its newline."""
    archive: list[bytes]
    log_changed: bool
    archive_changed: bool


def merged(ours: Side, theirs: Side, purged: Purged = never_purged, base: Side | None = None) -> Merged:
    """Return the session with the lines of both sides, without the purged lives.

    If ``base``, the version that both sides started from, is given, lines that one side removed by hand stay
    removed.
    """
    union = _Union(ours, theirs, purged, base)
    archive, log = union.archive(), union.log()
    lines = [*(union.bytes_of(line) for line in log), *union.counts()]
    return Merged(
        lines,
        [line.raw + b"\n" for line in archive],
        union.says_more or _are_other(ours.log, log),
        _are_other(ours.archive, archive),
    )


def _are_other(before: Sequence[SideLine], after: Sequence[SideLine]) -> bool:
    """Return whether the lines of a file, or their order, have changed."""
    return [line.key for line in before] != [line.key for line in after]


_Lives = dict[Life, list[SideLine]]


def _by_life(lines: Iterable[SideLine]) -> _Lives:
    found: _Lives = defaultdict(list)
    seen: set[tuple[Life, Key]] = set()
    for line in lines:
        if line.life is not None and (line.life, line.key) not in seen:
            seen.add((line.life, line.key))
            found[line.life].append(line)
    return found


def _in_order(ours: _Lives, theirs: _Lives) -> list[SideLine]:
    """Return the lines of both sides, by lives, in the order in which they apply."""
    result: list[SideLine] = []
    for life in sorted({*ours, *theirs}):
        result += _sequence(ours.get(life, []), theirs.get(life, []))
    return result


def _sequence(ours: Sequence[SideLine], theirs: Sequence[SideLine]) -> list[SideLine]:
    """Return the lines of one life in one order, which keeps the order of each side.

    A line's rank is the latest time up to it, and its number among the lines of this time.
    """
    ranks: dict[Key, tuple[datetime, int]] = {}
    for _ in range(2):  # Twice, as a line on both sides may move after other lines in the first pass.
        for side in (ours, theirs):
            rank = EPOCH, -1
            for line in side:
                own = max(ranks.get(line.key, (line.time, 0)), (line.time, 0))
                rank = max(own, (rank[0], rank[1] + 1))
                ranks[line.key] = rank
    lines = {line.key: line for line in (*ours, *theirs)}
    # A tombstone ends its life, whatever the clocks say. The bytes decide between lines of one rank, so that
    # every device has the same order.
    return sorted(lines.values(), key=lambda line: (line.is_tombstone, ranks[line.key], line.raw))


class _Union:
    """The union of two sides."""

    def __init__(self, ours: Side, theirs: Side, purged: Purged, base: Side | None) -> None:
        self._ours, self._ours_archived = ours, _by_life(ours.archive)
        # The sides may have equal lines in different orders: sorting makes every device choose the same one.
        self._sides = sorted((ours, theirs), key=lambda side: [line.key for line in side.log if line.life])
        self._purged = purged
        self._removed = _removed(base, ours, theirs)
        self._out = _taken_out(base, ours, theirs)
        self._archived = {line.key for side in self._sides for line in side.archive if self._stays(line)}
        self._by_id = self._lives_by_id()
        self._folds: dict[Life, bytes] = {}
        self._logged: dict[str, list[SideLine]] = {}
        self.says_more = False
        """Whether counts are higher, or folded lines come from other lines, than on our side."""

    def _stays(self, line: SideLine) -> bool:
        if line.key in self._out:
            return False
        if line.life is None:
            return True
        return line.life[1] > max(self._purged(line.life[0]), self._removed.get(line.life[0], 0))

    def _lives_by_id(self) -> dict[str, list[SideLine]]:
        """Return all lines that stay, by id, in the order in which they apply."""
        sides = [
            _by_life(line for line in (*side.archive, *side.log) if not line.is_folded and self._stays(line))
            for side in self._sides
        ]
        ids: dict[str, tuple[_Lives, _Lives]] = defaultdict(lambda: ({}, {}))
        for number, lives in enumerate(sides):
            for life, lines in lives.items():
                ids[life[0]][number][life] = lines
        return {entry_id: _in_order(*lives) for entry_id, lives in ids.items()}

    def archive(self) -> list[SideLine]:
        """Return the lines of the archive."""
        wanted = {
            entry_id: [line for line in lines if line.key in self._archived]
            for entry_id, lines in self._by_id.items()
        }
        return self._arranged([side.archive for side in self._sides], wanted)

    def log(self) -> list[SideLine]:
        """Return the lines of the log."""
        folded = {
            line.life: line
            for side in self._sides
            for line in side.log
            if line.is_folded and self._stays(line)
        }
        wanted = {entry_id: self._in_log(lines, folded) for entry_id, lines in self._by_id.items()}
        self._logged = wanted
        return self._arranged([side.log for side in self._sides], wanted)

    def _in_log(self, lines: Sequence[SideLine], folded: dict[Life | None, SideLine]) -> list[SideLine]:
        """Return the lines of one id that belong in the log, in order."""
        # Only the last title line counts; earlier title lines are dropped.
        last = lines[-1].life if lines else None
        if last is None or last[0] == TITLE_ID:
            return list(lines[-1:])
        new = [line for line in lines if line.key not in self._archived]
        earlier = [line for line in lines if line.life != last]
        earlier = earlier if any(line.life != last for line in new) else []
        of_last = [line for line in lines if line.life == last]
        later = [line for line in new if line.life == last]
        fold = folded.get(last)
        if later:
            # A folded line states the result of the lines before the new ones. If the archive lacks lines in
            # between, nothing can state it, and the log gets every line of the life.
            if fold is None or of_last[-len(later) :] != later or of_last[-1].is_tombstone:
                return [*earlier, *of_last]
            return [*earlier, self._folded(fold, last, of_last[: -len(later)]), *later]
        if of_last[-1].is_tombstone or fold is None or self._is_aged(last, of_last):
            return earlier  # The entry was deleted, or archived for its age.
        return [*earlier, self._folded(fold, last, of_last)]

    def _is_aged(self, life: Life, lines: Sequence[SideLine]) -> bool:
        """Return whether a side has archived all lines of a life because of its age."""
        return any(
            (state := side.states.get(life[0])) is not None
            and (state.life, state.is_live, state.archived is not None) == (life[1], True, True)
            and all(line.key in side.keys for line in lines)
            for side in self._sides
        )

    def _folded(self, fold: SideLine, life: Life, lines: Sequence[SideLine]) -> SideLine:
        """Record the result of a life's lines as the content of the folded line."""
        record: Record | None = None
        for line in lines:
            # The bytes are parsed again: the merged line has no access count, and neither side's fold is
            # reused.
            said = parse(line.raw) or {}
            record = apply(record, said) if record is not None else create(said) if is_put(said) else None
        count = self._count(life)
        if record is not None:
            self._folds[life] = dump_read(record | ({"access": count} if count else {}))
        before = {line.key for line in self._ours_archived.get(life, ())}
        self.says_more = self.says_more or before != {line.key for line in lines}
        return fold

    def _count(self, life: Life) -> int:
        count = max(side.counts.get(life, 0) for side in self._sides)
        self.says_more = self.says_more or count > self._ours.counts.get(life, 0)
        return count

    def bytes_of(self, line: SideLine) -> bytes:
        """Return a line of the log with its newline."""
        if line.is_folded and line.life in self._folds:
            return self._folds[line.life]
        return line.raw + b"\n"

    def counts(self) -> Iterator[bytes]:
        """Yield lines with the access counts that are not in a folded line."""
        for entry_id, lines in sorted(self._logged.items()):
            life = lines[-1].life if lines else None
            if life is not None and not lines[-1].is_tombstone and life not in self._folds:
                count = self._count(life)
                if count:
                    yield dump_read({"id": entry_id, "access": count})

    def _arranged(
        self, sides: Sequence[Sequence[SideLine]], wanted: dict[str, list[SideLine]]
    ) -> list[SideLine]:
        """Return the wanted lines, at the positions of lines with the same ids in the files."""
        # Lines of two lives may have the same bytes in logs that do not number lives.
        items = {(line.life, line.key) for lines in wanted.values() for line in lines}
        placed: list[list[tuple[tuple[datetime, bytes], SideLine]]] = []
        seen: set[tuple[Life | None, Key]] = set()
        for lines in sides:
            place = EPOCH, b""
            placed_lines = []
            for line in lines:
                # A place is never before the place of the previous line, so that ``merge`` keeps the order of
                # each file.
                place = max(place, (line.time, line.raw))
                own = line.life, line.key
                is_wanted = own in items if line.life else self._stays(line)
                if is_wanted and own not in seen:
                    seen.add(own)
                    placed_lines.append((place, line))
            placed.append(placed_lines)
        rest = [line for lines in wanted.values() for line in lines if (line.life, line.key) not in seen]
        placed.append(sorted(((line.time, line.raw), line) for line in rest))
        left = {entry_id: iter(lines) for entry_id, lines in wanted.items()}
        return [
            line if line.life is None else next(left[line.life[0]])
            for _, line in merge(*placed, key=lambda pair: pair[0])
        ]


def _removed(base: Side | None, ours: Side, theirs: Side) -> dict[str, int]:
    """Return the ids that were live in the common ``base`` and of which one side has no line any more.

    Each has its life in ``base``.
    """
    if base is None:
        return {}
    removed: dict[str, int] = {}
    for side in (ours, theirs):
        for entry_id in base.live:
            life = base.states[entry_id].life
            if entry_id not in side.states:
                removed[entry_id] = max(life, removed.get(entry_id, 0))
    return removed


def _taken_out(base: Side | None, ours: Side, theirs: Side) -> set[Key]:
    """Return the keys of lines that one side has removed from its files since the common ``base``."""
    if base is None:
        return set()
    return {
        line.key
        for line in base.log
        if not line.is_folded and (line.key not in ours.keys or line.key not in theirs.keys)
    }


def lines_of(side: Side, entry_id: str) -> list[SideLine]:
    """Return the lines of an id in the order in which they apply, each once."""
    lines = (*side.archive, *side.log)
    return _in_order(_by_life(line for line in lines if line.life and line.life[0] == entry_id), {})
