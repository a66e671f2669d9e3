"""Versions of an agent's files, and of lines of a home's other files, as devices tell them to each other.

A home that syncs keeps one version of each below ``.keepstone/sync``, with a digest in place of the name. Two
versions have one result on every device, whatever was exchanged before, and clocks do not decide what ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import SYNC
from keepstone.operations.syncing.devices import MOST_LISTED, TEMPORARY, content_or_none

_FILE = "versions.json"
_SEEN = 64
"""How many earlier contents of a file are known again."""
_SHORT = 16


@dataclass(frozen=True, slots=True)
class Version:
    """The last version of a file, or of a line."""

    life: int
    """A new one begins when a file is written where one was deleted."""
    time: int
    """When it was written, in nanoseconds since 1970; later than what it was made from."""
    sha256: str
    seen: tuple[str, ...]
    """Beginnings of the digests of all contents that this one knew, its own included."""
    is_live: bool = True

    def knows(self, sha256: str) -> bool:
        """Return whether it was made where this content was known."""
        return sha256[:_SHORT] in self.seen


Versions = dict[str, Version]
"""By the digest of a name."""


def written(old: Version | None, sha256: str, time: int) -> Version:
    """Return the version of new content in place of another version."""
    if old is None:
        return Version(1, time, sha256, (sha256[:_SHORT],))
    seen = _both(old.seen, (sha256[:_SHORT],))
    return Version(old.life + (not old.is_live), max(time, old.time + 1), sha256, seen)


def ended(old: Version) -> Version:
    """Return the version after a deletion."""
    return replace(old, is_live=False)


def joined(ours: Version | None, theirs: Version) -> Version:
    """Return what two versions come to: the later life; in one life its end, else what was written last.

    An end says nothing of what its device never had: that is another life.
    """
    if ours is None:
        return theirs
    if ours.life == theirs.life and ours.is_live != theirs.is_live and not {*ours.seen} & {*theirs.seen}:
        live = ours if ours.is_live else theirs
        return replace(live, life=live.life + 1, seen=_both(ours.seen, theirs.seen))
    last, other = (ours, theirs) if _rank(ours) >= _rank(theirs) else (theirs, ours)
    more = tuple(one for one in other.seen if one not in last.seen)
    return replace(last, seen=(*more, *last.seen)[-_SEEN:]) if more else last


def _rank(version: Version) -> tuple[int, bool, int, str]:
    return version.life, not version.is_live, version.time, version.sha256


def _both(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return (*(one for one in old if one not in new), *new)[-_SEEN:]


def dump(versions: Versions) -> bytes:
    """Return versions as a device publishes them."""
    lines = {
        key: [one.life, one.is_live, one.time, one.sha256, *one.seen] for key, one in sorted(versions.items())
    }
    return json.dumps(lines, separators=(",", ":")).encode()


def parsed(raw: bytes) -> Versions:
    """Return versions that were published; ValueError for bytes of another form."""
    found = json.loads(raw)
    if not isinstance(found, dict):
        raise ValueError("versions are no JSON object")  # noqa: TRY004
    return {key: _version(one) for key, one in found.items()}


def _version(value: object) -> Version:
    match value:
        case [int(life), bool(is_live), int(time), str(sha256), *seen] if (
            life > 0 and time >= 0 and all(isinstance(one, str) for one in seen)
        ):
            return Version(life, time, sha256, tuple(map(str, seen)), is_live)
    raise ValueError(f"{value!r:.80} is not a version")


class Known:
    """All versions that a home knows, by the name of what they are of."""

    def __init__(self, groups: dict[str, Versions]) -> None:
        self.groups = groups

    @classmethod
    def load(cls, root: Path) -> Known:
        """Return what was saved last.

        Raises:
            ValueError: The file is damaged. Without it all files here count as new.
        """
        with Folder(root / SYNC, root=root) as folder:
            raw = content_or_none(folder, _FILE, MOST_LISTED) or b"{}"
        try:
            return cls({name: parsed(json.dumps(one).encode()) for name, one in json.loads(raw).items()})
        except (ValueError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{root / SYNC / _FILE} is damaged ({error}): restore it from a backup, or delete it, and "
                "files that were deleted since the last sync come back"
            ) from None

    def save(self, root: Path) -> None:
        """Keep the versions, synced."""
        raw = json.dumps({name: json.loads(dump(one)) for name, one in sorted(self.groups.items()) if one})
        with Folder(root / SYNC, root=root, create=True) as folder:
            if content_or_none(folder, _FILE) != raw.encode():
                replace_file(folder, _FILE, [raw.encode()], temporary=TEMPORARY)

    def of(self, name: str) -> Versions:
        """Return the versions of a group, to change in place."""
        return self.groups.setdefault(name, {})

    def agents(self) -> list[str]:
        """Return the agents with files, by the digests of their names."""
        return [name for name, one in self.groups.items() if one and "/" not in name]


def known_to_any(sha256: str, versions: Iterable[Version | None]) -> bool:
    """Return whether any of some versions knew a content."""
    return any(one is not None and one.knows(sha256) for one in versions)
