"""``keepstone hook``: the command that coding agents call at their events."""

import json
import os
import sys
from threading import Thread
from typing import Annotated, Any

import typer

from keepstone.cli.options import HomeOption

app = typer.Typer()

_SECONDS = 2.0
"""Maximum seconds that an agent waits for the hook."""

ClientArgument = Annotated[
    str, typer.Argument(metavar="CLIENT", help="claude-code, codex or gemini.", show_default=False)
]
EventArgument = Annotated[
    str, typer.Argument(metavar="EVENT", help="The event, as the client calls it.", show_default=False)
]
ProjectAgentOption = Annotated[
    str, typer.Option("--agent", metavar="SLUG", help="Whose memory; auto is one for each project.")
]


@app.command(
    epilog="Example: cat event.json | keepstone hook claude-code SessionStart",
    # A newer version may have written unknown options into a client's configuration; a usage error would
    # stop the agent.
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def hook(
    client: ClientArgument = "",
    event: EventArgument = "",
    *,
    home: HomeOption = None,
    agent: ProjectAgentOption = "auto",
) -> None:
    """Answer an event of a coding agent, which standard input holds. For the agent's configuration.

    It takes at most two seconds, and the status is always 0: whatever goes wrong, the agent goes on.
    """
    # Use a thread that can be abandoned: nothing else ends a read of a slow disk or a wait for a lock.
    worker = Thread(target=_answer, args=(client, event, home, agent), daemon=True)
    worker.start()
    worker.join(_SECONDS)
    if worker.is_alive():
        typer.echo(f"keepstone: {client} {event} took more than {_SECONDS:g} s", err=True)
    sys.stderr.flush()
    # The thread must not delay the exit; a write is one system call, so it is whole or absent.
    os._exit(0)


def _answer(client: str, event: str, home: str | None, agent: str) -> None:
    try:
        text = _text(client, event, home, agent)
        sys.stdout.write(text)
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  An agent must not fail because its memory does.
        typer.echo(f"keepstone: {type(error).__name__}: {error}", err=True)


def _text(client: str, event: str, home: str | None, agent: str) -> str:
    from pathlib import Path

    import keepstone
    from keepstone.mcp.hooks import answer
    from keepstone.mcp.project import AUTO, agent_of

    payload: Any = json.loads(sys.stdin.buffer.read())
    if not isinstance(payload, dict):
        raise TypeError("the event must be a JSON object")
    slug = agent_of(Path(str(payload.get("cwd") or "."))) if agent == AUTO else agent
    # Keyword search is enough here, and loading a model takes longer than an agent waits.
    with keepstone.open(home, embedder="none") as opened:
        return answer(opened, slug, client, event, payload)
