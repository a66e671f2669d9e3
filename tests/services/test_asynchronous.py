"""Home, agent and session as asyncio uses them."""

from __future__ import annotations

import asyncio
import inspect
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

import pytest

import keepstone
from keepstone import Agent, AsyncAgent, AsyncHome, AsyncSession, Entry, Hits, Home, Session
from keepstone.services.asynchronous import AsyncFiles
from keepstone.store.protocol import Files

FACES: dict[type[Any], type[Any]] = {
    Home: AsyncHome,
    Agent: AsyncAgent,
    Session: AsyncSession,
    Files: AsyncFiles,
}
PLAIN = {"agent", "on_behalf", "user", "session", "tools", "files", "root", "slug", "id"}
"""Methods that touch no disk, and are not awaited."""


def public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


@pytest.mark.parametrize("kind", FACES)
def test_every_public_method_has_its_coroutine_or_async_iterator(kind: type) -> None:
    blocking, face = public(kind), public(FACES[kind])
    attributes = {"root", "slug", "id", "agent"}
    assert set(blocking) - set(face) == set()
    assert set(face) - set(blocking) <= attributes
    for name, method in face.items():
        if name in PLAIN:
            continue
        gives = str(inspect.signature(blocking[name]).return_annotation)
        streams = gives.startswith(("Iterator", "Generator"))
        assert inspect.iscoroutinefunction(method) != streams, name
        assert method.__doc__
        assert [*inspect.signature(method).parameters] == [*inspect.signature(blocking[name]).parameters]


async def read_by_mypy(home: AsyncHome) -> None:
    """Use the types as a program would; only the type checker reads this."""
    session = home.agent("coder").session("s")
    assert_type(await session.add("note", text="x"), Entry)
    assert_type(await home.agent("coder").recall("x"), Hits)
    assert_type(await home.agent("coder").new_session(), AsyncSession)
    assert_type(await home.agent("coder").files.read("x"), str)
    assert_type(await home.agent("coder").call("recall", {}), dict[str, Any])
    assert_type(await keepstone.aopen(embedder="none"), AsyncHome)
    await session.add(7)  # type: ignore[arg-type]
    await session.entries(nonsense=1)  # type: ignore[call-arg]
    await session.nonsense()  # type: ignore[attr-defined]
    keepstone.aopen(7)  # type: ignore[arg-type]


def test_what_one_call_adds_the_next_recalls(tmp_path: Path) -> None:
    async def main() -> None:
        async with keepstone.aopen(tmp_path, embedder="none") as home:
            agent = home.agent("coder")
            session = await agent.new_session("s")
            assert isinstance(session, AsyncSession)
            entry = await session.add("decision", {"content": "Use pnpm"})
            assert (await agent.recall("pnpm"))[0].entry == entry == await agent.get(entry.id)
            assert await home.agents() == ["coder"]
            await agent.files.write("plan.md", "1. Call Ana")
            assert await agent.files.list() == ["plan.md"]
            assert (await agent.call("list_files", {}))["files"] == ["plan.md"]
            assert [tool["name"] for tool in agent.tools()][:2] == ["memory_save", "memory_search"]
            assert (home.root, agent.slug, session.agent, session.id) == (tmp_path, "coder", "coder", "s")
            assert repr(session) == "<AsyncSession 's' of agent 'coder'>"

    asyncio.run(main())


def test_a_home_is_opened_by_awaiting_too(tmp_path: Path) -> None:
    async def main() -> None:
        home = await keepstone.aopen(tmp_path, embedder="none")
        await home.agent("a").session("s").add("note", text="x")
        await home.close()
        assert len(await home.agent("a").session("s").entries()) == 1
        await home.close()

    asyncio.run(main())


def test_errors_are_those_of_the_blocking_calls(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="durability must be 'full' or 'os'"):
            await keepstone.aopen(tmp_path, durability="none")  # type: ignore[arg-type]
        async with keepstone.aopen(tmp_path, embedder="none") as home:
            with pytest.raises(keepstone.EntryNotFoundError, match="no entry 'x'"):
                await home.agent("a").get("x")
            with pytest.raises(keepstone.InvalidAgentIdError):
                home.agent("a b")

    asyncio.run(main())


def test_a_hundred_tasks_lose_no_entry(tmp_path: Path) -> None:
    async def main() -> None:
        async with keepstone.aopen(tmp_path, embedder="none", durability="os") as home:
            session = home.agent("a").session("s")

            async def work(number: int) -> None:
                for turn in range(3):
                    await session.add("note", text=f"{number} {turn}")
                    await home.agent("a").recall(f"{number}", limit=1)

            await asyncio.gather(*map(work, range(100)))
            assert len({entry.text for entry in await session.entries()}) == 300

    asyncio.run(main())


def held_clock() -> tuple[Callable[[], datetime], threading.Event, threading.Event]:
    """Return a clock that waits, and what tells that it is asked and lets it answer."""
    asked, go = threading.Event(), threading.Event()

    def clock() -> datetime:
        asked.set()
        assert go.wait(30)
        return datetime(2026, 1, 11, tzinfo=UTC)

    return clock, asked, go


def texts(folder: Path, session: str = "s") -> list[str]:
    with keepstone.open(folder, embedder="none") as home:
        return [entry.text for entry in home.agent("a").session(session).entries()]


def test_a_write_that_has_begun_is_finished_though_cancelled(tmp_path: Path) -> None:
    clock, asked, go = held_clock()

    async def main() -> None:
        async with keepstone.aopen(tmp_path, embedder="none", clock=clock) as home:
            task = asyncio.create_task(home.agent("a").session("s").add("note", text="whole"))
            assert await asyncio.to_thread(asked.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go.set()

    asyncio.run(main())
    assert texts(tmp_path) == ["whole"]


def test_closing_waits_for_calls_under_way(tmp_path: Path) -> None:
    clock, asked, go = held_clock()

    async def main() -> None:
        home = await keepstone.aopen(tmp_path, embedder="none", clock=clock)
        adding = asyncio.create_task(home.agent("a").session("s").add("note", text="whole"))
        assert await asyncio.to_thread(asked.wait, 30)
        closing = asyncio.create_task(home.close())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not closing.done()
        go.set()
        await closing
        assert texts(tmp_path) == ["whole"]
        await adding

    asyncio.run(main())


def test_cancelled_batches_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    chance = random.Random(7)

    async def main() -> list[bool]:
        async with keepstone.aopen(tmp_path, embedder="none", durability="os") as home:
            agent = home.agent("a")

            async def add(number: int) -> None:
                items = [{"type": "note", "text": f"{n}"} for n in range(5)]
                await agent.session(f"{number}").add_many(items)

            tasks = [asyncio.create_task(add(number)) for number in range(80)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in chance.sample(tasks, 40):
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        return [isinstance(end, asyncio.CancelledError) for end in ends]

    cancelled = asyncio.run(main())
    counts = [len(texts(tmp_path, f"{number}")) for number in range(80)]
    assert any(cancelled)
    assert all(count == 5 or (gone and count == 0) for count, gone in zip(counts, cancelled, strict=True))


def test_context_variables_reach_the_call(tmp_path: Path) -> None:
    year: ContextVar[int] = ContextVar("year")

    def clock() -> datetime:
        return datetime(year.get(), 1, 1, tzinfo=UTC)

    async def main() -> list[int]:
        async with keepstone.aopen(tmp_path, embedder="none", clock=clock) as home:

            async def add(number: int) -> int:
                year.set(number)
                return (await home.agent("a").session("s").add("note", text="x")).ts.year

            return await asyncio.gather(*map(add, range(2000, 2030)))

    assert asyncio.run(main()) == [*range(2000, 2030)]


def test_loops_of_several_threads_share_a_home(tmp_path: Path) -> None:
    home = asyncio.run(_opened(tmp_path))

    async def work(number: int) -> None:
        await asyncio.gather(
            *(home.agent("a").session("s").add("note", text=f"{number} {n}") for n in range(10))
        )

    threads = [threading.Thread(target=asyncio.run, args=(work(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(home.close())
    assert len(set(texts(tmp_path))) == 40


async def _opened(folder: Path) -> AsyncHome:
    return await keepstone.aopen(folder, embedder="none", durability="os")


def test_a_forked_child_starts_threads_of_its_own(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys, warnings
import keepstone

warnings.simplefilter("ignore")

async def opened():
    home = await keepstone.aopen(sys.argv[1], embedder="none")
    await home.agent("a").session("s").add("note", text="parent")
    return home

async def add(home):
    await home.agent("a").session("s").add("note", text="child")
    await home.close()

home = asyncio.run(opened())
child = os.fork()
if child == 0:
    asyncio.run(add(home))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
asyncio.run(home.close())
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    assert texts(tmp_path) == ["parent", "child"]
