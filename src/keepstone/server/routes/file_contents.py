"""``/v1/agents/{agent}/file-contents``: the texts of a folder's files, many in one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from keepstone.errors import MemoryFileNotFoundError, NotTextError
from keepstone.line import MAX_LINE
from keepstone.server.cursors import DEFAULT, decode, encode
from keepstone.server.parts import CursorQuery, LimitQuery, Reading, answer, responds

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
    """Read the files of a folder, by their paths. A page ends early where it would be longer than 16 MiB.

    The content of a file that is not UTF-8 is null: it hides no other.
    """
    last = "" if cursor is None else decode(_KIND, cursor, (str,))[0]
    paths = [path for path in memory.files.list(folder.rstrip("/")) if path > last]
    page = list(_within(MAX_LINE, ((path, _content(memory, path)) for path in paths[:limit])))
    files = [{"path": path, "content": content} for path, content in page]
    following = encode(_KIND, page[-1][0]) if len(page) < len(paths) else None
    return answer({"files": files, "next": following})


def _content(memory: Reading, path: str) -> str | None:
    try:
        return memory.files.read(path)
    except (NotTextError, MemoryFileNotFoundError):  # The second was deleted since it was listed.
        return None


def _within(budget: int, files: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str | None]]:
    """Yield files until they are longer together than the budget, and always the first."""
    for path, content in files:
        budget -= len(content or "")
        yield path, content
        if budget < 0:
            return
