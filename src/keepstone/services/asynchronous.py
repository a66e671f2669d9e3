"""Home, agent and session for asyncio: coroutines for the methods of the blocking classes.

Each method is listed once. Its arguments, types and documentation are those of the blocking method.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.services.async_calls import AsyncCalls
from keepstone.session import Session
from keepstone.store.protocol import Files

if TYPE_CHECKING:
    from keepstone.operations.toolbox import ToolFormat

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


# The classes are typed as instances, so that type checkers see bound methods, without the parameter self.
_FILES = cast("Files", Files)
_SESSION = cast("Session", Session)
_AGENT = cast("Agent", Agent)
_HOME = cast("Home", Home)


class _Awaited(Protocol[P, T_co]):
    def __get__(self, owner: object, kind: type, /) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


class _Streamed(Protocol[P, T_co]):
    def __get__(self, owner: object, kind: type, /) -> Callable[P, AsyncGenerator[T_co, None]]: ...


class _Face(Generic[T]):
    """The asynchronous wrapper of a blocking object."""

    def __init__(self, blocking: T, calls: AsyncCalls) -> None:
        self._blocking = blocking
        self._calls = calls

    def __repr__(self) -> str:
        return f"<Async{repr(self._blocking).removeprefix('<')}"


@overload
def awaited(method: Callable[P, Session]) -> _Awaited[P, AsyncSession]: ...
@overload
def awaited(method: Callable[P, T]) -> _Awaited[P, T]: ...
def awaited(method: Callable[..., Any]) -> Any:
    """Return a coroutine function that runs a method in a thread."""

    @wraps(method)
    async def call(self: _Face[Any], *args: Any, **keys: Any) -> Any:
        # Look the method up on the object, so that an overridden or replaced method runs.
        bound = getattr(self._blocking, method.__name__)
        answer = await self._calls.run(partial(bound, *args, **keys))
        return AsyncSession(answer, self._calls) if isinstance(answer, Session) else answer

    return call


def streamed(method: Callable[P, Iterator[T]], *, waits: bool = False) -> _Streamed[P, T]:
    """Return an async version of a method that returns an iterator; ``waits`` as in ``AsyncCalls.stream``."""

    @wraps(method)
    def call(self: _Face[Any], *args: Any, **keys: Any) -> AsyncGenerator[T, None]:
        bound = getattr(self._blocking, method.__name__)
        return self._calls.stream(partial(bound, *args, **keys), waits=waits)

    return cast("_Streamed[P, T]", call)


class AsyncFiles(_Face[Files]):
    """The files of an agent; the methods are those of ``Agent.files``, as coroutines."""

    read = awaited(_FILES.read)
    write = awaited(_FILES.write)
    append = awaited(_FILES.append)
    matching = awaited(_FILES.matching)
    texts = awaited(_FILES.texts)
    list = awaited(_FILES.list)
    delete = awaited(_FILES.delete)


class AsyncSession(_Face[Session]):
    """A session for asyncio; the methods are those of ``Session``, as coroutines.

    ``await session.add("note", {"content": "Use pnpm"})`` returns the entry.
    """

    @property
    def agent(self) -> str:
        """The slug of the session's agent."""
        return self._blocking.agent

    @property
    def id(self) -> str:
        """The session's id."""
        return self._blocking.id

    add = awaited(_SESSION.add)
    add_many = awaited(_SESSION.add_many)
    put = awaited(_SESSION.put)
    put_many = awaited(_SESSION.put_many)
    info = awaited(_SESSION.info)
    set_title = awaited(_SESSION.set_title)
    entries = awaited(_SESSION.entries)
    add_messages = awaited(_SESSION.add_messages)
    messages = awaited(_SESSION.messages)
    records = awaited(_SESSION.records)
    count = awaited(_SESSION.count)
    archive_faded = awaited(_SESSION.archive_faded)
    update = awaited(_SESSION.update)
    set = awaited(_SESSION.set)
    value = awaited(_SESSION.value)
    values = awaited(_SESSION.values)
    unset = awaited(_SESSION.unset)
    replace = awaited(_SESSION.replace)
    link = awaited(_SESSION.link)
    restore = awaited(_SESSION.restore)
    rename = awaited(_SESSION.rename)
    copy = awaited(_SESSION.copy)
    fork = awaited(_SESSION.fork)
    export = streamed(_SESSION.export)
    supersede = awaited(_SESSION.supersede)
    reinstate = awaited(_SESSION.reinstate)
    delete = awaited(_SESSION.delete)
    purge = awaited(_SESSION.purge)
    purge_many = awaited(_SESSION.purge_many)
    compact = awaited(_SESSION.compact)
    compacted_size = awaited(_SESSION.compacted_size)
    clear = awaited(_SESSION.clear)
    remove = awaited(_SESSION.remove)
    drop = awaited(_SESSION.drop)
    entry_count = awaited(_SESSION.entry_count)
    gone = awaited(_SESSION.gone)
    guarded = awaited(_SESSION.guarded)


class AsyncAgent(_Face[Agent]):
    """An agent for asyncio; the methods are those of ``Agent``, as coroutines.

    ``session``, ``on_behalf``, ``tools`` and ``files`` are not awaited. ``await agent.recall("sign-in")``
    returns hits, and ``await agent.files.read("plan.md")`` returns a text.
    """

    @property
    def slug(self) -> str:
        """The agent's name."""
        return self._blocking.slug

    @property
    def files(self) -> AsyncFiles:
        """The agent's own text files, with coroutines as methods."""
        return AsyncFiles(self._blocking.files, self._calls)

    def on_behalf(self, by: str, via: str | None = None, *, may_cite: bool = True) -> AsyncAgent:
        """Return this agent for a surface; see ``Agent.on_behalf``."""
        return AsyncAgent(self._blocking.on_behalf(by, via, may_cite=may_cite), self._calls)

    def session(self, id: str, of: str | None = None) -> AsyncSession:  # noqa: A002
        """Return a session; see ``Agent.session``."""
        return AsyncSession(self._blocking.session(id, of), self._calls)

    def tools(self, format: ToolFormat = "json") -> list[dict[str, Any]]:  # noqa: A002
        """Return the tools for a model; see ``Agent.tools``."""
        return self._blocking.tools(format)

    new_session = awaited(_AGENT.new_session)
    sessions = awaited(_AGENT.sessions)
    session_summaries = awaited(_AGENT.session_summaries)
    dropped_sessions = awaited(_AGENT.dropped_sessions)
    entries = awaited(_AGENT.entries)
    iter_entries = streamed(_AGENT.iter_entries)
    conflicts = streamed(_AGENT.conflicts)
    count = awaited(_AGENT.count)
    delete_where = awaited(_AGENT.delete_where)
    purge_where = awaited(_AGENT.purge_where)
    get = awaited(_AGENT.get)
    grant = awaited(_AGENT.grant)
    revoke = awaited(_AGENT.revoke)
    grants = awaited(_AGENT.grants)
    share = awaited(_AGENT.share)
    add = awaited(_AGENT.add)
    update = awaited(_AGENT.update)
    set = awaited(_AGENT.set)
    value = awaited(_AGENT.value)
    values = awaited(_AGENT.values)
    unset = awaited(_AGENT.unset)
    delete = awaited(_AGENT.delete)
    restore = awaited(_AGENT.restore)
    purge = awaited(_AGENT.purge)
    purge_matching = awaited(_AGENT.purge_matching)
    purge_times = awaited(_AGENT.purge_times)
    history = awaited(_AGENT.history)
    link = awaited(_AGENT.link)
    supersede = awaited(_AGENT.supersede)
    reinstate = awaited(_AGENT.reinstate)
    suggest = awaited(_AGENT.suggest)
    suggestions = awaited(_AGENT.suggestions)
    accept = awaited(_AGENT.accept)
    reject = awaited(_AGENT.reject)
    undo = awaited(_AGENT.undo)
    related = awaited(_AGENT.related)
    sources = awaited(_AGENT.sources)
    derived = awaited(_AGENT.derived)
    vouch = awaited(_AGENT.vouch)
    verify = awaited(_AGENT.verify)
    recall = awaited(_AGENT.recall)
    holds = awaited(_AGENT.holds)
    entry_counts = awaited(_AGENT.entry_counts)
    context = awaited(_AGENT.context)
    call = awaited(_AGENT.call)
    export = awaited(_AGENT.export)
    # The methods of the returned ``Vectors`` block. Services call them in their own threads.
    vectors = awaited(_AGENT.vectors)


class AsyncHome(_Face[Home]):
    """A home for asyncio, opened by ``keepstone.aopen``.

    Its methods, and those of its agents and sessions, are coroutines, or async iterators, that run the
    blocking methods. Each call runs in one of 16 threads, with the caller's context variables. ``agent``,
    ``user``, ``session``, ``on_behalf`` and ``tools`` are plain calls.

    A cancelled call either never begins or runs to its end. Functions that are passed to a call, such as
    ``progress``, are called in the call's thread. Several event loops may use one home.
    """

    @property
    def root(self) -> Path:
        """The home's folder."""
        return self._blocking.root

    def agent(self, slug: str) -> AsyncAgent:
        """Return an agent; see ``Home.agent``."""
        return AsyncAgent(self._blocking.agent(slug), self._calls)

    def user(self, name: str) -> AsyncAgent:
        """Return the agent of a user; see ``Home.user``."""
        return AsyncAgent(self._blocking.user(name), self._calls)

    agents = awaited(_HOME.agents)
    export = awaited(_HOME.export)
    import_from = awaited(_HOME.import_from)
    purge_agent = awaited(_HOME.purge_agent)
    sync = awaited(_HOME.sync)
    rebuild = awaited(_HOME.rebuild)
    embed = awaited(_HOME.embed)
    reembed = awaited(_HOME.reembed)
    doctor = awaited(_HOME.doctor)
    backup = awaited(_HOME.backup)
    watch = streamed(_HOME.watch, waits=True)

    async def close(self) -> None:
        """Wait for the calls that were made before, then close all files; see ``Home.close``."""
        await self._calls.finish(self._blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class Opening:
    """A home that is being opened: await it, or use it with ``async with``."""

    def __init__(self, make: Callable[[], Home]) -> None:
        self._make = make
        self._home: AsyncHome | None = None

    def __await__(self) -> Generator[Any, None, AsyncHome]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncHome:
        calls = AsyncCalls()
        return AsyncHome(await calls.run(self._make), calls)

    async def __aenter__(self) -> AsyncHome:
        self._home = await self._opened()
        return self._home

    async def __aexit__(self, *exception: object) -> None:
        if self._home is not None:
            await self._home.close()


def _like(_: Callable[P, Home]) -> Callable[[Callable[..., Opening]], Callable[P, Opening]]:
    """Give a function the parameters of another function, for type checkers."""
    return lambda function: function


@_like(open_home)
def aopen(*args: Any, **keys: Any) -> Opening:
    """Open a home for asyncio. The arguments and errors are those of ``keepstone.open``.

    Examples:
        >>> import asyncio
        >>> async def main():
        ...     async with keepstone.aopen(".work-agent") as home:
        ...         entry = await home.agent("coder").session("s1").add("note", {"content": "Use pnpm"})
        ...         return entry.text
        >>> asyncio.run(main())
        'Use pnpm'
    """
    return Opening(partial(open_home, *args, **keys))
