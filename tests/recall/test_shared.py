"""Dependencies shared by the agents and sessions of one home."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import keepstone
from keepstone.recall.shared import BoundToProcess


class Bound(BoundToProcess):
    """An object with open files."""


def test_an_object_with_open_files_says_what_to_send_instead() -> None:
    with pytest.raises(TypeError, match="Bound cannot be pickled: open the home in the other process"):
        pickle.dumps(Bound())


def test_homes_agents_and_sessions_are_such_objects(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        for bound in (home, agent, agent.session("s")):
            assert isinstance(bound, BoundToProcess)
