"""``keepstone files``: an agent's own text files."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input
from keepstone.cli.options import PathArgument
from keepstone.text.display import counted, harmless, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer(
    name="files",
    help="List, read and write an agent's own files.",
    no_args_is_help=True,
    epilog="Example: keepstone files list",
)

ContentArgument = Annotated[
    str, typer.Argument(metavar="CONTENT", help="The text; - or nothing reads standard input.")
]


@agent_command(app, "keepstone files list", name="list")
def list_files(agent: "Agent") -> Answer:
    """List the paths of the agent's files."""
    paths = agent.files.list()
    view = "\n".join(one_line(path) for path in paths)
    return Answer({"files": paths}, Text(view or "no files yet"))


@agent_command(app, "keepstone files read runbook.md")
def read(agent: "Agent", path: PathArgument) -> Answer:
    """Print a file.

    On a terminal, control characters are escaped; elsewhere the text is printed unchanged.
    """
    content = agent.files.read(path)
    view = Text(harmless(content.removesuffix("\n")))
    return Answer({"path": path, "content": content}, view, exact=content.encode("utf-8"))


@agent_command(app, "keepstone files write plan.md '1. Measure first'")
def write(agent: "Agent", path: PathArgument, content: ContentArgument = "-") -> Answer:
    """Write a file. An existing one is replaced."""
    return _written(path, agent.files.write(path, argument_or_input(content)), "wrote")


@agent_command(app, "date | keepstone files append diary.md")
def append(agent: "Agent", path: PathArgument, content: ContentArgument = "-") -> Answer:
    """Append to a file, which is created if it does not exist."""
    return _written(path, agent.files.append(path, argument_or_input(content)), "appended")


def _written(path: str, count: int, verb: str) -> Answer:
    words = f"{verb} {counted(count, 'byte')}: {one_line(path)}"
    return Answer({"path": path, "bytes": count}, Text(words))


@agent_command(app, "keepstone files delete plan.md")
def delete(agent: "Agent", path: PathArgument) -> Answer:
    """Delete a file."""
    agent.files.delete(path)
    return Answer({"path": path, "deleted": True}, Text(f"deleted {one_line(path)}"))
