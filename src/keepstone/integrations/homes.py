"""Common parts of adapters: homes opened once, calls in threads, and errors that a framework knows."""

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
"""Homes that stay open for the next adapter, last used last."""
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
    """Return a home for what ``keepstone.open`` takes, or the given ``Home``.

    Adapters of one folder or database share its home, so that an adapter for each request costs little.
    """
    if isinstance(home, Home):
        return home
    asked = os.environ.get("KEEPSTONE_HOME", "") if home is None else home
    if isinstance(asked, str) and is_database(Path(asked)):
        # A database is looked up by its URL first: two homes of it would have two pools of connections.
        return _homes.get(asked) or _kept(asked, open_home(home))
    opened = open_home(home)  # Reads nothing yet, and says which folder is meant now.
    return _kept(str(opened.root), opened)


def _kept(name: str, opened: Home) -> Home:
    """Return the home that is open under a name, which is a new one if there is none."""
    with _guard:
        # Two threads may have opened it; the one that came first counts, and the other's is closed below.
        home = _homes.setdefault(name, opened)
        _homes.move_to_end(name)
        if len(_homes) > _KEPT_HOMES:
            _homes.popitem(last=False)  # Adapters that have it keep it.
    if home is not opened:
        opened.close()
    return home


def opened_session(agent: Agent, *identity: str) -> Session:
    """Return the session of an identity: the one of its only part, if that can be a session's id.

    Other identities, of several parts or too long for a file name, have a digest as their id; keep the
    identity in the session's log, as it cannot be read from the id.
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
    """Return who writes by an agent, as the origin of its entries says."""
    return agent._shared.writer  # noqa: SLF001


def revise(
    session: Session,
    revision: Revision,
    ids: Sequence[str] = (),
    *,
    create: bool = True,
    lines: Iterable[Record] = (),
) -> list[Entry]:
    """Write the lines that a function makes of what a session holds at that moment, all or none.

    Reading, the function and writing are one step: no other writer comes between, and the function must not
    use the home. Its lines are valid log lines with ``id`` and ``ts``. ``ids`` are those that it asks for. A
    missing session is made, after ``lines`` were checked: what cannot be stored makes none. Without
    ``create`` nothing is done.
    """
    shared = session._shared  # noqa: SLF001
    store, guard = shared.store, shared.guard

    def guarded(live: LiveSession) -> Sequence[Record]:
        return revision(live) if guard is None else guard(session.id, revision(live))

    # As every write of a session does: it records the home's embedder, and that the agent may lack vectors.
    shared.meaning.claim(session.agent)
    if store.session(session.agent, session.id) is None:
        if not create:
            return []
        # A session is created before its lock can be taken, so that what cannot be stored is found here.
        for line in lines:
            dump(line)
        store.create(session.agent, session.id)
    return store.revise(session.agent, session.id, guarded, ids)


def found_in(session: Session, entry_id: str) -> Entry | None:
    """Return an entry of a session, None if it has none of this id; the session's id was checked before."""
    found = session._shared.store.find(session.agent, entry_id, session.id)  # noqa: SLF001
    return found[0] if found else None


async def in_thread(call: Callable[P, T], *args: P.args, **keys: P.kwargs) -> T:
    """Run a blocking call in a thread, for an asyncio event loop, with the errors of ``plain_errors``.

    A call that has begun runs to its end, also if the caller is cancelled.
    """
    with plain_errors():
        return await _threads.run(partial(call, *args, **keys))


async def write_in_thread(call: Callable[P, T], *args: P.args, **keys: P.kwargs) -> T:
    """Run a call like ``in_thread``; a caller that is cancelled goes on when the call has ended.

    What the caller reads next then shows the write.
    """
    # A thread cannot be stopped. Without the shield a cancelled caller would go on while the write is still
    # under way, and read the state before it.
    task = asyncio.ensure_future(in_thread(call, *args, **keys))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # Retrieved, so that the loop does not report it.
        raise


class _PlainErrors(ContextDecorator):
    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KeepstoneError):
            # Frameworks catch built-in errors; ours are subclasses of them, but their names mean nothing
            # there.
            kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            raise (OSError if kind is Exception else kind)(str(error)) from error


_PLAIN_ERRORS = _PlainErrors()  # It keeps nothing: one serves all calls, at a tenth of a generator's cost.


def plain_errors() -> _PlainErrors:
    """Raise keepstone's errors as the built-in errors that they are; also a decorator.

    A lock's timeout becomes a ``TimeoutError``, an invalid value a ``ValueError``, and a failed disk or a
    damaged log an ``OSError``.
    """
    return _PLAIN_ERRORS


@contextmanager
def needs(extra: str, *, but: str = "") -> Iterator[None]:
    """Say which extra installs a framework that cannot be imported, and ``but`` what is to be heeded."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"the adapter needs the extra {extra!r}: {install_command(extra)}{but and '; ' + but}; {error}",
            name=error.name,
        ) from error
