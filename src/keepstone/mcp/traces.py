"""Spans and durations of MCP requests, in place of the SDK's own, which contain texts of clients."""

from __future__ import annotations

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult

from keepstone.operations.tool_definitions import TOOL_NAMES
from keepstone.tracing import ERROR, is_configured, span

_METHODS = frozenset(
    "initialize ping tools/list tools/call resources/list resources/templates/list resources/read "
    "resources/subscribe resources/unsubscribe prompts/list prompts/get completion/complete "
    "subscriptions/listen server/discover notifications/initialized notifications/cancelled".split()
)


async def traced(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Handle a request in a span of the server, whose parent is the caller's span."""
    if not is_configured():
        return await call_next(ctx)
    method = ctx.method if ctx.method in _METHODS else "other"
    name, attributes = method, {"mcp.method.name": method}
    if method == "tools/call":
        called = (ctx.params or {}).get("name")
        attributes["gen_ai.tool.name"] = tool = called if called in TOOL_NAMES else "other"
        name = f"{method} {tool}"
    # MCP has no headers over stdio: clients send the parent's trace in ``_meta``.
    headers = {key: value for key, value in (ctx.meta or {}).items() if isinstance(value, str)}
    with span(name, "mcp.server.operation.duration", attributes, headers=headers):
        result = await call_next(ctx)
        if isinstance(result, CallToolResult) and result.is_error:
            attributes[ERROR] = "tool_error"
        return result
