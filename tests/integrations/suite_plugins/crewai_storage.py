"""Puts a KeepstoneStorage in the place of CrewAI's LanceDBStorage."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from crewai.memory.storage import lancedb_storage

from keepstone.integrations.crewai import KeepstoneStorage


class LanceDBStorage(KeepstoneStorage):
    """A storage with the constructor of the framework's own."""

    def __init__(self, path: str | Path | None = None, **_: Any) -> None:
        super().__init__(path or tempfile.mkdtemp(dir=os.environ["KEEPSTONE_SUITE_HOMES"]))


vars(lancedb_storage)["LanceDBStorage"] = LanceDBStorage
