"""The agent that memory is imported into."""

from __future__ import annotations

from pathlib import Path

import pytest

import keepstone
from keepstone import Agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return keepstone.open(tmp_path / "home", embedder="none").agent("a")
