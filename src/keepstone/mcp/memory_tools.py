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
"""The tools that a client sees: keepstone's, or those of the reference memory server."""


_LONGEST_CLIENT = 80
"""Maximum characters of a client's name that are kept."""


class McpTools:
    """The tools of one agent's memory.

    Args:
        agent: The agent; no argument of a tool selects another one.
        read_only: Leave out the tools that write.
        notes: The notes that ``memory_context`` includes.
        profile: ``"reference"`` lists the tools of the reference memory server instead; keepstone's can still
            be called.
        shared: Other agents whose shared entries are found, too.
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
        self._agent, self._read_only, self._notes, self._shared = agent, read_only, notes, shared
        self.graph: KnowledgeGraph | None = None
        """The knowledge graph, if the profile has one."""
        if profile == "reference":
            from keepstone.mcp.knowledge_graph import KnowledgeGraph

            self.graph = KnowledgeGraph(agent)
        writer = self._writer(None)
        self.tools = self._own_tools(writer) if self.graph is None else self._graph_tools(writer)

    def call(self, name: str, arguments: Mapping[str, Any], client: str | None = None) -> ToolAnswer:
        """Run a tool and return its result. Errors are returned, not raised.

        The entries that it saves have a model as their origin, through the client of this name.
        """
        writer = self._writer(client)
        # The tools are made for each call, as the origin of saved entries names the client.
        own = (memory_tool.tool for memory_tool in self._own_tools(writer))
        if self.graph is None:
            return Toolbox(own).call(name, arguments)
        listed = (memory_tool.tool for memory_tool in self._graph_tools(writer))
        return Toolbox(listed, unlisted=own).call(name, arguments)

    def _writer(self, client: str | None) -> Agent:
        return self._agent.on_behalf("model", f"mcp/{client[:_LONGEST_CLIENT]}" if client else "mcp")

    def _own_tools(self, writer: Agent) -> list[MemoryTool]:
        return self._allowed(memory_tools(writer, SESSION, self._notes, self._shared))

    def _graph_tools(self, writer: Agent) -> list[MemoryTool]:
        from keepstone.mcp.knowledge_graph import KnowledgeGraph
        from keepstone.mcp.reference_tools import reference_tools

        return self._allowed(reference_tools(KnowledgeGraph(writer)))

    def _allowed(self, tools: Iterable[MemoryTool]) -> list[MemoryTool]:
        return [tool for tool in tools if not (self._read_only and tool.writes)]
