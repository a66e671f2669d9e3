"""The MCP server: its request handlers, for all transports."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

import keepstone
from keepstone.errors import KeepstoneError
from keepstone.mcp import resources
from keepstone.mcp.instructions import INSTRUCTIONS
from keepstone.mcp.resources import View
from keepstone.mcp.subscriptions import Subscriptions, listen
from keepstone.mcp.traces import traced
from keepstone.operations.error_codes import code_of
from keepstone.operations.tool_definitions import MemoryTool
from keepstone.operations.toolbox import ToolAnswer

logger = logging.getLogger("keepstone.mcp")

_Context = ServerRequestContext[Any, Any]
ViewOf = Callable[[Any], View]
"""Returns the view of a request's client. The request is None over stdio, Starlette's over HTTP."""
_PROGRESS_SECONDS = 1.0
T = TypeVar("T")


def create_server(
    view_of: ViewOf, instructions: str = INSTRUCTIONS, *, keeps_clients: bool = True
) -> Server[Any]:
    """Return the server; nothing is opened before the first request that needs memory.

    Args:
        view_of: Returns the view that the client of a request may see.
        instructions: The text about the server for a client's model.
        keeps_clients: Whether the transport keeps a client between requests, so that clients of an older
            protocol can be notified of changes.
    """
    handlers = _Handlers(view_of)
    older: dict[str, Any] = (
        {
            "lifespan": Subscriptions.lifespan,
            "on_subscribe_resource": handlers.subscribe,
            "on_unsubscribe_resource": handlers.unsubscribe,
        }
        if keeps_clients
        else {}
    )
    server = Server(
        "keepstone",
        version=keepstone.__version__,
        title="Keepstone memory",
        instructions=instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
        on_subscriptions_listen=handlers.listen,
        **older,
    )
    # This replaces the SDK's own middleware, whose spans contain texts of clients.
    server.middleware = [traced]
    return server


class _Handlers:
    def __init__(self, view_of: ViewOf) -> None:
        self._view_of = view_of

    async def list_tools(self, ctx: _Context, _: Any) -> types.ListToolsResult:
        view = await anyio.to_thread.run_sync(self._view_of, ctx.request)
        return types.ListToolsResult(tools=[_definition(tool) for tool in view.tools.tools])

    async def call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        def call() -> types.CallToolResult:
            view = self._view_of(ctx.request)
            return _result(view, view.tools.call(params.name, params.arguments or {}, _client_of(ctx)))

        return await _with_progress(ctx, call)

    async def list_resources(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._run(ctx, partial(resources.listed, cursor=cursor))

    async def list_templates(self, _ctx: _Context, _: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        self, ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._run(ctx, partial(resources.read, uri=str(params.uri)))

    async def list_prompts(self, _ctx: _Context, _: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=resources.prompts())

    async def get_prompt(self, ctx: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._run(
            ctx, partial(resources.prompt, name=params.name, arguments=params.arguments or {})
        )

    async def complete(self, ctx: _Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        argument = params.argument
        return await self._run(
            ctx, partial(resources.completed, argument=argument.name, typed=argument.value)
        )

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        view = await anyio.to_thread.run_sync(self._view_of, ctx.request)
        return await listen(ctx, params, view)

    async def subscribe(self, ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        view = await anyio.to_thread.run_sync(self._view_of, ctx.request)
        await ctx.lifespan_context.add(str(params.uri), ctx.session, view)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        ctx.lifespan_context.discard(str(params.uri))
        return types.EmptyResult()

    async def _run(self, ctx: _Context, answer: Callable[[View], T]) -> T:
        """Run a handler in a thread; failures become errors without paths."""

        def run() -> T | MCPError:
            view = self._view_of(ctx.request)
            try:
                return answer(view)
            # Return the error, and raise it outside: anyio's task group would wrap it into an exception
            # group.
            except MCPError as error:
                return error
            except (KeepstoneError, ValueError, OSError) as error:
                logger.warning("%s failed: %s", ctx.method, code_of(error))
                return MCPError(INTERNAL_ERROR, _without_paths(view, str(error)))

        found = await _with_progress(ctx, run)
        if isinstance(found, MCPError):
            raise found
        return found


def _client_of(ctx: _Context) -> str | None:
    """Return the name of a request's client; None if the client did not send it."""
    params = ctx.session.client_params
    return None if params is None else params.client_info.name


async def _with_progress(ctx: _Context, call: Callable[[], T]) -> T:
    """Run a call, which raises nothing, in a thread and report progress to clients that ask for it.

    Cancellation ends the waiting; a write that has begun completes.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(_report, ctx)
        # A client that cancels no longer waits, but the thread continues, so that a write is never half done.
        found = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        group.cancel_scope.cancel()
    return found


async def _report(ctx: _Context) -> None:
    seconds = 0
    while True:
        await anyio.sleep(_PROGRESS_SECONDS)
        seconds += 1
        await ctx.session.report_progress(seconds, message="the memory is still working")


def _definition(tool: MemoryTool) -> types.Tool:
    definition = tool.tool.definition("json")
    return types.Tool(
        name=definition["name"],
        title=tool.title,
        description=definition["description"],
        input_schema=definition["parameters"],
        output_schema=dict(tool.output),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.destroys,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )


def _result(view: View, answer: ToolAnswer) -> types.CallToolResult:
    text = _sendable(answer.text)
    if not answer.data["ok"]:
        # Over HTTP the client is on another machine, and should not learn the paths of this one.
        text = _without_paths(view, text)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
    data = {key: value for key, value in answer.data.items() if key != "ok"}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(_sendable(json.dumps(data, ensure_ascii=False))),
    )


def _sendable(text: str) -> str:
    # A log that was edited by hand may contain lone surrogates, which no transport can send.
    return text.encode("utf-8", "replace").decode()


def _without_paths(view: View, message: str) -> str:
    """Return a message without the paths of the home and of the user's folder."""
    root = str(view.home.root)
    return message.replace(f"{root}/", "").replace(root, "the home").replace(str(Path.home()), "~")
