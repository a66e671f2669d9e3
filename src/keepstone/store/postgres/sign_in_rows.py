"""Tokens, browser sessions, sign-in links and failures in the database, for all servers of a home."""

from __future__ import annotations

import secrets

from keepstone.store.postgres.connecting import Connections
from keepstone.store.shared_rows import TokenRow

_NOW = "statement_timestamp()"
"""The database's present time. Unlike ``clock_timestamp()``, this function is not volatile.

Citus allows no volatile functions in statements that change rows.
"""


_COLUMNS = "id, digest, agents, read_only, created, expires, name, origin"
_PAGE_KEY = "page key"
"""The key of the row with the page key. It differs from all sessions' keys, which are digests."""


class SignInRows:
    """Sign-ins that servers share. Times are by the clock of the database, which all servers share."""

    is_shared = True

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._page_key: bytes | None = None

    def page_key(self) -> bytes:
        """Return the key from which page secrets are derived; the home's first server creates it."""
        if self._page_key is None:
            # If several servers start at the same moment, all of them use the key of the first server.
            made = "INSERT INTO sign_ins VALUES (%s, false, %s, 'infinity') ON CONFLICT DO NOTHING"
            self._connections.read("", made, (_PAGE_KEY, secrets.token_hex(32)))
            sql = "SELECT token FROM sign_ins WHERE key = %s"
            [(found,)] = self._connections.read("", sql, (_PAGE_KEY,))
            self._page_key = bytes.fromhex(found)
        return self._page_key

    def tokens(self) -> list[TokenRow]:
        """Return all access tokens, oldest first."""
        rows = self._connections.read("", f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id")
        return [TokenRow(*row) for row in rows]

    def add_token(self, row: TokenRow) -> None:
        """Store an access token."""
        self._connections.read(
            "",
            f"INSERT INTO tokens ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            row,
        )

    def remove_token(self, token_id: str) -> None:
        """Remove an access token."""
        self._connections.read("", "DELETE FROM tokens WHERE id = %s", (token_id,))

    def session(self, key: str) -> tuple[str | None] | None:
        """Return the digest of the token that started a browser session, or None if it has ended."""
        sql = f"SELECT token FROM sign_ins WHERE key = %s AND NOT is_link AND until > {_NOW}"
        return next(((token,) for (token,) in self._connections.read("", sql, (key,))), None)

    def begin(self, key: str, token: str | None, seconds: float, most: int) -> None:
        """Begin a browser session; if its token has too many, the oldest ones end."""
        self._connections.read_all(
            "",
            [
                (f"DELETE FROM sign_ins WHERE until <= {_NOW}", ()),
                # IS NOT DISTINCT FROM, as the token may be NULL on both sides.
                (
                    "DELETE FROM sign_ins WHERE key IN (SELECT key FROM sign_ins WHERE NOT is_link "
                    "AND token IS NOT DISTINCT FROM %s ORDER BY until DESC OFFSET %s)",
                    (token, most - 1),
                ),
                (
                    f"INSERT INTO sign_ins VALUES (%s, false, %s, {_NOW} + make_interval(secs => %s)) "
                    "ON CONFLICT DO NOTHING",
                    (key, token, seconds),
                ),
            ],
        )

    def end(self, key: str) -> None:
        """End a browser session."""
        self._connections.read("", "DELETE FROM sign_ins WHERE key = %s AND NOT is_link", (key,))

    def add_link(self, key: str, seconds: float) -> None:
        """Store a sign-in link."""
        until = f"{_NOW} + make_interval(secs => %s)"
        sql = f"INSERT INTO sign_ins VALUES (%s, true, NULL, {until}) ON CONFLICT DO NOTHING"
        self._connections.read("", sql, (key, seconds))

    def take_link(self, key: str) -> bool:
        """Use up a sign-in link; return False if it is missing or has expired."""
        # One statement checks and deletes the link, so that it is used at most once.
        sql = f"DELETE FROM sign_ins WHERE key = %s AND is_link RETURNING until > {_NOW}"
        return (True,) in self._connections.read("", sql, (key,))

    def fail(self, address: str, window: float) -> None:
        """Record a failed sign-in of an address; delete failures from before the window."""
        self._connections.read_all(
            "",
            [
                (f"DELETE FROM failed_sign_ins WHERE at < {_NOW} - make_interval(secs => %s)", (window,)),
                ("INSERT INTO failed_sign_ins (address) VALUES (%s)", (address,)),
            ],
        )

    def wait(self, address: str, most: int, window: float) -> float:
        """Return how many seconds an address must wait after ``most`` failures in a window, else 0.0."""
        [(count, seconds)] = self._connections.read(
            "",
            f"SELECT count(*), extract(epoch FROM min(at) + make_interval(secs => %s) - {_NOW})::float8 FROM "
            f"(SELECT at FROM failed_sign_ins WHERE address = %s AND at > {_NOW} - make_interval(secs => %s) "
            "ORDER BY at DESC LIMIT %s) f",
            (window, address, window, most),
        )
        return max(0.0, seconds) if count >= most else 0.0
