"""The server as a process, behind plain pipes and behind the official client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.warm import warm

import keepstone
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.mcp.instructions import INSTRUCTIONS
from keepstone.mcp.project import agent_of

from .processes import INITIALIZE, INITIALIZED, answers, calling, client, command, piped, with_client

NAMES = [
    "memory_save",
    "memory_search",
    "memory_get",
    "memory_update",
    "memory_forget",
    "memory_context",
    "memory_set",
    "memory_suggest",
    "memory_files",
    "session_history",
]
READING = {"memory_search", "memory_get", "memory_context", "session_history"}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": "d",
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_both_eras_get_all_tools(home: Path, mode: str, version: str) -> None:
    async def use(connected: Client) -> tuple[Any, ...]:
        tools = (await connected.list_tools()).tools
        return connected.protocol_version, connected.server_info, [tool.name for tool in tools]

    agreed, server, names = with_client(home, use, mode=mode)
    assert (agreed, names) == (version, NAMES)
    assert (server.name, server.version) == ("keepstone", keepstone.__version__)
    assert not home.exists()


def test_what_is_saved_is_found_again(home: Path) -> None:
    async def use(connected: Client) -> tuple[str, Any]:
        saved = await connected.call_tool("memory_save", {"text": "Ada prefers green tea"})
        return saved.structured_content["id"], await connected.call_tool("memory_search", {"query": "tea"})

    saved, found = with_client(home, use, "--agent", "coder")
    assert [hit["id"] for hit in found.structured_content["hits"]] == [saved]
    assert found.structured_content["lexical_only"] is True
    assert "Only words were compared" in found.content[0].text
    with keepstone.open(home, embedder="none") as opened:
        assert opened.agent("coder").get(saved).text == "Ada prefers green tea"


def test_the_project_names_the_agent_and_its_user_has_notes(home: Path, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    notes = keepstone.Notes(tmp_path / "shop")
    notes.add("of the project", "Project")
    notes.add("of the user", "User")

    async def use(connected: Client) -> Any:
        await connected.call_tool("memory_save", {"text": "saved here"})
        return await connected.call_tool("memory_context", {})

    found = with_client(home, use, "--agent", "auto", cwd=tmp_path / "shop").structured_content["text"]
    assert ("of the user" in found, "of the project" in found, "saved here" in found) == (True, False, True)
    with keepstone.open(home, embedder="none") as opened:
        assert opened.agents() == [agent_of(tmp_path / "shop")]


def test_a_read_only_server_has_no_writing_tools(home: Path) -> None:
    async def use(connected: Client) -> tuple[set[str], Any]:
        tools = (await connected.list_tools()).tools
        return {tool.name for tool in tools}, await connected.call_tool("memory_save", {"text": "x"})

    names, refused = with_client(home, use, "--read-only")
    assert names == READING
    assert refused.is_error
    assert not home.exists()


def test_an_invalid_agent_stops_before_anything_is_written(home: Path) -> None:
    done = piped(home, [INITIALIZE], "--agent", "../x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'../x'" in done.stderr
    assert not home.exists()


def test_the_end_of_input_ends_with_status_0(home: Path) -> None:
    done = piped(home, [], python=[sys.executable])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_lines_that_are_not_messages_are_survived(home: Path) -> None:
    garbage = [
        "garbage",
        "",
        "[1,",
        '{"jsonrpc": "2.0"}',
        "[" * 5000,
        "\x00\udcff".encode("utf-8", "replace").decode(),
    ]
    done = piped(home, [*garbage, INITIALIZE, *garbage, INITIALIZED, calling("memory_save", text="kept")])
    assert done.returncode == 0
    assert set(answers(done)) >= {1, "memory_save"}
    assert answers(done)["memory_save"]["result"]["isError"] is False


def test_a_lone_surrogate_is_answered_with_an_error(home: Path) -> None:
    bad = calling("memory_save", text="\ud800")
    pair = calling("memory_search", query="\U0001f600")
    done = piped(home, [INITIALIZE, INITIALIZED, bad, {"method": "\udfff"}, pair])
    answered = answers(done)
    assert answered["memory_save"]["error"]["code"] == -32602
    assert "lone surrogate" in answered["memory_save"]["error"]["message"]
    assert "result" in answered["memory_search"]


def test_a_first_request_with_a_lone_surrogate_is_answered_once(home: Path) -> None:
    bad = json.loads(json.dumps(INITIALIZE))
    bad["params"]["clientInfo"]["name"] = "\ud800"
    (line,) = piped(home, [bad]).stdout.splitlines()
    assert json.loads(line)["error"]["code"] == -32602


def test_calls_at_the_end_of_input_are_answered(home: Path) -> None:
    done = piped(home, [INITIALIZE, INITIALIZED, calling("memory_save", text="a last word")])
    assert "remembered" in answers(done)["memory_save"]["result"]["content"][0]["text"]


def test_prints_reach_the_log_and_not_the_protocol(home: Path) -> None:
    code = (
        "import os, keepstone.mcp.server as server; make = server.create_server\n"
        "def noisy(*given):\n    print('noise'); os.write(1, b'noise')\n    return make(*given)\n"
        "server.create_server = noisy\n"
        "import keepstone; from keepstone.mcp.stdio import serve\n"
        f"serve(keepstone.open({str(home)!r}), 'default')"
    )
    done = subprocess.run(
        [*warm(), "-c", code], input=json.dumps(INITIALIZE), capture_output=True, text=True, check=True
    )
    assert set(answers(done)) == {1}
    assert "noise" in done.stderr


def test_a_client_killed_in_mid_call_leaves_a_whole_log(home: Path) -> None:
    with keepstone.open(home, embedder="none") as opened:
        opened.agent("default").session("main").add("note", text="first")
    sessions = home / "agents/default/memory/sessions"
    with Lock(Folder(sessions), "main.lock").hold():
        server = _server_of_a_killed_client(home)
    _wait_for_the_end_of(server)
    with keepstone.open(home, embedder="none") as opened:
        texts = {entry.text for entry in opened.agent("default").session("main").entries()}
    assert {"first"} <= texts <= {"first", "second"}


def _server_of_a_killed_client(home: Path) -> int:
    """Return the process id of a server whose client was killed while a call waits for a lock."""
    messages = json.dumps([INITIALIZE, INITIALIZED, calling("memory_save", text="second")])
    words = [sys.executable, "-c", _CLIENT, messages, *command(), "mcp", "--home", str(home)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        server = int(killed.stdout.readline())
        killed.kill()
    return server


_CLIENT = """
import json, subprocess, sys
pipe = subprocess.PIPE
server = subprocess.Popen(sys.argv[2:], stdin=pipe, stdout=pipe, text=True)
for message in json.loads(sys.argv[1]):
    server.stdin.write(json.dumps(message) + chr(10))
    server.stdin.flush()
    message.get("id") == 1 and server.stdout.readline()
print(server.pid, flush=True)
server.wait()
"""


def _wait_for_the_end_of(process: int) -> None:
    status = Path(f"/proc/{process}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)


def test_200_calls_at_once_all_stay(home: Path) -> None:
    async def use(connected: Client) -> list[Any]:
        calls = (connected.call_tool("memory_save", {"text": f"fact {number}"}) for number in range(200))
        return list(await asyncio.gather(*calls))

    results = with_client(home, use)
    assert not any(result.is_error for result in results)
    with keepstone.open(home, embedder="none") as opened:
        texts = [entry.text for entry in opened.agent("default").session("main").entries()]
    assert sorted(texts) == sorted(f"fact {number}" for number in range(200))


def test_several_servers_share_one_home(home: Path) -> None:
    async def save(number: int) -> None:
        async with client(home) as connected:
            for part in range(10):
                await connected.call_tool("memory_save", {"text": f"server {number} fact {part}"})

    async def run() -> Any:
        await asyncio.gather(*map(save, range(3)))
        async with client(home) as connected:
            return await connected.call_tool("session_history", {"limit": 100})

    history = asyncio.run(run())
    texts = {entry["text"] for entry in history.structured_content["entries"]}
    assert texts == {f"server {number} fact {part}" for number in range(3) for part in range(10)}


@pytest.mark.parametrize("request_", [INITIALIZE, DISCOVER], ids=["initialize", "discover"])
def test_clients_of_both_generations_learn_who_answers(home: Path, request_: dict[str, Any]) -> None:
    result = answers(piped(home, [request_]))[request_["id"]]["result"]
    server = result.get("serverInfo") or result["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert (server["name"], server["version"]) == ("keepstone", keepstone.__version__)
    assert result["instructions"] == INSTRUCTIONS


def test_a_cancelled_call_is_not_answered_and_others_are(home: Path) -> None:
    with keepstone.open(home, embedder="none") as opened:
        opened.agent("default").session("main").add("note", text="green tea")
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "memory_save", "reason": "the user went on"},
    }
    logs = Folder(home / "agents/default/memory/sessions")
    with Lock(logs, "main.lock").hold():
        messages = [INITIALIZE, INITIALIZED, calling("memory_save", text="x"), cancelled]
        done = piped(home, [*messages, calling("memory_search", query="tea")])
    assert done.returncode == 0
    assert set(answers(done)) == {1, "memory_search"}
