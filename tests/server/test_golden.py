"""Library, command and server say the same: one script, three ways in, and answers compared whole."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.postgres_server import schema_of
from tests.server.conftest import serving
from typer.testing import CliRunner

import keepstone
from keepstone.cli.app import app
from keepstone.operations import documents
from keepstone.operations.error_codes import FORESEEN, code_of

Step = tuple[str, dict[str, Any]]
Way = Callable[[str, dict[str, Any]], Any]

DECISION = {"decision": "Use OAuth", "by": "Ada"}
SCRIPT: list[Step] = [
    ("add", {"session": "main", "type": "decision", "data": DECISION, "tags": ["auth"], "priority": 0.9}),
    ("add", {"session": "main", "type": "note", "text": "Ada prefers short answers to OAuth questions"}),
    ("add", {"session": "b/c", "type": "note", "text": "Ünïcode ☂ and a\nsecond line"}),
    ("sessions", {}),
    ("show", {"session": "main"}),
    ("show", {"session": "b/c"}),
    ("show", {"session": "missing"}),
    ("recall", {"query": "what about OAuth", "limit": 5, "neighbours": 1}),
    ("recall", {"query": "OAuth", "types": ["decision"], "tags": ["auth"], "where": {"by": "Ada"}}),
    ("recall", {"query": "nothing has this"}),
    ("recall", {"query": "x", "since": "not a time"}),
    ("update", {"entry": 1, "tags": ["style"], "priority": 0.5}),
    ("update", {"entry": 1, "text": "Ada prefers long answers"}),
    ("delete", {"entry": 1}),
    ("history", {"entry": 1}),
    ("update", {"entry": 1, "text": "too late"}),
    ("delete", {"entry": "nowhere"}),
    ("context", {"query": "OAuth", "budget": 500}),
    ("match", {"text": "oauth", "dry_run": True}),
    ("match", {"text": "Second line"}),
    ("compact", {"session": "main"}),
    ("compact", {"session": "missing"}),
    ("index", {}),
    ("index", {"rebuild": True}),
    ("add", {"session": "b/c", "type": "note", "text": "to be purged"}),
    ("purge", {"entry": 3}),
    ("show", {"session": "b/c"}),
    ("clear", {"session": "b/c"}),
    ("remove", {"session": "b/c"}),
    ("remove", {"session": "b/c"}),
    ("write", {"path": "plans/today.md", "content": "Call Ada\n"}),
    ("append", {"path": "plans/today.md", "content": "Call Bo\n"}),
    ("read", {"path": "plans/today.md"}),
    ("files", {}),
    ("write", {"path": "../x", "content": ""}),
    ("unlink", {"path": "plans/today.md"}),
    ("unlink", {"path": "plans/today.md"}),
    ("note", {"text": "Use pnpm", "type": "Project"}),
    ("note", {"text": "use  PNPM.", "type": "Project"}),
    ("note", {"text": "Releases on Mondays", "type": "User"}),
    ("edit_note", {"note": "Use pnpm", "text": "Use pnpm 9"}),
    ("edit_note", {"note": "Use npm", "text": "x"}),
    ("notes", {}),
    ("prompt", {}),
    ("dedupe", {}),
    ("forget_note", {"note": "Use pnpm 9"}),
    ("forget_note", {"note": "Use pnpm 9"}),
    ("notes", {}),
    ("doctor", {}),
    ("agents", {}),
    ("purge_agent", {"agent": "default"}),
    ("agents", {}),
]


@pytest.fixture(params=["files", "postgresql"])
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """Three empty homes on each store."""
    names = ("library", "command", "server")
    if request.param == "files":
        yield [str(tmp_path / name / "home") for name in names]
        return
    with ExitStack() as stack:
        yield [stack.enter_context(schema_of(request.getfixturevalue("postgres"))) for _ in names]


def test_library_command_and_server_answer_alike(tmp_path: Path, homes: list[str]) -> None:
    library = answers(in_library(tmp_path / "library", homes[0]))
    command = answers(in_command(tmp_path / "command", homes[1]))
    with serving(tmp_path / "server", target=homes[2]) as server_process, server_process.client() as client:
        server = answers(over_http(client))
    assert [name for name, _ in SCRIPT][: len(library)] == [name for name, _ in library]
    for mine, its, theirs in zip(library, command, server, strict=True):
        assert mine == its
        assert mine == theirs


def answers(way: Way) -> list[tuple[str, Any]]:
    """Run the script; ids made on the way, times and places are replaced by what stays the same."""
    ids: list[str] = []
    found = []
    for name, given in SCRIPT:
        asked = {
            key: ids[value] if isinstance(value, int) and key == "entry" else value
            for key, value in given.items()
        }
        answer = way(name, asked)
        if name == "add":
            ids.append(answer["id"])
        found.append((name, settled(answer, ids)))
    return found


_PATH = re.compile(r'from "[^"]+"')
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\.\d{6}Z)?")
_OF_PLACE = {"took_ms": 0, "source": "file", "modified": "T", "message": "…", "subject": "…", "next": None}


def settled(answer: Any, ids: list[str]) -> Any:
    if isinstance(answer, dict):
        return {
            key: _OF_PLACE.get(key, settled(value, ids)) for key, value in answer.items() if key != "next"
        }
    if isinstance(answer, list):
        return [settled(value, ids) for value in answer]
    if isinstance(answer, str):
        for number, entry_id in enumerate(ids):
            answer = answer.replace(entry_id, f"#{number}")
        return _PATH.sub("from a file", _TIME.sub("T", answer))
    return answer


def in_library(folder: Path, target: str) -> Way:
    folder.mkdir()
    home = keepstone.open(target)
    notes = keepstone.Notes(folder, folder / "user.md")

    def way(name: str, given: dict[str, Any]) -> Any:
        try:
            return library_call(home, notes, name, dict(given))
        except FORESEEN as error:
            return {"error": code_of(error)}

    return way


def library_call(home: keepstone.Home, notes: keepstone.Notes, name: str, given: dict[str, Any]) -> Any:
    agent = home.agent("default")
    entry, path = given.pop("entry", None), given.get("path")
    session = agent.session(given.pop("session")) if "session" in given else agent.session("-")
    calls: Mapping[str, Callable[[], Any]] = {
        "add": lambda: documents.entry_document(session.add(**given)),
        "sessions": lambda: {"sessions": [documents.session_document(info) for info in agent.sessions()]},
        "show": lambda: shown(session),
        "recall": lambda: documents.hits_document(agent.recall(**given)),
        "update": lambda: documents.entry_document(agent.update(str(entry), **given)),
        "delete": lambda: told(agent.delete, str(entry), {"id": entry, "deleted": True}),
        "history": lambda: {"versions": [*map(documents.version_document, agent.history(str(entry)))]},
        "context": lambda: documents.context_document(agent.context(**given, notes=notes)),
        "purge": lambda: told(agent.purge, str(entry), {"id": entry, "purged": True}),
        "clear": lambda: {"id": session.id, "cleared": True} if session.clear() else missing("session"),
        "remove": lambda: {"id": session.id, "removed": True} if session.remove() else missing("session"),
        "write": lambda: {"path": path, "bytes": agent.files.write(**given)},
        "append": lambda: {"path": path, "bytes": agent.files.append(**given)},
        "read": lambda: {"path": path, "content": agent.files.read(str(path))},
        "files": lambda: {"files": agent.files.list()},
        "unlink": lambda: told(agent.files.delete, str(path), {"path": path, "deleted": True}),
        "note": lambda: documents.saved_document(notes.add(**given)),
        "edit_note": lambda: edited(notes, **given),
        "forget_note": lambda: forgotten(notes, given["note"]),
        "dedupe": lambda: {
            "dry_run": False, "notes": [*map(documents.note_document, notes.deduplicate())]
        },
        "prompt": lambda: {"text": notes.prompt()},
        "match": lambda: documents.purged_document(
            agent.purge_matching(**given), dry_run=given.get("dry_run", False)
        ),
        "compact": lambda: (
            {"sessions": 1, "saved_bytes": session.compact(), "archived": 0}
            if session.info() else missing("session")
        ),
        "index": lambda: indexed(home, **given),
        "notes": lambda: {"notes": [documents.note_document(note) for note in notes.entries()]},
        "doctor": lambda: {
            "healthy": True, "findings": [documents.finding_document(finding) for finding in home.doctor()]
        },
        "agents": lambda: {"agents": home.agents()},
        "purge_agent": lambda: told(home.purge_agent, given["agent"], {**given, "purged": True}),
    }  # fmt: skip
    return calls[name]()


def told(act: Callable[[str], object], subject: str, answer: dict[str, Any]) -> dict[str, Any]:
    act(subject)
    return answer


def shown(session: keepstone.Session) -> dict[str, Any]:
    entries = [documents.entry_document(entry) for entry in session.entries()]
    return {"id": session.id, "entries": entries} if session.info() else missing("session")


def edited(notes: keepstone.Notes, note: str, text: str) -> dict[str, Any]:
    found = [entry for entry in notes.entries() if entry.content == note]
    result = notes.replace(found[0], text) if found else None
    return dict(documents.saved_document(result)) if result else missing("note")


def forgotten(notes: keepstone.Notes, note: str) -> dict[str, Any]:
    found = [entry for entry in notes.entries() if entry.content == note]
    if not (found and notes.remove(found[0])):
        return missing("note")
    return {"removed": True, "note": documents.note_document(found[0])}


def indexed(home: keepstone.Home, *, rebuild: bool = False) -> dict[str, Any]:
    home.sync()
    sessions = home.rebuild() if rebuild else None
    return {"rebuilt": rebuild, "sessions": sessions, "vectors_made": None}


def missing(kind: str) -> dict[str, Any]:
    return {"error": f"{kind}_not_found"}


def in_command(folder: Path, target: str) -> Way:
    folder.mkdir()
    place = {"KEEPSTONE_HOME": target, "COLUMNS": None}

    def way(name: str, given: dict[str, Any]) -> Any:
        words = command_line(name, dict(given))
        if words[0] in ("notes", "context"):
            words += ["--dir", str(folder)]
        if words[0] == "notes":
            words += ["--user-file", str(folder / "user.md")]
        result = CliRunner().invoke(app, [*words, "--json"], env=place)
        if result.exit_code:
            return {"error": json.loads(result.stderr)["error"]["code"]}
        answer = json.loads(result.stdout)
        if name == "sessions":  # The command's list has titles, too; session-summaries has them over HTTP.
            kept = ("id", "modified", "size")
            answer = {"sessions": [{key: one[key] for key in kept} for one in answer["sessions"]]}
        return answer

    return way


def command_line(name: str, given: dict[str, Any]) -> list[str]:
    keys = ("entry", "query", "path", "agent", "note")
    subject = [str(given.pop(key)) for key in keys if key in given]
    if name in ("show", "clear", "remove"):
        subject = [given.pop("session")]
    content = [given.pop("content")] if "content" in given else []
    if name in ("add", "note", "edit_note") and "text" in given:
        subject += [given.pop("text")]
    if name == "match":
        subject = ["--match", given.pop("text")]
    if name == "note":
        given = {given.pop("type").lower(): True}
    group = {
        "sessions": "sessions list", "show": "sessions show", "clear": "sessions clear --yes",
        "remove": "sessions delete --yes", "purge": "purge --yes", "write": "files write",
        "append": "files append", "read": "files read", "files": "files list", "unlink": "files delete",
        "edit_note": "notes edit", "forget_note": "notes remove --yes", "dedupe": "notes dedupe",
        "prompt": "notes show", "match": "purge --yes", "note": "notes add", "notes": "notes list",
        "agents": "agents list",
        "purge_agent": "agents purge --yes",
    }.get(name, name)  # fmt: skip
    return [*group.split(), *subject, *content, *options(given)]


def options(given: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for key, value in given.items():
        option = f"--{key.removesuffix('s') if key in ('tags', 'types', 'sessions') else key}".replace(
            "_", "-"
        )
        if value is True:
            words.append(option)
        elif key == "where":
            words += [word for name, wanted in value.items() for word in (option, f"{name}={wanted}")]
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [option, json.dumps(each) if isinstance(each, dict) else str(each)]
    return words


def over_http(client: httpx.Client) -> Way:
    def way(name: str, given: dict[str, Any]) -> Any:
        method, path, body = request(name, dict(given))
        answer = client.request(method, f"/v1/{path}", json=body)
        return answer.json() if answer.is_success else {"error": answer.json()["code"]}

    return way


def request(name: str, given: dict[str, Any]) -> tuple[str, str, Any]:
    base = "agents/default"
    entry = quote(str(given.pop("entry", "")), safe="")
    session = f"{base}/sessions/" + quote(given.pop("session", ""), safe="")
    path = f"{base}/files/" + quote(given.pop("path", ""), safe="")
    named = {"content": given.get("note"), "type": "Project", "line": 1}
    if name == "context":
        given["notes"] = True
    return {
        "add": ("POST", f"{session}/entries", given), "sessions": ("GET", f"{base}/sessions", None),
        "show": ("GET", f"{session}/entries", None), "recall": ("POST", f"{base}/recall", given),
        "update": ("PATCH", f"{base}/entries/{entry}", given),
        "delete": ("DELETE", f"{base}/entries/{entry}", None),
        "history": ("GET", f"{base}/entries/{entry}/history", None),
        "context": ("POST", f"{base}/context", given),
        "purge": ("POST", f"{base}/entries/{entry}/purge", None), "clear": ("POST", f"{session}/clear", None),
        "remove": ("DELETE", session, None), "write": ("PUT", path, given), "append": ("POST", path, given),
        "read": ("GET", path, None), "files": ("GET", f"{base}/files", None),
        "unlink": ("DELETE", path, None),
        "edit_note": ("PUT", "notes", {"note": named, "text": given.get("text")}),
        "forget_note": ("POST", "notes/remove", named), "dedupe": ("POST", "notes/dedupe", {}),
        "prompt": ("GET", "notes/prompt", None), "match": ("POST", f"{base}/purge", given),
        "compact": ("POST", f"{session}/compact", {}), "index": ("POST", "index", given),
        "note": ("POST", "notes", given), "notes": ("GET", "notes", None), "doctor": ("GET", "doctor", None),
        "agents": ("GET", "agents", None), "purge_agent": ("DELETE", "agents/default", None),
    }[name]  # fmt: skip
