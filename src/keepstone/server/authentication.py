"""Authentication: bearer tokens, browser sessions and sign-in links, each resolved to an ``Access``."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from keepstone.errors import KeepstoneError
from keepstone.server.authorization import Access
from keepstone.server.problems import ProblemError
from keepstone.server.rate_limit import MOST, WINDOW
from keepstone.server.tokens import Token, Tokens

SESSION_SECONDS = 12 * 60 * 60
"""Lifetime of a browser session."""
LINK_SECONDS = 15 * 60
"""Lifetime of a one-time sign-in link."""
_MOST_SESSIONS = 50
"""Maximum number of browser sessions per token; a further session ends the oldest."""
T = TypeVar("T")
_log = logging.getLogger("keepstone.server")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="keepstone"'}


class TokensUnusableError(ProblemError):
    """The tokens file is unusable, so no request can be authenticated. The log has the reason."""

    def __init__(self) -> None:
        super().__init__(
            500,
            "store",
            "the tokens file of this server is unusable, so no token is accepted; "
            "run keepstone token list on the server for the reason and the remedy",
        )


class Gate:
    """Authenticates requests. Local sign-ins are not thread-safe: call other methods through ``apart``."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.failed = 0
        """Failed authentications since the start."""
        self._tokens = tokens
        self._sign_ins = tokens.sign_ins(clock)
        self._reported = ""

    async def apart(self, work: Callable[[], T]) -> T:
        """Run a function that calls other methods, in another thread if they may wait for a database."""
        return await run_in_threadpool(work) if self._sign_ins.is_shared else work()

    def bearer(self, header: str, address: str) -> Access:
        """Return the access that an ``Authorization`` header grants.

        Raises:
            ProblemError: The token is invalid or has expired, the address has failed too often, or the
                tokens file is unusable.
        """
        scheme, _, secret = header.partition(" ")
        token = self._holder(secret.strip() if scheme.lower() == "bearer" else "", address)
        return _access_of(token, token.digest)

    def cookie(self, value: str) -> Access | None:
        """Return the access of a browser session; None if it has ended.

        Raises:
            TokensUnusableError: The tokens file is unusable.
        """
        key = _key(value)
        session = self._sign_ins.session(key)
        access = None if session is None else self._access(session[0], key)
        # The session's token was revoked or has expired. End the session, which would otherwise be looked up
        # in vain with each request.
        if session is not None and access is None:
            self._sign_ins.end(key)
        return access

    def page_secret(self, value: str) -> str:
        """Return the second secret of a browser session, which the pages of this origin keep.

        Browsers send a cookie to every port of a host. This secret is stored per origin, and thus per port,
        and a browser never sends it on its own.
        """
        return hmac.new(
            self._sign_ins.page_key(), value.encode("utf-8", "surrogatepass"), "sha256"
        ).hexdigest()

    def check_page(self, value: str, secret: str) -> None:
        """Raise unless a change has the second secret of its browser session.

        Raises:
            ProblemError: The secret is missing or wrong.
        """
        # Compare bytes, as compare_digest refuses non-ASCII strings, and a client may send any characters.
        if not hmac.compare_digest(self.page_secret(value).encode(), secret.encode("utf-8", "surrogatepass")):
            raise ProblemError(
                403,
                "cross_origin",
                "a change with a browser session needs the header X-Keepstone-Page, which the pages of this "
                "server send: sign in again, or send Authorization: Bearer TOKEN",
            )

    def sign_in(self, secret: str, address: str) -> str:
        """Start a browser session with a token and return its cookie's value.

        Raises:
            ProblemError: As for ``bearer``.
        """
        return self._begin(self._holder(secret, address).digest)

    def link(self) -> str:
        """Return the secret of a one-time sign-in link, which grants access to the whole home."""
        secret = secrets.token_urlsafe(32)
        self._sign_ins.add_link(_key(secret), LINK_SECONDS)
        return secret

    def follow(self, secret: str, address: str) -> str:
        """Start a browser session with the secret of a link, which cannot be used again.

        Raises:
            ProblemError: The secret is unknown, used or expired.
        """
        with self._reading_tokens():
            # ``_sign_ins`` has the links that this server printed at its start, ``_tokens`` those of
            # ``keepstone serve --link``.
            taken = self._sign_ins.take_link(_key(secret)) or self._tokens.take_link(secret)
        if not taken:
            self._count_failure(address)
            raise ProblemError(
                401,
                "unauthorized",
                "this sign-in link was used or has expired: run keepstone serve --link for a new one, or "
                "sign in with a token",
            )
        return self._begin(None)

    def sign_out(self, value: str) -> None:
        """End a browser's session."""
        self._sign_ins.end(_key(value))

    def _holder(self, secret: str, address: str) -> Token:
        with self._reading_tokens():
            token = self._tokens.holder(secret)
        if token is None:
            # Only invalid tokens are limited, so that one misconfigured client cannot lock out its whole
            # machine. This is safe, as 256 random bits cannot be guessed.
            self._count_failure(address)
            raise ProblemError(401, "unauthorized", "invalid, expired or revoked token", _CHALLENGE)
        return token

    def _begin(self, token: str | None) -> str:
        value = secrets.token_urlsafe(32)
        # The limit is per token, so that one token's holder cannot end the sessions of another's.
        self._sign_ins.begin(_key(value), token, SESSION_SECONDS, _MOST_SESSIONS)
        return value

    def _access(self, digest: str | None, key: str) -> Access | None:
        """Return the current access of a session's token; None if it was revoked or has expired."""
        if digest is None:
            return Access(holder=key, reader=key)
        with self._reading_tokens():
            # Look the token up with each request, so that a revocation ends the browser sessions of its token
            # at once.
            alive = [token for token in self._tokens.alive() if token.digest == digest]
        return _access_of(alive[0], key) if alive else None

    @contextmanager
    def _reading_tokens(self) -> Iterator[None]:
        """Turn errors of the tokens file into a problem, and log each only once."""
        try:
            yield
        except (KeepstoneError, OSError) as error:
            # Each request meets the same damaged file; to log it each time would fill the log.
            if self._reported != str(error):
                self._reported = str(error)
                _log.error("no token is accepted: %s", error)
            raise TokensUnusableError from error
        self._reported = ""

    def _count_failure(self, address: str) -> None:
        """Count a failure, or refuse the address that has failed too often."""
        # Refused attempts are not counted, so that the wait ends a minute after the failures, not after the
        # last try.
        wait = self._sign_ins.wait(address, MOST, WINDOW)
        if wait:
            headers = {"Retry-After": str(int(wait) + 1)}
            raise ProblemError(
                429, "too_many_failures", "too many invalid tokens from this address: wait a minute", headers
            )
        self._sign_ins.fail(address, WINDOW)
        self.failed += 1


def cookies_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the cookies of a request by name; a repeated name keeps its first value."""
    found: dict[str, str] = {}
    for pair in headers.get("cookie", "").split(";"):
        name, sign, value = pair.strip().partition("=")
        if sign:
            found.setdefault(name, value)
    return found


def _access_of(token: Token, holder: str) -> Access:
    agents = None if token.agents is None else frozenset(token.agents)
    return Access(agents, token.read_only, token.origin, holder, token.digest)


def _key(value: str) -> str:
    # The lookup uses a hash, so that its timing reveals nothing about the value.
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
