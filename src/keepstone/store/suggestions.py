"""Storing, listing, carrying out and undoing an agent's suggestions.

Invariant (docs/decisions/0033-suggestions-as-lines-that-a-person-decides.md): before any entry changes, a
line records the whole step with its inverse. Entries of two sessions are in two files with two locks, so only
this line lets a later process finish the step or undo it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keepstone.errors import (
    EntryNotFoundError,
    KeepstoneError,
    SuggestionOutdatedError,
)
from keepstone.log.line import apply, create, dump, dump_read, is_tombstone, read_time
from keepstone.model import SUPERSEDES, Entry, Record, Scope, Suggestion
from keepstone.store.protocol import LiveSession, Store
from keepstone.store.suggestion_lines import MOST_OPEN, FoldedSuggestion, Steps, digest, fold, seen_in, signed


class Suggestions:
    """The suggestions of one agent. Times are RFC 3339."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store = store
        self._agent = agent

    def add(self, line: Record, targets: Sequence[Entry], evidence: Iterable[Entry]) -> Suggestion:
        """Store a checked suggestion about the current state of entries."""
        seen = [[entry.session, entry.id, digest(entry.line)] for entry in targets]
        line = line | {"seen": seen + [[entry.session, entry.id, None] for entry in evidence]}
        raw = dump(line)
        # Outdated suggestions make room for new ones. Only a long list is searched, as this reads entries.
        is_long = len(self._store.suggestion_lines(self._agent)) >= MOST_OPEN
        outdated = {folded.line["id"] for folded in self._listed("outdated")} if is_long else set()

        def change(lines: list[bytes]) -> list[bytes]:
            is_open = {eid for eid, folded in fold(lines).items() if folded.state == "open"}
            if len(is_open - outdated) >= MOST_OPEN:
                raise ValueError(
                    f"agent {self._agent!r} has {MOST_OPEN:,} open suggestions: accept or reject some first"
                )
            decided = {"state": "outdated", "by": None, "ts": line["ts"]}
            gone = [signed({"id": eid} | decided) for eid in sorted(is_open & outdated)]
            return [*lines, *map(dump_read, gone), raw]

        self._store.change_suggestions(self._agent, change)
        return FoldedSuggestion(line).value

    def select(self, state: str | None) -> list[Suggestion]:
        """Return the suggestions in a state, or all of them, in the order of their lines.

        Reading does not finish a begun step, as its lines may have come from another device.
        """
        return [folded.value for folded in self._listed(state)]

    def _listed(self, state: str | None) -> list[FoldedSuggestion]:
        found = list(fold(self._store.suggestion_lines(self._agent)).values())
        is_open = [folded for folded in found if folded.state == "open" and folded.begun is None]
        ids = {eid for folded in is_open for eid in folded.line["entries"]}
        entries = list(self._store.select(Scope(self._agent, ids=tuple(ids)))) if ids else []
        for folded in is_open:
            folded.state = "outdated" if _targets(folded.line, entries) is None else "open"
        return [folded for folded in found if state in (None, folded.state)]

    def _get(self, suggestion: str) -> FoldedSuggestion:
        folded = fold(self._store.suggestion_lines(self._agent)).get(suggestion)
        if folded is None:
            raise self._missing(suggestion)
        return folded

    def _missing(self, suggestion: str) -> EntryNotFoundError:
        return EntryNotFoundError(
            f"agent {self._agent!r} has no suggestion {suggestion!r:.80}: list them with suggestions(None)"
        )

    def _resumed(self, folded: FoldedSuggestion, to: str) -> Suggestion | None:
        """Finish the step that a killed process began, if the caller asks for the same step again."""
        if folded.begun is None:
            return None
        if folded.begun["to"] != to:
            step = {"accepted": "accept", "undone": "undo"}[folded.begun["to"]]
            raise ValueError(
                f"to {step} suggestion {folded.line['id']!r:.80} was begun and not ended: "
                f"{step} it to finish that first"
            )
        return self._finish(folded)

    def accept(
        self, suggestion: str, by: str | None, ts: str, new: Callable[[Suggestion, Sequence[Entry]], Record]
    ) -> Suggestion:
        """Carry a suggestion out. ``new`` returns the record of its new entry."""
        folded = self._get(suggestion)
        if (done := self._resumed(folded, "accepted")) is not None:
            return done
        _check_open(folded, "accepted")
        ids = tuple(folded.line["entries"])
        targets = _targets(folded.line, [*self._store.select(Scope(self._agent, ids=ids))] if ids else [])
        if targets is None:
            self._decide(folded, "outdated", by, ts)
            raise _outdated(folded)
        do = folded.line["do"]
        record = new(folded.value, targets) if do in ("merge", "supersede", "add") else None
        return self._carry_out(folded, "accepted", _planned(folded.line, targets, record, ts), by, ts)

    def reject(self, suggestion: str, by: str | None, ts: str) -> Suggestion:
        """Record that a suggestion was rejected."""
        folded = self._get(suggestion)
        self._resumed(folded, "rejected")
        _check_open(folded, "rejected")
        return self._decide(folded, "rejected", by, ts)

    def undo(self, suggestion: str, by: str | None, ts: str) -> Suggestion:
        """Undo the changes of an accepted suggestion, or take a rejection back."""
        folded = self._get(suggestion)
        if (done := self._resumed(folded, "undone")) is not None:
            return done
        if folded.state == "rejected":
            return self._reopen(folded, by, ts)
        if folded.state != "accepted":
            raise ValueError(
                f"suggestion {suggestion!r:.80} is {folded.state}: "
                "only an accepted or a rejected one can be undone"
            )
        steps = [_inverse(step, ts) for step in folded.steps]
        return self._carry_out(folded, "undone", steps, by, ts)

    def _reopen(self, folded: FoldedSuggestion, by: str | None, ts: str) -> Suggestion:
        """Take back all rejections of a suggestion; after a merge there may be several."""
        sums = [line["sum"] for line in folded.rejections]
        line = {"id": folded.line["id"], "state": "open", "by": by, "ts": ts, "undoes": sums}
        self._write(folded, signed(line))
        return self._get(folded.line["id"]).value

    def _carry_out(
        self, folded: FoldedSuggestion, to: str, steps: Steps, by: str | None, ts: str
    ) -> Suggestion:
        begun = {"id": folded.line["id"], "state": "begun", "to": to, "by": by, "ts": ts, "steps": steps}
        # Write this before any entry changes, so that an interrupted step can be finished or undone.
        self._write(folded, signed(begun))
        return self._finish(FoldedSuggestion(folded.line, folded.state, begun=begun))

    def _finish(self, folded: FoldedSuggestion) -> Suggestion:
        """Carry out the begun step, all or nothing: on failure, undo the changes in other sessions."""
        begun = folded.begun or {}
        done: Steps = []
        try:
            for step in begun["steps"]:
                self._do(step)
                done.append(step)
        except KeepstoneError as error:
            for step in reversed(done):
                self._do(_inverse(step, begun["ts"]))
            is_outdated = isinstance(error, SuggestionOutdatedError | EntryNotFoundError)
            state = "outdated" if is_outdated and begun["to"] == "accepted" else "kept"
            self._decide(folded, state, begun["by"], begun["ts"])
            if is_outdated:
                raise _outdated(folded) from error
            raise
        return self._decide(folded, begun["to"], begun["by"], begun["ts"])

    def _do(self, step: dict[str, Any]) -> None:
        def revise(live: LiveSession) -> list[Record]:
            entries = {eid: live.get(eid) for eid in step["before"]}
            now = {eid: digest(entry.line if entry else None) for eid, entry in entries.items()}
            if now == step["after"]:
                return []  # Another process did this before it was killed.
            if now != step["before"]:
                raise SuggestionOutdatedError("its entries changed")
            return list(step["lines"])

        # If all entries are new, their session may not exist yet.
        if set(step["before"].values()) == {None}:
            self._store.create(self._agent, step["session"])
        self._store.revise(self._agent, step["session"], revise, list(step["before"]))

    def _decide(self, folded: FoldedSuggestion, state: str, by: str | None, ts: str) -> Suggestion:
        line: Record = {"id": folded.line["id"], "state": state, "by": by, "ts": ts}
        # Within one tick of the clock, the same rejection would equal the line that was taken back.
        after: Record = {"after": folded.undoing} if state == "rejected" and folded.undoing else {}
        decision = signed(line | after)
        self._write(folded, decision)
        return FoldedSuggestion(folded.line, state, decision).value

    def _write(self, folded: FoldedSuggestion, line: Record) -> None:
        """Append a decision, or raise if another process decided differently."""

        def change(lines: list[bytes]) -> list[bytes]:
            now = fold(lines).get(folded.line["id"])
            if now is None:
                raise self._missing(folded.line["id"])
            # Another process has already recorded the same decision.
            if now.state == line["state"] and now.begun is None:
                return lines
            is_begun = line["state"] == "begun" and now.begun is not None
            is_rejected_again = line["state"] == "open" and now.rejections != folded.rejections
            if now.state != folded.state or is_begun or is_rejected_again:
                raise ValueError(
                    f"suggestion {folded.line['id']!r:.80} is decided by another process: list it again"
                )
            return [*lines, dump_read(line)]

        self._store.change_suggestions(self._agent, change)


def _targets(line: Record, entries: Iterable[Entry]) -> list[Entry] | None:
    """Return the entries of a suggestion, or None if one of them was removed or changed."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.id, []).append(entry)
    seen = {eid: (session, value) for session, eid, value in seen_in(line) if value is not None}
    made = read_time(line["ts"])
    targets = []
    for eid in line["entries"]:
        session, value = seen.get(eid, (None, None))
        same = [
            entry
            for entry in found.get(eid, ())
            if (session in (None, entry.session))
            and (digest(entry.line) == value if value else made is not None and entry.modified <= made)
        ]
        # Two sessions may have entries with the same id; a line without a session is then ambiguous.
        if len(same) != 1:
            return None
        targets += same
    return targets


def _planned(line: Record, targets: Sequence[Entry], record: Record | None, ts: str) -> Steps:
    """Return the steps that carry a suggestion out."""
    by_session: dict[str, list[tuple[Record | None, Record]]] = {}
    for entry in targets:
        tags = [*dict.fromkeys((*entry.tags, *(line.get("item") or {}).get("tags", ())))]
        keys: dict[str, Record] = {
            "delete": {"deleted": True},
            "tag": {"tags": tags},
            "pin": {"pinned": True},
        }
        closed: Record = {"valid_to": (record or {}).get("valid_from", ts)}
        later = {"id": entry.id, "ts": ts} | keys.get(line["do"], closed)
        by_session.setdefault(entry.session, []).append((entry.line, later))
    if record is not None:
        links = [{"to": entry.id, "rel": SUPERSEDES} for entry in targets]
        new = record | ({"links": [*record.get("links", ()), *links]} if links else {})
        session = targets[0].session if targets else "main"
        by_session[session] = [(None, new), *by_session.get(session, [])]
    return [_step(session, changes) for session, changes in by_session.items()]


def _step(session: str, changes: Sequence[tuple[Record | None, Record]]) -> dict[str, Any]:
    before, after, undo = {}, {}, []
    for was, line in changes:
        now = None if is_tombstone(line) else create(line) if was is None else apply(was, line)
        before[line["id"]], after[line["id"]] = digest(was), digest(now)
        undo.append(_undoing(was, line))
    return {
        "session": session,
        "lines": [line for _, line in changes],
        "undo": undo,
        "before": before,
        "after": after,
    }


def _undoing(was: Record | None, line: Record) -> Record:
    if was is None:
        return {"id": line["id"], "ts": line["ts"], "deleted": True}
    if is_tombstone(line):
        return {key: value for key, value in was.items() if key != "modified"}
    return {key: was.get(key) if key not in ("id", "ts") else value for key, value in line.items()}


def _inverse(step: dict[str, Any], ts: str) -> dict[str, Any]:
    lines = [line | {"ts": ts} for line in step["undo"]]
    undo = [line | {"ts": ts} for line in step["lines"]]
    return step | {"lines": lines, "undo": undo, "before": step["after"], "after": step["before"]}


def _check_open(folded: FoldedSuggestion, to: str) -> None:
    if folded.state == "outdated" and to == "accepted":
        raise _outdated(folded)
    if folded.state not in ("open", "outdated"):
        raise ValueError(
            f"suggestion {folded.line['id']!r:.80} is {folded.state} already: only an open one can be {to}"
        )


def _outdated(folded: FoldedSuggestion) -> SuggestionOutdatedError:
    return SuggestionOutdatedError(
        f"the entries of suggestion {folded.line['id']!r:.80} changed since: nothing was changed; "
        "look at them, and suggest it again"
    )
