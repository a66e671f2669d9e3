"""Import the package once, then fork for each client: ``python parent.py DESCRIPTOR``.

Each client gets a keeper, which waits for the fork, tells the client how it ended, and kills it where the
client is killed. This process ends with its standard input.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import keepstone

_LEFT_OUT = ("keepstone.__main__", "keepstone.integrations", "keepstone.tui")
_LATE = ("Stemmer", "anyio._backends._asyncio", "mcp.server.stdio", "typer._adapters")
_PATH = sys.path[1:]  # Without the folder of this script.


def forks(listening: socket.socket) -> dict[str, Any]:
    """Fork for each client, and return in the fork what the client has asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listening.fileno(), 0], [], [])
        with suppress(ChildProcessError):  # Thus also the processor time of forks is this process's.
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in ready:
            shutil.rmtree(os.getcwd())  # The folder of the socket.
            os._exit(0)
        client, _ = listening.accept()
        if not os.fork():
            listening.close()
            return _kept(client)
        client.close()


def _kept(client: socket.socket) -> dict[str, Any]:
    length, files, _, _ = socket.recv_fds(client, 8, 3)
    text = b""
    while len(text) < int.from_bytes(length, "big"):
        text += client.recv(1 << 20)
    process = os.fork()
    if not process:
        client.close()
        request: dict[str, Any] = marshal.loads(text)  # noqa: S302  Our own client wrote it.
        return {**request, "files": files}
    for file in (*files, 0):
        os.close(file)
    client.sendall(process.to_bytes(8, "big"))
    ended = threading.Event()
    threading.Thread(target=_watch, args=(client, process, ended), daemon=True).start()
    _, status = os.waitpid(process, 0)
    ended.set()
    with suppress(BrokenPipeError):
        client.sendall(status.to_bytes(8, "big"))
    os._exit(0)


def _watch(client: socket.socket, process: int, ended: threading.Event) -> None:
    with suppress(ConnectionResetError):
        client.recv(1)  # It sends nothing more: this is its end.
    if not ended.is_set():
        os.kill(process, signal.SIGKILL)


def become(request: dict[str, Any]) -> None:
    """Take over what the client was started with."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(request["files"]):
        os.dup2(file, number)
        os.close(file)
    for kind, soft, hard in request["limits"]:
        if resource.getrlimit(kind) != (soft, hard):
            resource.setrlimit(kind, (soft, hard))
    os.umask(request["mask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environb.update(request["environment"])
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdin = open(0, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding=encoding, errors="backslashreplace", closefd=False
    )
    given = os.environ.get("PYTHONPATH", "")
    sys.path[:] = [*filter(None, given.split(os.pathsep)), *_PATH]


def run(words: list[str]) -> None:
    """Do what Python does with these arguments."""
    if words[0] == "-W":
        warnings.simplefilter(words[1])  # type: ignore[arg-type]
        words = words[2:]
    if words[0] == "-m":
        sys.argv, sys.path[:0] = words[1:], [os.getcwd()]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv, sys.path[:0] = ["-c", *words[2:]], [""]
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), vars(module))  # noqa: S102  That is what it is for.
    else:
        sys.argv, sys.path[:0] = words, [os.path.dirname(words[0])]
        runpy.run_path(words[0], run_name="__main__")


def warm_up() -> None:
    """Import the package without the frameworks' adapters and the terminal's chat, and what it loads late."""
    root = Path(keepstone.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("keepstone", *path.relative_to(root).with_suffix("").parts))
        if not name.startswith(_LEFT_OUT):
            _import(name.removesuffix(".__init__"))
    for name in _LATE:
        _import(name)


def _import(name: str) -> None:
    with suppress(ImportError):  # An extra that is not installed.
        import_module(name)


if __name__ == "__main__":
    warm_up()
    gc.freeze()  # No fork has to look through what was imported.
    asked = forks(socket.socket(fileno=int(sys.argv[1])))
    become(asked)
    run(asked["words"])
