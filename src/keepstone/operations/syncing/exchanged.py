"""State of a home's last exchange, so that an exchange without changes reads no log.

The state is derived data, stored with the indexes: without it, the next exchange reads all logs. A session's
record is valid only while its log, its archive and the journal of purges are unchanged.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import INDEX, TEMPORARY
from keepstone.operations.syncing.devices import content

_FILE = ".exchanged.json"


@dataclass(slots=True)
class ExchangedSession:
    """The state of a session after the last exchange."""

    state: list[Any]
    """The states of log, archive and journal."""
    given: dict[str, list[Any]]
    """Length and digest of each file that was published."""
    taken: dict[str, list[str]] = field(default_factory=dict)
    """Digests of the merged files, by the device that published them."""


class Exchanged:
    """The states of a home's sessions after the last exchange, by agent and session."""

    def __init__(self, before: dict[str, Any]) -> None:
        self._before = before
        self.after: dict[str, Any] = {}

    @classmethod
    def load(cls, root: Path) -> Exchanged:
        """Return the recorded states; none if the record was deleted or damaged."""
        with suppress(OSError, KeepstoneError, ValueError), Folder(root / INDEX, root=root) as folder:
            found = json.loads(content(folder, _FILE))
            if isinstance(found, dict):
                return cls(found)
        return cls({})

    def save(self, root: Path) -> None:
        """Save the states after this exchange."""
        # Without the record the next exchange reads all logs, which is no reason for this one to fail.
        with suppress(OSError, KeepstoneError), Folder(root / INDEX, root=root, create=True) as folder:
            raw = json.dumps(self.after).encode()
            replace_file(folder, _FILE, [raw], temporary=_FILE + TEMPORARY, durable=False)

    def known(self, agent: str, session: str, state: list[Any]) -> ExchangedSession | None:
        """Return the record of a session if the session was in this state."""
        found = self._before.get(f"{agent}/{session}")
        with suppress(KeyError, TypeError):
            # Another version of keepstone may have written the record, with other keys.
            if found is not None and found["state"] == state:
                return ExchangedSession(state, found["given"], found["taken"])
        return None

    def keep(self, agent: str, session: str, session_state: ExchangedSession) -> None:
        """Record a session's state after this exchange."""
        self.after[f"{agent}/{session}"] = {
            "state": session_state.state,
            "given": session_state.given,
            "taken": session_state.taken,
        }
