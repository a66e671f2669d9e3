"""The shared folder of a sync: its format, a folder for each device, and the devices' manifests.

Invariant (docs/decisions/0022-merge-logs-by-line.md): a device publishes only below its own folder, and
writes its manifest, with lengths and digests, last. So a sync service makes no conflicting copies, and a
half-copied file does not count. ``Device.rewrite`` alone changes another device's folder.
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
"""Maximum bytes of a manifest, enough for about 400,000 files; a longer manifest is refused."""
_MARK = "keepstone-sync.json"
_NAME = "device"
_WRITTEN = "written"
_REMEMBERED = 100
"""Number of its own manifests that a home recognizes; the oldest digests are dropped first."""
_END = b'{"end":true}\n'
_REWRITTEN = "instead"
"""Key of the first line of a rewritten manifest; its value is the digest of the device's own manifest."""


def content(folder: Folder, name: str, most: int = sys.maxsize) -> bytes:
    """Return a file's bytes.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has more than ``most`` bytes.
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
    """Return the digest by which a manifest identifies a file's bytes."""
    return hashlib.sha256(raw).hexdigest()


def check_format(shared: Folder) -> None:
    """Check the format of a shared folder, and mark a new folder with the current format.

    Raises:
        ValueError: The folder has a newer format, or its mark has no valid format.
    """
    raw = content_or_none(shared, _MARK, MOST_LISTED)
    if raw is None:
        replace_file(shared, _MARK, [json.dumps({"format": FORMAT}).encode()], temporary=TEMPORARY)
        return
    # If the mark is empty, a sync service has created it and not filled it yet.
    found = (parse(raw) or {}).get("format", FORMAT if not raw else None)
    if type(found) is not int or found < 1:
        raise ValueError(
            f"{shared.path}/{_MARK} does not say a format, such as {{'format': {FORMAT}}}: it begins with "
            f"{raw[:40]!r}. If the folder is one that your homes share, remove this file and sync again"
        )
    if found > FORMAT:
        raise ValueError(f"{shared.path} is of format {found}, newer than {FORMAT}: update keepstone")


def device_name(root: Path, shared: Folder) -> str:
    """Return the name of a home in shared folders, which is stored in the home.

    A copy of a home has the same name. The first of the two to find a manifest under its name that it did not
    write takes a new name.
    """
    with Folder(root / SYNC, root=root) as folder:
        kept = content_or_none(folder, _NAME)
        if kept is not None:
            name = kept.decode("ascii")
            manifest = content_or_none(shared, f"devices/{name}/{MANIFEST}", MOST_LISTED) or b""
            # A manifest that another device rewrote to remove erased entries names the original manifest.
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
    """Write a device's manifest; the files that it lists count from then on."""
    manifest = b"".join([*lines, _END])
    with Folder(root / SYNC, root=root) as folder:
        # Record the digest first: a home that does not recognize the manifest under its name takes another
        # name, as a copied home must.
        # Keep several digests, as a shared folder may be behind, or be restored from a backup.
        known = [*_written(folder), digest(manifest)][-_REMEMBERED:]
        replace_file(folder, _WRITTEN, ["\n".join(known).encode()], temporary=TEMPORARY)
    replace_file(shared, f"{place}/{MANIFEST}", [manifest], temporary=f"{place}/{TEMPORARY}")


def _first_of(manifest: bytes) -> str | None:
    """Return the digest of the device's own manifest if another device rewrote it, otherwise None."""
    for raw in manifest.splitlines()[:1]:
        if isinstance(first := (parse(raw) or {}).get(_REWRITTEN), str):
            return first
    return None


def listing(files: Mapping[tuple[str, str], tuple[int, str]]) -> list[bytes]:
    """Return a manifest's lines about files."""
    found = []
    for (agent, file), (length, name) in sorted(files.items()):
        line = {"agent": agent, "file": file, "size": length, "sha256": name}
        found.append(json.dumps(line).encode() + b"\n")
    return found


class Device:
    """The published files of one device, as its manifest lists them."""

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
                # File names are checked when the files are opened: ``Folder`` refuses links and paths that
                # lead out of it.
                if isinstance(line.get("agent"), str) and isinstance(line.get("file"), str):
                    length = size if isinstance(size, int) else -1
                    self.listed[line["agent"], line["file"]] = length, str(line.get("sha256"))

    def leave_out(self, agent: str) -> None:
        """Ignore the files of an agent."""
        self.listed = {key: entry for key, entry in self.listed.items() if key[0] != agent}

    def name(self, agent: str, file: str) -> str:
        """Return the path of a file in the shared folder."""
        return f"{self.place}/{agent}/{file}"

    def rewrite(self, changed: Mapping[tuple[str, str], bytes]) -> None:
        """Replace files of the device by versions without erased entries; an empty file is removed.

        A device that never syncs again would not remove the entries itself. The new manifest names the
        device's own one, so that the device still recognizes its folder.
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
        # Write the manifest last: files that do not match it, as after a kill before this line, do not count.
        replace_file(self._shared, f"{self.place}/{MANIFEST}", lines, temporary=temporary)

    def read(self, agent: str, file: str) -> bytes | None:
        """Return a file's bytes; None if the file is missing or differs from the manifest."""
        size, wanted = self.listed[agent, file]
        try:
            # The manifest's size is the limit: a file that has grown is refused, not read whole.
            raw = content(self._shared, self.name(agent, file), size)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeepstoneError):
            return None
        return raw if len(raw) == size and digest(raw) == wanted else None
