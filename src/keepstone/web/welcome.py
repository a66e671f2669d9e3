"""The page of an empty home: three ways to write the first entry, and a sample on request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from nicegui import ui

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.web.components import command
from keepstone.web.elements import SafeText, aside, attempt, box, button, say
from keepstone.web.site import Place, address

_TEXT = "Maya prefers short answers"


def program(place: Sequence[str], agent: str) -> str:
    """Return a program that adds the first entry to a home and recalls it."""
    options = dict(zip(place[::2], place[1::2], strict=False))
    layout = f", layout={options['--layout']!r}" if "--layout" in options else ""
    return "\n".join(
        (
            "import keepstone",
            "",
            f"with keepstone.open({options.get('--home')!r}{layout}) as home:",
            f"    agent = home.agent({agent!r})",
            f'    agent.session("main").add("preference", {{"content": "{_TEXT}"}})',
            '    for hit in agent.recall("How does Maya like answers?"):',
            "        print(hit.entry.text)",
        )
    )


def commands(place: Sequence[str], agent: str) -> str:
    """Return commands that add the first entry to a home and recall it."""
    options = shlex.join([*place, *_agent_option(agent)])
    add = f"keepstone add {options} --type preference {shlex.quote(_TEXT)}"
    return f"{add}\nkeepstone recall {options} 'How does Maya like answers?'"


def mcp_command(place: Sequence[str], agent: str) -> str:
    """Return the command that gives the memory to a coding agent."""
    options = dict(zip(place[::2], place[1::2], strict=False))
    home = ["--home", options["--home"]] if "--home" in options else []
    return shlex.join(["keepstone", "mcp", "install", "claude-code", *home, "--agent", agent])


def _agent_option(agent: str) -> list[str]:
    return [] if agent == DEFAULT_AGENT else ["--agent", agent]


def welcome(place: Place) -> None:
    """Show three ways to write the first entry."""
    site, agent = place.site, place.agent.slug
    ways = (
        ("Python", "In your own program:", program(site.place, agent)),
        ("Command", "In a terminal:", commands(site.place, agent)),
        (
            "MCP",
            "In Claude Code; keepstone mcp install --help lists other clients:",
            mcp_command(site.place, agent),
        ),
    )
    with box("section", "welcome", aria_label="Get started"):
        say("h2", "This home is empty")
        say("p", "Three ways to its first entry. The page shows it as soon as it is written.")
        for title, words, lines in ways:
            with box(classes="way"):
                say("h3", title)
                say("p", words, "hint")
                command(lines, f"{title} example")
        if site.demo is not None and place.is_admin:
            with box(classes="way"):
                say("h3", "Or look around first")
                say(
                    "p",
                    "Three weeks of a small team, as an agent named demo that you can purge again.",
                    "hint",
                )
                load = button("Load the demo", lambda: _load(place, load))


async def _load(place: Place, pressed: SafeText) -> None:
    """Add the sample, and go to its sessions."""
    demo, page = place.site.demo, ui.context.client
    if demo is None:
        return
    # A second click would begin the sample again while the first one is being written.
    pressed.props.update(disabled=True)
    pressed.text = "Loading …"
    with attempt():
        await place.check_admin()
        agent = await aside(demo, place.site.home)
        page.open(address(agent, "sessions"))  # The first entry may have replaced the welcome already.
        return
    pressed.props.update(disabled=False)
    pressed.text = "Load the demo"
