"""Versions of agents' files, grant lines and test lines, as devices exchange them.

A home that syncs keeps one version of each file and line below ``.keepstone/sync``, under a digest.

Invariant (docs/decisions/0035-files-travel-by-versions.md): joining versions gives the same result on every
device, in any order of exchanges. Marks of lives, not clocks, decide whether a version has ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uuid_utils import uuid4

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import SYNC
from keepstone.operations.syncing.devices import MOST_LISTED, TEMPORARY, content_or_none
from keepstone.store.files.file_deletions import VERSIONS

_SEEN = 64
"""Maximum number of contents in ``Version.seen``; the oldest are dropped first."""
_SHORT = 16
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Version:
    """The latest version of a file or of a line."""

    time: int
    """Time of writing, in nanoseconds since 1970; later than the time of the version before it."""
    sha256: str
    seen: tuple[str, ...]
    """Digest prefixes of the contents that this version knows: its own, and those replaced or joined."""
    lives: frozenset[str]
    """Marks of the present lives. A life begins when a file is created."""
    over: frozenset[str] = frozenset()
    """Marks of the lives that ended."""

    @property
    def is_live(self) -> bool:
        """Whether the file or line exists."""
        return bool(self.lives)

    def knows(self, sha256: str) -> bool:
        """Return whether this version knows the content with this digest."""
        return sha256[:_SHORT] in self.seen


Versions = dict[str, Version]
"""Versions by the digest of the file's name or of the line."""


def written(old: Version | None, sha256: str, time: int, mark: str | None = None) -> Version:
    """Return the version with new content that replaces an older version.

    A new life gets ``mark``, by default the prefix of the content's digest, which is the same in all copies
    of a home. If a life with this mark has ended, the new life gets a random mark.
    """
    short, time = sha256[:_SHORT], max(0, time)
    if old is None:
        return Version(time, sha256, (short,), frozenset({mark or short}))
    lives = old.lives
    if not lives:
        new = mark or short
        # The same content again, after its life ended everywhere, needs a mark that is not over.
        lives = frozenset({str(uuid4()) if new in old.over else new})
    # An edit is later than the version it was made from, even if this device's clock is behind.
    return Version(max(time, old.time + 1), sha256, _both(old.seen, (short,)), lives, old.over)


def ended(old: Version, more: Iterable[str] = ()) -> Version:
    """Return the version after a deletion, which also ends the lives with the marks in ``more``."""
    return replace(old, lives=frozenset(), over=old.over | old.lives | {*more})


def joined(ours: Version | None, theirs: Version) -> Version:
    """Return the union of two versions: the lives that neither has ended, and the content written last."""
    if ours is None:
        return theirs
    # An end is never taken back: a life that either device ended is over on both.
    over = ours.over | theirs.over
    # Between equal times the digest decides, so that both devices choose the same content.
    last, other = (ours, theirs) if _rank(ours, over) >= _rank(theirs, over) else (theirs, ours)
    lives = (ours.lives | theirs.lives) - over
    return replace(last, seen=_both(other.seen, last.seen), lives=lives, over=over)


def _rank(version: Version, over: frozenset[str]) -> tuple[bool, int, str]:
    return bool(version.lives - over), version.time, version.sha256


def _both(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return (*(content for content in old if content not in new), *new)[-_SEEN:]


def dump(versions: Versions) -> bytes:
    """Return versions in their published form, JSON."""
    return json.dumps(_plain(versions), separators=(",", ":")).encode()


def _plain(versions: Versions) -> dict[str, list[Any]]:
    return {
        key: [found.time, found.sha256, list(found.seen), sorted(found.lives), sorted(found.over)]
        for key, found in sorted(versions.items())
    }


def parsed(raw: bytes) -> Versions:
    """Return the versions from their published form; raises ValueError for invalid bytes."""
    return _versions(json.loads(raw))


def _versions(found: object) -> Versions:
    if not isinstance(found, dict):
        raise ValueError("versions are no JSON object")  # noqa: TRY004
    return {key: _version(value) for key, value in found.items()}


def _version(value: object) -> Version:
    match value:
        case [int(time), str(sha256), list(seen), list(lives), list(over)] if time >= 0 and all(
            isinstance(text, str) for text in [*seen, *lives, *over]
        ):
            return Version(time, sha256, tuple(seen), frozenset(lives), frozenset(over))
    raise ValueError(f"{value!r:.80} is not a version")


class Known:
    """All versions that a home knows, in groups: an agent's files, its grants, or the tests."""

    def __init__(self, groups: dict[str, Versions]) -> None:
        self.groups = groups

    @classmethod
    def load(cls, root: Path) -> Known:
        """Return the versions that were saved last.

        Raises:
            ValueError: The file is damaged. Without it all files here count as new.
        """
        with Folder(root / SYNC, root=root) as folder:
            raw = content_or_none(folder, VERSIONS, MOST_LISTED) or b"{}"
        try:
            return cls({name: _versions(value) for name, value in json.loads(raw).items()})
        except (ValueError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{root / SYNC / VERSIONS} is damaged ({error}): restore it from a backup, or delete it, and "
                "files that were deleted since the last sync come back"
            ) from None

    def save(self, root: Path) -> None:
        """Save the versions durably."""
        groups = {name: _plain(versions) for name, versions in sorted(self.groups.items()) if versions}
        raw = json.dumps(groups).encode()
        with Folder(root / SYNC, root=root, create=True) as folder:
            # An exchange without changes writes and syncs nothing.
            if content_or_none(folder, VERSIONS) != raw:
                replace_file(folder, VERSIONS, [raw], temporary=TEMPORARY)

    def of(self, name: str) -> Versions:
        """Return the versions of a group, to change in place."""
        return self.groups.setdefault(name, {})

    def agents(self) -> list[str]:
        """Return the digests of the names of all agents with files."""
        return [name for name, versions in self.groups.items() if versions and "/" not in name]


def conflict_name(path: str, sha256: str) -> str:
    """Return the path of the conflict copy that keeps losing content.

    Examples:
        >>> conflict_name("plans/today.md", "f00dcafe" * 8)
        'plans/today (conflict f00dcafe).md'
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem, end = (stem, dot + extension) if stem else (name, "")
    mark = f" (conflict {sha256[:8]}){end}"
    # File systems limit a name's bytes; a character that the cut divides is left out.
    kept = stem.encode()[: max(1, _LONGEST_NAME - len(mark.encode()))].decode(errors="ignore")
    return f"{folder}{slash}{kept}{mark}"
