"""The lines of suggestions, and the states that they fold to.

The first line of an id is the suggestion. Later lines with a ``sum`` are decisions. All other lines with the
id, and a ``state`` in the first line, have no effect. Before an accepted suggestion changes entries, a line
with the state ``begun`` records how: repeating the call then finishes the step of a killed process. Reading
does not finish it, as the line may have come from another device. A decision with the state ``open`` takes
rejections back: rejections whose sums it names do not count, wherever a merge has put them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from keepstone.log.line import dump_read, parse, read_time
from keepstone.model import Record, Suggestion
from keepstone.store.citations import cited

DO = ("merge", "supersede", "delete", "tag", "pin", "add")
STATES = ("open", "accepted", "rejected", "undone", "outdated")
MOST_OPEN = 1_000
_MOST_ENTRIES = 1_000
_TRIPLE = 3
_FROM = {
    "accepted": STATES[:3] + STATES[4:],
    "rejected": ("open", "outdated"),
    "outdated": ("open",),
    "undone": ("accepted",),
}
"""The states that each state may follow; after a merge of two branches, a carried-out decision counts."""
_UNSEEN = frozenset({"ts", "modified", "access", "embedding", "batch"})
"""Keys whose changes do not count as a change of the entry."""

Steps = list[dict[str, Any]]
"""One step per session: the lines to write, the lines that undo them, and digests before and after by id."""


@dataclass(slots=True)
class FoldedSuggestion:
    """A suggestion and its state, from its lines."""

    line: Record
    state: str = "open"
    decision: Record = field(default_factory=dict)
    begun: Record | None = None
    """The line of a step that was begun but not finished."""
    steps: Steps = field(default_factory=list)
    """The steps of the last decision that was carried out."""
    rejections: list[Record] = field(default_factory=list)
    """The rejections that were not taken back."""
    undoing: list[str] = field(default_factory=list)
    """The sums of the lines that took rejections back."""

    @property
    def value(self) -> Suggestion:
        """The suggestion for callers."""
        line, at = self.line, read_time(self.line["ts"])
        assert at is not None  # noqa: S101  It was checked.
        return Suggestion(
            line["id"],
            line["do"],
            tuple(line["entries"]),
            line.get("item"),
            line["why"],
            tuple(text for text in line.get("evidence") or () if isinstance(text, str)),
            line.get("by"),
            at,
            self.state,
            self.decision.get("by"),
            read_time(self.decision.get("ts")),
        )


def digest(record: Record | None) -> str | None:
    """Return a digest of an entry's content, without access counts and vectors."""
    if record is None:
        return None
    said = {key: value for key, value in record.items() if key not in _UNSEEN}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


def check(do: str, entries: Sequence[str], item: Mapping[str, Any] | None) -> None:
    """Raise ValueError if this cannot be suggested."""
    if do not in DO:
        raise ValueError(f"do must be one of {', '.join(DO)}, not {do!r:.80}")
    least, most = {"merge": (2, _MOST_ENTRIES), "supersede": (1, 1), "add": (0, 0)}.get(
        do, (1, _MOST_ENTRIES)
    )
    if not least <= len(set(entries)) == len(entries) <= most:
        span = f"{least}" if least == most else f"{least} to {most:,}"
        raise ValueError(f"{do} takes {span} different entries, not {len(entries)}")
    if (item is None) != (do in ("delete", "pin")):
        raise ValueError(f"{do} takes {'no item' if do in ('delete', 'pin') else 'an item'}")
    for key in ("id", "ts", "embedding", "origin", "cites"):
        if item is not None and key in item:
            raise ValueError(f"a suggested item has no {key}: only accepting it may decide that")
    if item is not None and any(cited(item)):
        raise ValueError("a suggested item cites no files: cite them once it is accepted")
    if do == "tag" and not (item and set(item) == {"tags"} and _are_names(item["tags"])):
        raise ValueError('tag takes an item with the tags to add: {"tags": ["…"]}')


def _are_names(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(name, str) and name for name in value)
    )


def _is_suggestion(line: Record) -> bool:
    item, ids = line.get("item"), line.get("entries")
    texts = [line.get("do"), line.get("why"), *(ids if isinstance(ids, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or not isinstance(item, dict | None):
        return False
    try:
        check(line["do"], line["entries"], item)
    except ValueError:
        return False
    seen, evidence = line.get("seen", []), line.get("evidence") or []
    return isinstance(seen, list) and isinstance(evidence, list) and read_time(line.get("ts")) is not None


def signed(line: Record) -> Record:
    """Return a decision's line with its checksum."""
    return line | {"sum": hashlib.sha256(dump_read(line)).hexdigest()}


def _is_decision(line: Record) -> bool:
    said = {key: value for key, value in line.items() if key != "sum"}
    return (
        "sum" in line
        and signed(said) == line
        and isinstance(line.get("state"), str)
        and isinstance(line.get("by"), str | None)
        and read_time(line.get("ts")) is not None
        and (line["state"] != "begun" or (line.get("to") in ("accepted", "undone") and "steps" in line))
        and (line["state"] != "open" or _are_names(line.get("undoes")))
        and _are_steps(line.get("steps", []))
    )


def _are_steps(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(step, dict)
        and isinstance(step.get("session"), str)
        and all(
            isinstance(step.get(key), list)
            and all(isinstance(line, dict) and isinstance(line.get("id"), str) for line in step[key])
            for key in ("lines", "undo")
        )
        and all(isinstance(step.get(key), dict) for key in ("before", "after"))
        and all(
            isinstance(line_digest, str | None)
            for key in ("before", "after")
            for line_digest in step[key].values()
        )
        for step in value
    )


def fold(lines: Iterable[bytes]) -> dict[str, FoldedSuggestion]:
    """Return the suggestions that lines fold to, by id; other lines are ignored."""
    read = [line for raw in lines if isinstance((line := parse(raw) or {}).get("id"), str)]
    found: dict[str, FoldedSuggestion] = {}
    for line in read:
        if _is_suggestion(line):
            found.setdefault(line["id"], FoldedSuggestion(line))
    # Fold decisions in a second pass, so that they count even if a merge has put them before the suggestion.
    for line in _without_undone([line for line in read if line["id"] in found and _is_decision(line)]):
        folded, state = found[line["id"]], line["state"]
        if state == "open":
            folded.undoing.append(line["sum"])
            continue
        if state == "rejected":
            folded.rejections.append(line)
        if state == "begun":
            folded.begun = line if folded.state in _FROM[line["to"]] else folded.begun
            continue
        begun, folded.begun = folded.begun, None
        if folded.state in _FROM.get(state, ()):
            folded.steps = begun["steps"] if begun is not None and begun["to"] == state else folded.steps
            folded.state, folded.decision = state, line
    for folded in found.values():
        if folded.state == "rejected":  # Of several after a merge, the earliest counts.
            folded.decision = min(folded.rejections, key=lambda line: (line["ts"], line["sum"]))
    return found


def _without_undone(decisions: Sequence[Record]) -> list[Record]:
    """Return decisions without the rejections that any of them takes back."""
    undone = {(line["id"], name) for line in decisions if line["state"] == "open" for name in line["undoes"]}
    return [
        line for line in decisions if line["state"] != "rejected" or (line["id"], line["sum"]) not in undone
    ]


def unreadable_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines that are neither a suggestion nor a decision, or have an unknown state."""
    read = [(raw, parse(raw) or {}) for raw in lines]
    known = set(fold(raw for raw, _ in read))
    return [
        raw
        for raw, line in read
        if not (_is_suggestion(line) and line.get("state", "open") == "open")
        and not (line.get("id") in known and _is_decision(line))
    ]


def without(lines: Sequence[bytes], session: str, ids: Collection[str] | None) -> list[bytes]:
    """Return lines without the suggestions that name one of the ids, or any entry of the session (None)."""
    read = [(raw, parse(raw)) for raw in lines]
    gone = {line.get("id") for _, line in read if line is not None and _names(line, session, ids)} - {None}

    def stays(raw: bytes, line: Record | None) -> bool:
        if line is None:  # A damaged line is removed if it contains an id.
            # Only the JSON string of the id: cut from ``{"id":"…"}`` and its newline.
            return not any(dump_read({"id": entry_id})[6:-2] in raw for entry_id in ids or ())
        return not (line.get("id") in gone if isinstance(line.get("id"), str) else _names(line, session, ids))

    return [raw for raw, line in read if stays(raw, line)]


def lines_of(raw: bytes) -> list[bytes]:
    """Return the lines of a file, each with its newline."""
    return [line + b"\n" for line in raw.split(b"\n") if line]


def ids_in(lines: Iterable[bytes]) -> set[str]:
    """Return the ids of suggestions; a damaged line has its digest as id."""
    return {_id_of(raw) for raw in lines}


def united(
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    is_purged: Callable[[str, str], bool],
    base: Collection[bytes] = (),
) -> list[bytes]:
    """Return the lines of both sides, without lines that one side removed since the base, or purged.

    ``is_purged`` takes a session and an id; for the id of a suggestion, the session is empty.
    """
    # A line that the base has and one side lacks was removed on that side.
    lines = [raw for raw in ours if raw in theirs or raw not in base]
    lines += [raw for raw in theirs if raw not in ours and raw not in base]
    lines = [raw for raw in lines if not is_purged("", _id_of(raw))]
    read = [line for raw in lines if (line := parse(raw)) is not None]
    for session, eid in {place for line in read for place in _places(line) if is_purged(*place)}:
        lines = without(lines, session, {eid})
    return lines


def holding(lines: Iterable[bytes], contains: Callable[[str], bool]) -> list[str]:
    """Return the sorted ids of the suggestions that contain a text in a key or a value."""
    return sorted({_id_of(raw) for raw in lines if contains(_text_of(raw))})


def without_text(contains: Callable[[str], bool], lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines without those of suggestions that contain a text."""
    gone = set(holding(lines, contains))
    return [raw for raw in lines if _id_of(raw) not in gone]


def _id_of(raw: bytes) -> str:
    """Return the id in a line, or the digest of a damaged line."""
    entry_id = (parse(raw) or {}).get("id")
    return entry_id if isinstance(entry_id, str) else hashlib.sha256(raw).hexdigest()


def _text_of(raw: bytes) -> str:
    line = parse(raw)
    return raw.decode("utf-8", "replace") if line is None else json.dumps(line, ensure_ascii=False)


def _names(line: Record, session: str, ids: Collection[str] | None) -> bool:
    seen = _places(line)
    if ids is None:
        return any(place == session for place, _ in seen)
    listed = (value for key in ("entries", "evidence") if isinstance(value := line.get(key), list))
    return any(eid in ids for _, eid in seen) or any(
        entry_id in ids for entry_id in chain.from_iterable(listed) if isinstance(entry_id, str)
    )


def _places(line: Record) -> set[tuple[str, str]]:
    """Return (session, id) of the entries that a line refers to, if the line has their sessions."""
    steps = line["steps"] if _is_decision(line) and "steps" in line else []
    seen = {(session, eid) for session, eid, _ in seen_in(line)}
    return seen | {(step["session"], eid) for step in steps for eid in step["before"]}


def seen_in(line: Record) -> list[tuple[str, str, str | None]]:
    """Return (session, id, digest) of the entries that a suggestion is about; evidence has no digest."""
    seen = line.get("seen")
    triples = [triple for triple in seen if isinstance(triple, list)] if isinstance(seen, list) else []
    return [
        (triple[0], triple[1], triple[2])
        for triple in triples
        if [*map(type, triple[:2])] == [str, str] and len(triple) == _TRIPLE
    ]
