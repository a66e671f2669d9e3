"""Puts a KeepstoneChatStore in the place of LlamaIndex's SimpleChatStore."""

from __future__ import annotations

from llama_index.core.storage import chat_store
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.llama_index import KeepstoneChatStore


class SimpleChatStore(KeepstoneChatStore):
    """A store with the constructor of the framework's own."""

    def __init__(self) -> None:
        super().__init__(**place())


vars(chat_store)["SimpleChatStore"] = SimpleChatStore
