"""The MCP server over standard input and output, for one agent."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from keepstone.mcp.instructions import INSTRUCTIONS, READ_ONLY
from keepstone.mcp.resources import View
from keepstone.mcp.server import create_server
from keepstone.mcp.tools import McpTools

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.notes.notes import Notes


def serve(home: Home, agent: str, *, read_only: bool, notes: Notes | None) -> None:
    """Serve an agent's memory until standard input ends."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="keepstone: %(message)s")
    found = home.agent(agent)
    view = View(
        found, McpTools(found, read_only=read_only, notes=notes), str(home.root), notes, read_only
    )
    server = create_server(lambda _: view, READ_ONLY if read_only else INSTRUCTIONS)

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)
