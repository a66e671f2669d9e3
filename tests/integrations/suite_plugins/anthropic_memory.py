"""Puts keepstone's memory tools in the place of Anthropic's tools on the local file system.

The suite looks at the files below ``base_path``, and puts some there: the layout's folder of files is
``memories``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anthropic.lib.tools import _beta_builtin_memory_tool as built_in
from anyio import Path as AsyncPath

import keepstone
from keepstone.filesystem.layout import Layout
from keepstone.integrations.anthropic import AsyncKeepstoneMemoryTool, KeepstoneMemoryTool


def files_of(base_path: str) -> tuple[keepstone.Home, Path]:
    """Return a home whose agent's files are below ``base_path/memories``, and that folder."""
    home = keepstone.open(base_path, layout=Layout("sessions", "memories"))
    files = home.agent("default").files
    files.write("first", "")  # Anthropic's tool makes the folder at once.
    files.delete("first")
    return home, Path(base_path) / "memories"


class Tool(KeepstoneMemoryTool):
    """A tool with the constructor of the built-in one."""

    def __init__(self, base_path: str) -> None:
        home, self.memory_root = files_of(base_path)
        self.base_path = self.memory_root.parent
        super().__init__(home)


class AsyncTool(AsyncKeepstoneMemoryTool):
    """An async tool with the constructor of the built-in one."""

    def __init__(self, base_path: str) -> None:
        home, root = files_of(base_path)
        self.memory_root = AsyncPath(root)
        self.base_path = root.parent
        super().__init__(home)

    async def _ensure_memory_root(self) -> None:
        """Do nothing: the folder is there."""


names: dict[str, Any] = {
    "BetaLocalFilesystemMemoryTool": Tool,
    "BetaAsyncLocalFilesystemMemoryTool": AsyncTool,
}
vars(built_in).update(names)
