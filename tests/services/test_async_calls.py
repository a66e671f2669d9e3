"""Blocking calls and iterators that run for an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from keepstone.services.async_calls import AsyncCalls
from keepstone.services.asynchronous import _Face, streamed


class Numbers:
    """Gives numbers, and tells how many were taken and whether it was closed."""

    def __init__(self) -> None:
        self.taken = 0
        self.begun, self.closed = threading.Event(), threading.Event()
        self.incoming: SimpleQueue[int] = SimpleQueue()

    def count(self, begin: int, end: int | None = None) -> Iterator[int]:
        # Kept, so that only an explicit close ends it.
        self.source = self._count(begin, end)
        return self.source

    def _count(self, begin: int, end: int | None) -> Iterator[int]:
        try:
            while begin != end:
                self.begun.set()
                self.taken += 1
                yield begin
                begin += 1
        finally:
            self.closed.set()

    def failing(self) -> Iterator[int]:
        yield from range(100)
        raise OSError("the disk failed")

    def arriving(self) -> Iterator[int]:
        while (number := self.incoming.get()) >= 0:
            yield number


_NUMBERS: Any = Numbers


class AsyncNumbers(_Face[Numbers]):
    count = streamed(_NUMBERS.count)
    failing = streamed(_NUMBERS.failing)
    arriving = streamed(_NUMBERS.arriving, waits=True)


def faces() -> tuple[Numbers, AsyncNumbers]:
    numbers = Numbers()
    return numbers, AsyncNumbers(numbers, AsyncCalls())


def test_a_stream_gives_all_items_in_order() -> None:
    async def main() -> list[int]:
        return [number async for number in faces()[1].count(0, 1234)]

    assert asyncio.run(main()) == [*range(1234)]


def test_a_stream_reads_little_ahead_and_closes_its_source() -> None:
    numbers, face = faces()

    async def main() -> None:
        async with aclosing(face.count(0)) as stream:
            async for number in stream:
                if number == 250:
                    break

    asyncio.run(main())
    assert numbers.closed.wait(30)
    assert 250 < numbers.taken <= 300


def test_a_cancelled_stream_closes_its_source() -> None:
    numbers, face = faces()

    async def main() -> None:
        async def read() -> None:
            async for _ in face.count(0):
                pass

        task = asyncio.create_task(read())
        assert await asyncio.to_thread(numbers.begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert numbers.closed.wait(30)


def test_an_error_of_the_source_reaches_the_reader() -> None:
    async def main() -> None:
        stream = faces()[1].failing()
        assert [await anext(stream) for _ in range(100)] == [*range(100)]
        with pytest.raises(OSError, match="the disk failed"):
            await anext(stream)

    asyncio.run(main())


def test_a_waiting_stream_gives_each_item_as_it_comes() -> None:
    numbers, face = faces()

    async def main() -> list[int]:
        got = []
        numbers.incoming.put(1)
        async for number in face.arriving():
            got.append(number)
            numbers.incoming.put(number + 1 if number < 3 else -1)
        return got

    assert asyncio.run(main()) == [1, 2, 3]


def test_waiting_streams_hold_up_no_other_call() -> None:
    numbers, face = faces()

    async def main() -> list[int]:
        async def first() -> int:
            return await anext(face.arriving())

        tasks = [asyncio.create_task(first()) for _ in range(40)]
        counted = [number async for number in face.count(0, 3)]
        for _ in tasks:
            numbers.incoming.put(7)
        assert await asyncio.gather(*tasks) == [7] * 40
        return counted

    assert asyncio.run(main()) == [0, 1, 2]


def test_a_cancelled_waiting_stream_ends_its_source_at_once() -> None:
    begun, closed, ended = threading.Event(), threading.Event(), threading.Event()

    class Waiting(Iterator[int]):
        def __next__(self) -> int:
            begun.set()
            closed.wait()
            ended.set()
            raise StopIteration

        def close(self) -> None:
            closed.set()

    async def run() -> None:
        task = asyncio.ensure_future(anext(AsyncCalls().stream(Waiting, waits=True)))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.to_thread(ended.wait, 30)

    asyncio.run(run())


def test_a_program_ends_while_a_stream_waits() -> None:
    program = """
import asyncio, threading
from keepstone.services.async_calls import AsyncCalls

def never():
    threading.Event().wait()
    yield 1

async def main():
    await asyncio.wait_for(anext(AsyncCalls().stream(never, waits=True)), 0.01)

try:
    asyncio.run(main())
except TimeoutError:
    print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_at_most_sixteen_calls_run_at_a_time() -> None:
    running, most = 0, 0
    guard, enough = threading.Lock(), threading.Event()

    def call() -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
            if running == 16:
                enough.set()
        assert enough.wait(30)
        with guard:
            running -= 1

    async def main() -> None:
        calls = AsyncCalls()
        await asyncio.gather(*(calls.run(call) for _ in range(60)))
        await calls.finish(lambda: None)

    asyncio.run(main())
    assert most == 16


def test_a_call_that_waits_for_a_thread_never_begins_once_cancelled() -> None:
    go, full, ran = threading.Event(), threading.Barrier(17), list[int]()

    def call(number: int) -> None:
        ran.append(number)
        full.wait(30)
        assert go.wait(30)

    async def main() -> None:
        calls = AsyncCalls()
        tasks = [asyncio.create_task(calls.run(partial(call, number))) for number in range(20)]
        await asyncio.to_thread(full.wait, 30)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        go.set()
        await calls.finish(lambda: ran.append(-1))

    asyncio.run(main())
    assert (len(ran), ran[-1]) == (17, -1)


def test_a_call_sees_the_context_of_its_task_and_changes_none() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)

    def call() -> int:
        variable.set(variable.get() + 1)
        return variable.get()

    async def one(calls: AsyncCalls, number: int) -> tuple[int, int]:
        variable.set(number)
        return await calls.run(call), variable.get()

    async def main() -> list[tuple[int, int]]:
        calls = AsyncCalls()
        return await asyncio.gather(*(one(calls, number) for number in range(50)))

    assert asyncio.run(main()) == [(number + 1, number) for number in range(50)]


def test_the_loop_goes_on_while_a_call_waits() -> None:
    go = threading.Event()

    async def main() -> int:
        task = asyncio.create_task(AsyncCalls().run(lambda: go.wait(30)))
        turns = 0
        began = time.monotonic()
        while turns < 1000:
            await asyncio.sleep(0)
            turns += 1
        assert not task.done()
        go.set()
        assert await task
        assert time.monotonic() - began < 30
        return turns

    assert asyncio.run(main()) == 1000
