"""The plugins for Claude Code, Codex and Cursor, and the skill that they share."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.scripts import script

from keepstone.mcp.configuration import SKILL
from keepstone.mcp.hooks import EVENTS
from keepstone.operations.tool_definitions import TOOL_NAMES

from .processes import command

ROOT = Path(__file__).parent.parent.parent
PLUGIN = ROOT / "plugins" / "keepstone"
plugins = script("plugins")
fields = script("release_fields")
MARKETPLACES = (".claude-plugin", ".cursor-plugin", ".agents/plugins")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_file_of_the_plugins_is_up_to_date() -> None:
    assert plugins.main(["--check"]) == 0


def test_an_edited_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plugins.main([], tmp_path) == 0
    (tmp_path / "plugins/keepstone/.mcp.json").write_text("{}")
    assert plugins.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out.startswith("plugins/keepstone/.mcp.json is out of date")


@pytest.mark.parametrize("client", ["claude", "codex", "cursor"])
def test_plugin_has_the_version_of_the_library(client: str) -> None:
    manifest = read(PLUGIN / f".{client}-plugin" / "plugin.json")
    assert (manifest["name"], manifest["version"]) == ("keepstone", fields.facts(ROOT).version)


@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_files_that_a_manifest_names_exist(client: str) -> None:
    manifest = read(PLUGIN / f".{client}-plugin" / "plugin.json")
    named = [value for value in manifest.values() if isinstance(value, str) and value.startswith("./")]
    assert len(named) >= 2
    assert [value for value in named if not (PLUGIN / value).exists()] == []


@pytest.mark.parametrize("folder", MARKETPLACES)
def test_marketplace_leads_to_the_plugin(folder: str) -> None:
    (listed,) = read(ROOT / folder / "marketplace.json")["plugins"]
    source = listed["source"]
    assert (ROOT / (source if isinstance(source, str) else source["path"])).resolve() == PLUGIN


@pytest.mark.parametrize(("client", "name"), [("claude-code", "hooks.json"), ("codex", "codex-hooks.json")])
def test_plugin_calls_the_hooks_of_its_client(client: str, name: str) -> None:
    hooks = read(PLUGIN / "hooks" / name)["hooks"]
    lines = [group["hooks"][0]["command"] for groups in hooks.values() for group in groups]
    assert [shlex.split(line)[-3:] for line in lines] == [["hook", client, event] for event in EVENTS[client]]


def test_server_of_the_plugin_is_the_released_one() -> None:
    server = read(PLUGIN / ".mcp.json")["mcpServers"]["keepstone"]
    wanted = f"keepstone[mcp]=={fields.facts(ROOT).version}"
    assert [server["command"], *server["args"][:3]] == ["uvx", "--from", wanted, "keepstone"]


def test_skill_has_a_description_and_names_tools_that_exist() -> None:
    _, front, text = SKILL.read_text("utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["name"] == "memory"
    assert 0 < len(about["description"]) < 1024
    tools = {word for word in text.replace("`", " ").split() if word.startswith("memory_")} - {"memory_*"}
    assert tools
    assert {tool.strip(".,:;") for tool in tools} <= TOOL_NAMES


def run(*words: str, status: int = 0) -> str:
    done = subprocess.run(
        [*command(), "mcp", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


PLACES = {"claude-code": ".claude/skills", "codex": ".codex/skills", "cursor": ".cursor/skills"}


@pytest.mark.parametrize("client", PLACES)
def test_install_writes_the_skill_and_uninstall_removes_it(user_folder: Path, client: str) -> None:
    skill = user_folder / PLACES[client] / "keepstone" / "SKILL.md"
    run("install", client)
    assert not skill.exists()
    run("install", client, "--skill")
    assert skill.read_bytes() == SKILL.read_bytes()
    run("uninstall", client)
    assert not skill.parent.exists()


def test_a_skill_of_another_author_stays(user_folder: Path) -> None:
    skill = user_folder / PLACES["codex"] / "keepstone" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: other\n---\n")
    assert "another skill" in run("install", "codex", "--skill", status=2)
    assert skill.read_text() == "---\nname: other\n---\n"
    assert not (user_folder / ".codex" / "config.toml").exists()
