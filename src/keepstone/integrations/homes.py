"""Common parts of adapters: shared homes, calls in threads, and conversion to built-in errors."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

from keepstone.agent import Agent
from keepstone.errors import InvalidSessionIdError, KeepstoneError, install_command
from keepstone.filesystem.layout import Layout
from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.log.arguments import Clock
from keepstone.log.line import dump
from keepstone.model import Entry, Record, Writer
from keepstone.services.async_calls import AsyncCalls
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.store.opening import is_database
from keepstone.store.protocol import LiveSession, Revision

P = ParamSpec("P")
T = TypeVar("T")

_KEPT_HOMES = 16
"""Maximum number of homes kept for the next adapter; the least recently used home is dropped first."""
_homes: OrderedDict[str, Home] = OrderedDict()
_guard = Lock()
_threads = AsyncCalls()


def opened_agent(home: Target, agent: str) -> Agent:
    """Return an agent of a home; see ``opened_home``.

    Raises:
        TypeError, ValueError, PermissionError, OSError: The home cannot be opened, or the agent's slug is
            invalid. Nothing was written.
    """
    with plain_errors():
        return opened_home(home).agent(agent)


def opened_home(home: Target) -> Home:
    """Return the home for a target of ``keepstone.open``, or the given ``Home``.

    Adapters of one folder or database share one home, so that creating an adapter for each request is cheap.
    """
    if isinstance(home, Home):
        return home
    asked = os.environ.get("KEEPSTONE_HOME", "") if home is None else home
    if isinstance(asked, str) and is_database(Path(asked)):
        # Look a database up by its URL first: a second home would have a second connection pool.
        return _homes.get(asked) or _kept(asked, open_home(home))
    opened = open_home(home)  # This reads nothing yet, but resolves the folder.
    return _kept(str(opened.root), opened)


def _kept(name: str, opened: Home) -> Home:
    """Return the home that is kept under a name; if there is none, keep and return the given home."""
    with _guard:
        # Two threads may have opened the home; the first home is kept, and the other is closed below.
        home = _homes.setdefault(name, opened)
        _homes.move_to_end(name)
        if len(_homes) > _KEPT_HOMES:
            _homes.popitem(last=False)  # Its adapters still use it.
    if home is not opened:
        opened.close()
    return home


def opened_session(agent: Agent, *identity: str) -> Session:
    """Return the session of an identity. A single part that is a valid session id is the session's id.

    For other identities, of several parts or too long for a file name, the session's id is a digest. The
    identity cannot be read from the digest: store it in the session's log.
    """
    with plain_errors():
        if len(identity) == 1:
            with suppress(InvalidSessionIdError):
                return agent.session(identity[0])
            if not identity[0]:
                raise ValueError("session id must not be empty")
        return agent.session(Layout.session_name(*identity))


def clock_of(agent: Agent) -> Clock:
    """Return the clock of an agent's home."""
    return agent._shared.clock  # noqa: SLF001


def writer_of(agent: Agent) -> Writer:
    """Return the agent's writer, which sets the origin of its entries."""
    return agent._shared.writer  # noqa: SLF001


def revise(
    session: Session,
    revision: Revision,
    ids: Sequence[str] = (),
    *,
    create: bool = True,
    lines: Iterable[Record] = (),
) -> list[Entry]:
    """Write the lines that a function makes from a session's live entries: all of them, or none.

    Reading, the function's call and writing are one step, which no other writer interrupts. The function must
    not use the home. It returns valid log lines with ``id`` and ``ts``; ``ids`` are the ids that it looks up.
    A missing session is created, but only if all ``lines`` can be stored. Without ``create``, nothing is done
    for a missing session.
    """
    shared = session._shared  # noqa: SLF001
    store, guard = shared.store, shared.guard

    def guarded(live: LiveSession) -> Sequence[Record]:
        return revision(live) if guard is None else guard(session.id, revision(live))

    # Like every write of a session, record the home's embedder, and that the agent may lack vectors.
    shared.meaning.claim(session.agent)
    if store.session(session.agent, session.id) is None:
        if not create:
            return []
        # A session must be created before its lock can be taken, so check first that the lines can be stored.
        for line in lines:
            dump(line)
        store.create(session.agent, session.id)
    return store.revise(session.agent, session.id, guarded, ids)


def found_in(session: Session, entry_id: str) -> Entry | None:
    """Return the entry of a session with an id, or None. The session's id must be valid."""
    found = session._shared.store.find(session.agent, entry_id, session.id)  # noqa: SLF001
    return found[0] if found else None


async def in_thread(call: Callable[P, T], *args: P.args, **keys: P.kwargs) -> T:
    """Run a blocking call in a thread, for an asyncio event loop, with the errors of ``plain_errors``.

    A call that has begun runs to its end, even if the caller is cancelled.
    """
    with plain_errors():
        return await _threads.run(partial(call, *args, **keys))


async def write_in_thread(call: Callable[P, T], *args: P.args, **keys: P.kwargs) -> T:
    """Run a call like ``in_thread``; a cancelled caller continues only after the call has ended.

    So the caller's next read includes the write.
    """
    # A thread cannot be stopped. Without the shield, a cancelled caller would continue during the write, and
    # read the state before it.
    task = asyncio.ensure_future(in_thread(call, *args, **keys))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # Retrieve the exception, so that the loop does not report it.
        raise


class _PlainErrors(ContextDecorator):
    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KeepstoneError):
            # Frameworks expect built-in errors. Keepstone's errors are subclasses of them, but frameworks do
            # not know their names.
            kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            raise (OSError if kind is Exception else kind)(str(error)) from error


_PLAIN_ERRORS = _PlainErrors()  # One stateless object serves all calls, at a tenth of a generator's cost.


def plain_errors() -> _PlainErrors:
    """Return a context manager, also a decorator, that converts keepstone's errors to built-in errors.

    A lock's timeout becomes a ``TimeoutError``, an invalid value a ``ValueError``, and a failed disk or a
    damaged log an ``OSError``.
    """
    return _PLAIN_ERRORS


@contextmanager
def needs(extra: str, *, but: str = "") -> Iterator[None]:
    """Name the extra that installs a framework if its import fails; ``but`` is a further requirement."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"the adapter needs the extra {extra!r}: {install_command(extra)}{but and '; ' + but}; {error}",
            name=error.name,
        ) from error
