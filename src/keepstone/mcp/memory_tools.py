"""The tools of the MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keepstone.operations.tool_calls import SESSION
from keepstone.operations.tool_definitions import memory_tools
from keepstone.operations.toolbox import ToolAnswer, Toolbox

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.notes.notes import Notes


class McpTools:
    """The tools of one agent's memory.

    Args:
        agent: The agent, whom no argument of a tool changes.
        read_only: Leave out the tools that write.
        notes: The notes that ``memory_context`` includes.
    """

    def __init__(self, agent: Agent, *, read_only: bool = False, notes: Notes | None = None) -> None:
        every = memory_tools(agent, SESSION, notes)
        self.tools = [tool for tool in every if not (read_only and tool.writes)]
        self._toolbox = Toolbox(tool.tool for tool in self.tools)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool and return its result. It raises nothing."""
        return self._toolbox.call(name, arguments)
