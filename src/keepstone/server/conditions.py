"""Conditional requests (RFC 9110): ``If-Match`` and ``If-None-Match`` against an ETag."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request

from keepstone.log.line import format_time
from keepstone.model import SessionInfo
from keepstone.server.problems import ProblemError

_TAG = re.compile(r'\s*(\*|(?:W/)?"[!#-~\x80-\xff]*")\s*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a request; None for a missing header."""

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None

    @property
    def are_given(self) -> bool:
        """Whether any condition is given."""
        return self.if_match is not None or self.if_none_match is not None

    def hold_for(self, etag: str | None) -> bool:
        """Return whether the conditions hold for an ETag; None for a resource that does not exist."""
        if self.if_match is not None and (etag is None or not {"*", etag} & set(self.if_match)):
            return False
        if self.if_none_match is None or etag is None:
            return True
        # RFC 9110: If-None-Match compares weakly, If-Match strongly.
        return not {"*", etag} & {tag.removeprefix("W/") for tag in self.if_none_match}


IfMatch = Annotated[
    str | None, Header(description="Only if it still has this ETag, or with `*` if it exists; otherwise 412.")
]
IfNoneMatch = Annotated[
    str | None, Header(description="Only if it does not have this ETag, or with `*` if it does not exist.")
]


async def _if_match(request: Request, if_match: IfMatch = None) -> Conditions:  # noqa: ARG001  Described.
    return Conditions(_tags(request, "if-match"))


async def _both(request: Request, if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> Conditions:  # noqa: ARG001  Described.
    return Conditions(_tags(request, "if-match"), _tags(request, "if-none-match"))


MatchCondition = Annotated[Conditions, Depends(_if_match)]
"""The conditions of a request that takes ``If-Match``."""
WriteConditions = Annotated[Conditions, Depends(_both)]
"""The conditions of a request that takes both headers."""


def _tags(request: Request, name: str) -> tuple[str, ...] | None:
    lines = request.headers.getlist(name)  # A list may span several headers.
    return tuple(tag for line in lines for tag in _split(line, name)) if lines else None


def _split(line: str, name: str) -> list[str]:
    found, at = [], 0
    while at < len(line):
        tag = _TAG.match(line, at)
        if tag is None:
            detail = f'{name} must be * or ETags in double quotes, such as "abc", not {line!r:.80}'
            raise ProblemError(400, "invalid_argument", detail)
        found.append(tag[1])
        at = tag.end()
    return found


def etag_of_text(content: str) -> str:
    """Return the ETag of a text."""
    # Hash the content. The file's time is not enough, as an editor may write twice within one clock tick.
    return f'"{hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]}"'


def etag_of_session(info: SessionInfo) -> str:
    """Return the ETag of a session, which every write to its log changes."""
    # Time and size are enough, without reading the log: after two writes within one clock tick the size still
    # differs.
    state = f"{format_time(info.modified)} {info.size}"
    return f'"{hashlib.sha256(state.encode()).hexdigest()[:32]}"'


def etag_headers(etag: str) -> dict[str, str]:
    """Return the headers of a response with an ETag.

    ``no-transform`` keeps proxies from compressing the response, which would make the ETag weak and
    ``If-Match`` fail.
    """
    return {"ETag": etag, "Cache-Control": "no-store, no-transform"}
