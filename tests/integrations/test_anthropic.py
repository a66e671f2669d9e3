"""Anthropic's memory tool: the texts that Claude knows, on an agent's own files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic.lib.tools")

import anyio
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from tests.integrations.locking import locked

import keepstone
from keepstone import Home
from keepstone.integrations.anthropic import AsyncKeepstoneMemoryTool, KeepstoneMemoryTool


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home") as home:
        yield home


@pytest.fixture
def files(home: Home) -> Path:
    return home.root / "agents" / "default" / "files"


@pytest.fixture
def tool(home: Home) -> KeepstoneMemoryTool:
    return KeepstoneMemoryTool(home)


def call(tool: BetaAbstractMemoryTool, command: str, path: str = "/memories/a.md", **keys: Any) -> str:
    return str(tool.call({"command": command, "path": path, **keys}))


def create(tool: BetaAbstractMemoryTool, path: str, text: str = "one\ntwo\nthree") -> str:
    return call(tool, "create", path, file_text=text)


def test_it_is_the_framework_s_tool(tool: KeepstoneMemoryTool, home: Home) -> None:
    assert isinstance(tool, BetaAbstractMemoryTool)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert isinstance(AsyncKeepstoneMemoryTool(home), BetaAsyncAbstractMemoryTool)
    assert not home.root.exists()


def test_files_are_the_agent_s_own(tool: KeepstoneMemoryTool, home: Home) -> None:
    create(tool, "/memories/plans/today.md", "Call Ana")
    assert home.agent("default").files.read("plans/today.md") == "Call Ana"
    home.agent("default").files.write("tea.md", "Ada drinks tea")
    assert "\tAda drinks tea" in call(tool, "view", "/memories/tea.md")
    assert home.agent("other").files.list() == []


def test_a_listing_has_sizes_and_two_levels(tool: KeepstoneMemoryTool, files: Path) -> None:
    sizes = {"empty": 0, "five": 5, "half": 1536, "big": 2 * 1024 * 1024, "d/e/f": 1, ".hidden": 1, "d/.x": 1}
    for name, size in sizes.items():
        create(tool, f"/memories/{name}", "x" * size)
    lines = call(tool, "view", "/memories").splitlines()
    head = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert lines[0] == head
    assert [line.split("\t")[1] for line in lines[1:]] == [
        "/memories",
        "/memories/big",
        "/memories/d/",
        "/memories/d/e/",
        "/memories/empty",
        "/memories/five",
        "/memories/half",
    ]
    assert {"2M\t/memories/big", "0B\t/memories/empty", "5B\t/memories/five", "1.5K\t/memories/half"} <= {
        *lines
    }
    assert (files / "d" / "e" / "f").exists()


def test_a_view_numbers_lines_and_keeps_carriage_returns(tool: KeepstoneMemoryTool) -> None:
    create(tool, "/memories/a.md", "one\r\ntwo\n")
    head = "Here's the content of /memories/a.md with line numbers:"
    assert call(tool, "view") == f"{head}\n     1\tone\r\n     2\ttwo\n     3\t"
    assert call(tool, "view", view_range=[2, -1]) == f"{head}\n     2\ttwo\n     3\t"
    assert call(tool, "view", view_range=[2, 2]) == f"{head}\n     2\ttwo"


def test_edits_say_what_they_changed(tool: KeepstoneMemoryTool) -> None:
    create(tool, "/memories/a.md", "1\n2\n3\n4\n5\n6")
    edited = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    shown = "     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
    assert call(tool, "str_replace", old_str="4", new_str="four") == f"{edited}\n{shown}"
    assert (
        call(tool, "insert", insert_line=0, insert_text="0\n\n") == "The file /memories/a.md has been edited."
    )
    assert call(tool, "view", view_range=[1, 2]).endswith("     1\t0\n     2\t1")


MULTIPLE = "No replacement was performed. Multiple occurrences"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"command": "create", "file_text": "x"}, "File /memories/a.md already exists"),
    ({"command": "create", "path": "/memories/d", "file_text": "x"}, "File /memories/d already exists"),
    (
        {"command": "view", "path": "/memories/no"},
        "The path /memories/no does not exist. Please provide a valid path.",
    ),
    (
        {"command": "str_replace", "path": "/memories/no", "old_str": "a", "new_str": "b"},
        "The path /memories/no does not exist. Please provide a valid path.",
    ),
    ({"command": "delete", "path": "/memories/no"}, "The path /memories/no does not exist"),
    (
        {"command": "rename", "old_path": "/memories/no", "new_path": "/memories/x"},
        "The path /memories/no does not exist",
    ),
    (
        {"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": "x"},
        "The path /memories/d is not a file.",
    ),
    (
        {"command": "str_replace", "old_str": "zzz", "new_str": ""},
        "No replacement was performed, old_str `zzz` did not appear verbatim in /memories/a.md.",
    ),
    (
        {"command": "str_replace", "old_str": "e", "new_str": ""},
        f"{MULTIPLE} of old_str `e` in lines: 1, 3, 3. Please ensure it is unique",
    ),
    (
        {"command": "insert", "insert_line": 4, "insert_text": "x"},
        "Invalid `insert_line` parameter: 4. It should be within the range [0, 3].",
    ),
    (
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/d"},
        "The destination /memories/d already exists",
    ),
    ({"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory itself"),
    (
        {"command": "rename", "old_path": "/memories/", "new_path": "/memories/x"},
        "Cannot rename the /memories directory itself",
    ),
    ({"command": "view", "path": "/etc/passwd"}, "Path must start with /memories, got: /etc/passwd"),
    ({"command": "view", "path": "/memoriesx/a"}, "Path must start with /memories, got: /memoriesx/a"),
    (
        {"command": "view", "path": "/memories/../secret"},
        "Path /memories/../secret would escape /memories directory",
    ),
    (
        {"command": "view", "path": "/memories/a\\..\\b"},
        "Path /memories/a\\..\\b would escape /memories directory",
    ),
]


@pytest.mark.parametrize(("command", "text"), REFUSED)
def test_a_refusal_has_the_known_text_and_changes_nothing(
    tool: KeepstoneMemoryTool, home: Home, command: dict[str, Any], text: str
) -> None:
    create(tool, "/memories/a.md")
    create(tool, "/memories/d/b.md")
    with pytest.raises(ToolError) as raised:
        tool.call({"path": "/memories/a.md", **command})
    assert str(raised.value) == text
    own = home.agent("default").files
    assert {path: own.read(path) for path in own.list()} == {
        "a.md": "one\ntwo\nthree",
        "d/b.md": "one\ntwo\nthree",
    }


@pytest.mark.parametrize(
    "command",
    [
        {"command": "view", "path": "/memories/x\0y"},
        {"command": "view", "path": "/memories/" + "x" * 300},
        {"command": "create", "path": "/memories/" + "d/" * 600 + "x", "file_text": ""},
        {"command": "create", "path": "/memories/x", "file_text": "\ud800"},
        {"command": "create", "path": "/memories/\ud800", "file_text": "x"},
        {"command": "create", "path": "/memories/a.md/below", "file_text": "x"},
        {"command": "create", "path": "/memories/.keepstone.lock", "file_text": "x"},
        {"command": "create", "path": "/memories/x"},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": "/memories/a.md", "view_range": ["a", "b"]},
        {"command": "insert", "path": "/memories/a.md", "insert_line": "one", "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/inside"},
        {"command": "explode", "path": "/memories"},
        {},
    ],
)
def test_bad_input_is_a_tool_error_without_a_path_of_the_machine(
    tool: KeepstoneMemoryTool, tmp_path: Path, home: Home, command: dict[str, Any]
) -> None:
    create(tool, "/memories/a.md")
    create(tool, "/memories/d/b.md")
    with pytest.raises(ToolError) as raised:
        tool.call(command)
    assert str(tmp_path) not in str(raised.value)
    assert home.agent("default").files.list() == ["a.md", "d/b.md"]


def test_a_file_that_is_not_text_is_a_tool_error(tool: KeepstoneMemoryTool, files: Path) -> None:
    create(tool, "/memories/a.md")
    (files / "b.bin").write_bytes(b"\xff\xfe")
    os.mkfifo(files / "pipe")
    for path, text in (("/memories/b.bin", "not UTF-8"), ("/memories/pipe", "Unsupported file type")):
        with pytest.raises(ToolError, match=text):
            call(tool, "view", path)
    with pytest.raises(ToolError, match="not UTF-8"):
        call(tool, "str_replace", "/memories/b.bin", old_str="a", new_str="b")


def test_links_are_followed_inside_and_nowhere_else(
    tool: KeepstoneMemoryTool, files: Path, tmp_path: Path
) -> None:
    create(tool, "/memories/d/a.md", "inside")
    (tmp_path / "secret.md").write_text("outside")
    (files / "in").symlink_to(Path("d", "a.md"))
    (files / "folder").symlink_to("d")
    (files / "absolute").symlink_to(files / "d")
    (files / "out").symlink_to(tmp_path / "secret.md")
    (files / "up").symlink_to("../../..")
    (files / "round").symlink_to("round")
    (files / "gone").symlink_to("nowhere")
    shown = call(tool, "view", "/memories").splitlines()[2:]
    assert [line.split("\t")[1] for line in shown] == [
        "/memories/absolute/",
        "/memories/absolute/a.md",
        "/memories/d/",
        "/memories/d/a.md",
        "/memories/folder/",
        "/memories/folder/a.md",
        "/memories/in",
    ]
    assert "inside" in call(tool, "view", "/memories/in")
    assert "inside" in call(tool, "view", "/memories/absolute/a.md")
    for path in ("/memories/out", "/memories/up/home", "/memories/round", "/memories/folder/../../x"):
        with pytest.raises(ToolError, match=f"^Path {path} would escape /memories directory$"):
            call(tool, "view", path)
        with pytest.raises(ToolError):
            create(tool, f"{path}/new.md")
    assert (tmp_path / "secret.md").read_text() == "outside"
    call(tool, "delete", "/memories/folder")
    assert not (files / "d").exists()


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_modes_are_private_whatever_the_umask(tool: KeepstoneMemoryTool, home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        create(tool, "/memories/d/e/a.md")
        call(tool, "str_replace", "/memories/d/e/a.md", old_str="one", new_str="1")
        tool.call({"command": "rename", "old_path": "/memories/d/e/a.md", "new_path": "/memories/x/y/a.md"})
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [home.root, *home.root.rglob("*")]}
    wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
    assert wrong == {}


def test_nothing_but_the_files_lies_in_the_folder(tool: KeepstoneMemoryTool, files: Path) -> None:
    create(tool, "/memories/a.md")
    call(tool, "insert", insert_line=1, insert_text="x")
    assert [path.name for path in files.iterdir()] == ["a.md"]


def test_of_many_creators_exactly_one_wins(tool: KeepstoneMemoryTool, home: Home) -> None:
    def attempt(number: int) -> bool:
        try:
            create(KeepstoneMemoryTool(keepstone.open(home.root)), "/memories/a.md", str(number))
        except ToolError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(16)))
    assert sum(won) == 1
    assert call(tool, "view").endswith(f"\t{won.index(True)}")


def test_concurrent_edits_of_one_file_are_all_kept(tool: KeepstoneMemoryTool) -> None:
    create(tool, "/memories/a.md", "")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: call(tool, "insert", insert_line=0, insert_text=f"line {n}"), range(20)))
    assert call(tool, "view").count("line ") == 21  # One of them is in the head of the view.


def test_all_memory_can_be_cleared(tool: KeepstoneMemoryTool, files: Path) -> None:
    assert tool.clear_all_memory() == "All memory cleared"
    create(tool, "/memories/d/a.md")
    create(tool, "/memories/.hidden")
    assert tool.clear_all_memory() == "All memory cleared"
    assert [path.name for path in files.iterdir()] == []
    create(tool, "/memories/a.md")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_async_tool_does_the_same(home: Home, backend: str) -> None:
    if backend == "trio":
        pytest.importorskip("trio")
    tool = AsyncKeepstoneMemoryTool(home)

    async def main() -> list[str]:
        path = {"path": "/memories/a.md"}
        answers = [
            await tool.call({"command": "create", "file_text": "one\ntwo", **path}),
            await tool.call({"command": "insert", "insert_line": 2, "insert_text": "three", **path}),
            await tool.call({"command": "str_replace", "old_str": "two", "new_str": "2", **path}),
            await tool.call(
                {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"}
            ),
            await tool.call({"command": "view", "path": "/memories/b.md"}),
            await tool.call({"command": "delete", "path": "/memories/b.md"}),
            await tool.clear_all_memory(),
        ]
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call({"command": "view", **path})
        with pytest.raises(ToolError, match="Unknown command"):
            await tool.call({"command": "explode"})
        return [str(answer) for answer in answers]

    answers = anyio.run(main, backend=backend)
    assert answers[4].endswith("     1\tone\n     2\t2\n     3\tthree\n     4\t")
    assert answers[-1] == "All memory cleared"


def test_a_locked_home_is_a_tool_error_and_the_loop_goes_on(home: Home, files: Path) -> None:
    tool = AsyncKeepstoneMemoryTool(home)
    KeepstoneMemoryTool(home).call({"command": "create", "path": "/memories/a.md", "file_text": "x"})
    turns = 0

    async def main() -> None:
        nonlocal turns
        done = anyio.Event()

        async def write() -> None:
            with pytest.raises(ToolError, match="locked by another process"):
                await tool.call({"command": "create", "path": "/memories/b.md", "file_text": "x"})
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not done.is_set():
                await tool.call({"command": "view", "path": "/memories/a.md"})
                turns += 1

    with locked(files / ".keepstone.lock"):
        anyio.run(main)
    assert turns > 10
    assert not (files / "b.md").exists()


def test_a_subclass_can_override_a_command(home: Home) -> None:
    class Loud(KeepstoneMemoryTool):
        def view(self, command: Any) -> Any:
            return super().view(command).upper()

    tool = Loud(home)
    create(tool, "/memories/a.md", "tea")
    assert call(tool, "view").endswith("TEA")
