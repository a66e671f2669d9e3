"""What tests of the adapters share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of tests with the mark ``anyio``."""
    return "asyncio"
