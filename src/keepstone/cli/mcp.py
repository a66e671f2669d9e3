"""``keepstone mcp``: an agent's memory for MCP clients."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from keepstone.cli.options import AgentOption, FolderOption, HomeOption, HomeOptions, LayoutOption
from keepstone.errors import install_command

app = typer.Typer(
    name="mcp",
    help="Serve an agent's memory to MCP clients over stdio, or install that in a client.",
    invoke_without_command=True,
    epilog="Example: keepstone mcp --agent auto",
)

ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Leave out the tools that write.")]
WorktreeOption = Annotated[
    bool, typer.Option("--worktree", help="With --agent auto: each worktree has a memory of its own.")
]


@app.callback()
def mcp(
    context: typer.Context,
    home: HomeOption = None,
    layout: LayoutOption = "default",
    agent: AgentOption = "default",
    folder: FolderOption = Path(),
    *,
    worktree: WorktreeOption = False,
    read_only: ReadOnlyOption = False,
) -> None:
    """Serve an agent's memory over stdio until standard input ends.

    With --agent auto the project names the agent: its folder's name and a digest of its path.
    """
    if context.invoked_subcommand is not None:
        return
    if find_spec("mcp") is None:
        raise ValueError(f"mcp is missing: {install_command('mcp')}")
    import keepstone
    from keepstone.mcp.project import AUTO, agent_of

    is_auto = agent == AUTO
    with HomeOptions(home, layout).open() as opened:
        slug = opened.agent(agent_of(folder, worktree=worktree) if is_auto else agent).slug
        from keepstone.mcp.stdio import serve

        serve(opened, slug, read_only=read_only, notes=keepstone.Notes(folder) if is_auto else None)
