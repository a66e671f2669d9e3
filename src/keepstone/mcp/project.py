"""The agent that belongs to a project."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from keepstone.filesystem.work_tree import work_tree_of
from keepstone.notes.notes import USER, Notes
from keepstone.notes.prompt import Source

AUTO = "auto"
"""The name that selects the agent of the project."""
DEFAULT = "default"
_LONGEST_NAME = 60
_DIGEST = 8


class UserNotes(Notes):
    """Notes for contexts: only the user's, as coding agents read the project's themselves."""

    def sources(self) -> list[Source]:
        """Return the user's file as a context shows it."""
        return [source for source in super().sources() if source.kind == USER]


def agent_of(folder: Path, *, worktree: bool = False) -> str:
    """Return the slug of the agent of the project that holds a folder.

    The slug is the name of the Git repository's main folder and a digest of its path, so that all worktrees
    of a repository share one memory. Outside of a repository the folder itself is used. The user's own folder
    and the root of the file system belong to no project, and result in ``default``.

    Args:
        folder: A folder in the project.
        worktree: Whether each worktree has an agent of its own.

    Examples:
        >>> agent_of(Path("/"))
        'default'
    """
    resolved = folder.resolve()
    top = work_tree_of(resolved)
    root = resolved if top is None else (top if worktree else _main_folder(top))
    # Clients without a project start servers in these folders.
    if top is None and root in (Path.home().resolve(), Path(root.anchor)):
        return DEFAULT
    digest = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST]
    name = re.sub(r"[^a-z0-9]+", "-", root.name.removesuffix(".git").lower()).strip("-")[:_LONGEST_NAME]
    return f"{name or 'project'}-{digest}"


def _main_folder(top: Path) -> Path:
    """Return the main folder of a worktree's repository; any other folder unchanged."""
    git = top / ".git"
    if not git.is_file():
        return top
    named = re.fullmatch(r"gitdir: (.+?)\s*", git.read_text("utf-8", "surrogateescape"))
    if named is None:
        return top
    own = (top / named[1]).resolve()
    common = own / "commondir"
    if not common.is_file():  # A submodule is a repository of its own.
        return top
    shared = (own / common.read_text("utf-8", "surrogateescape").strip()).resolve()
    # git stores the path back to the worktree in this file. A folder without it, which may come from
    # anywhere, proves nothing.
    back = own / "gitdir"
    # Otherwise a ``.git`` file made by a stranger could name any other repository, and so give access to the
    # memory of that repository's agent.
    if own.parent != shared / "worktrees" or not back.is_file():
        return top
    if Path(back.read_text("utf-8", "surrogateescape").strip()).resolve() != git.resolve():
        return top
    return shared.parent if shared.name == ".git" else shared
