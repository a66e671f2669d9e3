"""Notifications to clients that a session was changed, added or removed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)

from keepstone.errors import KeepstoneError
from keepstone.mcp.resources import GRAPH, View, uri_of
from keepstone.services.async_calls import AsyncCalls
from keepstone.store.changes import Change

logger = logging.getLogger("keepstone.mcp")


async def listen(
    ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams, view: View
) -> types.SubscriptionsListenResult:
    """Serve one stream of changes of the agent's sessions until the client ends it."""
    bus = InMemorySubscriptionBus()
    async with anyio.create_task_group() as group:
        await group.start(_publish, view, bus)
        result = await ListenHandler(bus)(ctx, params)
        group.cancel_scope.cancel()
    return result


class Subscriptions:
    """The resources that a client of an older protocol has subscribed to."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._uris: set[str] = set()
        self._is_watching = False

    @classmethod
    @asynccontextmanager
    async def lifespan(cls, _: object) -> AsyncIterator[Subscriptions]:
        """Keep the subscriptions of one connection, and end watching with it."""
        async with anyio.create_task_group() as group:
            yield cls(group)
            group.cancel_scope.cancel()

    async def add(self, uri: str, session: ServerSession, view: View) -> None:
        """Notify the client of later changes of a resource."""
        self._uris.add(uri)
        if not self._is_watching:
            self._is_watching = True
            bus = InMemorySubscriptionBus()
            # The stream has no limit, as the bus calls ``send_nowait``, which fails on a full stream.
            sending, events = anyio.create_memory_object_stream[ServerEvent](float("inf"))
            bus.subscribe(sending.send_nowait)
            await self._group.start(_publish, view, bus)
            self._group.start_soon(self._forward, events, session)

    def discard(self, uri: str) -> None:
        """Stop the notifications about a resource."""
        self._uris.discard(uri)

    async def _forward(self, events: AsyncIterator[ServerEvent], session: ServerSession) -> None:
        async for event in events:
            if isinstance(event, ResourceUpdated) and event.uri in self._uris:
                await session.send_resource_updated(event.uri)


async def _publish(
    view: View, bus: InMemorySubscriptionBus, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Publish the changes that happen after the task has started."""

    def watch() -> Iterator[Change]:
        return view.home.watch([view.agent.slug])

    try:
        # The watch begins before the sessions are listed, so that no new session is missed.
        changes = await anyio.to_thread.run_sync(watch)
        known = {info.id for info in await anyio.to_thread.run_sync(view.agent.sessions)}
        task_status.started()
        async for change in AsyncCalls().stream(lambda: changes, waits=True):
            if change.kind == "remove" or change.session not in known:
                await bus.publish(ResourcesListChanged())
            known = known - {change.session} if change.kind == "remove" else known | {change.session}
            await bus.publish(ResourceUpdated(uri_of("sessions", change.session)))
            if view.tools.graph is not None and change.session == view.tools.graph.session:
                await bus.publish(ResourceUpdated(GRAPH))
    except (KeepstoneError, OSError) as error:
        logger.warning("change notifications stopped: %s", type(error).__name__)
