"""The MCP clients in which keepstone can be installed, with the path and format of their configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "keepstone"
"""The name of the server in a client's configuration."""


@dataclass(frozen=True, slots=True)
class ClientKind:
    """One client, with its configuration files and their format."""

    name: str
    title: str
    user_file: Callable[[], Path]
    project_file: str | None = None
    """The path of the project's shared file, relative to the repository."""
    key: str = "mcpServers"
    """The key that holds the servers."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a server's entry besides its command."""
    is_toml: bool = False
    has_project: bool = True
    """Whether the client starts servers in the project's folder, so that the project can name the agent."""

    hooks_file: Callable[[], Path] | None = None
    """The user's file for hooks; None for clients without hooks."""
    project_hooks_file: str | None = None
    skills_folder: Callable[[], Path] | None = None
    """The user's folder of skills; None for clients without skills."""
    project_skills_folder: str | None = None
    hook_seconds: int = 1
    """Units per second in the client's timeouts: 1000 for milliseconds."""

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the entry of a server."""
        return {**self.beside, "command": command[0], "args": [*command[1:]]}


def _home(*parts: str) -> Path:
    return Path.home().joinpath(*parts)


def _settings(*parts: str) -> Path:
    """Return a path below the folder where applications of this system keep their settings."""
    if sys.platform == "darwin":
        return _home("Library", "Application Support", *parts)
    return Path(os.environ.get("XDG_CONFIG_HOME") or _home(".config")).joinpath(*parts)


def _claude_code() -> Path:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(folder, ".claude.json") if folder else _home(".claude.json")


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or _home(".codex"), "config.toml")


def _zed() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") if sys.platform != "darwin" else None
    return Path(folder or _home(".config"), "zed", "settings.json")


CLIENTS = (
    ClientKind(
        "claude-code",
        "Claude Code",
        _claude_code,
        ".mcp.json",
        beside={"type": "stdio"},
        hooks_file=lambda: Path(os.environ.get("CLAUDE_CONFIG_DIR") or _home(".claude"), "settings.json"),
        project_hooks_file=".claude/settings.json",
        skills_folder=lambda: Path(os.environ.get("CLAUDE_CONFIG_DIR") or _home(".claude"), "skills"),
        project_skills_folder=".claude/skills",
    ),
    ClientKind(
        "claude-desktop",
        "Claude Desktop",
        lambda: _settings("Claude", "claude_desktop_config.json"),
        has_project=False,
    ),
    ClientKind(
        "cursor",
        "Cursor",
        lambda: _home(".cursor", "mcp.json"),
        ".cursor/mcp.json",
        skills_folder=lambda: _home(".cursor", "skills"),
        project_skills_folder=".cursor/skills",
    ),
    ClientKind(
        "vscode",
        "VS Code",
        lambda: _settings("Code", "User", "mcp.json"),
        ".vscode/mcp.json",
        key="servers",
        beside={"type": "stdio"},
    ),
    ClientKind(
        "codex",
        "Codex",
        _codex,
        ".codex/config.toml",
        key="mcp_servers",
        is_toml=True,
        hooks_file=lambda: _codex().with_name("hooks.json"),
        project_hooks_file=".codex/hooks.json",
        skills_folder=lambda: _codex().with_name("skills"),
        project_skills_folder=".codex/skills",
    ),
    ClientKind(
        "gemini",
        "Gemini CLI",
        lambda: _home(".gemini", "settings.json"),
        ".gemini/settings.json",
        hooks_file=lambda: _home(".gemini", "settings.json"),
        project_hooks_file=".gemini/settings.json",
        hook_seconds=1000,
    ),
    ClientKind(
        "zed",
        "Zed",
        _zed,
        ".zed/settings.json",
        key="context_servers",
        beside={"source": "custom"},
    ),
    ClientKind("windsurf", "Windsurf", lambda: _home(".codeium", "windsurf", "mcp_config.json")),
)
_ALIASES = {"gemini-cli": "gemini", "vs-code": "vscode"}


def client_of(name: str) -> ClientKind:
    """Return a client by its name.

    Raises:
        ValueError: There is no such client.
    """
    wanted = _ALIASES.get(name.lower(), name.lower())
    for client in CLIENTS:
        if client.name == wanted:
            return client
    names = ", ".join(client.name for client in CLIENTS)
    raise ValueError(f"unknown client {name!r:.80}; use {names}")


def is_present(client: ClientKind) -> bool:
    """Return whether a client seems to be installed: its configuration file or that file's folder exists."""
    path = client.user_file()
    # The user's own folder always exists, so it proves nothing for a client whose file is directly in it.
    return path.exists() or (path.parent != Path.home() and path.parent.is_dir())


def command_of(words: Sequence[str], *, shared: bool = False) -> list[str]:
    """Return the command line of ``keepstone`` with these words.

    Args:
        words: The subcommand and its options.
        shared: Whether the command is for a file that several machines share, which must not contain paths.
    """
    if shared:
        return [NAME, *words]
    # Applications that are not started from a shell do not see the user's PATH.
    script = Path(sys.executable).parent / NAME
    # Clients start the command in the project's folder. Without -P Python would import modules from there.
    started = [str(script)] if script.is_file() else [sys.executable, "-P", "-m", NAME]
    return [*started, *words]
