"""``keepstone token``: access tokens of the server."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, home_command
from keepstone.cli.screen import table
from keepstone.log.line import format_time
from keepstone.text.display import moment, one_line

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.server.tokens import Token, Tokens

app = typer.Typer(
    name="token",
    help="Create, list or revoke access tokens of the server.",
    no_args_is_help=True,
    epilog="Example: keepstone token create --agents coder --read-only --expires 30d",
)

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

AgentsOption = Annotated[
    str | None,
    typer.Option(
        "--agents",
        metavar="SLUG,…",
        help="Only for these agents; default: for all, and for the home itself.",
    ),
]
NameArgument = Annotated[
    str, typer.Argument(metavar="[NAME]", help="What to call it in lists.", show_default=False)
]
ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Allow no changes.")]
ExpiresOption = Annotated[
    str | None,
    typer.Option(
        "--expires", metavar="TIME", help="How long it is valid: 90m, 12h, 30d or 8w; default: 90d."
    ),
]
ForeverOption = Annotated[bool, typer.Option("--forever", help="Never expires.")]
OriginOption = Annotated[
    str,
    typer.Option(
        "--origin",
        metavar="WHO",
        help="Who writes with it: program, model, import or tool; default: program.",
        show_default=False,
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the token.", show_default=False)]


@home_command(app, "keepstone token create laptop --agents coder,writer --read-only --expires 30d")
def create(
    home: "Home",
    name: NameArgument = "",
    agents: AgentsOption = None,
    *,
    read_only: ReadOnlyOption = False,
    expires: ExpiresOption = None,
    forever: ForeverOption = False,
    origin: OriginOption = "program",
) -> Answer:
    """Create a token and print it. Only its hash is stored, so it is not shown again."""
    from keepstone.server.tokens import LIFETIME

    if forever and expires is not None:
        raise ValueError("--forever and --expires exclude each other: give one of them")
    slugs = None if agents is None else [slug.strip() for slug in agents.split(",") if slug.strip()]
    lifetime = None if forever else LIFETIME if expires is None else lifetime_of(expires)
    secret, token = _tokens(home).create(
        slugs, read_only=read_only, lifetime=lifetime, name=name, origin=origin
    )
    # The secret alone, so that ``TOKEN=$(keepstone token create)`` works.
    return Answer({**_document(token), "token": secret}, Text(secret))


@home_command(app, "keepstone token list", name="list")
def list_tokens(home: "Home") -> Answer:
    """List the tokens, oldest first, without their secrets."""
    tokens = _tokens(home).all()
    view = table(("id", "name", "agents", "may", "created (UTC)", "expires (UTC)"), map(_row, tokens))
    return Answer(
        {"tokens": [_document(token) for token in tokens]}, view if tokens else Text("no tokens yet")
    )


@home_command(app, "keepstone token revoke 9f86d081")
def revoke(home: "Home", token: IdArgument) -> Answer:
    """Revoke a token. The status is 1 if there is none with this id."""
    revoked = _tokens(home).revoke(token)
    words = (
        f"revoked {one_line(token)}" if revoked else f"no token {one_line(token)}: see keepstone token list"
    )
    return Answer({"id": token, "revoked": revoked}, Text(words), status=0 if revoked else 1)


def lifetime_of(text: str) -> timedelta:
    """Return the duration that a text such as ``30d`` means.

    Raises:
        ValueError: The text does not have this form.
    """
    # At most five digits, as a longer number would overflow a duration; no zero, as the token would expire
    # at once.
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", text.strip())
    if found is None:
        raise ValueError(f"--expires must be a number with m, h, d or w, such as 30d, not {text!r:.80}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _tokens(home: "Home") -> "Tokens":
    from keepstone.server.tokens import tokens_of

    return tokens_of(home)


def _document(token: "Token") -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "agents": None if token.agents is None else list(token.agents),
        "read_only": token.read_only,
        "origin": token.origin,
        "created": format_time(token.created),
        "expires": None if token.expires is None else format_time(token.expires),
    }


def _row(token: "Token") -> tuple[str, ...]:
    agents = "all" if token.agents is None else ", ".join(token.agents)
    expires = "never" if token.expires is None else moment(token.expires)
    rights = "read" if token.read_only else "read, write"
    return (token.id, one_line(token.name), agents, rights, moment(token.created), expires)
