"""Export as Markdown: one readable file per session, or an OKF bundle with one file per entry."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from keepstone.filesystem.atomic import private_opener
from keepstone.model import Entry
from keepstone.operations.exporting.parts import flow, front_matter, is_plain, split_text, title_of
from keepstone.text.display import counted

OKF_VERSION = "0.2"
BEGIN = "<!-- keepstone "
END = " -->"
SESSION_MARK = 'keepstone: "md"'
"""The line of the front matter that marks a session's file."""
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_LONGEST_NAME = 150
_RESERVED = frozenset({"index", "log"})
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>()#|]")


def write_md(entries: Iterable[Entry], folder: Path) -> int:
    """Write one file per session, and return the number of entries."""
    count = 0
    names: dict[str, Path] = {}
    open_file: tuple[str, IO[str]] | None = None
    try:
        for entry in entries:
            # Entries come in order of time, so sessions may alternate. Only one file is open at a time, as
            # there may be more sessions than descriptors.
            if open_file is None or open_file[0] != entry.session:
                if open_file is not None:
                    open_file[1].close()
                path = names.get(entry.session)
                is_new = path is None
                path = names.setdefault(entry.session, folder / f"{file_name(entry.session)}.md")
                open_file = entry.session, _opened(path)
                if is_new:
                    keys = {
                        "type": "session",
                        "title": entry.session,
                        "agent": entry.agent,
                        "keepstone": "md",
                    }
                    open_file[1].write(f"{front_matter(keys)}\n# {escaped(entry.session)}\n")
            open_file[1].write(_section(entry))
            count += 1
    finally:
        if open_file is not None:
            open_file[1].close()
    return count


def _section(entry: Entry) -> str:
    """Return a heading, a comment with the rest of the entry, and the text."""
    rest, text = split_text(entry.line)
    # If the text cannot be read back exactly from Markdown, or contains our own mark, the comment has the
    # whole line.
    if text is None or not is_plain(text) or BEGIN in text:
        rest = {"line": entry.line}
        text = entry.text.replace("\r", "\n").replace("\0", "").replace(BEGIN, "<!-- ")
    coded = flow({"session": entry.session, **rest})
    # Escape the comment: a value with --> would end it, and HTML after that would be shown.
    comment = coded.replace("<", "\\u003c").replace(">", "\\u003e")
    role = entry.data.get("role") or entry.data.get("speaker")
    who = f"{role}, " if isinstance(role, str) and role.isprintable() else ""
    heading = f"## {escaped(who + entry.type)}, {entry.ts:%Y-%m-%d %H:%M} UTC"
    return f"\n{heading}\n{BEGIN}{comment}{END}\n\n{text}\n"


def escaped(text: str) -> str:
    """Return a text as literal Markdown on one line."""
    return _MARKDOWN.sub(lambda found: "\\" + found[0], " ".join(text.split()))


def file_name(text: str) -> str:
    """Return a file name that works in every system and link; a name that had to change ends in a digest."""
    # Some file systems ignore case: of names that differ only by case, at most one stays unchanged.
    name = _UNSAFE.sub("-", text.lower())
    # The names ``index`` and ``log`` have a meaning in OKF.
    if name == text and len(name) <= _LONGEST_NAME and name not in _RESERVED:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{name[:60].strip('-')}-{digest}".lstrip("-")


def write_okf(entries: Iterable[Entry], folder: Path) -> int:
    """Write an OKF bundle: a folder per session, a file per entry, and an index in each folder."""
    numbers: Counter[str] = Counter()
    for entry in entries:
        inside = folder / file_name(entry.session)
        numbers[entry.session] += 1
        if numbers[entry.session] == 1:
            inside.mkdir(mode=0o700)
            _append(inside / "index.md", f"# {escaped(entry.session)}\n\n")
        # The number keeps the order of entries with the same time.
        name = f"{numbers[entry.session]:07d}-{file_name(entry.id)}.md"
        title = title_of(entry.summary or entry.text) or entry.type
        _append(inside / name, _concept(entry, title))
        _append(inside / "index.md", f"* [{escaped(title)}]({name}) - {escaped(entry.type)}\n")
    lines = [
        f"* [{escaped(session)}]({file_name(session)}/) - {counted(count, 'entry')}\n"
        for session, count in numbers.items()
    ]
    text = front_matter({"okf_version": OKF_VERSION}) + "\n# Sessions\n\n" + "".join(lines)
    _append(folder / "index.md", text)
    return numbers.total()


def _append(path: Path, text: str) -> None:
    with _opened(path) as file:
        file.write(text)


def _opened(path: Path) -> IO[str]:
    return open(path, "a", encoding="utf-8", newline="\n", opener=private_opener)


def _concept(entry: Entry, title: str) -> str:
    rest, text = split_text(entry.line)
    if text is None or not is_plain(text):
        rest, text = {"line": entry.line}, entry.text.replace("\r", "\n").replace("\0", "")
    about = title_of(entry.summary or entry.text, 200) or title
    keys: dict[str, Any] = {"type": entry.type, "title": title, "description": about}
    keys |= {"generated": {"by": _actor(entry), "at": entry.line.get("modified") or entry.line["ts"]}}
    keys |= {"tags": list(entry.tags)} if entry.tags else {}
    return front_matter(keys | {"keepstone": {"session": entry.session, **rest}}) + f"\n{text}\n"


def _actor(entry: Entry) -> str:
    """Return the writer of an entry as an OKF actor: the person who said it, otherwise the agent.

    Readers of a bundle trust names with ``human:`` more, so only a user's messages get this prefix.
    """
    if entry.data.get("role") == "user":
        named = (entry.data.get(key) for key in ("speaker", "name"))
        return "human:" + next((name for name in named if isinstance(name, str) and name), "user")
    return f"{entry.agent}/keepstone-{version('keepstone')}"
