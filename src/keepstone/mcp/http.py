"""The MCP server as a route of the HTTP server: streamable HTTP at ``/mcp``, without sessions.

The token of each request determines the agent and whether changes are allowed. The package ``mcp`` is loaded
with the first request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.routing import Route

from keepstone.mcp.instructions import INSTRUCTIONS, READ_ONLY
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.bodies import Limits
from keepstone.server.concurrency import MCP_PATH
from keepstone.server.problems import ProblemError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from keepstone.home import Home

_VIEW = "keepstone.mcp.view"


def route(home: Home) -> Callable[[FastAPI], None]:
    """Return a function that adds the route to an app."""
    endpoint = _Endpoint(home)
    return lambda app: app.router.routes.append(Route(MCP_PATH, endpoint, methods=["POST"], name="mcp"))


class _Endpoint:
    def __init__(self, home: Home) -> None:
        self._home = home

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the memory that its token gives access to."""
        found = scope.get(SCOPE_KEY)
        access = found if isinstance(found, Access) else Access(frozenset())
        try:
            agent = access.only_agent()
        except ProblemError as error:
            await error.response()(scope, receive, send)
            return
        scope[_VIEW], manager = await anyio.to_thread.run_sync(self._prepared, agent, access)
        # A manager of mcp 2.3 can be run only once, so each request has its own. It keeps no state between
        # requests.
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _prepared(self, agent: str, access: Access) -> tuple[Any, Any]:
        manager = import_module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager
        from keepstone.mcp.memory_tools import McpTools
        from keepstone.mcp.resources import View

        found, read_only = self._home.agent(agent), access.read_only
        found = found.on_behalf(access.origin, may_cite=False)
        view = View(found, McpTools(found, read_only=read_only), self._home)
        server = _server(READ_ONLY if read_only else INSTRUCTIONS)
        # ``Bodies`` has already limited the body; the package's default limit is lower.
        return view, manager(app=server, stateless=True, max_request_body_size=Limits().body)


@cache
def _server(instructions: str) -> Any:
    from keepstone.mcp.server import create_server

    return create_server(lambda request: request.scope[_VIEW], instructions, keeps_clients=False)
