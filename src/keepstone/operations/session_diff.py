"""Changes of a session between two times or two git revisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from keepstone.errors import SessionNotFoundError, StoreError
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import Layout
from keepstone.home import Home
from keepstone.log.fold import Fold
from keepstone.log.line import instant
from keepstone.log.scan import Scan
from keepstone.log.where import same
from keepstone.model import Record

_UNSAID = frozenset({"access", "modified", "batch"})
"""Keys whose changes alone do not count as a difference."""


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One entry that differs between two states of a session."""

    kind: str
    """``"added"``, ``"removed"`` or ``"changed"``."""
    id: str
    before: Record | None
    """The entry's line in the older state, None if it was added."""
    after: Record | None
    """The entry's line in the newer state, None if it was removed."""


def session_diff(
    home: Home, layout: Layout, agent: str, session: str, start: str | None, end: str | None
) -> list[EntryChange]:
    """Return the entries of a session that differ between two states, in the order of their times.

    A state is a time, a revision of git, or, for None, the newest commit as ``start`` and now as ``end``.

    Raises:
        SessionNotFoundError: Neither state has such a session.
        ValueError: A state is neither a time nor a revision, or there is no commit and no ``start``.
    """
    path = layout.sessions_folder(home.root, agent) / layout.session_file(session)
    old = _state(home, agent, session, path, "HEAD" if start is None else start)
    new = _live(home, agent, session) if end is None else _state(home, agent, session, path, end)
    if not old and not new and home.agent(agent).session(session).info() is None:
        raise SessionNotFoundError(agent, session)
    return sorted(_changes(old, new), key=lambda change: str((change.before or change.after or {}).get("ts")))


def _state(home: Home, agent: str, session: str, path: Path, name: str) -> Mapping[str, Record]:
    try:
        moment = instant(name)
    except ValueError:
        return _revision(home.root, path, name)
    records = home.agent(agent).session(session).records(as_of=moment)
    return {record["id"]: record for record in records}


def _live(home: Home, agent: str, session: str) -> Mapping[str, Record]:
    return {record["id"]: record for record in home.agent(agent).session(session).records()}


def _revision(root: Path, path: Path, name: str) -> Mapping[str, Record]:
    """Return the entries of a log in a commit; none if the commit has no such log."""
    try:
        # git would take a name with a leading dash for an option.
        commit = (
            git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}".lstrip("-")).decode().strip()
        )
    except StoreError:
        if name == "HEAD":
            raise ValueError(
                f"nothing of {root} is committed to git yet: give a time, such as --from 2026-01-11"
            ) from None
        raise ValueError(
            f"{name!r:.80} is neither a time nor a revision of git: give --from 2026-01-11, or a commit"
        ) from None
    # The path begins at the home, which may be a folder within the work tree.
    place = f"{commit}:./{path.relative_to(root).as_posix()}"
    try:
        raw = git(root, "cat-file", "blob", place)
    except StoreError:
        return {}
    # The scanner of logs reads from a descriptor; an old version of a log exists only in git.
    with TemporaryFile() as file:
        file.write(raw)
        file.flush()
        fold = Fold().take(Scan(file.fileno(), unfinished=True))
    return {name: folded.record for name, folded in fold.entries.items()}


def _changes(old: Mapping[str, Record], new: Mapping[str, Record]) -> Iterator[EntryChange]:
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            yield EntryChange("added" if before is None else "removed", name, before, after)
        elif not same(_said(before), _said(after)):
            yield EntryChange("changed", name, before, after)


def _said(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in _UNSAID}
