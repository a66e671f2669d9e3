"""A LangGraph checkpointer whose threads are sessions."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import in_thread, needs, opened_agent, plain_errors, write_in_thread
from keepstone.integrations.langgraph_checkpoints import CHECKPOINT, Place, Thread
from keepstone.log.arguments import limit_of
from keepstone.model import Record
from keepstone.services.memory_repository import Target

with needs("langgraph"):
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol


class KeepstoneSaver(BaseCheckpointSaver[str]):
    """State of LangGraph graphs: pass it to ``compile(checkpointer=...)``.

    Implements ``langgraph.checkpoint.base.BaseCheckpointSaver``, sync and async. Each thread is a session of
    the agent with the thread's id. The session's entries contain the framework's serialized state, and no
    search returns them. A value of more than 1,024 bytes is stored once for all checkpoints of a thread. Safe
    to share between threads, event loops and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Threads of other agents cannot be accessed.
        serde: The serializer; default: LangGraph's own. ``EncryptedSerializer`` encrypts the stored values.

    ``delete_thread``, ``delete_for_runs`` and ``prune`` purge the data: every byte is removed.

    Methods raise ``TimeoutError`` if another process keeps a thread locked, ``OSError`` if the disk fails or
    a stored value is damaged, and ``ValueError`` for values that cannot be stored.

    Examples:
        >>> from langgraph.checkpoint.base import empty_checkpoint
        >>> saver = KeepstoneSaver(".work-agent")
        >>> monday = {"configurable": {"thread_id": "monday", "checkpoint_ns": ""}}
        >>> stored = saver.put(monday, empty_checkpoint(), {"source": "input", "step": -1}, {})
        >>> saver.get_tuple(monday).metadata["step"]
        -1
    """

    def __init__(
        self,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        serde: SerializerProtocol | None = None,
    ) -> None:
        """Open the home. Nothing is written before the first checkpoint."""
        super().__init__(serde=serde)
        self._agent = opened_agent(home, agent)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, else the thread's newest; None if it is missing."""
        with plain_errors():
            thread, place = self._thread(config), _place(config)
            checkpoints = thread.checkpoints()
            if not place.checkpoint_id:
                ids = [at.checkpoint_id for at in checkpoints if at.namespace == place.namespace]
                # Ids are UUIDs of version 6, which sort by time; checkpoints have no other order.
                place = place._replace(checkpoint_id=max(ids, default=""))
            if place not in checkpoints:
                return None
            return self._tuple(thread, place, checkpoints[place], thread.writes().get(place, []))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  The framework's name.
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, thread by thread, newest first.

        Args:
            config: The config that names the thread, and optionally the namespace and the checkpoint; None
                for all threads.
            filter: Values that the metadata must have.
            before: Only checkpoints older than the checkpoint of this config.
            limit: Maximum number of checkpoints.
        """
        with plain_errors():
            left = limit_of(limit)
            end = get_checkpoint_id(before) if before else None
            for thread in self._threads() if config is None else [self._thread(config)]:
                checkpoints, writes = thread.checkpoints(), thread.writes()
                for place in sorted(checkpoints, key=_newest_first, reverse=True):
                    if left is not None and left <= 0:
                        return
                    if not _is_listed(place, config) or (end and place.checkpoint_id >= end):
                        continue
                    data = checkpoints[place]
                    metadata = thread.loaded(data["metadata"])
                    if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                        left = None if left is None else left - 1
                        yield self._tuple(thread, place, data, writes.get(place, []))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002  Versions are compared with the parent's.
    ) -> RunnableConfig:
        """Store a checkpoint whose parent the config names, and return the config of the new checkpoint."""
        # Copy it, because ``pop`` below would remove the values from the running graph's checkpoint.
        state: dict[str, Any] = dict(checkpoint)
        versions = checkpoint["channel_versions"]
        values = {name: (versions.get(name), value) for name, value in state.pop("channel_values").items()}
        known = get_checkpoint_metadata(config, metadata)
        about = {"checkpoint": state, "metadata": known, **_shown(known)}
        place = Place(_namespace(config) or "", checkpoint["id"])
        with plain_errors():
            thread = self._thread(config)
            thread.put(place, about, values, get_checkpoint_id(config), checkpoint["ts"])
        return _config(thread.id, place)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task after a checkpoint: all of them, or none."""
        with plain_errors():
            self._thread(config).put_writes(_place(config), writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Purge all checkpoints, writes and values of a thread, and its session if it is then empty."""
        with plain_errors():
            self._named(thread_id).remove_all()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Purge the checkpoints of runs, with their writes, in all threads."""
        runs = {*map(str, run_ids)}
        if runs:
            with plain_errors():
                for thread in self._threads():
                    thread.remove(
                        place for place, data in thread.checkpoints().items() if data.get("run_id") in runs
                    )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints, writes and values of a thread into another thread."""
        with plain_errors():
            self._named(source_thread_id).copy_to(self._named(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Purge older checkpoints of threads.

        Args:
            thread_ids: The threads.
            strategy: ``"keep_latest"`` keeps the newest checkpoint of each namespace, and the ancestors from
                which its ``DeltaChannel`` values are rebuilt; ``"delete"`` keeps none.

        Raises:
            ValueError: The strategy is unknown.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"unknown strategy {strategy!r:.80}; use 'keep_latest' or 'delete'")
        with plain_errors():
            for thread in map(self._named, thread_ids):
                checkpoints = thread.checkpoints()
                kept = _latest(checkpoints) if strategy == "keep_latest" else set()
                thread.remove(checkpoints.keys() - kept)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint like ``get_tuple``, without blocking the event loop."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints like ``list``, reading them in a thread."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (checkpoint := await in_thread(next, found, None)) is not None:
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint like ``put``, without blocking the event loop."""
        return await write_in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task like ``put_writes``, without blocking the event loop."""
        await write_in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Purge a thread like ``delete_thread``, without blocking the event loop."""
        await write_in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Purge the checkpoints of runs like ``delete_for_runs``, without blocking the event loop."""
        await write_in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread like ``copy_thread``, without blocking the event loop."""
        await write_in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Purge older checkpoints like ``prune``, without blocking the event loop."""
        await write_in_thread(self.prune, thread_ids, strategy=strategy)

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002
        """Return the next version of a channel: a number for sorting, and a random part.

        The random part makes versions differ between branches that change a channel at the same step.
        """
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"

    def _thread(self, config: RunnableConfig) -> Thread:
        return self._named(config["configurable"]["thread_id"])

    def _named(self, thread_id: object) -> Thread:
        return Thread(self._agent, str(thread_id), self.serde)

    def _threads(self) -> Iterable[Thread]:
        """Return all threads that have checkpoints."""
        found: dict[str, None] = {}
        # State is stored as expired, so that no search returns it; ``include_superseded`` includes it here.
        for entry in self._agent.iter_entries(types=[CHECKPOINT], include_superseded=True):
            found[str(entry.line.get("thread_id", entry.session))] = None
        return map(self._named, found)

    def _tuple(self, thread: Thread, place: Place, data: Record, writes: Sequence[Record]) -> CheckpointTuple:
        values = {name: thread.loaded(stored) for name, stored in data["channels"].items()}
        checkpoint: Any = {**thread.loaded(data["checkpoint"]), "channel_values": values}
        parent = data["parent"]
        return CheckpointTuple(
            config=_config(thread.id, place),
            checkpoint=checkpoint,
            metadata=thread.loaded(data["metadata"]),
            parent_config=_config(thread.id, place._replace(checkpoint_id=parent)) if parent else None,
            pending_writes=[(write["task_id"], write["channel"], thread.loaded(write)) for write in writes],
        )


def _namespace(config: RunnableConfig) -> str | None:
    found = config["configurable"].get("checkpoint_ns")
    return None if found is None else str(found)


def _place(config: RunnableConfig) -> Place:
    return Place(_namespace(config) or "", get_checkpoint_id(config) or "")


def _config(thread_id: str, place: Place) -> RunnableConfig:
    named = {"checkpoint_ns": place.namespace, "checkpoint_id": place.checkpoint_id}
    return {"configurable": {"thread_id": thread_id, **named}}


def _newest_first(place: Place) -> tuple[str, str]:
    return place.checkpoint_id, place.namespace


def _is_listed(place: Place, config: RunnableConfig | None) -> bool:
    """Return whether the config of a thread, if any, selects a checkpoint of the thread."""
    if config is None:
        return True
    namespace, wanted = _namespace(config), get_checkpoint_id(config)
    return namespace in {None, place.namespace} and wanted in {None, "", place.checkpoint_id}


def _shown(metadata: Mapping[str, Any]) -> Record:
    """Return the readable keys of a checkpoint's entry: its source, step, run and delta channels."""
    return {
        key: metadata[key] for key in ("source", "step", "run_id") if isinstance(metadata.get(key), str | int)
    } | {"deltas": sorted(metadata.get("counters_since_delta_snapshot") or {})}


def _latest(checkpoints: Mapping[Place, Record]) -> set[Place]:
    """Return the newest checkpoint of each namespace, and the ancestors that its delta channels need."""
    newest: dict[str, str] = {}
    for place in checkpoints:
        newest[place.namespace] = max(newest.get(place.namespace, ""), place.checkpoint_id)
    kept: set[Place] = set()
    for namespace, checkpoint_id in newest.items():
        place = Place(namespace, checkpoint_id)
        # A DeltaChannel is rebuilt from an ancestor's snapshot; without that ancestor, its messages would be
        # lost.
        missing = set(checkpoints[place]["deltas"])
        while place in checkpoints and place not in kept:
            kept.add(place)
            missing -= checkpoints[place]["channels"].keys()
            if not missing or not checkpoints[place]["parent"]:
                break
            place = place._replace(checkpoint_id=checkpoints[place]["parent"])
    return kept
