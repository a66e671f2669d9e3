"""Record of requests with idempotency keys for several servers that share a database."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING

from keepstone.errors import KeepstoneError
from keepstone.server.problems import ProblemError, problem_of
from keepstone.server.retries import SECONDS, Answers, Claims, Kept, Name
from keepstone.store.shared_rows import AnswerRow, SharedAnswerRows

if TYPE_CHECKING:
    from keepstone.home import Home

_log = logging.getLogger("keepstone.server")

_LARGEST = 256 * 1024
"""Maximum bytes of a kept response; without the response only the key is kept."""
_WAIT = 10.0
"""Maximum seconds that a request waits for the end of an earlier request with the same key."""
_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.5
"""Initial and maximum seconds between two queries whether the earlier request has ended."""


class SharedAnswers:
    """The ``Claims`` of all servers of a home, in its database.

    A request whose server was killed counts as in progress until its key expires: it is unknown whether it
    was carried out, and carrying it out again might write twice.
    """

    def __init__(self, rows: SharedAnswerRows) -> None:
        self._rows = rows

    async def claim(self, name: Name, agent: str, request: bytes) -> Kept:
        """Claim a key for a request, see ``Claims``."""
        own, until, seconds = Kept(request), time.monotonic() + _WAIT, _FIRST_LOOK
        while True:
            try:
                # A driver that blocks must not hold the event loop.
                row = await asyncio.to_thread(
                    self._rows.claim, _hashed(name), agent, request, own.token, SECONDS
                )
            except KeepstoneError as error:
                raise problem_of(error) from error
            if row is None:
                return own
            # A request with another content is refused in any case, so the earlier one need not have ended.
            if row.status is not None or row.request != request:
                return _kept_of(row)
            if time.monotonic() > until:
                raise ProblemError(
                    503,
                    "busy",
                    "an earlier request with this key has not ended; this one wrote nothing: try again",
                    {"Retry-After": "5"},
                )
            # Other servers do not notify this one when a request ends, so its row is polled at growing
            # intervals.
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, _LONGEST_LOOK)

    async def settle(self, name: Name, kept: Kept, *, keep: bool) -> None:
        """Record that a request has ended, and keep or forget it; a database error leaves it in progress."""
        place, answer = (_hashed(name), kept.token), None
        if kept.body is not None and kept.size <= _LARGEST:
            # Headers are bytes; Latin-1 maps each byte to one character and back.
            headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in kept.headers]
            answer = (json.dumps(headers).encode(), kept.body)
        try:
            if keep:
                await asyncio.to_thread(self._rows.keep, *place, kept.status, answer, SECONDS)
            else:
                await asyncio.to_thread(self._rows.forget, *place)
        except KeepstoneError as error:
            _log.warning("a response is not kept for retries: %s", type(error).__name__)


def _kept_of(row: AnswerRow) -> Kept:
    kept = Kept(row.request, status=row.status or 0, body=row.body)
    headers = json.loads(row.headers or b"[]")
    kept.headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers]
    if row.status is not None:
        kept.ended.set()
    return kept


def _hashed(name: Name) -> Name:
    # Clients choose the keys, which may contain anything; the database keeps only their digests.
    return name[0], hashlib.sha256(name[1].encode()).hexdigest()


def answers_of(home: Home) -> Claims:
    """Return the record of requests with idempotency keys: in memory, or in the home's database."""
    from keepstone.home import store_of

    store = store_of(home)
    if store.answers is not None:
        return SharedAnswers(store.answers)
    answers = Answers(erasures=store.erased_state)
    store.on_erased(answers.purge)
    return answers
