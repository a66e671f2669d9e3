"""``keepstone chat``: the full-screen chat."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, home_command
from keepstone.cli.options import (
    AgentOption,
    ProjectOption,
    UserFileOption,
    complete_sessions,
    place_options,
)
from keepstone.errors import install_command
from keepstone.text.display import one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.home import Home
    from keepstone.session import Session

app = typer.Typer()

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="openai:NAME, anthropic:NAME, http://HOST:PORT/v1?model=NAME or offline; default: "
        "$KEEPSTONE_CHAT_MODEL, $ANTHROPIC_MODEL or $OPENAI_MODEL, else offline.",
    ),
]
ContinuedOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Continue this session; default: a new one.",
        autocompletion=complete_sessions,
    ),
]
LastOption = Annotated[bool, typer.Option("--continue", help="Continue the session with the newest message.")]
ToolsOption = Annotated[
    bool, typer.Option("--tools/--no-tools", help="Whether the model may search and save memory itself.")
]


@home_command(app, "keepstone chat --model http://localhost:11434/v1?model=llama3.2")
def chat(
    home: "Home",
    model: ModelOption = None,
    session: ContinuedOption = None,
    last: LastOption = False,
    agent: AgentOption = "default",
    folder: ProjectOption = Path(),
    user_file: UserFileOption = None,
    tools: ToolsOption = True,
) -> Answer:
    """Chat with an agent that remembers. Messages are stored; those that start with # are notes.

    Without a model the answers are quotes from memory. Keys come from the environment only:
    OPENAI_API_KEY, ANTHROPIC_API_KEY, or KEEPSTONE_CHAT_KEY for a server given by its address.
    """
    # Check before reading the home: Textual would fill a pipe with escape sequences.
    _check_terminal()
    from keepstone.chat import choose
    from keepstone.notes.notes import Notes
    from keepstone.tui.app import ChatApp

    whose = home.agent(agent)
    opened = _session_of(whose, session, last=last)
    screen = ChatApp(home, whose, Notes(folder, user_file), choose(model, uses_tools=tools), opened)
    ended = screen.run()
    # The agent may have been switched.
    slug = screen.conversation.agent.slug
    words = ["keepstone", "chat", *place_options(), "--agent", slug, "--session", one_line(ended or "")]
    words += ["--model", model] if model else []
    words += ["--dir", str(folder.absolute())]  # The same notes, wherever the line is pasted.
    words += ["--user-file", str(Path(user_file).expanduser().absolute())] if user_file else []
    words += [] if tools else ["--no-tools"]
    again = f"Continue with: {shlex.join(words)}"
    # Keep the command on one line, however narrow the terminal is, so that it can be pasted.
    view = Text(again if ended else "The session is empty.", no_wrap=True, overflow="ignore")
    return Answer({"agent": slug, "session": ended}, view)


def _session_of(agent: "Agent", named: str | None, *, last: bool) -> "Session | None":
    """Return the session to continue; None for a new one.

    Raises:
        ValueError: Both the newest session and another one were requested, or there is no session.
    """
    if not last:
        return None if named is None else agent.session(named)
    if named is not None:
        raise ValueError(f"--continue and --session {named!r:.80} exclude one another: leave one out")
    summaries = agent.session_summaries(texts=False)
    newest = next((summary.id for summary in summaries if summary.entries), None)
    if newest is None:
        raise ValueError(f"agent {agent.slug!r} has no session to continue: leave --continue out")
    return agent.session(newest)


def _check_terminal() -> None:
    """Check that the chat is installed and runs in a terminal.

    Raises:
        ValueError: It is not installed or not in a terminal. The message says what to do.
    """
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise ValueError(f"the chat is not installed: {install_command('chat')}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("the chat needs a terminal; in a script use: keepstone recall, keepstone context")
