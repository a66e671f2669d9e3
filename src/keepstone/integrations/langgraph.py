"""LangGraph: a store whose items are entries, and the checkpointer."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.importing.langgraph_names import TYPE, Namespace, kept_with
from keepstone.integrations.homes import (
    in_thread,
    needs,
    opened_agent,
    plain_errors,
    revise,
    write_in_thread,
)
from keepstone.integrations.langgraph_filters import check_filter, is_selected, passes
from keepstone.integrations.langgraph_items import (
    Found,
    Line,
    Namespaces,
    line_of,
    ranked,
    renewed,
)
from keepstone.integrations.langgraph_memory import is_memory, recalled, remembered
from keepstone.integrations.langgraph_saver import KeepstoneSaver
from keepstone.log.arguments import count_of
from keepstone.log.line import dump, format_time, plain
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.store.protocol import LiveSession
from keepstone.store.validity import is_valid

with needs("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        Embeddings,
        GetOp,
        IndexConfig,
        InvalidNamespaceError,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )

__all__ = ["KeepstoneSaver", "KeepstoneStore"]

logger = logging.getLogger("keepstone.langgraph")

_SWEEP_MINUTES = 5.0
"""Minutes between two sweeps; the configuration can set another value."""
_Puts = dict[tuple[Namespace, str], PutOp]
_Vectors = Mapping[str, Sequence[float]]


class KeepstoneStore(BaseStore):
    """Long-term memory of LangGraph graphs: pass it to ``compile(store=...)``.

    Implements ``langgraph.store.base.BaseStore``, sync and async. Each namespace is a session named
    ``langgraph/…``. Each item is an entry of type ``item`` with the value as its ``data``, so that recall
    finds it like any other memory. Safe to share between threads, event loops and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
        index: Makes ``search(query=...)`` rank by meaning. ``embed`` is an ``Embeddings``, a function, sync
            or async, or a provider's string. ``fields`` are the paths to embed; default: ``["$"]``, the whole
            value. Without ``index``, queries are ignored.
        ttl: ``default_ttl`` and ``sweep_interval_minutes``, in minutes, and ``refresh_on_read``. Expired
            items are hidden at once, and removed by ``sweep_ttl`` and the sweeper.

    Below the namespace ``("keepstone",)``, all entries of the agent can be read, including those of other
    adapters.

    A whole batch is checked before anything is written. All puts of a batch into one namespace are one write.
    Methods raise ``TimeoutError`` if another process keeps a namespace locked, ``OSError`` if the disk fails,
    and ``TypeError`` or ``ValueError`` for values that cannot be stored.

    Examples:
        >>> store = KeepstoneStore(".work-agent")
        >>> store.put(("users", "ada"), "travel", {"text": "Ada takes the ferry"})
        >>> store.get(("users", "ada"), "travel").value
        {'text': 'Ada takes the ferry'}
    """

    supports_ttl = True

    def __init__(
        self,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        """Open the home. Nothing is written before the first put."""
        self._agent = opened_agent(home, agent)
        self._namespaces = Namespaces(self._agent)
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings: Embeddings | None = None
        if index is not None:
            self.embeddings = ensure_embeddings(index.get("embed"))
            self._fields = [*map(_tokenized, index.get("fields") or ["$"])]
        self._sweeper: threading.Thread | None = None
        self._stop_sweeping = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations and return a result for each; reads see the state before the puts."""
        checked, puts = _checked(ops)
        asked = {query: self._embeddings().embed_query(query) for query in self._queries(checked)}
        with plain_errors():
            # Reads see the state before the puts of their batch, as LangGraph's own stores do.
            results = self._read(checked, asked)
            if puts:
                texts = self._texts(puts)
                made = self._embeddings().embed_documents(texts) if texts else []
                self._write(puts, dict(zip(texts, made, strict=True)))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations like ``batch``, without blocking the event loop."""
        checked, puts = _checked(ops)
        asked = {query: await self._embeddings().aembed_query(query) for query in self._queries(checked)}
        # A batch of puts alone needs no thread for reading.
        results: list[Result] = [None] * len(checked)
        if len(puts) < len(checked):
            results = await in_thread(self._read, checked, asked)
        if puts:
            texts = self._texts(puts)
            made = await self._embeddings().aembed_documents(texts) if texts else []
            await write_in_thread(self._write, puts, dict(zip(texts, made, strict=True)))
        return results

    def sweep_ttl(self) -> int:
        """Delete all expired items, and return their number."""
        with plain_errors():
            now = self._namespaces.now()
            expired = self._agent.iter_entries(
                types=[TYPE], where={"expires": {"lte": format_time(now)}}, include_superseded=True
            )
            by_session: dict[str, list[str]] = {}
            for entry in expired:
                by_session.setdefault(entry.session, []).append(entry.id)
            return sum(self._sweep(session, ids, now) for session, ids in by_session.items())

    def start_ttl_sweeper(
        self, sweep_interval_minutes: float | None = None
    ) -> concurrent.futures.Future[None]:
        """Start a thread that sweeps until ``stop_ttl_sweeper`` is called or the future is cancelled.

        The default interval is that of the configuration, else five minutes.
        """
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        done.add_done_callback(lambda future: self._stop_sweeping.set() if future.cancelled() else None)
        if self._sweeper is None or not self._sweeper.is_alive():
            configured = (self.ttl_config or {}).get("sweep_interval_minutes")
            minutes = sweep_interval_minutes or configured or _SWEEP_MINUTES
            # A stopped sweeper leaves the event set.
            self._stop_sweeping.clear()
            self._sweeper = threading.Thread(
                target=self._sweep_on, args=(minutes * 60, done), name="keepstone-ttl", daemon=True
            )
            self._sweeper.start()
        return done

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; False if it has not ended within ``timeout`` seconds."""
        self._stop_sweeping.set()
        if self._sweeper is not None:
            self._sweeper.join(timeout)
            if self._sweeper.is_alive():
                return False
            self._sweeper = None
        return True

    def _embeddings(self) -> Embeddings:
        assert self.embeddings is not None  # noqa: S101  Texts exist only with an index.
        return self.embeddings

    def _queries(self, ops: Sequence[Op]) -> list[str]:
        """Return the query texts to embed, each once."""
        if self.embeddings is None:
            return []
        return [*dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query)]

    def _texts(self, puts: _Puts) -> list[str]:
        """Return the texts to embed, each once."""
        return [*dict.fromkeys(text for op in puts.values() for text in self._texts_of(op))]

    def _texts_of(self, op: PutOp) -> list[str]:
        if self.embeddings is None or op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else [*map(_tokenized, op.index)]
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _read(self, ops: Sequence[Op], asked: _Vectors) -> list[Result]:
        now, results = self._namespaces.now(), list[Result]()
        for op in ops:
            if isinstance(op, GetOp) and is_memory(op.namespace):
                results.append(remembered(self._agent, op))
            elif isinstance(op, SearchOp) and is_memory(op.namespace_prefix):
                results.append(recalled(self._agent, op))
            elif isinstance(op, GetOp):
                found = self._namespaces.find(op.namespace, op.key, now)
                if found and op.refresh_ttl:
                    self._renew([found], now)
                results.append(found.item() if found else None)
            elif isinstance(op, SearchOp):
                scored = self._search(op, asked.get(op.query or ""), now)
                self._renew([item for item, _ in scored] if op.refresh_ttl else [], now)
                results.append([item.search_item(score) for item, score in scored])
            else:
                results.append(self._list(op, now) if isinstance(op, ListNamespacesOp) else None)
        return results

    def _search(
        self, op: SearchOp, vector: Sequence[float] | None, now: datetime
    ) -> list[tuple[Found, float | None]]:
        limit, offset = count_of(op.limit, "limit"), count_of(op.offset, "offset")
        spaces = self._namespaces.below(op.namespace_prefix)
        passing = (
            found
            for namespace, session in spaces
            for found in self._namespaces.items(namespace, session, now)
            if passes(found.record["data"], op.filter)
        )
        if vector is not None:
            return ranked([*passing], vector)[offset : offset + limit]
        # The items of one session are already sorted. The order must be stable, so that pages fit together.
        in_order = passing if len(spaces) < 2 else sorted(passing, key=Found.made)  # noqa: PLR2004
        return [(found, None) for found in islice(in_order, offset, offset + limit)]

    def _list(self, op: ListNamespacesOp, now: datetime) -> list[Namespace]:
        limit, offset = count_of(op.limit, "limit"), count_of(op.offset, "offset")
        listed: dict[Namespace, None] = {}
        for namespace, session in self._namespaces.below(()):
            shown = namespace[: op.max_depth]
            # The namespaces are sorted, so later ones cannot be on this page.
            if len(listed) >= offset + limit:
                break
            wanted = shown not in listed and is_selected(namespace, op.match_conditions)
            if wanted and not self._namespaces.is_empty(namespace, session, now):
                listed[shown] = None
        return [*listed][offset:]

    def _write(self, puts: _Puts, embedded: _Vectors) -> None:
        now = self._namespaces.now()
        lines: dict[Namespace, list[Line]] = {}
        for (namespace, key), op in puts.items():
            vectors = [embedded[text] for text in self._texts_of(op)]
            line = line_of(key, op.value, op.ttl, vectors, kept_with(namespace), now)
            lines.setdefault(namespace, []).append(line)
        # A batch is all or nothing, but each namespace is a session with its own lock.
        if len(lines) > 1:
            for line in chain.from_iterable(lines.values()):
                dump(line.body)  # Raise before any session is created or written.
        for namespace, put in lines.items():
            # Deleting a missing item must not create its namespace.
            has_items = any(line.body for line in put)
            ids = [line.entry_id for line in put]
            bodies = (line.body for line in put)
            revision = partial(_revised, put, now)
            revise(self._namespaces.session(namespace), revision, ids, create=has_items, lines=bodies)

    def _renew(self, found: Sequence[Found], now: datetime) -> None:
        """Renew the time to live of items that were read, if the extension is worth a line."""
        due: dict[str, list[str]] = {}
        for item in found:
            # Check without a lock first: most reads do not extend the time to live enough for a write.
            if renewed(item.record, now) is not None:
                due.setdefault(item.session, []).append(item.record["id"])
        for name, ids in due.items():
            revise(self._agent.session(name), partial(_renewed, ids, now), ids, create=False)

    def _sweep(self, session: str, ids: Sequence[str], now: datetime) -> int:
        swept = 0

        def expired(live: LiveSession) -> list[Record]:
            nonlocal swept
            outdated = [
                # Check again under the lock: a read may have renewed an item in the meantime.
                entry
                for entry in map(live.get, ids)
                if entry is not None and not is_valid(entry.line, now)
            ]
            swept = len(outdated)
            return [{"id": entry.id, "ts": format_time(now), "deleted": True} for entry in outdated]

        revise(self._agent.session(session), expired, ids, create=False)
        return swept

    def _sweep_on(self, seconds: float, done: concurrent.futures.Future[None]) -> None:
        while not self._stop_sweeping.wait(seconds):
            try:
                if swept := self.sweep_ttl():
                    logger.info("swept %d expired items", swept)
            except OSError as error:  # The next sweep tries again.
                logger.warning("the sweep of expired items is put off: %s", error)
        if not done.cancelled():
            done.set_result(None)


def _checked(ops: Iterable[Op]) -> tuple[list[Op], _Puts]:
    """Validate operations; return them, and the last put to each key.

    Raises:
        TypeError, ValueError: An operation is invalid; an ``InvalidNamespaceError`` is a ``ValueError``.
    """
    checked: list[Op] = []
    puts: _Puts = {}
    for op in ops:
        validate_op_namespace(op)
        if isinstance(op, GetOp):
            # The convenience methods pass tuples and strings; direct calls of ``batch`` may pass lists and
            # numbers.
            is_plain = type(op.namespace) is tuple and type(op.key) is str
            named = op if is_plain else op._replace(namespace=tuple(op.namespace), key=str(op.key))
            checked.append(named)
        elif isinstance(op, SearchOp):
            check_filter(op.filter)
            checked.append(op._replace(namespace_prefix=tuple(op.namespace_prefix)))
        elif isinstance(op, PutOp):
            if is_memory(tuple(op.namespace)):
                raise InvalidNamespaceError(f"namespace {tuple(op.namespace)!r:.80} can only be read")
            put = op._replace(namespace=tuple(op.namespace), key=str(op.key), value=plain(op.value))
            puts[put.namespace, put.key] = put
            checked.append(put)
        elif isinstance(op, ListNamespacesOp):
            checked.append(op)
        else:
            raise ValueError(f"unknown operation: {type(op).__name__}")  # noqa: TRY004  As LangGraph's stores.
    return checked, puts


def _tokenized(path: str) -> str | list[str]:
    return path if path == "$" else tokenize_path(path)  # "$" is the whole value.


def _revised(lines: Sequence[Line], now: datetime, live: LiveSession) -> list[Record]:
    return [record for line in lines for record in line.records(live.get(line.entry_id), now)]


def _renewed(ids: Sequence[str], now: datetime, live: LiveSession) -> list[Record]:
    found = ((entry_id, live.get(entry_id)) for entry_id in ids)
    later = ((entry_id, renewed(entry.line, now)) for entry_id, entry in found if entry is not None)
    return [
        {"id": entry_id, "ts": format_time(now), "expires": expires}
        for entry_id, expires in later
        if expires is not None
    ]
