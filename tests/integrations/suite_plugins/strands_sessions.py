"""Puts a KeepstoneSessionManager in the place of Strands' file and mock repositories."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from types import ModuleType
from typing import Any

import pytest
import strands.session
from strands.session import file_session_manager

from keepstone.integrations.strands import KeepstoneSessionManager


class FileSessionManager(KeepstoneSessionManager):
    """A manager with the constructor of the framework's own."""

    def __init__(self, session_id: str, storage_dir: str) -> None:
        super().__init__(session_id, storage_dir)


class MockedSessionRepository(KeepstoneSessionManager):
    """A repository without a session of its own."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(dir=os.environ["KEEPSTONE_SUITE_HOMES"])
        super().__init__("a session that the tests do not use", folder)


@pytest.fixture
def agenerator() -> Callable[[Iterable[Any]], AsyncIterator[Any]]:
    """Make asynchronous what a mock of a model answers, as the framework's conftest.py would."""

    async def give(items: Iterable[Any]) -> AsyncIterator[Any]:
        for item in items:
            yield item

    return give


for module in (strands.session, file_session_manager):
    vars(module)["FileSessionManager"] = FileSessionManager
repositories: Any = ModuleType("tests.fixtures.mock_session_repository")
repositories.MockedSessionRepository = MockedSessionRepository
sys.modules["tests.fixtures.mock_session_repository"] = repositories
