"""Changes of clients' configuration files: shown before they are made, and backed up."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FILE_MODE, Folder
from keepstone.mcp import jsonc
from keepstone.mcp.clients import NAME, ClientKind

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Change:
    """What a configuration file is, and what it would be."""

    path: Path
    before: str | None
    """None for a file that does not exist."""
    after: str

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to change."""
        return self.after != (self.before or "")

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = [(text or "").splitlines(keepends=True) for text in (self.before, self.after)]
        names = ("/dev/null" if self.before is None else str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in unified_diff(*lines, *names))

    def write(self) -> Path | None:
        """Write the file and return its backup, None if there was no file.

        A link is followed, so that files that are kept elsewhere stay there.
        """
        path = self.path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        with Folder(path.parent) as folder:
            if self.before is None:
                _put(folder, path.name, self.after, FILE_MODE)
                return None
            mode = stat.S_IMODE(path.stat().st_mode)
            backup = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.bak")
            _put(folder, backup.name, self.before, mode)
            _put(folder, path.name, self.after, mode)
        return backup


def _put(folder: Folder, name: str, text: str, mode: int) -> None:
    replace_file(folder, name, [text.encode()], temporary=f".{name}.{NAME}.tmp", mode=mode)


def installed(client: ClientKind, path: Path) -> dict[str, Any] | None:
    """Return our entry in a client's configuration, None if there is none.

    Raises:
        ValueError: The file cannot be read as what it should be.
    """
    text = _read(path) or ""
    servers = (_toml_of(path, text).unwrap() if client.is_toml else _loaded(path, text)).get(client.key)
    entry = servers.get(NAME) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None


def with_server(client: ClientKind, path: Path, entry: dict[str, Any] | None) -> Change:
    """Return the change that puts our entry into a client's configuration, or with None takes it out.

    Raises:
        ValueError: The file cannot be read as what it should be; nothing was changed.
    """
    before = _read(path)
    text = before or ""
    if client.is_toml:
        return Change(path, before, _with_table(client, path, text, entry))
    keys = (client.key, NAME)
    _loaded(path, text)
    try:
        return Change(
            path, before, jsonc.remove(text, keys) if entry is None else jsonc.put(text, keys, entry)
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}; nothing was changed") from None


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); nothing was changed") from None


def _loaded(path: Path, text: str) -> dict[str, Any]:
    try:
        value = jsonc.load(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; mend the file, nothing was changed") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} does not hold a JSON object; nothing was changed")
    return value


def _toml_of(path: Path, text: str) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text.removeprefix(_BOM))
    except TOMLKitError as error:
        raise ValueError(f"{path}: {error}; mend the file, nothing was changed") from None


def _with_table(client: ClientKind, path: Path, text: str, entry: dict[str, Any] | None) -> str:
    import tomlkit

    document = _toml_of(path, text)
    servers = document.get(client.key)
    if servers is not None and not hasattr(servers, "keys"):
        raise ValueError(f"{path}: {client.key} is not a table; nothing was changed")
    old = None if servers is None else servers.get(NAME)
    if (None if old is None else old.unwrap()) == entry:
        return text
    if entry is None:
        del servers[NAME]
    else:
        if servers is None:
            document[client.key] = servers = tomlkit.table(is_super_table=True)
        table = tomlkit.table()
        table.update(entry)
        servers[NAME] = table
    shown = tomlkit.dumps(document)
    if "\r\n" in text:
        shown = re.sub(r"(?<!\r)\n", "\r\n", shown)
    return (_BOM if text.startswith(_BOM) else "") + shown
