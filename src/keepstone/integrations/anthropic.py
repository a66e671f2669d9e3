"""Anthropic's memory tool for an agent's own files, sync and async."""

from __future__ import annotations

from typing import Any

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.anthropic_files import MemoryFiles, Seen
from keepstone.integrations.homes import needs, opened_agent
from keepstone.services.memory_repository import Target

with needs("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
    from anyio import to_thread

_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_MOST_LINES = 999_999
_LEVELS = 2


class _Commands:
    """The commands of the tool, with the result texts that Claude expects; each failure is a ToolError."""

    def __init__(self, agent: Agent) -> None:
        self._files = MemoryFiles(agent)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _text(command, "path")
        seen = self._files.look(path)
        if seen.kind is None:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        if seen.kind == "other":
            raise ToolError(f"Unsupported file type for {path}")
        if seen.kind == "folder":
            lines = [f"{_size(item.size)}\t{item.path}" for item in self._files.listing(path, _LEVELS)]
            levels = f"up to {_LEVELS} levels deep in {path}, excluding hidden items:"
            return "\n".join([f"Here're the files and directories {levels}", *lines])
        # Do not use splitlines, which also splits at form feeds and other characters that the model does not
        # count as line breaks.
        lines = seen.text.split("\n")
        if len(lines) > _MOST_LINES:
            raise ToolError(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
        first, last = _range(command, len(lines))
        shown = "\n".join(_numbered(lines[first - 1 : last], first))
        return f"Here's the content of {path} with line numbers:\n{shown}"

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        path = _text(command, "path")
        self._files.create(path, _text(command, "file_text"))
        return f"File created successfully at: {path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        path, old, new = (_text(command, name) for name in ("path", "old_str", "new_str"))
        # Fill the snippet while the lock is held: afterwards, another writer could have changed the lines
        # around it.
        snippet: list[str] = []

        def change(seen: Seen) -> str:
            changed, line = _replaced(_text_of(seen, path), old, new, path)
            first = max(1, line - 2)
            snippet.extend(_numbered(changed.split("\n")[first - 1 : line + 2], first))
            return changed

        self._files.edit(path, change)
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return "\n".join([head, *snippet])

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        path, text, at = (
            _text(command, "path"),
            _text(command, "insert_text"),
            _number(command, "insert_line"),
        )

        def change(seen: Seen) -> str:
            old = _text_of(seen, path)
            lines = old.removesuffix("\n").split("\n") if old else []
            if not 0 <= at <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}]."
                )
            changed = "\n".join([*lines[:at], text.rstrip("\n"), *lines[at:]])
            # End the file with one line break, like Anthropic's own tool.
            return changed.removesuffix("\n") + "\n"

        self._files.edit(path, change)
        return f"The file {path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _text(command, "path")
        self._files.delete(path)
        return f"Successfully deleted {path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _text(command, "old_path"), _text(command, "new_path")
        self._files.rename(old, new)
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        self._files.clear()
        return "All memory cleared"


class KeepstoneMemoryTool(BetaAbstractMemoryTool):
    """Anthropic's memory tool for an agent's own files: pass it in ``tools=`` to ``tool_runner``.

    ``/memories`` is the folder of the agent's files, which ``agent.files``, the command and MCP show, too.
    Files have mode 0600 and folders 0700, edits are atomic, and no path leads out of the folder. Every
    failure is a ``ToolError`` for the model. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Files of other agents cannot be accessed.

    Examples:
        >>> tool = KeepstoneMemoryTool(".work-agent")
        >>> tool.call({"command": "create", "path": "/memories/tea.md", "file_text": "Ada drinks tea"})
        'File created successfully at: /memories/tea.md'
        >>> keepstone.open(".work-agent").agent("default").files.read("tea.md")
        'Ada drinks tea'
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first file is created."""
        super().__init__()
        self._commands = _Commands(opened_agent(home, agent))

    def execute(self, command: BetaMemoryTool20250818Command) -> Any:
        """Run a command; raise ToolError for an unknown command."""
        _check(command)
        return super().execute(command)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> Any:
        """Return a file with line numbers, or a listing of a folder."""
        return self._commands.view(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> Any:
        """Create a file; raise ToolError if it exists."""
        return self._commands.create(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Any:
        """Replace a text that occurs once in a file."""
        return self._commands.str_replace(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Any:
        """Insert a text after a line of a file."""
        return self._commands.insert(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Any:
        """Delete a file, or a folder with its content."""
        return self._commands.delete(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> Any:
        """Rename or move a file or folder; nothing is overwritten."""
        return self._commands.rename(command)

    def clear_all_memory(self) -> Any:
        """Delete all files and folders of the agent."""
        return self._commands.clear_all_memory()


class AsyncKeepstoneMemoryTool(BetaAsyncAbstractMemoryTool):
    """``KeepstoneMemoryTool`` for async clients, on asyncio and Trio: its commands run in threads."""

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first file is created."""
        super().__init__()
        self._commands = _Commands(opened_agent(home, agent))

    async def execute(self, command: BetaMemoryTool20250818Command) -> Any:
        """Run a command; raise ToolError for an unknown command."""
        _check(command)
        return await super().execute(command)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> Any:
        """Return a file with line numbers, or a listing of a folder."""
        return await to_thread.run_sync(self._commands.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> Any:
        """Create a file; raise ToolError if it exists."""
        return await to_thread.run_sync(self._commands.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Any:
        """Replace a text that occurs once in a file."""
        return await to_thread.run_sync(self._commands.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Any:
        """Insert a text after a line of a file."""
        return await to_thread.run_sync(self._commands.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Any:
        """Delete a file, or a folder with its content."""
        return await to_thread.run_sync(self._commands.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> Any:
        """Rename or move a file or folder; nothing is overwritten."""
        return await to_thread.run_sync(self._commands.rename, command)

    async def clear_all_memory(self) -> Any:
        """Delete all files and folders of the agent."""
        return await to_thread.run_sync(self._commands.clear_all_memory)


def _text_of(seen: Seen, path: str) -> str:
    if seen.kind is None:
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
    if seen.kind != "file":
        raise ToolError(f"The path {path} is not a file.")
    return seen.text


def _check(command: object) -> None:
    name = getattr(command, "command", None)
    if name not in _COMMANDS:
        raise ToolError(f"Unknown command: {name!r:.80}. Use one of {', '.join(_COMMANDS)}.")


def _text(command: object, name: str) -> str:
    value = getattr(command, name, None)
    if not isinstance(value, str):
        raise ToolError(f"The parameter `{name}` must be a string.")
    return value


def _number(command: object, name: str) -> int:
    value = getattr(command, name, None)
    # A model's JSON was not checked before, and ``true`` is an ``int`` in Python.
    if isinstance(value, bool) or not isinstance(value, int):
        raise ToolError(f"The parameter `{name}` must be a whole number.")
    return value


def _range(command: BetaMemoryTool20250818ViewCommand, lines: int) -> tuple[int, int]:
    """Return the first and the last line to show, from 1."""
    wanted = getattr(command, "view_range", None)
    if not wanted:
        return 1, lines
    if not isinstance(wanted, list) or len(wanted) != 2 or not all(type(line) is int for line in wanted):  # noqa: PLR2004
        raise ToolError("The parameter `view_range` must be two whole numbers: the first and the last line.")
    first, last = wanted
    return max(1, first), lines if last == -1 else max(0, last)


def _numbered(lines: list[str], first: int) -> list[str]:
    return ["%6d\t%s" % pair for pair in enumerate(lines, first)]  # noqa: UP031  Half the time of an f-string.


def _replaced(content: str, old: str, new: str, path: str) -> tuple[str, int]:
    """Replace a text that occurs once; return the new content and the line of the change, from 1."""
    places: list[int] = []
    place = content.find(old)
    # An empty text is found everywhere; one position is enough for the error.
    while place >= 0 and (old or not places):
        places.append(place)
        # Continue one character later, so that the error also names overlapping occurrences.
        place = content.find(old, place + 1)
    if not places:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    lines = [content.count("\n", 0, place) + 1 for place in places]
    if content.count(old) > 1:
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, lines))}. Please ensure it is unique"
        )
    return content.replace(old, new), lines[0]


def _size(size: int) -> str:
    """Format a number of bytes in the largest unit with a value of at least 1, such as 12B, 1.5K or 2M."""
    unit = min(max(0, size.bit_length() - 1) // 10, 3)
    amount = size / 1024**unit
    return f"{amount:.0f}{'BKMG'[unit]}" if amount == int(amount) else f"{amount:.1f}{'BKMG'[unit]}"
