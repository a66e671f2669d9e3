"""State that servers of one home share if its store is a database: tokens, sign-ins and responses."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol


class TokenRow(NamedTuple):
    """The row of an access token."""

    id: str
    digest: str
    agents: list[str] | None
    read_only: bool
    created: datetime
    expires: datetime | None
    name: str
    origin: str


class SharedSignIns(Protocol):
    """Tokens, browser sessions, sign-in links and failures that all servers of a home share."""

    is_shared: bool

    def page_key(self) -> bytes:
        """Return the key from which page secrets are derived."""

    def tokens(self) -> list[TokenRow]:
        """Return all access tokens, oldest first."""

    def add_token(self, row: TokenRow) -> None:
        """Store an access token."""

    def remove_token(self, token_id: str) -> None:
        """Remove an access token."""

    def session(self, key: str) -> tuple[str | None] | None:
        """Return the digest of the token that started a browser session, or None if it has ended."""

    def begin(self, key: str, token: str | None, seconds: float, most: int) -> None:
        """Begin a browser session; if its token has too many, the oldest ones end."""

    def end(self, key: str) -> None:
        """End a browser session."""

    def add_link(self, key: str, seconds: float) -> None:
        """Store a sign-in link."""

    def take_link(self, key: str) -> bool:
        """Use up a sign-in link; return False if it is missing or has expired."""

    def fail(self, address: str, window: float) -> None:
        """Record a failed sign-in of an address; forget failures from before the window."""

    def wait(self, address: str, most: int, window: float) -> float:
        """Return how many seconds an address must wait after ``most`` failures in a window, else 0.0."""


class AnswerRow(NamedTuple):
    """A request with a key: its digest, and its response once it has ended."""

    request: bytes
    status: int | None
    """None while the request is in progress."""
    headers: bytes | None
    body: bytes | None
    """None if the response is not kept."""


class SharedAnswerRows(Protocol):
    """The requests with idempotency keys of all servers of a home."""

    def claim(
        self, name: tuple[str, str], agent: str, request: bytes, token: int, seconds: float
    ) -> AnswerRow | None:
        """Record that a request is in progress; return the request that has the key already, if any."""

    def keep(
        self,
        name: tuple[str, str],
        token: int,
        status: int,
        answer: tuple[bytes, bytes] | None,
        seconds: float,
    ) -> None:
        """Keep the result of a request for some seconds: its status, and its headers and body if given."""

    def forget(self, name: tuple[str, str], token: int) -> None:
        """Forget a request that was not carried out."""
