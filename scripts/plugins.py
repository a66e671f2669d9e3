#!/usr/bin/env python3
"""Write the plugins for Claude Code, Codex and Cursor, and the marketplaces that list them.

python scripts/plugins.py            # writes plugins/keepstone and the three marketplaces
python scripts/plugins.py --check    # names the files that are out of date, with status 1

All three clients use one folder: each reads its own manifest; the server, skill and version are shared.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from keepstone.mcp.clients import NAME, client_of
from keepstone.mcp.configuration import SKILL, with_hooks

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = Path("plugins") / NAME
ABOUT = "Memory that outlives a conversation, in plain files that you can read, correct and take with you."
KEYWORDS = ["memory", "mcp", "recall", "decisions"]
_FACTS = runpy.run_path(str(ROOT / "scripts" / "release_fields.py"))["facts"]


def files() -> dict[Path, str]:
    """Return the generated text of every file, by its path in the repository."""
    facts = _FACTS(ROOT)
    started = ["uvx", "--from", f"keepstone[mcp]=={facts.version}", NAME]
    manifest: dict[str, Any] = {
        "name": NAME,
        "version": facts.version,
        "description": ABOUT,
        "author": {"name": "The keepstone authors"} | ({"email": facts.security} if facts.security else {}),
        **_addresses(facts),
        "license": "Apache-2.0",
        "keywords": KEYWORDS,
    }
    server = {"mcpServers": {NAME: {"command": started[0], "args": [*started[1:], "mcp", "--agent", "auto"]}}}
    listed = {"name": NAME, "source": f"./{PLUGIN}", "description": ABOUT, "version": facts.version}
    marketplace = {"name": NAME, "owner": manifest["author"], "plugins": [listed]}
    made: dict[Path, Any] = {
        PLUGIN / ".claude-plugin/plugin.json": manifest,
        PLUGIN / ".codex-plugin/plugin.json": {
            **manifest,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "hooks": "./hooks/codex-hooks.json",
            "interface": {
                "displayName": NAME,
                "shortDescription": "Decisions, preferences and facts from earlier conversations",
                "longDescription": ABOUT,
                "developerName": "The keepstone authors",
                "category": "Developer Tools",
                "capabilities": ["Read", "Write"],
                "defaultPrompt": ["What do you remember about this project?", "Remember that we use pnpm."],
            },
        },
        PLUGIN / ".cursor-plugin/plugin.json": {
            **manifest,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
        },
        PLUGIN / ".mcp.json": server,
        PLUGIN / "hooks/hooks.json": _hooks("claude-code", started),
        PLUGIN / "hooks/codex-hooks.json": _hooks("codex", started),
        Path(".claude-plugin/marketplace.json"): marketplace,
        Path(".cursor-plugin/marketplace.json"): marketplace,
        Path(".agents/plugins/marketplace.json"): {
            "name": NAME,
            "interface": {"displayName": NAME},
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "local", "path": f"./{PLUGIN}"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Developer Tools",
                }
            ],
        },
    }
    texts = {path: json.dumps(document, indent=2) + "\n" for path, document in made.items()}
    return texts | {PLUGIN / "skills/memory/SKILL.md": SKILL.read_text(encoding="utf-8")}


def _addresses(facts: Any) -> dict[str, str]:
    if not facts.repository:
        return {}
    return {"homepage": facts.documentation or facts.repository, "repository": facts.repository}


def _hooks(client: str, started: list[str]) -> Any:
    """Return a client's hooks in the form that ``keepstone mcp install --hooks`` writes."""
    nowhere = Path("hooks.json")
    return json.loads(with_hooks(client_of(client), nowhere, [*started, "hook"])("{}"))


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the files, or check them; return the exit status."""
    old = {}
    for path, text in files().items():
        there = root / path
        if not there.exists() or there.read_text(encoding="utf-8") != text:
            old[there] = text
    for there, text in old.items():
        if arguments == ["--check"]:
            print(f"{there.relative_to(root)} is out of date: run python scripts/plugins.py")
        else:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text, encoding="utf-8")
    return int(bool(old) and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
