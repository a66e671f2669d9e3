"""``keepstone agents``: the agents of a home."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, confirm, home_command, show
from keepstone.cli.options import JsonOption, YesOption, complete_agents
from keepstone.filesystem.slug import slug as slug_of
from keepstone.text.display import one_line

if TYPE_CHECKING:
    from keepstone.home import Home

app = typer.Typer(
    name="agents",
    help="List the agents of a home, purge one, or name one after a user.",
    no_args_is_help=True,
    epilog="Example: keepstone agents list",
)

SlugArgument = Annotated[
    str,
    typer.Argument(
        metavar="SLUG", help="The agent's slug.", autocompletion=complete_agents, show_default=False
    ),
]


@home_command(app, "keepstone agents list", name="list")
def list_agents(home: "Home") -> Answer:
    """List the slugs of the agents."""
    slugs = home.agents()
    return Answer({"agents": slugs}, Text("\n".join(map(one_line, slugs)) or "no agents yet"))


@home_command(app, "keepstone agents purge coder --yes")
def purge(home: "Home", slug: SlugArgument, yes: YesOption = False) -> Answer:
    """Remove everything of an agent: sessions, files and index. This cannot be undone."""
    confirm(f"Purge agent {one_line(slug)!r} for good, with all its sessions and files?", yes=yes)
    home.purge_agent(slug)
    return Answer({"agent": slug, "purged": True}, Text(f"purged agent {one_line(slug)}"))


TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="A name, such as an email address.", show_default=False)
]


@app.command(epilog="Example: keepstone agents slug ada@example.com")
def slug(text: TextArgument, json: JsonOption = False) -> None:
    """Print the slug of an agent for any text: the same one for the same text."""
    made = slug_of(text)
    show(Answer({"text": text, "slug": made}, Text(made)), as_json=json)
