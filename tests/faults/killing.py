"""Processes that carry out operations until they are killed."""

import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.faults.operations import Inventor, Model, Operation, do

import keepstone

CALLS = ("open", "write", "ftruncate", "fsync", "fdatasync", "replace", "rename", "unlink", "mkdir", "rmdir")
"""The calls of the system before which a process may be killed."""

context = get_context("forkserver")
context.set_forkserver_preload(["tests.faults.killing"])

Message = Operation | str


def start(target: Callable[..., None], *arguments: Any) -> tuple[ForkServerProcess, "Connection[Message]"]:
    """Start a process; it tells what it does through the connection, unbuffered."""
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, writing))
    process.start()
    writing.close()
    return process, reading


def heard(reading: "Connection[Message]") -> list[Message]:
    """What a process said before it ended."""
    messages: list[Message] = []
    with reading:
        while True:
            try:
                messages.append(reading.recv())
            except EOFError:
                return messages


def kill(process: ForkServerProcess) -> None:
    """End a process as the system does when memory is short, and wait until it is gone."""
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def work(root: Path, seed: int, model: Model, tell: "Connection[Message]") -> None:
    """Do one thing after another: say what, do it, say that it is done."""
    inventor = Inventor(seed)
    with keepstone.open(root, embedder="none") as home:
        while True:
            operation = inventor.next(model)
            tell.send(operation)
            do(home, operation)
            tell.send("done")
            model = model.after(operation)


def do_until(root: Path, operation: Operation, number: int, tell: "Connection[Message]") -> None:
    """Do one thing in an open home, and die just before a call of the system, or in mid-write."""
    with keepstone.open(root, embedder="none") as home:
        home.agent("a").sessions()
        left = iter(range(number - 1, -1, -1))
        for name in CALLS:
            setattr(os, name, partial(_called, name, getattr(os, name), left))
        do(home, operation)
        tell.send("done")
        for name in CALLS:
            setattr(os, name, getattr(os, name).args[1])


def _called(name: str, call: Callable[..., Any], left: Any, *arguments: Any, **keywords: Any) -> Any:
    if name == "open" and not arguments[1] & os.O_CREAT:
        return call(*arguments, **keywords)
    if next(left, -1) == 0:
        if name == "write":
            call(arguments[0], arguments[1][: len(arguments[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return call(*arguments, **keywords)


def killed_before(root: Path, operation: Operation, number: int) -> bool:
    """Kill a process before its call of this number, from 1 on; False if the operation ended earlier."""
    process, reading = start(do_until, root, operation, number)
    messages = heard(reading)
    process.join()
    assert process.exitcode == (0 if messages else -signal.SIGKILL), messages
    return not messages
