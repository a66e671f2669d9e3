"""Setting a home up for git: attributes, ignored files, and the configuration of the merge driver."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from keepstone.errors import StoreError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FILE_MODE, Folder, border
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import (
    ARCHIVE,
    DROPPED,
    ERASED,
    GIT_ATTRIBUTES,
    GRANTS,
    LOCK,
    PURGE,
    PURGED,
    STATE,
    SUGGESTIONS,
    SYNC,
    TEMPORARY,
    TESTS,
    VANISHED,
    Layout,
)
from keepstone.store.files import purge_digests
from keepstone.store.files.maintenance import merge_driver
from keepstone.store.files.maintenance.merge_driver import DRIVER
from keepstone.store.opening import is_database

_BEGIN, _END = "# keepstone: begin", "# keepstone: end"


def init(root: Path, layout: Layout) -> list[str]:
    """Set a home up for git, and return the names of the files that were written.

    Writes ``.gitattributes`` and ``.gitignore``, registers the merge driver in the configuration of this
    clone, and begins to record purges. A second call updates all of these, and keeps other lines in the two
    files. Every clone needs this call, as git does not copy its configuration.

    Raises:
        StoreError: git is not installed, or failed.
        ValueError: The home is a database.
    """
    if is_database(root):
        raise ValueError("a home in a database has no files for git: keepstone export writes some")
    with border(root):
        root.mkdir(0o700, parents=True, exist_ok=True)
        if not _is_inside(root):
            git(root, "init", "--quiet")
        extension, sessions = layout.extension, f"/{layout.sessions.replace('{agent}', '*')}"
        attributes = [
            f"{sessions}/*{extension} merge={DRIVER} -text",
            f"{sessions}/{ARCHIVE}/*{extension} merge={DRIVER} -text",
            f"/{TESTS} merge=union -text",
            # git's own driver ``union`` keeps the lines of both sides. ``-text`` keeps git from changing line
            # ends, on which digests and offsets depend.
            *(f"{sessions}/{name} merge=union -text" for name in (PURGED, DROPPED)),
            f"/{VANISHED}/*/{ERASED} merge=union -text",
        ]
        # Without a folder for each agent there is no place beside the sessions that belongs to one agent.
        if "{agent}" in layout.sessions:
            suggestions, grants = (
                layout.template_beside(name).replace("{agent}", "*") for name in (SUGGESTIONS, GRANTS)
            )
            attributes += [f"/{suggestions} merge={DRIVER} -text", f"/{grants} merge=union -text"]
        files = f"/{layout.files.replace('{agent}', '*')}"
        ignored = ["/.index/", f"/{SYNC}/", f"/{STATE}/**/*{LOCK}", "/.tokens.*", "/.tests.*"]
        ignored += [f"{files}/.keepstone.*"]
        ignored += [f"{sessions}/{name}" for name in (f"*{LOCK}", f"*{TEMPORARY}", PURGE)]
        ignored += [f"{sessions}/{ARCHIVE}/*{TEMPORARY}"]
        ignored += [
            f"{sessions.rpartition('/')[0]}/{name}{end}"
            for name in (SUGGESTIONS, GRANTS)
            for end in (LOCK, TEMPORARY)
        ]
        blocks = {GIT_ATTRIBUTES: attributes, ".gitignore": ignored}
        with Folder(root) as folder:
            written = [name for name, lines in blocks.items() if _write_block(folder, name, lines)]
        merge_driver.register(root)
    # Once a home can have clones, a purge must leave a digest, or a merge would bring the entry back.
    for agent in layout.agents(root):
        written += _begin_recording(root, layout, agent)
    return written


def _begin_recording(root: Path, layout: Layout, agent: str) -> list[str]:
    path = layout.sessions_folder(root, agent)
    if not path.is_dir() or (path / PURGED).exists():
        return []
    with Folder(path, root=root) as folder:
        purge_digests.record(folder, ())
    return [str((path / PURGED).relative_to(root))]


def _write_block(folder: Folder, name: str, lines: Iterable[str]) -> bool:
    """Write our lines between two marks, in place of the old ones or at the end; False if unchanged."""
    block = "\n".join((_BEGIN, *lines, _END)) + "\n"
    old, mode = "", FILE_MODE
    with suppress(FileNotFoundError), os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        # The file may be a person's own, so its mode stays unchanged.
        old, mode = file.read().decode(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    found = re.search(rf"^{_BEGIN}\n.*?^{_END}\n", old, re.DOTALL | re.MULTILINE)
    gap = "" if not old or old.endswith("\n") else "\n"
    new = old[: found.start()] + block + old[found.end() :] if found else old + gap + block
    if new == old:
        return False
    replace_file(folder, name, [new.encode()], temporary=f"{name}{TEMPORARY}", mode=mode)
    return True


def _is_inside(folder: Path) -> bool:
    with suppress(StoreError):
        return git(folder, "rev-parse", "--is-inside-work-tree").strip() == b"true"
    return False
