"""The file of an agent's grants, in a home that is a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from keepstone.errors import AccessDeniedError, IsAFolderError, KeepstoneError, PathEscapeError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import GRANTS, LOCK, TEMPORARY, Layout
from keepstone.filesystem.lock import Lock
from keepstone.model import Finding
from keepstone.store.sharing.grants import MOST_BYTES, DamagedGrantsError, Grant, parsed, with_grant, without


class GrantsFile:
    """The grants of one agent. Each call reads the file, so that the next call notices a revocation.

    Raises:
        ValueError: The layout has only one agent.
    """

    def __init__(self, root: Path, layout: Layout, agent: str, *, durable: bool = True) -> None:
        self._root = root
        self._durable = durable
        self.path = layout.beside(root, agent, GRANTS)

    def read(self) -> list[Grant]:
        """Return all grants in the order of their lines; none if there is no file.

        Raises:
            DamagedGrantsError: A line is not a grant, or the file is not a regular, readable file.
        """
        return [*parsed(self._bytes())]

    def add(self, grant: Grant, *, drop_later: bool) -> None:
        """Add a grant atomically and sync the file; errors as for ``read``."""
        self._change(lambda text: with_grant(text, grant, drop_later=drop_later), create=True)

    def revise(self, change: Callable[[bytes], bytes]) -> None:
        """Replace the file atomically by a function's result; raises as ``read`` and as the function."""
        self._change(change, create=True)

    def forget(self, to: str) -> None:
        """Remove all grants to an agent; a file that is a link, too large or unreadable is left unchanged."""

        def rest(text: bytes) -> bytes:
            return without(text, lambda grant: grant.to == to)

        with suppress(DamagedGrantsError):
            text = self._bytes()
            # Most files have no grant to this agent, so the lock is taken only if needed.
            if rest(text) != text:
                self._change(rest, create=False)

    def is_there(self) -> bool:
        """Return whether a regular, readable file exists."""
        try:
            self._bytes()
        except DamagedGrantsError:
            return False
        return self.path.exists()

    def _bytes(self) -> bytes:
        try:
            with Folder(self.path.parent, root=self._root) as folder:
                fd = folder.open(self.path.name, os.O_RDONLY)
                with os.fdopen(fd, "rb") as file:
                    if os.fstat(fd).st_nlink > 1:  # Its other name may be outside the home.
                        raise DamagedGrantsError(f"{self.path.name} is a hard link; put a copy in its place")
                    if len(text := file.read(MOST_BYTES + 1)) > MOST_BYTES:
                        raise DamagedGrantsError(f"more than {MOST_BYTES:,} bytes of grants")
                    return text
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except (PathEscapeError, IsAFolderError, AccessDeniedError) as error:
            raise DamagedGrantsError(str(error)) from error

    def _change(self, change: Callable[[bytes], bytes], *, create: bool) -> None:
        name = self.path.name
        with (
            Folder(self.path.parent, root=self._root, create=create, durable=self._durable) as folder,
            closing(Lock(folder, name + LOCK)) as lock,
            lock.hold(),
        ):
            before = self._bytes()
            text = change(before)
            if text != before:
                replace_file(folder, name, [text], temporary=name + TEMPORARY, durable=self._durable)


def forget_grants_to(root: Path, layout: Layout, to: str) -> None:
    """Remove the grants of all agents in a home to one agent."""
    for agent in layout.agents(root) if layout.has_agents else ():
        GrantsFile(root, layout, agent).forget(to)


def findings(root: Path, layout: Layout) -> Iterator[Finding]:
    """Yield a finding for each damaged grants file."""
    for agent in layout.agents(root) if layout.has_agents else ():
        file = GrantsFile(root, layout, agent)
        try:
            file.read()
        except KeepstoneError as error:
            yield Finding(
                "error",
                str(file.path.relative_to(root)),
                f"damaged, so it grants nothing: {error}",
                "correct the line, or delete the file and grant again: keepstone grant",
                "other agents cannot access the memory that was shared with them",
                agent,
            )
