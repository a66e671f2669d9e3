"""Checks of the place of a home: its file system, permissions, links and leftover files."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.files import locked_files
from keepstone.filesystem import macos_mount
from keepstone.filesystem.atomic import set_mode
from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import FILES_TEMPORARY, INDEX, LOCK, STATE, TEMPORARY, Layout
from keepstone.filesystem.work_tree import work_tree_of
from keepstone.model import Finding
from keepstone.store.files.maintenance import merge_driver
from keepstone.store.sharing import grants_file

MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    "nfs nfs3 nfs4 cifs smb smb2 smb3 smbfs afpfs webdav afs ceph lustre beegfs glusterfs davfs "
    "fuse.sshfs fuse.rclone fuse.glusterfs fuse.ceph fuse.davfs2 fuse.s3fs fuse.gcsfuse".split()
)
_OF_THE_HOST = frozenset("9p drvfs virtiofs fakeowner fuse.grpcfuse fuse.osxfs osxfs vboxsf prl_fs".split())
"""File systems of host folders in a guest system: WSL, Docker Desktop, VirtualBox, Parallels."""
_SYNCED = (
    ("Dropbox", re.compile(r"dropbox(?:$| \(|-)")),
    ("OneDrive", re.compile(r"onedrive(?:$| - |-)")),
    ("iCloud", re.compile(r"mobile documents$|com~apple~clouddocs$|icloud ?drive$")),
    ("Google Drive", re.compile(r"google ?drive(?:$| \(|-)|my drive$")),
    ("Nextcloud", re.compile(r"nextcloud$")),
    ("ownCloud", re.compile(r"owncloud$")),
    ("MEGA", re.compile(r"megasync$")),
    ("pCloud", re.compile(r"pcloud ?drive$")),
)
_SYNCTHING = ".stfolder"
_OTHERS = 0o077
_OF_GIT = 0o775
"""Permissions that a checkout may give to files and folders, depending on the user's umask."""
_SHOWN = 3
_FIX = "keepstone doctor --fix"


def examine_home(root: Path, layout: Layout) -> list[Finding]:
    """Return a summary and the problems of a home's place. Changes nothing."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        partial(_ground, root),
        partial(_links, root, layout),
        partial(_hard_links, root, layout),
        partial(_modes, root, layout),
        partial(_leftovers, root, layout),
        partial(_case_twins, root, layout),
        partial(merge_driver.findings, root),
        partial(grants_file.findings, root, layout),
    )
    findings: list[Finding] = []
    for check in checks:
        # Run each check separately, so that an unreadable folder does not hide the findings of other checks.
        try:
            findings += check()
        except PermissionError as error:
            findings.append(_refused(error))
    good = "a local folder that only you can read, with nothing left over"
    looked = "looked at its file system, sync services, links, modes and what was left over"
    if not findings:
        looked = good if root.exists() else "nothing is kept here yet"
    return [Finding("ok", str(root), looked), *findings]


def _refused(error: PermissionError) -> Finding:
    return Finding(
        "error",
        str(error.filename),
        "the system does not let us look at it",
        "mend its owner and mode",
        "files there are neither maintained nor found",
    )


def mend_home(root: Path, layout: Layout) -> list[Finding]:
    """Remove other users' permissions, and the leftovers of killed processes."""
    mended = []
    paths = list(open_to_others(root, layout))
    for path, mode in paths:
        _close(root, path, mode & ~_OTHERS)
    if paths:
        mended.append(Finding("ok", str(root), f"mended: {_listed(root, paths)} can only be read by you now"))
    for path in list(left_over(root, layout)):
        _remove(root, path)
        mended.append(Finding("ok", str(path), "mended: removed"))
    return mended


def _ground(root: Path) -> Iterator[Finding]:
    place = root.resolve()
    kind = _file_system(place)
    if kind in _OF_THE_HOST:
        yield Finding(
            "warning",
            str(root),
            f"on a folder of the host that is shared into this machine ({kind})",
            "move the home to a disk of this machine or a volume: docs, Where a home may live",
            "locks do not reach the other side: if programs there write too, lines may be torn; changes are "
            "noticed later, and modes may not be kept",
        )
    elif kind is not None:
        yield Finding(
            "warning",
            str(root),
            f"on a network file system ({kind})",
            "move the home to a local disk",
            "locks may not hold there: writers on two machines may tear each other's lines",
        )
    service = sync_service(place)
    if service is not None:
        yield Finding(
            "warning",
            str(root),
            f"in a folder that {service} copies elsewhere",
            "move the home out of it, and copy it with: keepstone backup DIR",
            "its logs leave this machine, purged bytes stay in the service's versions, and two machines that "
            "write make conflicting copies",
        )


def _file_system(path: Path) -> str | None:
    """Return the type of a path's file system; None if it is on a disk of this machine."""
    if sys.platform == "darwin":
        found = macos_mount.file_system(path)
        return found[0] if found and (not found[1] or found[0] in _NETWORK | _OF_THE_HOST) else None
    return network_type(path, _mounts())


def _mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:  # Only Linux has this file.
        return ""


def network_type(path: Path, mounts: str) -> str | None:
    """Return the type of a path's file system if other machines may write to it, else None.

    ``mounts`` is Linux's ``/proc/self/mountinfo``.
    """
    found, longest = None, -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) > 4 and kinds:  # noqa: PLR2004  The fifth field is the mount point: proc(5).
            # Spaces and some other characters of a path are written as octal escapes.
            point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
            # If two mounts have the same mount point, the later one is visible.
            if len(point.parts) >= longest and (point == path or point in path.parents):
                found, longest = kinds[0], len(point.parts)
    return found if found in _NETWORK | _OF_THE_HOST else None


def sync_service(path: Path) -> str | None:
    """Return the name of the service known to copy this folder to other machines; None if there is none."""
    for part in path.parts:
        for service, pattern in _SYNCED:
            if pattern.match(part.casefold()):
                return service
    # Syncthing copies folders of any name, and leaves a marker in each.
    marked = any((folder / _SYNCTHING).exists() for folder in (path, *path.parents))
    return "Syncthing" if marked else None


def _links(root: Path, layout: Layout) -> Iterator[Finding]:
    for path in dict.fromkeys(_way_points(root, layout)):
        if path.is_symlink():
            yield Finding(
                "error",
                str(path.relative_to(root)),
                "a link; below a home none is followed",
                "put the folder itself there, or open the home at the place that the link leads to",
                "nothing behind it is seen",
            )


def _hard_links(root: Path, layout: Layout) -> Iterator[Finding]:
    for agent in layout.agents(root):
        folder = layout.files_folder(root, agent)
        for path, status in _below(folder) if _is_real(folder) else ():
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield Finding(
                    "error",
                    str(path.relative_to(root)),
                    "a hard link; its other name may lie outside the home",
                    "put a copy in its place, for example: cp FILE NEW && mv NEW FILE",
                    "it cannot be read or written, and is in no backup",
                )


def _way_points(root: Path, layout: Layout) -> Iterator[Path]:
    """Yield the folders above agents' folders, and all paths where an agent's folder may be."""
    for template in (layout.sessions, layout.files):
        reached = [root]
        for part in template.split("/"):
            if part == "{agent}":
                reached = [child for folder in reached if _is_real(folder) for child in folder.iterdir()]
            else:
                reached = [folder / part for folder in reached]
            yield from reached


def _is_real(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def tops(root: Path, layout: Layout) -> list[Path]:
    """Return the folders directly below a home that contain all of it, the derived ``.index`` last."""
    names = {template.partition("/")[0] for template in (layout.sessions, layout.files)}
    if "{agent}" in names:
        names = (names - {"{agent}"}) | set(layout.agents(root))
    return [path for name in (*sorted(names), STATE, INDEX) if _is_real(path := root / name)]


def _below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a folder and all its content except links, each with its status."""
    pending = [folder]
    while pending:
        # Skip files that another process removes during the check, and those that we may not read.
        with suppress(FileNotFoundError, NotADirectoryError, KeepstoneError):
            current = pending.pop()
            yield current, current.lstat()
            with Folder(current) as opened:
                for entry in opened.scan():
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(current / entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        yield current / entry.name, entry.stat(follow_symlinks=False)


def open_to_others(root: Path, layout: Layout) -> Iterator[tuple[Path, int]]:
    """Yield the paths in a home that users other than its owner may access, with their modes."""
    for path, status in chain.from_iterable(_below(top) for top in tops(root, layout)):
        if status.st_mode & _OTHERS:
            yield path, stat.S_IMODE(status.st_mode)


def _modes(root: Path, layout: Layout) -> Iterator[Finding]:
    paths = list(open_to_others(root, layout))
    if work_tree_of(root) is not None:
        paths = [(path, mode) for path, mode in paths if not _is_of_git(root, path, mode)]
    if paths:
        yield Finding(
            "warning",
            str(root),
            f"{_listed(root, paths)} may be read by others; files are to have mode 0600, folders 0700",
            _FIX,
            "other users of this machine may read the memory",
        )


def _is_of_git(root: Path, path: Path, mode: int) -> bool:
    """Return whether a checkout may have set this mode, as git only records the executable bit.

    Files that git ignores keep the mode that keepstone gave them: the index, tokens and lock files.
    """
    is_left_alone = INDEX in path.relative_to(root).parts or path.name.startswith(".tokens.")
    return not is_left_alone and not path.name.endswith(LOCK) and mode & ~_OF_GIT == 0


def _listed(root: Path, paths: list[tuple[Path, int]]) -> str:
    names = ", ".join(str(path.relative_to(root)) for path, _ in paths[:_SHOWN])
    return names + (f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else "")


def _close(root: Path, path: Path, mode: int) -> None:
    with suppress(FileNotFoundError), border(path):
        if path.is_dir():
            path.chmod(mode)
            return
        # Use a descriptor, so that a link put in the file's place changes no file elsewhere.
        with Folder(path.parent, root=root) as folder:
            fd = folder.open(path.name, os.O_RDONLY)
            try:
                set_mode(fd, mode)
            finally:
                os.close(fd)


def left_over(root: Path, layout: Layout) -> Iterator[Path]:
    """Yield the files and folders outside sessions folders that killed processes or removed agents left."""
    agents = layout.agents(root)
    for agent in agents:
        temporary = layout.files_folder(root, agent) / FILES_TEMPORARY
        if temporary.is_file():
            yield temporary
    derived = root / INDEX
    for path in sorted(derived.iterdir()) if _is_real(derived) else ():
        is_unowned = _is_real(path) and not path.name.startswith(".") and path.name not in agents
        if is_unowned or path.name.endswith(TEMPORARY):
            yield path
        elif _is_real(path):
            yield from sorted(path.glob("v*/*.aside"))


def _leftovers(root: Path, layout: Layout) -> Iterator[Finding]:
    for path in left_over(root, layout):
        yield Finding(
            "warning",
            str(path.relative_to(root)),
            "left by a process that was killed, or by an agent that is gone",
            _FIX,
            "nothing but space, unless an entry in it is purged later",
        )


def _case_twins(root: Path, layout: Layout) -> Iterator[Finding]:
    alike: dict[str, list[str]] = {}
    for agent in sorted(layout.agents(root)):
        alike.setdefault(agent.casefold(), []).append(agent)
    for agents in alike.values():
        if len(agents) > 1:
            yield Finding(
                "warning",
                str(root),
                f"agents {' and '.join(map(repr, agents))} differ only by letter case",
                "end the programs that use this home, then rename the folders of all but one of them",
                "a copy on a file system that folds case, as on macOS and Windows, mixes or loses them",
            )


def _remove(root: Path, path: Path) -> None:
    if path.name == FILES_TEMPORARY:
        _remove_temporary(root, path)
        return
    with suppress(FileNotFoundError), border(path):
        if _is_real(path):
            shutil.rmtree(path)
        else:
            path.unlink()


def _remove_temporary(root: Path, path: Path) -> None:
    """Remove the temporary file of a write under the lock of such writes, as the write may be in progress."""
    with Folder(path.parent, root=root) as folder, locked_files(folder):
        pass  # The next holder of the lock removes it.
