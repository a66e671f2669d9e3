"""The gate: turns a token or a browser's cookie into what its holder may touch."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from keepstone.errors import KeepstoneError
from keepstone.server.authorization import Access
from keepstone.server.problems import ProblemError
from keepstone.server.rate_limit import Failures
from keepstone.server.tokens import Token, Tokens

SESSION_SECONDS = 12 * 60 * 60
"""How long a browser stays signed in."""
LINK_SECONDS = 15 * 60
"""How long a link that signs in once is of use."""
_MOST_SESSIONS = 50
"""Browsers that may be signed in with one token; the next one signs out the first."""
_log = logging.getLogger("keepstone.server")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="keepstone"'}


@dataclass(frozen=True, slots=True)
class _Session:
    until: float
    token: str | None
    """The digest of the token it began with; None for a link of the console."""


class TokensUnusableError(ProblemError):
    """The tokens file cannot be used, so nobody can be let in. What is wrong with it is in the log."""

    def __init__(self) -> None:
        super().__init__(
            500,
            "store",
            "the tokens file of this server cannot be used, so nobody is let in; "
            "on its computer, keepstone token list says what is wrong and what to do",
        )


class Gate:
    """Who may come in. For one thread, that of the event loop."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = Failures(clock)
        self._tokens = tokens
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        self._links: dict[str, float] = {}
        self._reported = ""

    def bearer(self, header: str, address: str) -> Access:
        """Return what the holder of a token may touch, from a header ``Authorization``.

        Raises:
            ProblemError: The token is none, or has expired, or the address was wrong too often, or the
                tokens file cannot be used.
        """
        scheme, _, secret = header.partition(" ")
        token = self._holder(secret.strip() if scheme.lower() == "bearer" else "", address)
        return _access_of(token, token.digest)

    def cookie(self, value: str) -> Access | None:
        """Return what a browser with this cookie may touch, None if it is not signed in any more.

        Raises:
            TokensUnusableError: The tokens file cannot be used.
        """
        key = _key(value)
        session = self._sessions.get(key)
        if session is None:
            return None
        access = self._access(session, key) if self._clock() < session.until else None
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
        with self._reading_tokens():
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
        now = self._clock()
        self._sessions = {key: session for key, session in self._sessions.items() if now < session.until}
        # Each token has its own share: who holds one cannot sign out the holders of others.
        own = [key for key, session in self._sessions.items() if session.token == token]
        for key in own[: max(0, len(own) + 1 - _MOST_SESSIONS)]:
            del self._sessions[key]
        value = secrets.token_urlsafe(32)
        self._sessions[_key(value)] = _Session(now + SESSION_SECONDS, token)
        return value

    def _access(self, session: _Session, key: str) -> Access | None:
        """Return what the token of a session opens by now, None if it opens nothing any more."""
        if session.token is None:
            return Access(holder=key)
        with self._reading_tokens():
            alive = [token for token in self._tokens.alive() if token.digest == session.token]
        return _access_of(alive[0], key) if alive else None

    @contextmanager
    def _reading_tokens(self) -> Iterator[None]:
        """Turn what is wrong with the tokens file into a problem, and log it once, not at every request."""
        try:
            yield
        except (KeepstoneError, OSError) as error:
            if self._reported != str(error):
                self._reported = str(error)
                _log.error("nobody is let in: %s", error)
            raise TokensUnusableError from error
        self._reported = ""

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


def _access_of(token: Token, holder: str) -> Access:
    return Access(None if token.agents is None else frozenset(token.agents), token.read_only, holder)


def _key(value: str) -> str:
    # Looked up by its hash, so that the time of a look-up tells nothing of the value.
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
