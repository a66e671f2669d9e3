"""Puts a KeepstoneStore in the place of LangGraph's InMemoryStore."""

from __future__ import annotations

from typing import Any

import langgraph.store.memory
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.langgraph import KeepstoneStore


class InMemoryStore(KeepstoneStore):
    """A store with the constructor of the framework's own."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(**place(), **keys)


vars(langgraph.store.memory)["InMemoryStore"] = InMemoryStore
