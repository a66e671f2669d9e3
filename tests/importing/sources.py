"""Small sources of our own making, in the forms of the tools that they are named after."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from keepstone.agent import Agent
from keepstone.importing import ImportResult, import_memory
from keepstone.importing.item import Item, Items, Options, Unread
from keepstone.importing.origin import Origin
from keepstone.model import Entry

FIXTURES = Path(__file__).parent / "fixtures"


def jsonl(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def zipped(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def chatgpt(texts: Sequence[str] = ("Which sign-in?", "Use passkeys")) -> list[dict[str, Any]]:
    """One conversation, in which the second message was edited: its old form is another branch."""

    def node(name: str, parent: str | None, children: Sequence[str], role: str, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        said = {"id": name, "author": {"role": role}, "create_time": 1768141860.5, "content": content}
        return {"id": name, "message": said, "parent": parent, "children": list(children)}

    mapping = {
        "root": {"id": "root", "message": None, "parent": None, "children": ["m1"]},
        "m1": node("m1", "root", ["old", "m2"], "user", texts[0]),
        "old": node("old", "m1", [], "assistant", "Use OAuth"),
        "m2": node("m2", "m1", [], "assistant", texts[1]),
    }
    return [{"conversation_id": "c1", "title": "Sign-in", "mapping": mapping, "current_node": "m2"}]


def claude() -> list[dict[str, Any]]:
    messages = [
        {
            "uuid": "u1",
            "sender": "human",
            "text": "Which sign-in?",
            "created_at": "2026-01-11T14:31:00.000000Z",
        },
        {
            "uuid": "u2",
            "sender": "assistant",
            "text": "",
            "content": [
                {"type": "text", "text": "Let me look"},
                {"type": "tool_use", "name": "search", "input": {"q": "sign-in"}},
            ],
            "created_at": "2026-01-11T14:32:00.000000Z",
        },
        {
            "uuid": "u3",
            "sender": "human",
            "text": "See the file",
            "attachments": [{"file_name": "plan.md", "extracted_content": "Use passkeys"}],
            "created_at": "2026-01-11T14:33:00.000000Z",
        },
    ]
    return [{"uuid": "conversation-1", "name": "Sign-in", "chat_messages": messages}]


def entries(agent: Agent, session: str) -> dict[str, Entry]:
    return {entry.id: entry for entry in agent.session(session).entries()}


def sessions(agent: Agent) -> list[str]:
    return sorted(info.id for info in agent.sessions())


def auto(agent: Agent, path: Path, source: str, **options: Any) -> ImportResult:
    """Import what must be recognised as this source, and nothing when it is imported again."""
    result = import_memory(agent, "auto", path, **options)
    assert result.source == source
    again = import_memory(agent, source, path, **options)
    assert (again.imported, again.unchanged) == (0, result.imported + result.unchanged)
    return result


def chroma(folder: Path, script: str) -> Path:
    """Return a copy of a Chroma folder, changed by a script."""
    shutil.copytree(FIXTURES / "chroma", folder)
    with closing(apsw.Connection(str(folder / "chroma.sqlite3"))) as database:
        database.execute(script)
    return folder


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def links(found: Entry) -> list[tuple[str, str]]:
    return [(link["rel"], link["to"]) for link in found.links]


def read(reader: Callable[[Origin, Options], Items], path: Path, **options: Any) -> list[Item | Unread]:
    """Return what a reader yields of a path, without writing it to any agent."""
    with Origin(path) as origin:
        return list(reader(origin, Options(**options)))


def items(reader: Callable[[Origin, Options], Items], path: Path, **options: Any) -> list[Item]:
    """Return what a reader yields of a path, which must not have anything unread."""
    found = read(reader, path, **options)
    assert [one for one in found if isinstance(one, Unread)] == []
    return [one for one in found if isinstance(one, Item)]


def reasons(found: Sequence[Item | Unread]) -> list[tuple[str, str]]:
    """Return place and reason of what was not read."""
    return [(one.place, one.reason) for one in found if isinstance(one, Unread)]
