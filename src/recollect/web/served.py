"""The pages behind the server's sign-in, with the chat of ``recollect chat``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recollect.agent import Agent
from recollect.chat import ChatModel, Conversation, ModelError, choose
from recollect.home import Home
from recollect.notes import Notes
from recollect.server import signed_in
from recollect.web.mounting import mount
from recollect.web.site import Access

if TYPE_CHECKING:
    from fastapi import FastAPI


class Talking:
    """Answers with the model that the environment names, offline by recall if it names none."""

    def __init__(self, notes: Notes, model: ChatModel) -> None:
        self._notes = notes
        self._model = model

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message, yield the answer piece by piece, and store it; ModelError if the model fails."""
        conversation = Conversation(agent, self._notes, self._model, agent.session(session))
        for delta in conversation.send(message):
            if delta.kind == "error":
                raise ModelError(delta.text)
            if delta.kind == "text":
                yield delta.text


def pages(home: Home, notes: Notes, project: Path) -> Callable[[FastAPI], None]:
    """Return what puts the pages into the server's app."""

    def add(app: FastAPI) -> None:
        answerer = Talking(notes, choose().model)
        mount(app, home, project=project, access=_access, answerer=answerer, notes=notes)

    return add


def _access(request: Request) -> Access | Response:
    return signed_in(request) or RedirectResponse("/sign-in", 303)
