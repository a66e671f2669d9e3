"""The gate: turns a token or a browser's cookie into what its holder may touch."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keepstone.server.access import Access
from keepstone.server.failures import Failures
from keepstone.server.problems import ProblemError
from keepstone.server.tokens import Token, Tokens

SESSION_SECONDS = 12 * 60 * 60
"""How long a browser stays signed in."""
LINK_SECONDS = 15 * 60
"""How long a link that signs in once is of use."""
_MOST_SESSIONS = 1000
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="keepstone"'}


@dataclass(frozen=True, slots=True)
class _Session:
    until: float
    token: str | None
    """The digest of the token it began with; None for a link of the console."""


class Gate:
    """Who may come in. For one thread, that of the event loop."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = Failures(clock)
        self._tokens = tokens
        self._clock = clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._links: dict[str, float] = {}

    def bearer(self, header: str, address: str) -> Access:
        """Return what the holder of a token may touch, from a header ``Authorization``.

        Raises:
            ProblemError: The token is none, or has expired, or the address was wrong too often.
        """
        scheme, _, secret = header.partition(" ")
        return _access_of(self._holder(secret.strip() if scheme.lower() == "bearer" else "", address))

    def cookie(self, value: str) -> Access | None:
        """Return what a browser with this cookie may touch, None if it is not signed in any more."""
        key = _key(value)
        session = self._sessions.get(key)
        if session is None:
            return None
        access = self._access(session) if self._clock() < session.until else None
        if access is None:
            del self._sessions[key]
        return access

    def sign_in(self, secret: str, address: str) -> str:
        """Begin a browser's session with a token, and return the value of its cookie.

        Raises:
            ProblemError: As for ``bearer``.
        """
        return self._begin(self._holder(secret, address).digest)

    def link(self) -> str:
        """Return a secret that signs in once, to all of the home, within a quarter of an hour."""
        secret = secrets.token_urlsafe(32)
        self._links[_key(secret)] = self._clock() + LINK_SECONDS
        return secret

    def follow(self, secret: str, address: str) -> str:
        """Begin a browser's session with the secret of a link, which is of no use afterwards.

        Raises:
            ProblemError: It is none, or was used, or is too old.
        """
        until = self._links.pop(_key(secret), 0.0)
        if until <= self._clock():
            self._refuse_if_often(address)
            self.failures.record(address)
            raise ProblemError(
                401, "unauthorized", "this link has been used or is too old: sign in with a token"
            )
        return self._begin(None)

    def sign_out(self, value: str) -> None:
        """End a browser's session."""
        self._sessions.pop(_key(value), None)

    def _holder(self, secret: str, address: str) -> Token:
        token = self._tokens.holder(secret)
        if token is None:
            # A right token always passes, so that one forgotten client cannot lock out its whole machine:
            # nobody guesses 256 random bits, however often they try.
            self._refuse_if_often(address)
            self.failures.record(address)
            raise ProblemError(
                401, "unauthorized", "this token opens nothing: it is wrong, expired or revoked", _CHALLENGE
            )
        return token

    def _begin(self, token: str | None) -> str:
        value = secrets.token_urlsafe(32)
        self._sessions[_key(value)] = _Session(self._clock() + SESSION_SECONDS, token)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return value

    def _access(self, session: _Session) -> Access | None:
        """Return what the token of a session opens by now, None if it opens nothing any more."""
        if session.token is None:
            return Access()
        alive = (token for token in self._tokens.alive() if token.digest == session.token)
        return next(map(_access_of, alive), None)

    def _refuse_if_often(self, address: str) -> None:
        wait = self.failures.wait(address)
        if wait:
            headers = {"Retry-After": str(int(wait) + 1)}
            raise ProblemError(
                429, "too_many_failures", "too many wrong tokens from here: wait a minute", headers
            )


def cookies_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the cookies of a request, by name; of one that comes twice the first counts."""
    found: dict[str, str] = {}
    for pair in headers.get("cookie", "").split(";"):
        name, sign, value = pair.strip().partition("=")
        if sign:
            found.setdefault(name, value)
    return found


def _access_of(token: Token) -> Access:
    return Access(None if token.agents is None else frozenset(token.agents), token.read_only)


def _key(value: str) -> str:
    # Looked up by its hash, so that the time of a look-up tells nothing of the value.
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
