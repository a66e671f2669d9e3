"""LangChain's standard tests with our adapters: subclasses of its classes, as it asks for."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from suite_place import place  # type: ignore[import-not-found]

from keepstone.integrations.homes import opened_agent
from keepstone.integrations.langchain import KeepstoneByteStore, KeepstoneRetriever, KeepstoneVectorStore


class Bytes:
    """The fixtures of both tests of stores."""

    @pytest.fixture
    def kv_store(self) -> BaseStore[str, bytes]:
        """Return an empty store."""
        return KeepstoneByteStore(**place())

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        """Return three values."""
        return b"", bytes(range(256)), b"ferry"


class TestByteStore(Bytes, BaseStoreSyncTests[bytes]):  # type: ignore[misc]
    """Stores of bytes."""


class TestAsyncByteStore(Bytes, BaseStoreAsyncTests[bytes]):  # type: ignore[misc]
    """The same without blocking."""


class TestVectorStore(VectorStoreIntegrationTests):  # type: ignore[misc]
    """Stores of documents."""

    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        """Return an empty store."""
        return KeepstoneVectorStore(self.get_embeddings(), **place())


class TestRetriever(RetrieversIntegrationTests):  # type: ignore[misc]
    """Retrievers over five entries."""

    retriever_constructor = KeepstoneRetriever
    retriever_query_example = "When does the ferry leave?"

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """Return the arguments for a home with five entries."""
        where = place()
        agent = opened_agent(where["home"], where.get("agent", "default"))
        for hour in range(5):
            agent.add(f"A ferry leaves at {hour}")
        return dict(where)
