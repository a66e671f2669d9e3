"""``keepstone git``: a home in git, and the merge driver that git calls."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from keepstone.cli.command import Answer, show
from keepstone.cli.options import HomeOption, HomeOptions, JsonOption, LayoutOption
from keepstone.text.display import one_line

app = typer.Typer(
    name="git",
    help="Keep a home in git: branches and devices that both remembered merge without conflict.",
    no_args_is_help=True,
    epilog="Example: keepstone git init --home .work-agent",
)


@app.command(epilog="Example: keepstone git init --home .work-agent")
def init(home: HomeOption = None, layout: LayoutOption = "default", as_json: JsonOption = False) -> None:
    """Write attributes and ignores, register the merge driver, and begin to record purges.

    Each clone needs this once. Nothing is committed.
    """
    from keepstone.filesystem.layout import layout_of
    from keepstone.operations.git_home import init as set_up

    with HomeOptions(home, layout).open() as opened:
        root = opened.root
    written = set_up(root, layout_of(layout))
    words = "\n".join(f"wrote {one_line(name)}" for name in written) or "nothing to write"
    answer = Answer({"home": str(root), "written": written}, Text(f"{words}\nthe merge driver is registered"))
    show(answer, as_json=as_json)


def _version(help_text: str) -> Any:
    return typer.Argument(help=help_text, show_default=False)


@app.command(
    name="merge-log",
    hidden=True,
    epilog="Example: keepstone git merge-log base.ndjson ours.ndjson theirs.ndjson",
)
def merge_log(
    base: Annotated[Path, _version("The common version.")],
    ours: Annotated[Path, _version("Our version, which becomes the merged one.")],
    theirs: Annotated[Path, _version("Their version.")],
    path: Annotated[str, _version("Where the log is in the work tree; default: OURS.")] = "",
) -> None:
    """Merge two versions of a log into the file of ours; git calls this with %O %A %B %P."""
    from keepstone.operations.git_driver import merge_log as merge

    merge(base, ours, theirs, path or str(ours))
