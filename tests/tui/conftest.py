"""The app on a home of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keepstone

if TYPE_CHECKING:
    from tests.chat.model_server import ModelServer
    from tests.tui.terminal import Chat
    from tests.tui.tmux import Tmux

if not find_spec("textual"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    from tests.tui.terminal import Chat

    folder = tmp_path / "project"
    folder.mkdir()
    with keepstone.open(tmp_path / "home") as home:
        yield Chat(home, folder)


@pytest.fixture
def server(chat: Chat) -> Iterator[ModelServer]:
    """A server that the app talks with."""
    pytest.importorskip("openai")
    from tests.chat.model_server import running

    from keepstone.chat import choose

    with running() as state:
        chat.choice = choose(f"{state.url}/v1?model=m")
        yield state


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    from tests.tui.tmux import Tmux

    terminal = Tmux(tmp_path_factory.mktemp("t") / "s")
    yield terminal
    terminal("kill-server")
