"""Agents' files for a tool executor: a service whose methods have the names of the tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keepstone import home
from keepstone.errors import AgentNotFoundError, KeepstoneError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.toolbox import Tool, ToolAnswer, Toolbox, code_of, string
from keepstone.store.protocol import Files

_LOG = logging.getLogger("keepstone.files")

_READ = {
    "agent_instance_id": string("Id of the agent whose memory it is."),
    "path": string("Relative path of the file, such as plans/today.md."),
}
_WRITE = _READ | {"content": string("The text; it is kept exactly.")}


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of a write or append."""

    path: str
    """The file's path, relative to the agent's folder, with ``/``."""
    bytes: int
    """Number of bytes that this call wrote."""


class AgentMemoryService:
    """Read, write and append to agents' memory files.

    The files of an agent are in ``{app_cache_dir}/agent_memory/{agent_instance_id}/``, which the first write
    creates. ``known_agents`` defines the existing agents: a collection of ids, or a function that returns
    whether an id exists. Without it, every valid id is accepted.

    Before any access, every method raises InvalidAgentIdError or AgentNotFoundError for the agent,
    PathEscapeError for a path that would leave the agent's folder, and ValueError or TypeError for a
    malformed argument. Every method raises AccessDeniedError or StoreError if the system prevents the access.

    Examples:
        >>> service = AgentMemoryService("cache")
        >>> service.write_agent_memory_file("coder-1", "notes.md", "Use pnpm.")
        FileResult(path='notes.md', bytes=9)
        >>> service.read_agent_memory_file("coder-1", "notes.md")
        'Use pnpm.'
    """

    def __init__(
        self,
        app_cache_dir: str | Path,
        *,
        known_agents: Collection[str] | Callable[[str], bool] | None = None,
    ) -> None:
        if isinstance(known_agents, str) or not (
            callable(known_agents) or isinstance(known_agents, Collection | None)
        ):
            raise TypeError(f"known_agents is a collection of ids or a function, not {known_agents!r:.80}")
        self._home = home.open(app_cache_dir, layout="cache")
        self._known_agents = known_agents
        self._toolbox = Toolbox(self._tools(), _log_refusal)

    def read_agent_memory_file(self, agent_instance_id: str, path: str) -> str:
        """Return the content of one of the agent's files.

        Raises:
            MemoryFileNotFoundError: The agent has no such file.
            NotTextError: The file is not UTF-8.
            IsAFolderError: The path names a folder.
        """
        with _failures_logged("read", agent_instance_id, path):
            content = self._files(agent_instance_id).read(path)
        _tell("read", agent_instance_id, path, len(content.encode()))
        return content

    def write_agent_memory_file(self, agent_instance_id: str, path: str, content: str) -> FileResult:
        """Write one of the agent's files atomically; an existing file is replaced.

        Raises:
            IsAFolderError: The path names a folder.
        """
        with _failures_logged("write", agent_instance_id, path):
            written = self._files(agent_instance_id).write(path, content)
        _tell("write", agent_instance_id, path, written)
        return FileResult(path, written)

    def append_to_agent_memory_file(self, agent_instance_id: str, path: str, content: str) -> FileResult:
        """Append content to one of the agent's files; a missing file is created.

        Raises:
            IsAFolderError: The path names a folder.
        """
        with _failures_logged("append", agent_instance_id, path):
            written = self._files(agent_instance_id).append(path, content)
        _tell("append", agent_instance_id, path, written)
        return FileResult(path, written)

    def tools(self) -> list[dict[str, Any]]:
        """Return the three tools for a model, each with ``name``, ``description`` and ``input_schema``."""
        return self._toolbox.definitions("anthropic")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool for a model, and return JSON, also for an error.

        The answer is ``{"ok": True, "content": …}`` for a read, ``{"ok": True, "path": …, "bytes": …}`` for a
        write or append, else ``{"ok": False, "error": {"code": …, "message": …}}``. Codes are path_escape,
        file_not_found, invalid_agent, agent_not_found, permission_denied, not_text, is_a_directory,
        invalid_argument, unknown_tool, and store_error if the disk or a lock failed.

        Examples:
            >>> service = AgentMemoryService("cache")
            >>> service.call("read_agent_memory_file", {"agent_instance_id": "coder-1", "path": "../x"})
            {'ok': False, 'error': {'code': 'path_escape', 'message': "path '../x' would…"}}
        """
        return self._toolbox.call(tool, arguments).data

    def close(self) -> None:
        """Close all files of the home. A later call reopens them."""
        self._home.close()

    def _tools(self) -> list[Tool]:
        def write(**arguments: str) -> ToolAnswer:
            return _written(self.write_agent_memory_file(**arguments))

        def append(**arguments: str) -> ToolAnswer:
            return _written(self.append_to_agent_memory_file(**arguments))

        def read(**arguments: str) -> ToolAnswer:
            content = self.read_agent_memory_file(**arguments)
            return ToolAnswer({"content": content}, content)

        return [
            Tool("read_agent_memory_file", "Read a file of an agent's memory.", _READ, (*_READ,), read),
            Tool(
                "write_agent_memory_file",
                "Write a file of an agent's memory; it replaces what was there.",
                _WRITE,
                (*_WRITE,),
                write,
            ),
            Tool(
                "append_to_agent_memory_file",
                "Append to a file of an agent's memory, or make it.",
                _WRITE,
                (*_WRITE,),
                append,
            ),
        ]

    def _files(self, agent: str) -> Files:
        # Check the id first, so that the caller's function gets valid ids only.
        slug = LAYOUTS["cache"].check_agent(agent)
        if not self._knows(slug):
            raise AgentNotFoundError(f"there is no agent {slug!r}; give the id of a known agent")
        return self._home.agent(slug).files

    def _knows(self, slug: str) -> bool:
        known = self._known_agents
        if known is None or not callable(known):
            return known is None or slug in known
        try:
            return bool(known(slug))
        except Exception as error:  # The function may raise anything; ``call`` may not.
            raise AgentNotFoundError(f"known_agents failed for agent {slug!r}: {error}") from error


@contextmanager
def _failures_logged(operation: str, agent: object, path: object) -> Iterator[None]:
    """Log a call that is refused or fails, with its error code and without content."""
    try:
        yield
    except (KeepstoneError, ValueError, TypeError) as error:
        _log_failure(operation, agent, path, code_of(error))
        raise


def _tell(operation: str, agent: str, path: str, count: int) -> None:
    # Paths come from a model and may contain line breaks. They are quoted, so that they cannot forge a log
    # record.
    _LOG.info("%s agent=%s path=%r bytes=%d", operation, agent, path, count)


def _log_refusal(tool: str, given: Mapping[str, Any]) -> None:
    agent, path = given.get("agent_instance_id"), given.get("path")
    _log_failure(tool.partition("_")[0], agent, path, "invalid_argument")


def _log_failure(operation: str, agent: object, path: object, code: str) -> None:
    _LOG.warning("%s refused agent=%.80r path=%.200r code=%s", operation, agent, path, code)


def _written(result: FileResult) -> ToolAnswer:
    return ToolAnswer(asdict(result), f"{result.bytes} bytes in {result.path}")
