#!/usr/bin/env python3
"""Write docs/clients/ from what ``keepstone mcp`` prints for each client.

python scripts/client_pages.py            # writes the pages
python scripts/client_pages.py --check    # names the pages that are out of date, with status 1
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from keepstone.mcp.clients import CLIENTS, ClientKind

PAGES = Path(__file__).resolve().parent.parent / "docs" / "clients"
KEEPSTONE = Path(sys.executable).with_name("keepstone")
LISTED = "`keepstone` is listed with its tools"
SEEN = {
    "claude-code": f"Start `claude` in the project and type `/mcp`: {LISTED}. "
    "`.mcp.json` of a project has to be approved once.",
    "claude-desktop": "Quit and restart the application. The prompt's tools button shows the tools; "
    "Settings, Developer has the server's log.",
    "cursor": f"Open Settings, then MCP: {LISTED}. Enable it if the switch is off.",
    "vscode": f"Run the command *MCP: List Servers*: {LISTED}, and *Show Output* has its log. "
    "The tools are for the agent mode of the chat.",
    "codex": f"Start `codex` in the project and type `/mcp`: {LISTED}. New hooks have to be trusted once.",
    "gemini": f"Start `gemini` in the project and type `/mcp`: {LISTED}.",
    "zed": "Open the settings of the Agent panel: `keepstone` is among the context servers, "
    "with a green dot once it runs.",
    "windsurf": f"Open Cascade, then its MCP servers, and press Refresh: {LISTED}.",
}
"""The place in each client's interface that shows the server."""
MACOS = {
    "claude-desktop": "~/Library/Application Support/Claude/claude_desktop_config.json",
    "vscode": "~/Library/Application Support/Code/User/mcp.json",
}


class Machine:
    """A new home directory with an empty repository, in which the commands are run."""

    def __init__(self, folder: Path, python: Sequence[str]) -> None:
        self.folder, self.python = folder, python
        (folder / "shop").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(folder / "shop")], check=True)
        settings = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "KEEPSTONE_HOME")
        self.environment = {key: value for key, value in os.environ.items() if key not in settings}
        self.environment |= {"HOME": str(folder), "COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}

    def run(self, command: str) -> str:
        """Run a command; return the command and its output as on a terminal."""
        done = subprocess.run(
            [*self.python, KEEPSTONE, *shlex.split(command)[1:]],
            cwd=self.folder / "shop",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        said = done.stdout.replace(str(KEEPSTONE), "~/.venv/bin/keepstone")
        said = said.replace(f"{self.folder}/shop/", "").replace(str(self.folder), "~")
        said = re.sub(r"\.\d{8}T\d+Z\.bak", ".TIME.bak", said)
        lines = [line.rstrip() for line in said.strip("\n").splitlines()]
        return "\n".join([f"$ {command}", *lines])


def page(client: ClientKind, python: Sequence[str] = ()) -> str:
    """Return the generated page of a client; ``python`` is an interpreter to run the command with."""
    with TemporaryDirectory() as folder:
        return _page(client, Machine(Path(folder).resolve(), python))


def _page(client: ClientKind, machine: Machine) -> str:
    name, title = client.name, client.title
    whose = (
        "The memory is the project's: `--agent auto` names it by the repository."
        if client.has_project
        else f"{title} has no projects: the memory is that of the agent `default`, or of `--agent NAME`."
    )
    parts = [
        f"# {title}\n\nThis page is made by `python scripts/client_pages.py`, which runs the commands.",
        _console(machine.run(f"keepstone mcp install {name}")),
        f"{whose} Comments and order of the file stay, and a file that was there is backed up beside it.",
    ]
    if name in MACOS:
        parts.append(f"On macOS the file is `{MACOS[name]}`.")
    parts += [SEEN[name], _console(machine.run("keepstone mcp status"))]
    if client.project_file:
        parts += [
            "## For all who work on the repository\n\n"
            f"`--project` writes `{client.project_file}`, which you commit. It names no path: "
            "`keepstone` has to be on everybody's PATH.",
            _console(machine.run(f"keepstone mcp install {name} --project")),
        ]
    if client.hooks_file:
        parts += [
            "## Hooks\n\n"
            f"With `--hooks` {title} calls `keepstone hook` by itself, which adds context and stores "
            "what was said; see [hooks](../mcp.md#hooks).",
            _console(machine.run(f"keepstone mcp install {name} --hooks")),
        ]
    parts += [
        f"`keepstone mcp uninstall {name}` takes out what was put in; memory stays where it is.",
        "What a model sees, and what to do when something is wrong: "
        "[MCP](../mcp.md#when-something-is-wrong).",
    ]
    return "\n\n".join(parts) + "\n"


def _console(text: str) -> str:
    return f"```console\n{text}\n```"


def main(arguments: list[str]) -> int:
    """Write the pages, or check them; return the exit status."""
    made = {PAGES / f"{client.name}.md": page(client) for client in CLIENTS}
    if arguments == ["--check"]:
        old = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
        print(*old)
        return int(bool(old))
    PAGES.mkdir(exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
