"""The user's own list of servers that a home may name as its embedder.

A home may come from another person. No text is sent to a server that a home names unless the user named that
server on this machine: as an argument, in $KEEPSTONE_EMBEDDER, or in this list, a text file with one server
per line.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from keepstone.embed.openai import base_url_of
from keepstone.errors import EmbedderUnavailableError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FILE_MODE, Folder

OPENAI = "openai"
"""The name of OpenAI's own server, or of the server in $OPENAI_BASE_URL."""
_FILE = "embedding-servers.txt"
_LONGEST = 300
"""Maximum characters of an address."""


def servers_file() -> Path:
    """Return the path of the list, in the user's configuration folder."""
    from platformdirs import user_config_path  # Only needed for homes that name a server.

    return user_config_path("keepstone", appauthor=False) / _FILE


def server_of(name: str) -> str | None:
    """Return the server to which the embedder of this name sends texts; None if it uses no server.

    Raises:
        ValueError: The name is an invalid address.

    Examples:
        >>> server_of("http://localhost:11434/v1?model=nomic-embed-text"), server_of("openai:small")
        ('http://localhost:11434/v1', 'openai')
    """
    if name.partition(":")[0] == OPENAI:
        return OPENAI
    if not name.lower().startswith(("http://", "https://")):
        return None
    # The address must fit on a line of the list.
    if len(name) > _LONGEST or not (name.isascii() and name.isprintable()) or " " in name:
        raise ValueError(f"{name!r:.200} is not the address of a server: use http://HOST:PORT/v1")
    return base_url_of(name)


def allowed() -> list[str]:
    """Return the servers in the list.

    Raises:
        EmbedderUnavailableError: The list cannot be read.
    """
    return [line.strip() for line in _lines() if line.strip() and not line.startswith("#")]


def allow(name: str) -> bool:
    """Add the server of an embedder to the list; return False if it was already there.

    Raises:
        ValueError: The name has no server.
        EmbedderUnavailableError: The list cannot be read.
    """
    server = _server(name)
    if server in allowed():
        return False
    _write([*_lines(), server])
    return True


def disallow(name: str) -> bool:
    """Remove an embedder's server from the list; False if it was not there. Errors as for ``allow``."""
    server = _server(name)
    if server not in allowed():
        return False
    # All other lines, including comments, stay as the user wrote them.
    _write([line for line in _lines() if line.strip() != server])
    return True


def how_to_allow(server: str) -> str:
    """Return the command that adds a server to the list."""
    return f"keepstone model allow {shlex.quote(server)}"


def _server(name: str) -> str:
    server = server_of(name)
    if server is None:
        raise ValueError(f"{name!r:.200} has no server: use http://HOST:PORT/v1, or openai")
    return server


def _lines() -> list[str]:
    path = servers_file()
    try:
        return path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise EmbedderUnavailableError(f"the list of allowed servers cannot be read: {error}") from error


def _write(lines: list[str]) -> None:
    path = servers_file().resolve()  # The file may be a symbolic link.
    text = "".join(f"{line}\n" for line in lines)
    with Folder(path.parent, create=True) as folder:
        replace_file(folder, path.name, [text.encode()], temporary=f".{path.name}.tmp", mode=FILE_MODE)
