"""Uploads of files to a page, piece by piece, and downloads: exports, backups and images."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from shutil import make_archive
from typing import BinaryIO
from weakref import WeakKeyDictionary

from nicegui import Client, ui
from nicegui import app as pages
from pydantic import NonNegativeInt
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.operations.error_codes import message_of
from keepstone.operations.exporting import export_agent, export_session
from keepstone.server.packing import pack, pieces, transfer_folder
from keepstone.text.display import size
from keepstone.web import sockets
from keepstone.web.message_parts import image_of
from keepstone.web.reader_turns import in_turn, turns_of
from keepstone.web.site import Permissions, Site

LARGEST_FILE = 512 << 20
"""Maximum bytes of a file that a page receives."""
RECEIVER_HEADER = "x-keepstone-receiver"
"""Header with the id of the page that receives a file. Forms of other sites cannot set it (CSRF)."""
_INERT = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
}
"""Headers of content from memory: the browser trusts only the media type, and runs nothing."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_receivers: WeakKeyDictionary[Client, Receiver] = WeakKeyDictionary()


class Receiver:
    """Receives one file at a time from a page's browser, in a temporary folder removed with the page."""

    def __init__(self, largest: int = LARGEST_FILE) -> None:
        self._largest = largest
        self._held = ExitStack()
        self._path: Path | None = None
        self._size = 0

    @property
    def path(self) -> Path | None:
        """The file that was received last; None if there is none."""
        return self._path

    def attach(self) -> None:
        """Receive files from the browser of the current page, until the page is deleted."""
        page = ui.context.client
        _receivers[page] = self
        page.on_delete(self.close)

    def take(self, name: str, at: int, piece: bytes) -> None:
        """Append a piece to the file, or begin a new one with a piece at 0.

        Raises:
            ValueError: The file is too large, or the piece does not follow the one before.
        """
        if at == 0:
            self.close()
            folder = self._held.enter_context(transfer_folder())
            # Keep the end of the name, as importers recognise the format by its suffix. Without leading dots
            # the name is neither a hidden file nor a parent folder.
            self._path = folder / (_UNSAFE.sub("_", name)[-100:].lstrip(".") or "file")
            self._path.touch(0o600)
        # A piece that is sent twice or out of order would damage the file unnoticed.
        if self._path is None or at != self._size:
            raise ValueError("the pieces of the file do not follow one another: choose the file again")
        if at + len(piece) > self._largest:
            self.close()
            raise ValueError(
                f"the file is larger than {size(self._largest)}: use keepstone import in a terminal"
            )
        with self._path.open("ab") as file:
            file.write(piece)
        self._size += len(piece)

    def close(self) -> None:
        """Remove the file and its folder."""
        self._path, self._size = None, 0
        self._held.close()


def add_routes(site: Site) -> None:
    """Add the addresses to which pages send files, and from which browsers download."""
    _add_upload(site)
    _add_downloads(site)
    _add_images(site)


def _add_upload(site: Site) -> None:
    @pages.put("/a/{agent}/upload")
    async def upload(request: Request, agent: str, at: int = 0, name: str = "") -> Response:
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        # The sign-in alone is not enough: another browser with the same token must not send a file into this
        # page.
        page = await sockets.owned_page(request.headers.get(RECEIVER_HEADER, ""), request)
        receiver = None if page is None else _receivers.get(page)
        if receiver is None or access.read_only or not _is_allowed(access.agents, agent):
            return _refusal("this page does not receive files: load it again", 403)
        # The browser's script cuts files into pieces, so that no piece is larger than the server's limit for
        # a body.
        piece = await request.body()
        try:
            await asyncio.to_thread(receiver.take, name, at, piece)
        except (ValueError, OSError) as error:
            return _refusal(message_of(error), 400)
        return Response(status_code=204)


def _add_downloads(site: Site) -> None:
    @pages.get("/a/{agent}/export")
    async def export(request: Request, agent: str, format: str = "ndjson", session: str = "") -> Response:  # noqa: A002
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        if not _is_allowed(access.agents, agent):
            return _refusal("there is no such agent here", 404)

        def make() -> tuple[BinaryIO, str]:
            return packed_export(site.home.agent(agent), site.home.root, format, session or None)

        return await _sent(access, make)

    @pages.get("/a/{agent}/backup")
    async def backup(request: Request) -> Response:
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        if access.agents is not None:
            return _refusal("a backup holds all agents: this needs a sign-in for all of them", 403)
        return await _sent(access, lambda: (pack(site.home), "keepstone-home.zip"))


def _add_images(site: Site) -> None:
    @pages.get("/a/{agent}/image")
    async def image(
        request: Request, agent: str, session: str, entry: str, number: NonNegativeInt
    ) -> Response:
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        if not _is_allowed(access.agents, agent):
            return _refusal("there is no such agent here", 404)
        try:
            found = await in_turn(
                turns_of(access.reader), lambda: image_of(site.home.agent(agent).get(entry, session), number)
            )
        except (KeepstoneError, ValueError) as error:
            return _refusal(message_of(error), 404)
        if found is None:
            return _refusal("this entry has no such image", 404)
        return Response(found[1], media_type=found[0], headers=_INERT)


def packed_export(agent: Agent, root: Path, format: str, session: str | None) -> tuple[BinaryIO, str]:  # noqa: A002
    """Export an agent or one of its sessions; return an open, already unlinked file, and a name for it.

    Formats that are folders become ZIP files.

    Raises:
        ValueError: The format is unknown.
        SessionNotFoundError: The session is missing.
        StoreError: The disk is full or failed.
    """
    name = f"{agent.slug}-session" if session is not None else agent.slug
    # The folder is removed when this returns. The file is already open, and on POSIX systems can be read
    # until it is closed.
    with transfer_folder() as folder:
        out = folder / "export"
        if session is None:
            export_agent(agent, root, out, format=format)
        else:
            export_session(agent.session(session), root, out, format=format)
        if out.is_dir():
            return Path(make_archive(str(folder / "packed"), "zip", out)).open("rb"), f"{name}-{format}.zip"
        return out.open("rb"), f"{name}.{format}"


async def _sent(access: Permissions, make: Callable[[], tuple[BinaryIO, str]]) -> Response:
    try:
        file, name = await in_turn(turns_of(access.reader), make)
    except (KeepstoneError, ValueError, OSError) as error:
        return _refusal(message_of(error), 400)
    # Slugs and formats have no quotes, so the name needs no encoding.
    headers = {"Content-Disposition": f'attachment; filename="{name}"', **_INERT}
    return StreamingResponse(pieces(file), media_type="application/octet-stream", headers=headers)


def _is_allowed(agents: frozenset[str] | None, agent: str) -> bool:
    return agents is None or agent in agents


def _refusal(words: str, status: int) -> Response:
    return Response(words, status, media_type="text/plain; charset=utf-8")
