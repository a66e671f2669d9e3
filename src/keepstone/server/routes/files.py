"""``/v1/agents/{agent}/files``: the text files of an agent's own, with protection against lost updates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header, Response

from keepstone.server import shapes
from keepstone.server.cursors import DEFAULT, decode, encode, page_of
from keepstone.server.parts import CursorQuery, FileName, LimitQuery, Reading, Writing, answer, responds
from keepstone.server.problems import ProblemError
from keepstone.server.requests import Content

router = APIRouter(prefix="/agents/{agent}/files", tags=["files"])

IfMatch = Annotated[
    str | None, Header(description="Only if the file still has this ETag, or with `*` if it is there.")
]
IfNoneMatch = Annotated[
    str | None, Header(description="Only if the file has not this ETag; `*` for no file.")
]


@router.get("", **responds(shapes.FilePage))
def list_files(memory: Reading, limit: LimitQuery = DEFAULT, cursor: CursorQuery = None) -> Response:
    """List the agent's files by their paths."""
    last = "" if cursor is None else decode("files", cursor, (str,))[0]
    page, end = page_of((path for path in memory.files.list() if path > last), limit)
    return answer({"files": page, "next": None if end is None else encode("files", end)})


@router.get("/{path:path}", **responds(shapes.FileContent))
def read_file(memory: Reading, path: FileName) -> Response:
    """Read a file. Its ETag names this content, for a write or a delete that must meet no other."""
    content = memory.files.read(path)
    return answer({"path": path, "content": content}, headers={"ETag": etag_of(content)})


@router.put("/{path:path}", **responds(shapes.FileWritten))
def write_file(
    memory: Writing,
    path: FileName,
    body: Content,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Write a file; one that is there is replaced as a whole."""
    count = memory.files.write(path, body.content, check=_check(if_match, if_none_match))
    return answer({"path": path, "bytes": count}, headers={"ETag": etag_of(body.content)})


@router.post("/{path:path}", **responds(shapes.FileWritten))
def append_file(memory: Writing, path: FileName, body: Content) -> Response:
    """Append to a file, which is made if it is new."""
    return answer({"path": path, "bytes": memory.files.append(path, body.content)})


@router.delete("/{path:path}", **responds(shapes.FileDeleted))
def delete_file(memory: Writing, path: FileName, if_match: IfMatch = None) -> Response:
    """Delete a file."""
    memory.files.delete(path, check=_check(if_match, None))
    return answer({"path": path, "deleted": True})


def etag_of(content: str) -> str:
    """Return the ETag of a text: quoted, and the same for the same text."""
    return f'"{hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]}"'


def _check(if_match: str | None, if_none_match: str | None) -> Callable[[str | None], None] | None:
    """Return what looks at the old text inside the lock of the files, so that no writer comes between."""
    if if_match is None and if_none_match is None:
        return None

    def check(old: str | None) -> None:
        if if_match is not None and not _matches(if_match, old):
            raise _changed()
        if if_none_match is not None and _matches(if_none_match, old):
            raise _changed()

    return check


def _matches(condition: str, old: str | None) -> bool:
    if old is None:
        return False
    return condition.strip() == "*" or etag_of(old) in [tag.strip() for tag in condition.split(",")]


def _changed() -> ProblemError:
    return ProblemError(412, "file_changed", "the file is not as you expect it: read it again, then decide")
