"""A folder that homes share: its format, a folder for each device, and the manifest written last.

Invariant (docs/decisions/0022-merge-logs-by-line.md): a device writes only below its own folder, and last a
manifest with lengths and digests. So no file has two writers, a sync service makes no conflicting copies of
it, and a file that is half copied does not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from uuid_utils import uuid4

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import SYNC
from keepstone.log.line import parse

FORMAT = 1
MANIFEST = "manifest.ndjson"
TEMPORARY = ".keepstone.tmp"
MOST_LISTED = 64 << 20
"""Bytes of a manifest that are read: those of some 400,000 files."""
_MARK = "keepstone-sync.json"
_NAME = "device"
_WRITTEN = "written"
_REMEMBERED = 100
"""How many of its own manifests a home knows again."""
_END = b'{"end":true}\n'
_REWRITTEN = "instead"
"""The key of a manifest's line that names, by its digest, the one that the device itself wrote."""


def content(folder: Folder, name: str, most: int = sys.maxsize) -> bytes:
    """Return a file's bytes.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It has more than ``most`` bytes.
    """
    with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise ValueError(f"{folder.path}/{name} has {size:,} bytes, more than {most:,}: remove it")
        return file.read()


def content_or_none(folder: Folder, name: str, most: int = sys.maxsize) -> bytes | None:
    """Return a file's bytes, None if it is missing; raises ValueError as ``content``."""
    try:
        return content(folder, name, most)
    except FileNotFoundError:
        return None


def digest(raw: bytes) -> str:
    """Return a manifest's record of a file's bytes."""
    return hashlib.sha256(raw).hexdigest()


def check_format(shared: Folder) -> None:
    """Mark a new folder with its format.

    Raises:
        ValueError: The folder has a newer format, or a mark that says none.
    """
    raw = content_or_none(shared, _MARK, MOST_LISTED)
    if raw is None:
        replace_file(shared, _MARK, [json.dumps({"format": FORMAT}).encode()], temporary=TEMPORARY)
        return
    # An empty mark is one that a sync service has created and not filled yet.
    found = (parse(raw) or {}).get("format", FORMAT if not raw else None)
    if type(found) is not int or found < 1:
        raise ValueError(
            f"{shared.path}/{_MARK} does not say a format, such as {{'format': {FORMAT}}}: it begins with "
            f"{raw[:40]!r}. If the folder is one that your homes share, remove this file and sync again"
        )
    if found > FORMAT:
        raise ValueError(f"{shared.path} is of format {found}, newer than {FORMAT}: update keepstone")


def device_name(root: Path, shared: Folder) -> str:
    """Return the name of a home in shared folders, which is part of its state.

    A home that was copied takes another name when it finds a manifest under its name that its copy wrote.
    """
    with Folder(root / SYNC, root=root) as folder:
        kept = content_or_none(folder, _NAME)
        if kept is not None:
            name = kept.decode("ascii")
            manifest = content_or_none(shared, f"devices/{name}/{MANIFEST}", MOST_LISTED) or b""
            # Another device that took erased entries out has rewritten the manifest, and names the first one.
            written = {digest(manifest), _first_of(manifest)}
            # A manifest without its end is still arriving, and does not show who wrote it.
            if not manifest.endswith(_END) or not written.isdisjoint(_written(folder)):
                return name
        # A random name: host names repeat, and two homes with one name would write the same files.
        name = str(uuid4())
        replace_file(folder, _NAME, [name.encode()], temporary=TEMPORARY)
        return name


def _written(folder: Folder) -> list[str]:
    """Return the digests of the manifests that this home wrote, the newest last."""
    return (content_or_none(folder, _WRITTEN) or b"").decode("ascii").split()


def write_manifest(root: Path, shared: Folder, place: str, lines: list[bytes]) -> None:
    """Write a device's manifest, which makes its files count."""
    manifest = b"".join([*lines, _END])
    with Folder(root / SYNC, root=root) as folder:
        # The digest is recorded first: a home that does not know the manifest under its name takes another
        # name, as a copied home must.
        # Several of them, as a shared folder may be behind, or be restored from a backup.
        known = [*_written(folder), digest(manifest)][-_REMEMBERED:]
        replace_file(folder, _WRITTEN, ["\n".join(known).encode()], temporary=TEMPORARY)
    replace_file(shared, f"{place}/{MANIFEST}", [manifest], temporary=f"{place}/{TEMPORARY}")


def _first_of(manifest: bytes) -> str | None:
    """Return the digest of the manifest that a device wrote, where another one rewrote it since."""
    for raw in manifest.splitlines()[:1]:
        if isinstance(first := (parse(raw) or {}).get(_REWRITTEN), str):
            return first
    return None


def listing(files: Mapping[tuple[str, str], tuple[int, str]]) -> list[bytes]:
    """Return the lines of a manifest of files."""
    found = []
    for (agent, file), (length, name) in sorted(files.items()):
        line = {"agent": agent, "file": file, "size": length, "sha256": name}
        found.append(json.dumps(line).encode() + b"\n")
    return found


class Device:
    """The files of a device that have arrived whole."""

    def __init__(self, shared: Folder, place: str) -> None:
        self._shared = shared
        self.place = place
        self.listed: dict[tuple[str, str], tuple[int, str]] = {}
        """Length and digest of each file, by agent and name."""
        self.is_whole = False
        with suppress(FileNotFoundError):
            for raw in content(shared, f"{place}/{MANIFEST}", MOST_LISTED).splitlines():
                line = parse(raw) or {}
                if line.get("end") is True:
                    self.is_whole = True
                size = line.get("size")
                # Names of files are checked when they are opened: ``Folder`` refuses links and ways out of
                # it.
                if isinstance(line.get("agent"), str) and isinstance(line.get("file"), str):
                    length = size if isinstance(size, int) else -1
                    self.listed[line["agent"], line["file"]] = length, str(line.get("sha256"))

    def leave_out(self, agent: str) -> None:
        """Leave the files of an agent out."""
        self.listed = {key: entry for key, entry in self.listed.items() if key[0] != agent}

    def name(self, agent: str, file: str) -> str:
        """Return where a file lies in the shared folder."""
        return f"{self.place}/{agent}/{file}"

    def rewrite(self, changed: Mapping[tuple[str, str], bytes]) -> None:
        """Write some of its files again, without entries erased since; an empty file is removed.

        A device that left for good does not do so itself. The manifest names the one that the device wrote,
        by which it knows its folder again.
        """
        before = content(self._shared, f"{self.place}/{MANIFEST}")
        first = _first_of(before) or digest(before)
        temporary = f"{self.place}/{TEMPORARY}"
        for (agent, file), raw in changed.items():
            if raw:
                replace_file(self._shared, self.name(agent, file), [raw], temporary=temporary)
                self.listed[agent, file] = len(raw), digest(raw)
            else:
                self._shared.unlink(self.name(agent, file))
                del self.listed[agent, file]
        lines = [json.dumps({_REWRITTEN: first}).encode() + b"\n", *listing(self.listed), _END]
        # Last, as always: a kill before leaves files that the manifest does not fit, which do not count.
        replace_file(self._shared, f"{self.place}/{MANIFEST}", lines, temporary=temporary)

    def read(self, agent: str, file: str) -> bytes | None:
        """Return a file; None unless it is as the manifest says."""
        size, wanted = self.listed[agent, file]
        try:
            # The manifest's size is the bound: a file that grew since is not read whole.
            raw = content(self._shared, self.name(agent, file), size)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeepstoneError):
            return None
        return raw if len(raw) == size and digest(raw) == wanted else None
