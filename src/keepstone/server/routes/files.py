"""``/v1/agents/{agent}/files``: an agent's own text files, with protection against lost updates."""

from __future__ import annotations

from fastapi import APIRouter, Response

from keepstone.files import Check
from keepstone.server import shapes
from keepstone.server.conditions import Conditions, WriteConditions, etag_headers, etag_of_text
from keepstone.server.cursors import DEFAULT, decode, encode, page_of
from keepstone.server.parts import CursorQuery, FileName, LimitQuery, Reading, Writing, answer, responds
from keepstone.server.problems import ProblemError
from keepstone.server.requests import Content

router = APIRouter(prefix="/agents/{agent}/files", tags=["files"])


@router.get("", **responds(shapes.FilePage))
def list_files(memory: Reading, limit: LimitQuery = DEFAULT, cursor: CursorQuery = None) -> Response:
    """List the paths of the agent's files."""
    # The cursor is the last path and not a number, so files created or deleted between two pages do not shift
    # the others.
    last = "" if cursor is None else decode("files", cursor, (str,))[0]
    page, end = page_of((path for path in memory.files.list() if path > last), limit)
    return answer(shapes.FilePage(files=page, next=None if end is None else encode("files", end)))


@router.get("/{path:path}", **responds(shapes.FileContent, etag=True))
def read_file(memory: Reading, path: FileName) -> Response:
    """Read a file. Its ETag identifies this content, for a conditional write or delete."""
    content = memory.files.read(path)
    return answer(shapes.FileContent(path=path, content=content), headers=etag_headers(etag_of_text(content)))


@router.put("/{path:path}", **responds(shapes.FileWritten, etag=True))
def write_file(memory: Writing, path: FileName, body: Content, conditions: WriteConditions) -> Response:
    """Write a file. An existing one is replaced."""
    count = memory.files.write(path, body.content, check=_check(conditions))
    etag = etag_of_text(body.content)
    return answer(shapes.FileWritten(path=path, bytes=count), headers=etag_headers(etag))


@router.post("/{path:path}", **responds(shapes.FileWritten))
def append_file(memory: Writing, path: FileName, body: Content, conditions: WriteConditions) -> Response:
    """Append to a file, which is created if it does not exist."""
    count = memory.files.append(path, body.content, check=_check(conditions))
    return answer(shapes.FileWritten(path=path, bytes=count))


@router.delete("/{path:path}", **responds(shapes.FileDeleted))
def delete_file(memory: Writing, path: FileName, conditions: WriteConditions) -> Response:
    """Delete a file."""
    memory.files.delete(path, check=_check(conditions))
    return answer(shapes.FileDeleted(path=path, deleted=True))


def _check(conditions: Conditions) -> Check | None:
    """Return a check of the old text that runs inside the lock, so that no other writer intervenes."""

    def check(old: str | None) -> None:
        if not conditions.hold_for(None if old is None else etag_of_text(old)):
            raise ProblemError(412, "file_changed", "the file has changed: read it again, then decide")

    return check if conditions.are_given else None
