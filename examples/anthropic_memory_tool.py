"""Claude's memory tool on the files of a keepstone agent. Runs offline: a script plays the API.

pip install 'keepstone[anthropic]' && python examples/anthropic_memory_tool.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from anthropic import Anthropic

import keepstone
from keepstone.integrations.anthropic import KeepstoneMemoryTool

NOTE = {
    "command": "create",
    "path": "/memories/travel.md",
    "file_text": "Ada never flies, she takes the ferry.",
}
ANSWERS: list[list[dict[str, Any]]] = [
    [{"type": "tool_use", "id": "call_1", "name": "memory", "input": NOTE}],
    [{"type": "text", "text": "I will remember that."}],
]


def play(request: httpx2.Request) -> httpx2.Response:  # noqa: ARG001  The script goes on, whatever is sent.
    """Answer a request with the next message of the script."""
    content = ANSWERS.pop(0)
    reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
    head = {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "stop_sequence": None,
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    return httpx2.Response(200, json={**head, "content": content, "stop_reason": reason, "usage": usage})


def main(home: str) -> None:
    """Let Claude write a file, and find it as the agent's own."""
    client = Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(play)))
    runner = client.beta.messages.tool_runner(
        model="claude-test",
        max_tokens=1024,
        messages=[{"role": "user", "content": "I never fly. Remember that."}],
        tools=[KeepstoneMemoryTool(home, agent="travel")],
    )
    answer = runner.until_done()
    print("Claude:", answer.content[0])

    with keepstone.open(home) as memory:
        for hit in memory.agent("travel").recall("how does Ada travel? ferry", include=["files"], limit=1):
            print("recalled:", hit.path, hit.text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
