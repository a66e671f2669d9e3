"""The logs of one agent in an empty folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.agent_logs import AgentLogs


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[AgentLogs]:
    logs = AgentLogs(
        tmp_path,
        LAYOUTS["default"],
        "a",
        durable=False,
        create=True,
        most_logs=lambda: 8,
        finish=lambda _: None,
        language="en",
    )
    yield logs
    logs.close()
