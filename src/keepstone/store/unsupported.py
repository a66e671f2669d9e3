"""The default ``Maintenance`` of a store without its own operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from keepstone.errors import StoreError
from keepstone.model import BackupInfo, Finding


class UnsupportedMaintenance:
    """A ``Maintenance`` that refuses every operation and has no upkeep; a store overrides what it supports.

    Args:
        store: The kind of store, for messages.
        remedies: The remedies, by the name of the operation.

    Examples:
        >>> UnsupportedMaintenance("PostgreSQL", {"backup": "use pg_dump"}).backup(Path("copy"), None)
        Traceback (most recent call last):
        keepstone.errors.StoreError: PostgreSQL has no backup of its own: use pg_dump
    """

    def __init__(self, store: str, remedies: Mapping[str, str]) -> None:
        self._store = store
        self._remedies = remedies

    def upkeep(self, agent: str, *, ahead: bool = True) -> bool:  # noqa: ARG002  Set by the protocol.
        """Return False: there is nothing to do."""
        return False

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:  # noqa: ARG002
        """Refuse."""
        self._refuse("rebuild")

    def doctor(
        self,
        *,
        deep: bool = False,  # noqa: ARG002
        fix: bool = False,  # noqa: ARG002
        progress: Callable[[int, int], None] | None = None,  # noqa: ARG002
    ) -> list[Finding]:
        """Refuse."""
        self._refuse("doctor")

    def backup(
        self,
        folder: Path,  # noqa: ARG002
        progress: Callable[[int, int], None] | None,  # noqa: ARG002
        *,
        vectors: bool = False,  # noqa: ARG002
    ) -> BackupInfo:
        """Refuse."""
        self._refuse("backup")

    def _refuse(self, operation: str) -> NoReturn:
        remedy = self._remedies.get(operation, "use the tools of the database")
        raise StoreError(f"{self._store} has no {operation} of its own: {remedy}")
