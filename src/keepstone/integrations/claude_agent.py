"""A session store for the Claude Agent SDK that stores each transcript in a keepstone session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import (
    clock_of,
    needs,
    opened_agent,
    opened_home,
    opened_session,
    plain_errors,
    revise,
)
from keepstone.integrations.texts import STATE
from keepstone.log.arguments import name_of, new_id
from keepstone.log.line import EPOCH, format_time, instant, plain, read_time, text_of
from keepstone.model import Entry, Record
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.store.protocol import LiveSession

with needs("claude-agent"):
    from anyio import to_thread
    from claude_agent_sdk import SessionStore, fold_session_summary
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

P = ParamSpec("P")
T = TypeVar("T")

_HEAD = "@transcript"
_HEAD_TYPE = "transcript"
"""Id and type of the entry that records a session's transcript key, time of last write, and summary."""
_WORDS = ("summary", "customTitle", "aiTitle", "title", "tag", "content", "text")
"""Keys with readable text, in transcript lines that are not messages."""
_MILLISECOND = timedelta(milliseconds=1)

_Key = tuple[str, str, str | None]
_stamps: dict[str, int] = {}
"""The last write time that this process assigned, by home, in milliseconds."""
_stamping = Lock()


class KeepstoneSessionStore(SessionStore):
    """Transcripts of the Claude Agent SDK: pass it as ``session_store`` in ``ClaudeAgentOptions``.

    Implements ``claude_agent_sdk.SessionStore`` with all optional methods, on asyncio and Trio. Each
    transcript is a session, also that of a subagent. Each line is an entry with the whole line as its
    ``data``, so that recall finds it like any other memory. Safe to share between threads, event loops and
    processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.

    Methods raise ``TimeoutError`` if another process keeps the session locked, ``OSError`` if the disk fails,
    and ``TypeError`` or ``ValueError`` for values that cannot be stored. Nothing was written then.

    Examples:
        >>> import asyncio
        >>> store, key = KeepstoneSessionStore(".work-agent"), {"project_key": "app", "session_id": "s1"}
        >>> asyncio.run(store.append(key, [{"type": "user", "message": {"role": "user", "content": "Hi"}}]))
        >>> asyncio.run(store.load(key))
        [{'type': 'user', 'message': {'role': 'user', 'content': 'Hi'}}]
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first line."""
        with plain_errors():
            opened = opened_home(home)
        self._root = str(opened.root)
        self._agent = opened_agent(opened, agent)
        self._clock = clock_of(self._agent)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append lines with one write, all or none; lines whose ``uuid`` is already stored are ignored."""
        if entries:
            await _in_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all lines in the order of appending; None for a key that was never written or is deleted."""
        return await _in_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the ids of a project's main transcripts, each with the time of its last write."""
        heads = await _in_thread(self._heads, project_key)
        return [
            {"session_id": head["session_id"], "mtime": head["mtime"]} for head in heads if _is_main(head)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's main transcripts."""
        heads = await _in_thread(self._heads, project_key)
        return [summary for head in heads if (summary := _summary_of(head)) is not None]

    async def delete(self, key: SessionKey) -> None:
        """Remove every byte of a transcript; a main transcript is removed with those of its subagents."""
        await _in_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's other transcripts."""
        heads = await _in_thread(self._heads, key["project_key"], key["session_id"])
        return [head["subpath"] for head in heads if not _is_main(head)]

    def _session(self, key: _Key) -> Session:
        project, session, subpath = key
        # The session's id comes first, because people search for it.
        parts = ("claude", session, project) if subpath is None else ("claude", session, project, subpath)
        return opened_session(self._agent, *parts)

    def _append(self, key: SessionKey, entries: Sequence[Any]) -> None:
        checked = _checked(key)
        lines = [_line_of(entry) for entry in entries]
        self._begin_stamps()

        def change(live: LiveSession) -> list[Record]:
            head = live.get(_HEAD)
            # Look for new lines under the lock, because the SDK resends a batch that got no answer.
            new = list(_unknown(lines, live))
            if not new:
                return []
            written = _last_written(head)
            # The order must not change if the clock was set back.
            ts = format_time(max(instant(self._clock(), "the clock's time"), written))
            data = self._head_of(checked, head, [line["data"] for line in new], self._stamp(head))
            state = {"id": _HEAD, "ts": ts, "type": _HEAD_TYPE, "data": data, **STATE}
            return [state, *({**line, "ts": ts} for line in new)]

        revise(self._session(checked), change, [_HEAD, *(line["id"] for line in lines)], lines=lines)

    def _head_of(self, key: _Key, head: Entry | None, new: list[Record], mtime: int) -> Record:
        project, session, subpath = key
        data: Record = {"project_key": project, "session_id": session, "mtime": mtime}
        if subpath is not None:
            return data | {"subpath": subpath}
        previous = None if head is None else _summary_of(head.data)
        identity: SessionKey = {"project_key": project, "session_id": session}
        # The result of the SDK's function is opaque. Fold the summary under the lock, because a summary that
        # misses a line would stay wrong.
        folded = fold_session_summary(previous, identity, cast("list[SessionStoreEntry]", new))
        return data | {"summary": plain(folded["data"])}

    def _begin_stamps(self) -> None:
        """Make this process's write times start after all stored ones."""
        # Do this once per process, because reading the heads of all transcripts is too slow for each append.
        if self._root not in _stamps:
            last = max(
                map(_mtime, self._agent.iter_entries(types=[_HEAD_TYPE], include_superseded=True)), default=0
            )
            with _stamping:
                _stamps[self._root] = max(last, _stamps.get(self._root, 0))

    def _stamp(self, head: Entry | None) -> int:
        """Return a write time in milliseconds that is later than all previous ones in this home."""
        with _stamping:
            now = (instant(self._clock(), "the clock's time") - EPOCH) // _MILLISECOND
            # It must be strictly later, because the SDK sorts by it, and two appends may share a millisecond.
            stamp = max(now, _stamps[self._root] + 1, _mtime(head) + 1)
            _stamps[self._root] = stamp
        return stamp

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        records = self._session(_checked(key)).records()
        # The SDK distinguishes a transcript that was never written (None) from a transcript without lines.
        if not any(record["id"] == _HEAD for record in records):
            return None
        lines = (record["data"] for record in records if record["id"] != _HEAD and _is_line(record))
        return [cast("SessionStoreEntry", plain(line)) for line in lines]

    def _heads(self, project_key: str, session_id: str | None = None) -> list[Record]:
        """Return the payloads of the first entries of a project's transcripts, sorted by time of creation."""
        where = {"project_key": name_of(project_key, "project_key")}
        if session_id is not None:
            where["session_id"] = name_of(session_id, "session_id")
        found = self._agent.iter_entries(
            types=[_HEAD_TYPE], ids=[_HEAD], where=where, include_superseded=True
        )
        return [head.data for head in found if _mtime(head)]

    def _delete(self, key: SessionKey) -> None:
        project, session, subpath = checked = _checked(key)
        heads = self._heads(project, session) if subpath is None else []
        below = [(project, session, head["subpath"]) for head in heads if not _is_main(head)]
        # Remove the main transcript last: if the process is killed before that, repeating the call removes
        # the rest.
        for place in [*below, checked]:
            self._session(place).remove()


async def _in_thread(call: Callable[P, T], *args: P.args, **keys: P.kwargs) -> T:
    """Run a call in a thread, on asyncio or Trio. A call that has begun runs to its end."""
    with plain_errors():
        return await to_thread.run_sync(partial(call, *args, **keys))


def _checked(key: Mapping[str, Any]) -> _Key:
    subpath = key.get("subpath")
    return (
        name_of(key["project_key"], "project_key"),
        name_of(key["session_id"], "session_id"),
        None if subpath is None else name_of(subpath, "subpath"),
    )


def _line_of(entry: Any) -> Record:
    """Return the log line for a line of a transcript, without a time."""
    data = plain(entry)
    if not isinstance(data, dict):
        raise TypeError(f"an entry must be a mapping, not {type(entry).__name__}: {entry!r:.80}")
    uuid, message = data.get("uuid"), data.get("message")
    if isinstance(message, dict) and message:
        kind, text = "message", text_of({"data": message})
    else:
        kind, text = "event", "\n".join(data[key] for key in _WORDS if isinstance(data.get(key), str))
    entry_id = _id_of(uuid) if isinstance(uuid, str) and uuid else new_id()
    # An entry needs a text or a payload that is not empty.
    return {"id": entry_id, "type": kind, "data": data, "text": text if data else "{}"}


def _id_of(uuid: str) -> str:
    return f"@{uuid}" if uuid.startswith("@") else uuid  # Ids with a single leading "@" are keepstone's own.


def _unknown(lines: Sequence[Record], live: LiveSession) -> Iterator[Record]:
    seen: set[str] = set()
    for line in lines:
        if line["id"] not in seen and live.get(line["id"]) is None:
            seen.add(line["id"])
            yield line


def _is_line(record: Record) -> bool:
    return isinstance(record.get("data"), dict) and record["type"] in ("message", "event")


def _is_main(head: Record) -> bool:
    return "subpath" not in head


def _summary_of(head: Record) -> SessionSummaryEntry | None:
    if "summary" not in head:
        return None
    return {"session_id": head["session_id"], "mtime": head["mtime"], "data": head["summary"]}


def _mtime(head: Entry | None) -> int:
    mtime = None if head is None else head.data.get("mtime")
    return mtime if isinstance(mtime, int) else 0


def _last_written(head: Entry | None) -> datetime:
    if head is None:
        return datetime.min.replace(tzinfo=UTC)
    return read_time(head.line.get("modified")) or head.ts
