"""The tree: layers, lengths and names, compared with what pyproject.toml and the documentation say."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "keepstone"
DESIGN = ROOT / "docs" / "design.md"

LONGEST = {"src": 400, "tests": 600, "bench": 400, "scripts": 400}
"""The most lines a Python file may have."""

LONGER: dict[str, str] = {
    "src/keepstone/agent.py": "short methods, most of the lines are public docstrings",
    "src/keepstone/home.py": "short methods, most of the lines are public docstrings",
    "src/keepstone/session.py": "short methods, most of the lines are public docstrings",
    "src/keepstone/model.py": "the public values, most of the lines are their docstrings",
    "src/keepstone/store/protocol.py": "a contract: docstrings without code",
    "src/keepstone/store/files/file_store.py": "one method of a few lines for each of the contract's",
    "src/keepstone/filesystem/layout.py": "all names on disk, and the paths made of them",
    "src/keepstone/store/files/purge.py": "each erasure with what it leaves to be finished after a kill",
    "src/keepstone/log/arguments.py": "the keys that callers may give, a line and a comment each",
    "src/keepstone/server/requests.py": "one small class for each body of a request",
    "src/keepstone/index/index.py": "one method of a few lines for each query of the index",
}
"""Files that exceed the limit, each with the reason."""

SHARED_NAMES = {
    "agents.py": "agents: the command, the routes, the list in the terminal and in the browser",
    "anthropic.py": "Anthropic's API: its messages, and its memory tool",
    "app.py": "the object that a framework runs: Typer's, FastAPI's and Textual's",
    "changes.py": "changes of sessions: values, cursors, the routes that stream them, and lists by day",
    "chat.py": "the conversation: the command and the page that open it",
    "diff.py": "what changed: of a session between two times, and between two versions of a text",
    "conflicts.py": "entries in conflict: how they are found, and the command that lists them",
    "context.py": "the context of an agent: the command and the page",
    "entries.py": "entries: their rows, the routes and the commands",
    "facts.py": "facts by key: how they change, the routes and the commands",
    "files.py": "agents' own files: the folder, the routes, the commands and the page",
    "inbox.py": "what of a memory waits for a person: how it is found, and the page",
    "grants.py": "what an agent lets others access: the lines, and the routes",
    "maintenance.py": "maintenance of a home: the commands, and the conformance checks about it",
    "memory.py": "the notes manager, in the terminal and in the browser",
    "mem0.py": "mem0: its memories as an import, and as a vector store",
    "notes.py": "notes: the class, the routes and the commands",
    "openai.py": "OpenAI's API: its embeddings, and its messages",
    "paging.py": "pages with a cursor: of lists in the store, and of answers of the server",
    "parts.py": "what several routes, or several pages, are built from",
    "purge.py": "the removal of bytes: the code, its conformance checks and the screen",
    "recall.py": "recall: the command, the route and the page",
    "selecting.py": "entries of all sessions by a scope: the SQL of it, and its conformance checks",
    "selector.py": "the choice of a notes file after `#`, in the terminal and in the browser",
    "session.py": "one session: the class and the page",
    "sessions.py": "the list of sessions: the commands, the routes, the terminal and the browser",
    "suggestions.py": "suggestions of an agent: how they are kept, the routes and the commands",
    "tables.py": "rows for other programs: read by an import, written by an export",
    "tokens.py": "access tokens of the server: the file, and the commands that manage it",
    "vectors.py": "vectors: one agent's, and the conformance checks about them",
    "writing.py": "writing to sessions: the code, and the conformance checks about it",
}
"""Names that several modules have, each with the one subject that all of them are about."""


def test_files_stay_within_the_length_limit() -> None:
    sizes = {
        path.relative_to(ROOT).as_posix(): (len(path.read_text(encoding="utf-8").splitlines()), limit)
        for folder, limit in LONGEST.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert sorted(path for path, (lines, limit) in sizes.items() if lines > limit) == sorted(LONGER)


def test_modules_of_one_name_are_about_one_subject() -> None:
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        places[path.name].append(path)
    del places["__init__.py"]
    assert sorted(name for name, paths in places.items() if len(paths) > 1) == sorted(SHARED_NAMES)


def test_the_top_level_has_at_most_thirty_two_names() -> None:
    names = [path for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(names) <= 32


def test_design_page_lists_the_layers_of_the_import_contract() -> None:
    contract, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    layers = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    existing = [[name for name in layer if list(PACKAGE.glob(f"{name}*"))] for layer in layers]
    table = (
        DESIGN.read_text(encoding="utf-8").partition("| layer | holds |\n|---|---|\n")[2].partition("\n\n")[0]
    )
    shown = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()]
    assert shown == [layer for layer in existing if layer]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_every_module_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`(?:src/keepstone/)?((?:\w+/)+\w+\.py)`", (ROOT / page).read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (PACKAGE / path).exists() and not (ROOT / path).exists()] == []
