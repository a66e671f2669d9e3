"""Changes of clients' configuration files: shown before they are made, and backed up."""

from __future__ import annotations

import re
import shlex
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeAlias

from keepstone.filesystem.atomic import replace_file, set_mode, sync_file, temporary_file, write_all
from keepstone.filesystem.confine import FILE_MODE, Folder
from keepstone.mcp import jsonc
from keepstone.mcp.clients import NAME, ClientKind
from keepstone.mcp.hooks import EVENTS

_HOOK_SECONDS = 5
"""Timeout of a hook in the client; ``keepstone hook`` itself stops after 2 s."""
_BOM = "\ufeff"
SKILL = Path(__file__).with_name("skill.md")
"""The skill that tells a model when to recall, save, supersede and forget."""


Edit: TypeAlias = Callable[[str], str]
"""Returns the changed text of a file; raises ValueError if the file has unexpected content."""


class ChangedError(ValueError):
    """Another program changed the file since it was read. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Change:
    """The current and the new content of a configuration file."""

    path: Path
    before: bytes | None
    """The current content; None for a file that does not exist."""
    after: str
    edits: tuple[Edit, ...]
    removes: bool = False
    """Whether a file that the edits leave empty is removed, with its folder if nothing else is in it."""

    @classmethod
    def of(cls, path: Path, *edits: Edit, removes: bool = False) -> Change:
        """Return the change that edits make to the current content of a file.

        Raises:
            ValueError: The file cannot be parsed or edited; nothing was changed.
        """
        before = _bytes_of(path)
        text = _decoded(path, before)
        for edit in edits:
            text = edit(text)
        return cls(path, before, text, edits, removes)

    def again(self) -> Change:
        """Return the change that the same edits make to the current content; errors as for ``of``."""
        return Change.of(self.path, *self.edits, removes=self.removes)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to change."""
        return self.after.encode() != (self.before or b"")

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = unified_diff(
            _decoded(self.path, self.before).splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            "/dev/null" if self.before is None else str(self.path),
            str(self.path),
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> Path | None:
        """Write the file and return its backup, None if there was no file.

        A symbolic link is followed, so that files that are kept elsewhere stay there.

        Raises:
            ChangedError: The file has changed since it was read.
        """
        # Many people keep such files in a repository and link to them; a rename over the link would replace
        # the link.
        path = self.path.resolve()
        if self.removes and not self.after:
            self._remove(path)
            return None
        with Folder(path.parent, create=True) as folder:
            self._check_unchanged(path)
            mode = FILE_MODE if self.before is None else stat.S_IMODE(path.stat().st_mode)
            # Back up the bytes that were read and shown, not the current ones.
            backup = None if self.before is None else self._back_up(folder, path, self.before, mode)
            temporary = f".{path.name}.{NAME}.tmp"
            with temporary_file(folder, temporary) as fd:
                write_all(fd, self.after.encode(), path)
                set_mode(fd, mode)
                sync_file(fd, path)
                try:
                    self._check_unchanged(path)  # Check again, as syncing takes a while.
                except ChangedError:
                    if backup is not None:
                        folder.unlink(backup.name)
                    raise
                folder.replace(temporary, path.name)
        return backup

    def _remove(self, path: Path) -> None:
        with Folder(path.parent) as folder:
            self._check_unchanged(path)
            folder.unlink(path.name)
            folder.sync()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()

    def _back_up(self, folder: Folder, path: Path, content: bytes, mode: int) -> Path:
        backup = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.bak")
        replace_file(folder, backup.name, [content], temporary=f".{backup.name}.{NAME}.tmp", mode=mode)
        return backup

    def _check_unchanged(self, path: Path) -> None:
        if _bytes_of(path) != self.before:
            raise ChangedError(f"{path} was changed by another program; nothing was written, try again")


def installed(client: ClientKind, path: Path) -> dict[str, Any] | None:
    """Return our entry in a client's configuration, None if there is none.

    Raises:
        ValueError: The file cannot be parsed.
    """
    text = _decoded(path, _bytes_of(path))
    servers = (_toml_of(path, text).unwrap() if client.is_toml else _loaded(path, text)).get(client.key)
    entry = servers.get(NAME) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None


def with_server(client: ClientKind, path: Path, entry: dict[str, Any] | None) -> Edit:
    """Return the edit that puts our entry into a client's configuration, or with None removes it."""

    def edit(text: str) -> str:
        if client.is_toml:
            return _with_table(client, path, text, entry)
        keys = (client.key, NAME)
        # Parse the text first, as errors of this call name the file and say what to do.
        _loaded(path, text)
        try:
            return jsonc.remove(text, keys) if entry is None else jsonc.put(text, keys, entry)
        except ValueError as error:
            raise ValueError(f"{path}: {error}; nothing was changed") from None

    return edit


def _bytes_of(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{path} is no regular file; nothing was changed")
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _decoded(path: Path, raw: bytes | None) -> str:
    try:
        return (raw or b"").decode()
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
        # tomlkit keeps the comments and the layout of the rest of the file.
        table = tomlkit.table()
        table.update(entry)
        servers[NAME] = table
    shown = tomlkit.dumps(document)
    if "\r\n" in text:
        # tomlkit ends the lines that it adds with line feeds only, even in a file with CRLF.
        shown = re.sub(r"(?<!\r)\n", "\r\n", shown)
    return (_BOM if text.startswith(_BOM) else "") + shown


def with_hooks(client: ClientKind, path: Path, command: Sequence[str] | None) -> Edit:
    """Return the edit that puts our hooks into a client's file, or with None removes them.

    Args:
        client: A client that has hooks.
        path: The file, for messages.
        command: The command without its client and event.
    """

    def edit(text: str) -> str:
        hooks = _loaded(path, text).get("hooks", {})
        for event in EVENTS[client.name]:
            groups = hooks.get(event, []) if isinstance(hooks, dict) else None
            if not isinstance(groups, list):
                raise ValueError(f"{path}: hooks.{event} is not an array; nothing was changed")  # noqa: TRY004
            # Replace our hook instead of editing it, so that a newer version can change its command.
            others = [group for group in groups if not _is_ours(group, client, event)]
            if command is not None:
                line = shlex.join([*command, client.name, event])
                hook = {"type": "command", "command": line, "timeout": _HOOK_SECONDS * client.hook_seconds}
                others.append({"hooks": [hook]})
            if others:
                text = jsonc.put(text, ("hooks", event), others)
            elif groups:
                text = jsonc.remove(text, ("hooks", event))
        return text

    return edit


def with_skill(path: Path, *, wanted: bool) -> Edit:
    """Return the edit that writes our skill to a file, or without ``wanted`` empties a file that has it."""

    def edit(text: str) -> str:
        ours = SKILL.read_text(encoding="utf-8")
        # All versions of our skill begin with the same text, up to the description.
        if text and not text.startswith(ours.partition("description")[0]):
            raise ValueError(f"{path} is another skill of that name; rename it, nothing was changed")
        return ours if wanted else ""

    return edit


def _is_ours(group: object, client: ClientKind, event: str) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [hook.get("command") for hook in hooks or () if isinstance(hook, dict)]
    # A group with a second command was edited by the user, and is kept.
    return len(commands) == 1 and str(commands[0]).endswith(f" hook {client.name} {event}")
