"""Puts a KeepstoneSessionManager in the place of Strands' file and mock repositories."""

from __future__ import annotations

import os
import sys
import tempfile
from types import ModuleType
from typing import Any

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


vars(file_session_manager)["FileSessionManager"] = FileSessionManager
repositories: Any = ModuleType("tests.fixtures.mock_session_repository")
repositories.MockedSessionRepository = MockedSessionRepository
sys.modules["tests.fixtures.mock_session_repository"] = repositories
