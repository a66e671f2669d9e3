"""The tools of the MCP server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from keepstone.operations.tool_calls import SESSION
from keepstone.operations.tool_definitions import MemoryTool, memory_tools
from keepstone.operations.toolbox import ToolAnswer, Toolbox

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.mcp.knowledge_graph import KnowledgeGraph
    from keepstone.notes.notes import Notes

Profile = Literal["keepstone", "reference"]
"""Which tools a client sees: ours, or those of the reference memory server."""


class McpTools:
    """The tools of one agent's memory.

    Args:
        agent: The agent, whom no argument of a tool changes.
        read_only: Leave out the tools that write.
        notes: The notes that ``memory_context`` includes.
        profile: ``"reference"`` lists the tools of the reference memory server instead; ours are answered.
        shared: Other agents, what they share of whose entries is found, too.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        read_only: bool = False,
        notes: Notes | None = None,
        profile: Profile = "keepstone",
        shared: Collection[str] = (),
    ) -> None:
        own = _allowed(memory_tools(agent, SESSION, notes, shared), read_only=read_only)
        self.graph: KnowledgeGraph | None = None
        """The knowledge graph, if the profile has one."""
        if profile == "reference":
            from keepstone.mcp.knowledge_graph import KnowledgeGraph
            from keepstone.mcp.reference_tools import reference_tools

            self.graph = KnowledgeGraph(agent)
            self.tools = _allowed(reference_tools(self.graph), read_only=read_only)
            self._toolbox = Toolbox((one.tool for one in self.tools), unlisted=(one.tool for one in own))
        else:
            self.tools = own
            self._toolbox = Toolbox(one.tool for one in own)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool and return its result. It raises nothing."""
        return self._toolbox.call(name, arguments)


def _allowed(tools: Iterable[MemoryTool], *, read_only: bool) -> list[MemoryTool]:
    return [tool for tool in tools if not (read_only and tool.writes)]
