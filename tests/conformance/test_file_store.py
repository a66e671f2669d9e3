"""The file store keeps the contract of a store, in each layout."""

from contextlib import AbstractContextManager, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.layout import DEFAULT_AGENT, LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.store.protocol import Maintenance, Store
from keepstone.testing import CHECKS, CHECKS_OF_TWO_AGENTS, Check, Factory, check_store

SEVERAL_AGENTS = [name for name, layout in LAYOUTS.items() if "{agent}" in layout.sessions]
"""The layouts that hold more agents than ``default``."""


def factory(folder: Path, layout: str) -> Factory:
    """Opens a store in a new folder each time."""
    numbers = count()
    return lambda: closing(FileStore(folder / str(next(numbers)), LAYOUTS[layout]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("check", CHECKS)
def test_the_file_store_keeps_the_contract_in_each_layout(check: Check, layout: str, tmp_path: Path) -> None:
    check(factory(tmp_path, layout))


@pytest.mark.parametrize("layout", SEVERAL_AGENTS)
@pytest.mark.parametrize("check", CHECKS_OF_TWO_AGENTS)
def test_the_file_store_keeps_several_agents_apart(check: Check, layout: str, tmp_path: Path) -> None:
    check(factory(tmp_path, layout))


def test_a_layout_without_room_for_a_second_agent_says_so() -> None:
    alone = LAYOUTS.keys() - SEVERAL_AGENTS
    with pytest.raises(ValueError, match=f"only the agent '{DEFAULT_AGENT}'"):
        LAYOUTS[alone.pop()].check_agent("other")


class Watched:
    """A store, or a part of one, that notes which of its methods are called."""

    def __init__(self, store: Any, called: set[str]) -> None:
        self._store, self._called = store, called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        part = getattr(self._store, name)
        return Watched(part, self._called) if name == "maintenance" else part


def test_the_suite_calls_every_method_of_a_store(tmp_path: Path) -> None:
    numbers, called = count(), set[str]()

    def watched() -> AbstractContextManager[Any]:
        store = FileStore(tmp_path / str(next(numbers)), LAYOUTS["cache"])
        return closing(Watched(store, called))

    check_store(watched)
    assert {
        name for each in (*Store.__mro__, Maintenance) for name in vars(each) if name[0] != "_"
    } - called == set()


def test_one_call_runs_every_check_of_the_suite(tmp_path: Path) -> None:
    check_store(factory(tmp_path, "bmad"), several_agents=False)
