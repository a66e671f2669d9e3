"""The same commands to our memory tool and to Anthropic's own give the same texts and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("anthropic.lib.tools")

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

import keepstone
from keepstone.integrations.anthropic import KeepstoneMemoryTool

PATHS = st.sampled_from(
    ["a", "b", "d", "d/a", "d/e/f", "d/e/f/g", ".h", "a/x", "ü ö", "d/../a", "../a", "./a", "d/", ""]
).map(lambda name: f"/memories/{name}") | st.sampled_from(
    ["/memories", "/etc/passwd", "a", "/memories/../.."]
)
TEXTS = st.sampled_from(["", "\n", "a", "a\n", "a\nb\nc", "a\r\nb\r\n", "x a x\na\n", "\n\na\n\n", "ü\n"])
PARTS = st.sampled_from(["a", "b", "\n", "x", "\r", "a\nb"])
LINES = st.integers(-2, 5)


def command(name: str, **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"command": st.just(name), **keys})


COMMANDS = st.one_of(
    command("view", path=PATHS),
    command(
        "view",
        path=PATHS,
        view_range=st.tuples(st.integers(-1, 4), st.integers(1, 4) | st.just(-1)).map(list),
    ),
    command("create", path=PATHS, file_text=TEXTS),
    command("create", path=PATHS, file_text=TEXTS),
    command("str_replace", path=PATHS, old_str=PARTS, new_str=TEXTS),
    command("insert", path=PATHS, insert_line=LINES, insert_text=TEXTS),
    command("delete", path=PATHS),
    command("rename", old_path=PATHS, new_path=PATHS),
)


def answer(tool: BetaAbstractMemoryTool, given_command: dict[str, Any]) -> str:
    """The text of an answer, or of an error; a folder's size is the file system's."""
    try:
        text = str(tool.call(given_command))
    except ToolError as error:
        return f"error: {error}"
    except OSError:  # A file in a folder's place, which the built-in does not catch.
        return "error"
    return re.sub(r"^\S+\t(.*/|/memories.*)$", r"\1", text, flags=re.MULTILINE)


def tree(folder: Path) -> dict[str, bytes | None]:
    paths = sorted(folder.rglob("*")) if folder.exists() else []
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in paths
    }
    return {name: content for name, content in found.items() if not name.startswith(".keepstone.")}


@given(st.lists(COMMANDS, max_size=12))
@example(
    [
        {"command": "create", "path": "/memories/a", "file_text": ""},
        {"command": "view", "path": "/memories/a", "view_range": [2, -1]},
    ]
)
def test_the_same_commands_have_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, commands: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("tools")
    ours = KeepstoneMemoryTool(keepstone.open(folder / "home"))
    built_in = BetaLocalFilesystemMemoryTool(str(folder / "built-in"))
    for one in commands:
        wanted, found = answer(built_in, one), answer(ours, one)
        if wanted == "error" or "escape" in wanted:
            assert found.startswith("error")
        elif not (one["command"] == "rename" and wanted.startswith("error")):
            assert found == wanted
        files = folder / "home" / "agents" / "default" / "files"
        if wanted.startswith("error"):  # The built-in leaves empty parents behind.
            for path in sorted((folder / "built-in" / "memories").rglob("*"), reverse=True):
                if (
                    path.is_dir()
                    and not any(path.iterdir())
                    and not (files / path.relative_to(folder / "built-in" / "memories")).exists()
                ):
                    path.rmdir()
        assert tree(files) == tree(folder / "built-in" / "memories")
