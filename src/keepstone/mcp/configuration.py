"""Changes of clients' configuration files: shown before they are made, and backed up."""

from __future__ import annotations

import re
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import FILE_MODE, Folder
from keepstone.mcp import jsonc
from keepstone.mcp.clients import NAME, ClientKind
from keepstone.mcp.hooks import EVENTS

_HOOK_SECONDS = 5
"""When the client gives up; we do after 2 s."""
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
        lines = unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            "/dev/null" if self.before is None else str(self.path),
            str(self.path),
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

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
        raise ValueError(f"{path} does not hold a JSON object; nothing was changed")  # noqa: TRY004
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


def with_hooks(client: ClientKind, path: Path, command: Sequence[str] | None, base: Change | None) -> Change:
    """Return the change that puts our hooks into a client's file, or with None takes them out.

    Args:
        client: A client that has hooks.
        path: The file.
        command: The command without its client and event.
        base: A change of the same file that comes first.

    Raises:
        ValueError: The file cannot be read as what it should be; nothing was changed.
    """
    before = base.before if base else _read(path)
    text = base.after if base else before or ""
    hooks = _loaded(path, text).get("hooks", {})
    for event in EVENTS[client.name]:
        groups = hooks.get(event, []) if isinstance(hooks, dict) else None
        if not isinstance(groups, list):
            raise ValueError(f"{path}: hooks.{event} is not an array; nothing was changed")  # noqa: TRY004
        others = [group for group in groups if not _is_ours(group, client, event)]
        if command is not None:
            line = shlex.join([*command, client.name, event])
            hook = {"type": "command", "command": line, "timeout": _HOOK_SECONDS * client.hook_seconds}
            others.append({"hooks": [hook]})
        if others:
            text = jsonc.put(text, ("hooks", event), others)
        elif groups:
            text = jsonc.remove(text, ("hooks", event))
    return Change(path, before, text)


def _is_ours(group: object, client: ClientKind, event: str) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [hook.get("command") for hook in hooks or () if isinstance(hook, dict)]
    return len(commands) == 1 and str(commands[0]).endswith(f" hook {client.name} {event}")
