"""``/v1/agents/{agent}/file-contents``: the texts of a folder's files, many in one response."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from keepstone.errors import MemoryFileNotFoundError, NotTextError
from keepstone.log.line import MAX_LINE
from keepstone.server.cursors import DEFAULT, decode, encode
from keepstone.server.paging import fitting, listed
from keepstone.server.parts import CursorQuery, LimitQuery, Reading, responds

router = APIRouter(prefix="/agents/{agent}/file-contents", tags=["files"])

_KIND = "file-contents"


class FileText(BaseModel):
    """A file's path and text, null if it is not UTF-8."""

    path: str
    content: str | None


class FileContents(BaseModel):
    """A page of files, sorted by their paths."""

    files: list[FileText]
    next: str | None


FolderQuery = Annotated[
    str, Query(min_length=1, description="Only files below this folder.", examples=["plans"])
]


@router.get("", **responds(FileContents))
def list_file_contents(
    memory: Reading, folder: FolderQuery, limit: LimitQuery = DEFAULT, cursor: CursorQuery = None
) -> Response:
    """Read the files of a folder, sorted by path. A page ends before 16 MiB, but has at least one file.

    The content of a file that is not UTF-8 is null.
    """
    # The cursor is the last path: files created or deleted between two pages do not shift the others.
    last = "" if cursor is None else decode(_KIND, cursor, (str,))[0]
    paths = [path for path in memory.files.list(folder.rstrip("/")) if path > last]
    documents = ({"path": path, "content": _content(memory, path)} for path in paths[:limit])
    files = fitting(documents, MAX_LINE)
    following = encode(_KIND, paths[len(files) - 1]) if len(files) < len(paths) else None
    return listed("files", files, next=following)


def _content(memory: Reading, path: str) -> str | None:
    try:
        return memory.files.read(path)
    except (NotTextError, MemoryFileNotFoundError):  # The file may have been deleted after it was listed.
        return None
