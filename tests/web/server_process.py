"""The server of the pages' tests, which runs in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.requests import HTTPConnection

import keepstone
from keepstone import Agent, Notes, StoreError
from keepstone.chat import messages
from keepstone.cli import sample
from keepstone.server.tokens import Tokens
from keepstone.web import Open, mount
from keepstone.web.answering import Answerer, Talking


@dataclass
class Waiting:
    """Answers half, and the rest once a file says how to go on."""

    go: Path

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:  # noqa: ARG002
        yield "The beginning, "
        while not self.go.exists():
            time.sleep(0.02)
        if self.go.read_text() == "fail":
            raise StoreError("the model went away; ask again")
        yield "and the end."
        agent.session(session).add("message", {"role": "assistant", "content": "The beginning, and the end."})


class Noting:
    """A model that saves a note."""

    name, uses_tools = "noting", True

    def answer(self, request: messages.Request) -> Iterator[messages.Piece]:
        if request.messages[-1].results:
            yield request.messages[-1].results[0].content
        else:
            yield messages.ToolCall("1", "save_note", '{"text": "Run the tests first", "where": "project"}')


def run(root: Path, port: int) -> None:
    """Serve the pages of a home until the process is ended.

    ``ONLY`` in the environment names the agents that may be read, ``ANSWERER`` what answers in the chat, and
    ``WITHOUT_TOKENS`` takes the tokens away.
    """
    only = os.environ.get("ONLY")

    def access(request: HTTPConnection) -> Open | None:
        if request.query_params.get("stranger"):
            return None
        return Open(frozenset(only.split()), read_only=True) if only else Open()

    notes = Notes(root / "project", root / "user/memory.md")
    answerers: dict[str | None, Answerer] = {
        "waiting": Waiting(root / "go"),
        "noting": Talking(notes, Noting()),
    }
    app = FastAPI()
    mount(
        app,
        keepstone.open(root, embedder="none"),
        project=root / "project",
        answerer=answerers.get(os.environ.get("ANSWERER")),
        notes=notes,
        access=access,
        tokens=None if os.environ.get("WITHOUT_TOKENS") else Tokens(root),
        demo=sample.add_to,
    )
    uvicorn.run(app, port=port, log_level="warning")


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
