"""Browser sessions, sign-in links and failed sign-ins: the interface, and the record of a single server."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from keepstone.server.rate_limit import Failures


class SignIns(Protocol):
    """Record of browser sessions, sign-in links and failures, of one server or several of a home."""

    @property
    def is_shared(self) -> bool:
        """Whether several servers share the record, so that each call waits for a database."""

    def page_key(self) -> bytes:
        """Return the key from which page secrets are derived; servers that share sessions share the key."""

    def session(self, key: str) -> tuple[str | None] | None:
        """Return the digest of the token that started a browser session; None if it has ended."""

    def begin(self, key: str, token: str | None, seconds: float, most: int) -> None:
        """Begin a browser session; if a token has more than ``most``, its oldest ones end."""

    def end(self, key: str) -> None:
        """End a browser session."""

    def add_link(self, key: str, seconds: float) -> None:
        """Keep a sign-in link."""

    def take_link(self, key: str) -> bool:
        """Use up a sign-in link; False if it is unknown or has expired."""

    def fail(self, address: str, window: float) -> None:
        """Count a failure of an address."""

    def wait(self, address: str, most: int, window: float) -> float:
        """Return the seconds that an address must wait if it failed too often within a window; else 0.0."""


@dataclass(frozen=True, slots=True)
class _Session:
    until: float
    token: str | None


class LocalSignIns:
    """The ``SignIns`` of one process. Not thread-safe: use it only in the event loop's thread."""

    is_shared = False

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = Failures(clock)
        self._sessions: dict[str, _Session] = {}
        self._links: dict[str, float] = {}
        self._page_key = secrets.token_bytes(32)

    def page_key(self) -> bytes:
        """Return the key from which page secrets are derived."""
        return self._page_key

    def session(self, key: str) -> tuple[str | None] | None:
        """Return the digest of the token that started a browser session; None if it has ended."""
        session = self._sessions.get(key)
        return None if session is None or session.until <= self._clock() else (session.token,)

    def begin(self, key: str, token: str | None, seconds: float, most: int) -> None:
        """Begin a browser session; if a token has more than ``most``, its oldest ones end."""
        now = self._clock()
        # Ended sessions are dropped only here, which is enough to bound their number.
        self._sessions = {name: session for name, session in self._sessions.items() if now < session.until}
        own = [name for name, session in self._sessions.items() if session.token == token]
        for name in own[: max(0, len(own) + 1 - most)]:
            del self._sessions[name]
        self._sessions[key] = _Session(now + seconds, token)

    def end(self, key: str) -> None:
        """End a browser session."""
        self._sessions.pop(key, None)

    def add_link(self, key: str, seconds: float) -> None:
        """Keep a sign-in link."""
        self._links[key] = self._clock() + seconds

    def take_link(self, key: str) -> bool:
        """Use up a sign-in link; False if it is unknown or has expired."""
        # Remove the link before the check: an expired link is used up, too.
        return self._links.pop(key, 0.0) > self._clock()

    def fail(self, address: str, window: float) -> None:  # noqa: ARG002  That of ``Failures``.
        """Count a failure of an address."""
        self._failures.record(address)

    def wait(self, address: str, most: int, window: float) -> float:  # noqa: ARG002
        """Return the seconds that an address must wait if it failed too often; else 0.0."""
        return self._failures.wait(address)
