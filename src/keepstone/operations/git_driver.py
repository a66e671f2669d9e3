"""Git's merge driver for logs: merges three versions of a log, with both sides' archives and journals."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from keepstone.errors import StoreError
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import ARCHIVE, PURGED, SUGGESTIONS, Layout
from keepstone.log.sides import side_of
from keepstone.log.union import merged
from keepstone.store.files import purge_digests
from keepstone.store.removal_marks import digest
from keepstone.store.suggestion_lines import lines_of, united

_HEADS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD")
"""Refs by which git may name the other side; for a plain merge it is named in the environment."""
_GITHEAD = re.compile(r"GITHEAD_([0-9a-f]{40,64})")


def merge_log(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Merge two versions of a log with their common one, and write the result over ``ours``.

    Git calls this in the top folder of the work tree. ``path`` is the log's path in the work tree; it
    determines the session and the files beside the log.
    """
    place = Path(path)
    is_archive = place.parent.name == ARCHIVE
    folder = place.parent.parent if is_archive else place.parent
    if place.name == SUGGESTIONS:
        # Suggestions are beside the folder of the sessions, which has the journal of purges.
        folder = folder / "sessions"
    # git gives only the path in the work tree. The home's layout may have other folders, but the file's name
    # determines the session.
    session = Layout("sessions", "files", place.suffix or ".ndjson").session_of(place.name) or place.stem
    heads = _other_heads()
    # The other side's journal may not be merged yet: entries purged there must not come back by older lines.
    journals = [_content(folder / PURGED), *(_show(head, folder / PURGED) for head in ("HEAD", *heads))]
    erased = purge_digests.erased_in(line for raw in journals for line in raw.splitlines())
    if place.name.removeprefix(".") == SUGGESTIONS:
        old, our_lines, their_lines = (lines_of(version.read_bytes()) for version in (base, ours, theirs))
        kept = united(our_lines, their_lines, lambda *key: digest(*key) in erased.lives, old)
        ours.write_bytes(b"".join(kept))
        return
    # git gives either the log or the archive; the other file is read as each side has committed it.
    other = folder / place.name if is_archive else folder / ARCHIVE / place.name
    pairs = [
        (base, b"" if is_archive else _show(_base_of(heads), other)),
        (ours, _show("HEAD", other)),
        (theirs, _first(_show(head, other) for head in heads)),
    ]
    sides = [
        side_of(beside, version.read_bytes()) if is_archive else side_of(version.read_bytes(), beside)
        for version, beside in pairs
    ]
    result = merged(sides[1], sides[2], erased.in_session(session), sides[0])
    with ours.open("wb") as file:
        file.writelines(result.archive if is_archive else result.log)


def _first(contents: Iterable[bytes]) -> bytes:
    """Return the first content that is not empty, otherwise an empty one."""
    return next(filter(None, contents), b"")


def _base_of(heads: Iterable[str]) -> str:
    """Return the merge base of both sides; HEAD if git finds none."""
    for head in heads:
        # A ref may be missing, such as MERGE_HEAD during a rebase.
        with suppress(StoreError):
            return os.fsdecode(git(Path(), "merge-base", "HEAD", head)).strip()
    return "HEAD"


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _show(revision: str, path: Path) -> bytes:
    """Return a file's bytes in a revision, empty if it is missing; paths begin at the work tree's top."""
    with suppress(StoreError):
        return git(Path(), "cat-file", "blob", f"{revision}:{path.as_posix()}")
    return b""


def _other_heads() -> list[str]:
    """Return the commits that may be the other side of the merge under way."""
    named = [found[1] for name in os.environ if (found := _GITHEAD.fullmatch(name))]
    if named:
        return named
    with suppress(StoreError, IndexError):
        # During a rebase only this file names the commit that is being applied.
        done = Path(os.fsdecode(git(Path(), "rev-parse", "--git-path", "rebase-merge/done")).strip())
        named = [_content(done).decode("utf-8", "replace").split("\n")[-2].split()[1]]
    return [*named, *_HEADS]
