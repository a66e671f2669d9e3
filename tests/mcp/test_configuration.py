"""Installation into the configuration of clients."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keepstone.cli.app import app
from keepstone.mcp import jsonc
from keepstone.mcp.clients import CLIENTS, ClientKind, client_of, command_of
from keepstone.mcp.configuration import Change, ChangedError, installed, with_server

NAMES = [client.name for client in CLIENTS]


def run(*words: str, status: int = 0, cwd: Path | None = None) -> str:
    """Run the command in this process, in a folder, and return what it printed."""
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(app, ["mcp", *words])
    assert done.exit_code == status, done.output
    return done.output


def entry_of(client: ClientKind) -> dict[str, object]:
    found = installed(client, client.user_file())
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_client_without_configuration_gets_one(user_folder: Path, name: str) -> None:
    run("install", name)
    client = client_of(name)
    assert client.user_file().is_relative_to(user_folder)
    entry = entry_of(client)
    assert entry["args"][-3:] == ["mcp", "--agent", "auto" if client.has_project else "default"]  # type: ignore[index]
    assert os.access(str(entry["command"]), os.X_OK)


@pytest.mark.parametrize("name", NAMES)
def test_installing_twice_changes_nothing_more(name: str) -> None:
    run("install", name)
    path = client_of(name).user_file()
    before = path.read_bytes()
    assert "nothing to change" in run("install", name)
    assert (path.read_bytes(), len(list(path.parent.glob(f"{path.name}*")))) == (before, 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_shows_the_change_and_makes_none(user_folder: Path, name: str) -> None:
    assert "+" in run("install", name, "--dry-run")
    assert list(user_folder.iterdir()) == []


def test_other_settings_comments_and_line_ends_stay() -> None:
    path = client_of("zed").user_file()
    path.parent.mkdir(parents=True)
    before = '// mine\r\n{\r\n  "theme": "One", // dark\r\n}\r\n'
    path.write_bytes(before.encode())
    shown = run("install", "zed")
    after = path.read_bytes().decode()
    assert '+  "context_servers"' in shown
    assert after.startswith(before[: before.index("}")].rstrip())
    assert jsonc.load(after)["theme"] == "One"
    run("uninstall", "zed")
    assert jsonc.load(path.read_bytes().decode()) == {"theme": "One", "context_servers": {}}


@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_toml_keeps_its_comments_and_order(line: str, bom: str) -> None:
    path = client_of("codex").user_file()
    path.parent.mkdir(parents=True)
    lines = [
        "# mine",
        'model = "x" # best',
        "",
        "[mcp_servers.other]",
        'command = "o"',
        "",
        "[z]",
        "a = 1",
        "",
    ]
    before = bom + line.join(lines)
    path.write_bytes(before.encode())
    run("install", "codex")
    after = path.read_bytes().decode()
    rest = iter(after.splitlines())
    assert all(old in rest for old in before.splitlines())
    assert "\n" not in after.replace("\r\n", "") or line == "\n"
    found = tomllib.loads(after.removeprefix("\ufeff").replace("\r\n", "\n"))
    assert list(found["mcp_servers"]) == ["other", "keepstone"]
    run("uninstall", "codex")
    assert path.read_bytes().decode() == before


def test_the_file_before_is_backed_up_and_its_mode_kept() -> None:
    path = client_of("cursor").user_file()
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"other": {}}}')
    path.chmod(0o640)
    run("install", "cursor")
    [backup] = path.parent.glob("mcp.json.*.bak")
    assert backup.read_text() == '{"mcpServers": {"other": {}}}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(json.loads(path.read_text())["mcpServers"]) == ["other", "keepstone"]


def cursor_change(content: str) -> Change:
    """Return the change that installs us in Cursor's file, which has this content."""
    path = client_of("cursor").user_file()
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return Change.of(path, with_server(client_of("cursor"), path, {"command": "keepstone"}))


def test_what_the_client_wrote_since_the_file_was_read_stays() -> None:
    change = cursor_change("{}")
    change.path.write_text('{"history": "precious"}')
    with pytest.raises(ChangedError, match=r"mcp\.json was changed by another program"):
        change.write()
    assert change.path.read_text() == '{"history": "precious"}'
    assert [path.name for path in change.path.parent.iterdir()] == ["mcp.json"]


def test_a_write_during_the_write_stays_and_leaves_no_backup(monkeypatch: pytest.MonkeyPatch) -> None:
    change = cursor_change("{}")
    monkeypatch.setattr(
        "keepstone.mcp.configuration.sync_file", lambda *_: change.path.write_text('{"history": "precious"}')
    )
    with pytest.raises(ChangedError):
        change.write()
    assert change.path.read_text() == '{"history": "precious"}'
    assert [path.name for path in change.path.parent.iterdir()] == ["mcp.json"]


def test_the_change_of_what_the_client_wrote_keeps_it_and_backs_it_up() -> None:
    change = cursor_change("{}")
    change.path.write_text('{"history": "precious"}')
    backup = change.again().write()
    assert backup is not None
    assert backup.read_text() == '{"history": "precious"}'
    written = json.loads(change.path.read_text())
    assert (written["history"], list(written["mcpServers"])) == ("precious", ["keepstone"])


def test_a_file_that_appeared_since_it_was_missed_stays(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    change = Change.of(path, with_server(client_of("cursor"), path, {"command": "keepstone"}))
    path.write_text("{}")
    with pytest.raises(ChangedError):
        change.write()
    assert path.read_text() == "{}"


@pytest.mark.parametrize("words", [["install", "cursor"], ["uninstall", "cursor"]])
def test_a_file_that_changed_during_the_question_is_shown_and_asked_about_again(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("install", "cursor", *(["--agent", "old"] if words[0] == "install" else []))
    path, questions = client_of("cursor").user_file(), []

    def answer(question: str, **_: object) -> None:
        questions.append(question)
        if len(questions) == 1:
            path.write_text(json.dumps(json.loads(path.read_text()) | {"history": "precious"}))

    monkeypatch.setattr("keepstone.cli.command.confirm", answer)
    CliRunner().invoke(app, ["mcp", *words])
    assert len(questions) == 2
    assert json.loads(path.read_text())["history"] == "precious"


def test_new_folders_of_clients_are_closed_to_others(user_folder: Path) -> None:
    before = os.umask(0)
    try:
        run("install", "zed", "gemini", "--hooks")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in user_folder.rglob("*")}
    assert modes
    assert not [path for path, mode in modes.items() if mode & 0o077]


def test_no_link_leads_out_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "project" / ".cursor").mkdir(parents=True)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "project" / ".cursor" / "mcp.json").symlink_to(tmp_path / "other.json")
    for command in ("install", "uninstall"):
        assert "outside the project: remove the link" in run(
            command, "cursor", "--project", status=2, cwd=tmp_path / "project"
        )
    assert (tmp_path / "other.json").read_text() == "{}"


def test_a_pipe_is_no_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    assert "no regular file" in run("install", "claude-code", "--project", status=2, cwd=tmp_path)


def test_a_configuration_that_is_a_link_stays_one(tmp_path: Path) -> None:
    path = client_of("cursor").user_file()
    path.parent.mkdir(parents=True)
    (tmp_path / "dotfile.json").write_text("{}")
    path.symlink_to(tmp_path / "dotfile.json")
    run("install", "cursor")
    assert path.is_symlink()
    assert "keepstone" in (tmp_path / "dotfile.json").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cursor", b"{"),
        ("cursor", b"[]"),
        ("cursor", b'{"mcpServers": 1}'),
        ("cursor", b"\xff"),
        ("codex", b"a = "),
        ("codex", b"mcp_servers = 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(name: str, content: bytes) -> None:
    path = client_of(name).user_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    # The other client comes first, and is not changed either.
    assert str(path) in run("install", "gemini", name, status=2)
    assert path.read_bytes() == content
    assert not client_of("gemini").user_file().exists()


def test_all_means_the_clients_that_are_found(user_folder: Path) -> None:
    (user_folder / ".cursor").mkdir()
    (user_folder / ".claude.json").write_text("{}")
    run("install", "--all")
    found = [client.name for client in CLIENTS if client.user_file().exists()]
    assert found == ["claude-code", "cursor"]


def test_a_shared_file_names_no_path_of_this_machine(user_folder: Path, tmp_path: Path) -> None:
    run("install", "claude-code", "vscode", "--project", "--dir", str(tmp_path))
    shared = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["keepstone"]
    assert shared == {"type": "stdio", "command": "keepstone", "args": ["mcp", "--agent", "auto"]}
    assert "keepstone" in json.loads((tmp_path / ".vscode/mcp.json").read_text())["servers"]
    assert list(user_folder.iterdir()) == []


def test_the_installed_command_runs_no_module_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keepstone.py").write_text("print('a module of the project')", "utf-8")
    python = tmp_path / "python"  # Without a script keepstone beside it.
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    command = command_of(["--version"])
    assert command[0] == str(python)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "a module of the project" not in done.stdout


def test_unknown_clients_and_those_without_a_shared_file_are_refused() -> None:
    assert "claude-code" in run("install", "emacs", status=2)
    assert "--project" in run("install", "windsurf", "--project", status=2)
    assert "--all" in run("install", status=2)


@pytest.mark.parametrize(
    ("platform", "folder"), [("linux", ".config"), ("darwin", "Library/Application Support")]
)
def test_each_system_has_its_own_place(
    user_folder: Path, monkeypatch: pytest.MonkeyPatch, platform: str, folder: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    desktop = client_of("claude-desktop").user_file()
    assert desktop == user_folder / folder / "Claude/claude_desktop_config.json"
    assert client_of("vscode").user_file() == user_folder / folder / "Code/User/mcp.json"
    assert client_of("zed").user_file() == user_folder / ".config/zed/settings.json"
