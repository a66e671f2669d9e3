"""Git's merge driver for logs: reads three versions of a log, and what is known of both sides beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

from keepstone.errors import StoreError
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import ARCHIVE, PURGED, SUGGESTIONS, Layout
from keepstone.log.union import Knowledge, merged_lines, side_of
from keepstone.store.files import purge_digests
from keepstone.store.removal_marks import digest
from keepstone.store.suggestion_lines import lines_of, united

_HEADS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD")
"""What git calls the other side where it says so; of a plain merge it does in the environment."""
_GITHEAD = re.compile(r"GITHEAD_([0-9a-f]{40,64})")


def merge_log(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Merge two versions of a log with their common one, and write the result over ``ours``.

    Git calls this in the top folder of the work tree. ``path`` is where the log is; from it come the session
    and the files beside it.
    """
    place = Path(path)
    is_archive = place.parent.name == ARCHIVE
    folder = place.parent.parent if is_archive else place.parent
    if place.name == SUGGESTIONS:
        folder = folder / "sessions"
    session = Layout("sessions", "files", place.suffix or ".ndjson").session_of(place.name) or place.stem
    heads = _other_heads()
    here = _digests(_content(folder / PURGED), _show("HEAD", folder / PURGED))
    there = _digests(*(_show(head, folder / PURGED) for head in heads))
    if place.name.removeprefix(".") == SUGGESTIONS:
        old, our_lines, their_lines = (lines_of(version.read_bytes()) for version in (base, ours, theirs))
        kept = united(our_lines, their_lines, lambda *one: digest(*one) in here | there, old)
        ours.write_bytes(b"".join(kept))
        return
    archive = folder / ARCHIVE / place.name
    our = Knowledge(lambda name: digest(session, name) in here, lambda: _live_in([_content(archive)]))
    their = Knowledge(
        lambda name: digest(session, name) in there,
        lambda: _live_in(_show(head, archive) for head in heads),
    )
    sides = [side_of(version.read_bytes()) for version in (base, ours, theirs)]
    lines = merged_lines(sides[0], sides[1], sides[2], our, their, is_archive=is_archive)
    with ours.open("wb") as file:
        file.writelines(lines)


def _digests(*contents: bytes) -> frozenset[str]:
    return frozenset[str]().union(*(purge_digests.digests_in(raw.splitlines()) for raw in contents))


def _live_in(archives: Iterable[bytes]) -> Container[str]:
    """Return the ids that were archived for their age: their archive does not end with a tombstone."""
    return set[str]().union(*(side_of(raw).live for raw in archives))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _show(revision: str, path: Path) -> bytes:
    """Return a file of the work tree's top as it was in a revision; empty if it had none."""
    with suppress(StoreError):
        return git(Path(), "cat-file", "blob", f"{revision}:{path.as_posix()}")
    return b""


def _other_heads() -> list[str]:
    """Return the commits that may be the other side of the merge under way."""
    named = [found[1] for name in os.environ if (found := _GITHEAD.fullmatch(name))]
    if named:
        return named
    with suppress(StoreError, IndexError):
        # A rebase says only here which commit it is at.
        done = Path(os.fsdecode(git(Path(), "rev-parse", "--git-path", "rebase-merge/done")).strip())
        named = [_content(done).decode("utf-8", "replace").split("\n")[-2].split()[1]]
    return [*named, *_HEADS]
