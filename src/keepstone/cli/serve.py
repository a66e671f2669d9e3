"""``keepstone serve``: the HTTP API and the web pages."""

import ipaddress
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepstone.cli.options import (
    HomeOption,
    HomeOptions,
    LayoutOption,
    ProjectOption,
    UserFileOption,
    place_options,
)
from keepstone.errors import install_command
from keepstone.filesystem.open_files import allow_more_files

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.notes.notes import Notes
    from keepstone.server.tokens import Tokens

app = typer.Typer()

PORT = 8765

HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="The address to listen on. Addresses other than loopback need a token.",
    ),
]
PortOption = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes any free one.")
]
NamesOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="An allowed Host header; may be repeated."),
]
ProxiedOption = Annotated[
    bool, typer.Option("--proxied", help="Trust the X-Forwarded-* headers of a proxy on this machine.")
]
LinkOption = Annotated[
    bool,
    typer.Option(
        "--link", help="Print a new sign-in link for the server that runs already, and serve nothing."
    ),
]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the web page in the browser, signed in.")]


@app.command(epilog="Example: keepstone serve --open")
def serve(
    home: HomeOption = None,
    layout: LayoutOption = "default",
    folder: ProjectOption = Path(),
    user_file: UserFileOption = None,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    names: NamesOption = None,
    proxied: ProxiedOption = False,
    open_page: OpenOption = False,
    link: LinkOption = False,
) -> None:
    """Serve the home over HTTP until interrupted.

    The API is below /v1 and the MCP server at /mcp; both need a token (keepstone token create).
    The web page is at /. On loopback a one-time sign-in link for your browser is printed;
    with --link, and the same home, host and port, a new one.
    """
    import keepstone

    if link:
        with HomeOptions(home, layout).open() as opened:
            _tell_link(opened, host, port)
        return
    allow_more_files()
    notes = keepstone.Notes(folder, user_file)
    listener = Listener(host, port, frozenset(names or ()), proxied=proxied)
    with HomeOptions(home, layout).open() as opened:
        _serve(opened, folder, notes, listener, open_page=open_page)


@dataclass(frozen=True, slots=True)
class Listener:
    """The address to listen on, and the allowed host names."""

    host: str
    port: int
    names: frozenset[str]
    proxied: bool


def _serve(home: "Home", folder: Path, notes: "Notes", listener: Listener, *, open_page: bool) -> None:
    server = _server()
    from keepstone.server.origins import LOOPBACK
    from keepstone.server.running import listen, run
    from keepstone.server.tokens import tokens_of

    tokens = tokens_of(home)
    host = listener.host
    is_local = host in LOOPBACK
    # The sign-in link is printed on loopback only, so on another address nobody could sign in without a
    # token.
    if not is_local and not tokens.alive():
        command = shlex.join(["keepstone", "token", "create", *place_options()])
        raise ValueError(f"{host} is not loopback and there is no token: run {command}")
    # Listen first, so that a port in use ends the command at once; the link below needs the port number.
    listening = listen(host, listener.port)
    made = server.create_app(
        home,
        tokens=tokens,
        notes=notes,
        web=_web(home, notes, folder, tokens),
        place=place_options(),
        mcp=_mcp(home),
        hosts=LOOPBACK | listener.names | {host},
        any_address=_is_any(host),
    )
    url = _url(host, listening.getsockname()[1])
    link = f"{url}/sign-in?once={made.state.gate.link()}" if is_local else f"{url}/"
    _tell(home, url, link, place_options() if is_local else None)
    if open_page:
        typer.launch(link)
    run(made, listening, proxied=listener.proxied)


def _server() -> Any:
    try:
        from keepstone import server
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is missing: {install_command('server')}") from error
    return server


def _web(home: "Home", notes: "Notes", project: Path, tokens: "Tokens") -> Any:
    """Return a function that adds the web pages; None if they are not installed."""
    if find_spec("nicegui") is None:
        return None
    from keepstone.cli import sample
    from keepstone.web.served import pages

    return pages(home, notes, project, place_options(), tokens, sample.add_to)


def _mcp(home: "Home") -> Any:
    """Return a function that adds the MCP server; None if its package is not installed."""
    if find_spec("mcp") is None:
        return None
    from keepstone.mcp.http import route

    return route(home)


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _tell_link(home: "Home", host: str, port: int) -> None:
    _server()
    from keepstone.server.authentication import LINK_SECONDS
    from keepstone.server.tokens import tokens_of

    if not port:
        raise ValueError("--link needs the port of the server that runs: give it with --port")
    secret = tokens_of(home).add_link(timedelta(seconds=LINK_SECONDS))
    typer.echo(f"{_url(host, port)}/sign-in?once={secret}")
    typer.echo(f"It is valid once, for {LINK_SECONDS // 60} minutes.", err=True)


def _tell(home: "Home", url: str, link: str, place: Sequence[str] | None) -> None:
    from keepstone.server.authentication import LINK_SECONDS

    typer.echo(f"keepstone serves {home.root} at {url}/v1")
    typer.echo(f"Open the page: {link}")
    if place is not None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        options = ["--host", host.strip("[]")] if host != "127.0.0.1" else []
        options += ["--port", port] if port != str(PORT) else []
        command = shlex.join(["keepstone", "serve", "--link", *place, *options])
        typer.echo(f"The link is valid once, for {LINK_SECONDS // 60} minutes. For a new one: {command}")
    typer.echo("Ctrl-C stops it.")
    # A supervisor or test that waits for the line reads from a pipe, which Python buffers.
    sys.stdout.flush()
