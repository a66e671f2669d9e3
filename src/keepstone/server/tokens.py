"""Access tokens of the server, stored as hashes in a file of the home."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepstone.errors import StoreError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import TOKENS, TOKENS_LOCK, TOKENS_TEMPORARY, Layout, layout_of
from keepstone.filesystem.lock import Lock
from keepstone.log.arguments import Clock, system_clock
from keepstone.log.line import format_time, read_time
from keepstone.model import PROGRAM, TRUST, trust_level
from keepstone.server.sign_ins import LocalSignIns, SignIns
from keepstone.store.shared_rows import TokenRow

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.store.shared_rows import SharedSignIns

PREFIX = "kst_"
"""The prefix of every token, by which secret scanners recognize it."""
_BITS = 256
LIFETIME = timedelta(days=90)
"""Default lifetime of the tokens that the command and the page create."""
LONGEST_NAME = 80
_ID_BYTES = 4
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_Version = tuple[int, int, int, int]
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token, without its secret."""

    id: str
    """Identifies the token in lists; not secret."""
    digest: str
    """The SHA-256 of the secret, in hexadecimal."""
    agents: tuple[str, ...] | None
    """The agents that the token grants access to; None for all, and for the home itself."""
    read_only: bool
    created: datetime
    expires: datetime | None
    """When the token expires; None for never."""
    name: str = ""
    """The token's name, for people; empty for none."""
    origin: str = PROGRAM
    """Maximum trust of entries written with the token: ``program``, ``model``, ``import`` or ``tool``."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A stored sign-in link, without its secret."""

    digest: str
    expires: datetime


class Tokens:
    """The tokens of one home. Safe for concurrent threads and processes: each change takes a lock.

    Examples:
        >>> secret, token = Tokens(Path(".work-agent")).create(agents=["coder"], read_only=True)
        >>> Tokens(Path(".work-agent")).holder(secret).agents
        ('coder',)
    """

    def __init__(self, root: Path, layout: str | Layout = "default", *, clock: Clock = system_clock) -> None:
        self._root = root
        self._file = str(root / TOKENS)
        self._layout = layout_of(layout)
        self._clock = clock
        self._seen: tuple[_Version, list[Token], list[_Link]] | None = None

    def create(
        self,
        agents: Sequence[str] | None = None,
        *,
        read_only: bool = False,
        lifetime: timedelta | None = None,
        name: str = "",
        origin: str = PROGRAM,
    ) -> tuple[str, Token]:
        """Create a token and return its secret, which is not stored, and the stored token.

        Args:
            agents: The slugs of the agents it grants access to; default: all, and the home itself.
            read_only: Whether it allows no changes.
            lifetime: How long it is valid; default: forever.
            name: Its name for people, in lists.
            origin: Who writes with it: ``program``, ``model``, ``import`` or ``tool``.

        Raises:
            InvalidAgentIdError: An agent is not a valid slug.
            ValueError: The list of agents is empty, the lifetime is not positive, the name is too long or
                not one line of printable characters, or the origin is unknown or ``user``.
        """
        if origin not in TRUST[1:]:
            raise ValueError(
                f"origin of a token must be one of {', '.join(TRUST[1:])}, not {origin!r:.80}: only the page "
                "and the terminal are persons"
            )
        if agents is not None and not agents:
            raise ValueError("the list of agents must not be empty; leave it out to allow all agents")
        if lifetime is not None and lifetime <= timedelta():
            raise ValueError(f"lifetime must be positive, not {lifetime}")
        name = name.strip()
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise ValueError(
                f"name must be one line of at most {LONGEST_NAME} printable characters, not {name!r:.100}"
            )
        # Agents need not exist yet: a token is often made before the first entry.
        slugs = None if agents is None else tuple(sorted({self._layout.check_agent(name) for name in agents}))
        secret = PREFIX + secrets.token_urlsafe(_BITS // 8)
        now = self._clock()
        expires = None if lifetime is None else now + lifetime
        token = Token(
            secrets.token_hex(_ID_BYTES), _digest(secret), slugs, read_only, now, expires, name, origin
        )
        self._change(lambda tokens: [*tokens, token])
        return secret, token

    def all(self) -> list[Token]:
        """Return all tokens, oldest first, including expired ones.

        Raises:
            StoreError: The file is damaged, or writable by users other than its owner.
        """
        if self._seen is not None and self._seen[0] == self._version_now():
            return self._seen[1]
        try:
            with Folder(self._root) as folder:
                return self._read(folder)
        except FileNotFoundError:
            return []

    def revoke(self, id: str) -> bool:  # noqa: A002  The name in the list.
        """Remove a token by its id; False if there is none."""
        # Check this without the lock, which would create the folder of a missing home.
        if all(token.id != id for token in self.all()):
            return False
        self._change(lambda tokens: [token for token in tokens if token.id != id])
        return True

    def add_link(self, lifetime: timedelta) -> str:
        """Return the secret of a new sign-in link, which the servers of this home accept once."""
        secret = secrets.token_urlsafe(_BITS // 8)
        now = self._clock()
        link = _Link(_digest(secret), now + lifetime)
        self._change(
            lambda tokens: tokens, lambda links: [*(known for known in links if now < known.expires), link]
        )
        return secret

    def take_link(self, secret: str) -> bool:
        """Use up a sign-in link; False if it is unknown or has expired."""
        digest, now = _digest(secret), self._clock()
        # Refuse unknown secrets here, so that a guess costs neither a lock nor a write.
        self.all()
        if self._seen is None or all(link.digest != digest for link in self._seen[2]):
            return False
        taken: list[_Link] = []

        def without(links: list[_Link]) -> list[_Link]:
            # This runs under the lock, so that only one of two servers that take the same link succeeds.
            taken.extend(link for link in links if link.digest == digest and now < link.expires)
            return [link for link in links if link.digest != digest]

        self._change(lambda tokens: tokens, without)
        return bool(taken)

    def holder(self, secret: str) -> Token | None:
        """Return the token with a secret; None if it is unknown or has expired."""
        digest = _digest(secret)
        # Compare every token, each in constant time, so that the timing reveals nothing about a secret.
        found = [token for token in self.all() if hmac.compare_digest(token.digest, digest)]
        return found[0] if found and self._is_alive(found[0]) else None

    def alive(self) -> list[Token]:
        """Return the tokens that have not expired."""
        return [token for token in self.all() if self._is_alive(token)]

    def sign_ins(self, clock: Callable[[], float]) -> SignIns:
        """Return the record of these tokens' browser sessions; ``clock`` is the process's monotonic clock."""
        return LocalSignIns(clock)

    def _is_alive(self, token: Token) -> bool:
        return token.expires is None or self._clock() < token.expires

    def _version_now(self) -> _Version | None:
        """Return the version of the file on the disk with a single stat, as every request calls this."""
        try:
            return _version(os.lstat(self._file))
        except OSError:
            return None

    def _read(self, folder: Folder) -> list[Token]:
        with border(folder.path, TOKENS), os.fdopen(folder.open(TOKENS, os.O_RDONLY), "rb") as stream:
            # Check the open file, as its name may already belong to another file.
            status = os.fstat(stream.fileno())
            if status.st_mode & _OTHERS_MAY_WRITE:
                raise StoreError(
                    f"{folder.path / TOKENS} is writable by other users: chmod 600 it, then try again"
                )
            tokens, links = _parsed(stream.read(), folder.path / TOKENS)
        # Every change replaces the file, so a new version has another inode, time or size.
        self._seen = (_version(status), tokens, links)
        return tokens

    def _change(
        self,
        change: Callable[[list[Token]], list[Token]],
        change_links: Callable[[list[_Link]], list[_Link]] = lambda links: links,
    ) -> None:
        with (
            Folder(self._root, create=True) as folder,
            closing(Lock(folder, TOKENS_LOCK)) as lock,
            lock.hold(),
        ):
            try:
                tokens = self._read(folder)
                links = self._seen[2] if self._seen else []
            except FileNotFoundError:
                tokens, links = [], []
            _write(folder, change(tokens), change_links(links))


class DatabaseTokens(Tokens):
    """The tokens and browser sessions of a home in a database, which all its servers share."""

    def __init__(self, rows: SharedSignIns, *, clock: Clock = system_clock) -> None:
        super().__init__(Path(), clock=clock)
        self._rows = rows

    def all(self) -> list[Token]:
        """Return all tokens, oldest first, including expired ones."""
        return [
            Token(row.id, row.digest, None if row.agents is None else tuple(row.agents), *row[3:])
            for row in self._rows.tokens()
        ]

    def sign_ins(self, clock: Callable[[], float]) -> SignIns:  # noqa: ARG002  Times are the database's.
        """Return the record of these tokens' browser sessions."""
        return self._rows

    def add_link(self, lifetime: timedelta) -> str:
        """Return the secret of a new sign-in link, which the servers of this home accept once."""
        secret = secrets.token_urlsafe(_BITS // 8)
        self._rows.add_link(_digest(secret), lifetime.total_seconds())
        return secret

    def take_link(self, secret: str) -> bool:
        """Use up a sign-in link; False if it is unknown or has expired."""
        return self._rows.take_link(_digest(secret))

    def _change(
        self,
        change: Callable[[list[Token]], list[Token]],
        change_links: Callable[[list[_Link]], list[_Link]] = lambda links: links,  # noqa: ARG002  In rows.
    ) -> None:
        before = self.all()
        after = change(before)
        # ``change`` returns the whole changed list, as for tokens in a file. Only the rows that differ are
        # written, so that two servers do not undo each other's changes.
        for token in after:
            if token not in before:
                slugs = None if token.agents is None else list(token.agents)
                rest = (token.read_only, token.created, token.expires, token.name, token.origin)
                self._rows.add_token(TokenRow(token.id, token.digest, slugs, *rest))
        for token in before:
            if token not in after:
                self._rows.remove_token(token.id)


def tokens_of(home: Home) -> Tokens:
    """Return the tokens of a home: in a file of its folder, or in its database."""
    from keepstone.home import store_of

    rows = store_of(home).sign_ins
    return Tokens(home.root) if rows is None else DatabaseTokens(rows)


def _version(status: os.stat_result) -> _Version:
    # Include the ctime, which shows a changed mode or owner, after which others may write to the file.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _write(folder: Folder, tokens: Sequence[Token], links: Sequence[_Link]) -> None:
    document: dict[str, Any] = {"version": 1, "tokens": [_record(token) for token in tokens]}
    if links:
        document["links"] = [{"sha256": link.digest, "expires": format_time(link.expires)} for link in links]
    data = json.dumps(document, indent=1).encode("ascii") + b"\n"
    replace_file(folder, TOKENS, [data], temporary=TOKENS_TEMPORARY)


def _record(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "sha256": token.digest,
        "agents": None if token.agents is None else list(token.agents),
        "read_only": token.read_only,
        "created": format_time(token.created),
        "expires": None if token.expires is None else format_time(token.expires),
        **({} if token.origin == PROGRAM else {"origin": token.origin}),
    }


def _parsed(raw: bytes, path: Path) -> tuple[list[Token], list[_Link]]:
    try:
        document = json.loads(raw)
        tokens = [_token(record) for record in document["tokens"]]
        return tokens, [_link(record) for record in document.get("links", ())]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{path} is damaged, so no token is accepted: remove it, then run keepstone token create"
        ) from error


def _link(record: dict[str, Any]) -> _Link:
    expires = read_time(record["expires"])
    if expires is None or _DIGEST.fullmatch(record["sha256"]) is None:
        raise ValueError("not a link")
    return _Link(record["sha256"], expires)


def _token(record: dict[str, Any]) -> Token:
    agents, read_only, expires = record["agents"], record["read_only"], record["expires"]
    created, until = read_time(record["created"]), None if expires is None else read_time(expires)
    # An unreadable time must not result in a token that never expires.
    if created is None or (until is None) != (expires is None) or not isinstance(read_only, bool):
        raise ValueError("not a token")
    if _DIGEST.fullmatch(record["sha256"]) is None:
        raise ValueError("not a digest")
    if agents is not None and not (
        isinstance(agents, list) and all(isinstance(slug, str) for slug in agents)
    ):
        raise TypeError("not a list of agents")
    slugs = None if agents is None else tuple(agents)
    name = record.get("name", "")  # Older tokens have no names.
    if not isinstance(name, str):
        raise TypeError("not a name")
    origin = trust_level(record.get("origin", PROGRAM))
    return Token(str(record["id"]), record["sha256"], slugs, read_only, created, until, name, origin)


def _digest(secret: str) -> str:
    # A secret of 256 random bits needs no slow hash, as it cannot be guessed.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
