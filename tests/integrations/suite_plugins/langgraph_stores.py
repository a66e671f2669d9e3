"""Puts a KeepstoneStore in the place of LangGraph's InMemoryStore."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import langgraph.store.memory

from keepstone.integrations.langgraph import KeepstoneStore


class InMemoryStore(KeepstoneStore):
    """A store with the constructor of the framework's own."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(tempfile.mkdtemp(dir=os.environ["KEEPSTONE_SUITE_HOMES"]), **keys)


vars(langgraph.store.memory)["InMemoryStore"] = InMemoryStore
