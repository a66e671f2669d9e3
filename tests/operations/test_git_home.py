"""Homes under git: real repositories, in which both sides remember."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import warm

import keepstone
from keepstone.agent import Agent
from keepstone.errors import PathEscapeError, StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.model import Finding
from keepstone.operations.git_home import init

LOG = "agents/a/memory/sessions/main.ndjson"
WHO = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t",
}


def git(folder: Path, *words: str, ok: bool = True) -> str:
    environment = {**os.environ, **WHO, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *words],  # noqa: S607  The user's own git.
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout


def agent(folder: Path) -> Agent:
    return keepstone.open(folder, embedder="none").agent("a")


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "memory")


@pytest.fixture
def devices(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of a home with three entries."""
    one, two = tmp_path / "one", tmp_path / "two"
    session = agent(one).session("main")
    for name in ("a", "b", "c"):
        session.add("note", text=f"first {name}", id=name)
    init(one, LAYOUTS["default"])
    commit(one)
    git(tmp_path, "clone", "-q", str(one), str(two))
    init(two, LAYOUTS["default"])
    return one, two


def pull(here: Path, there: Path, *how: str) -> None:
    """Commit both sides and merge the other's branch."""
    for folder in (there, here):
        commit(folder)
    branch = git(there, "branch", "--show-current").strip()
    git(here, "pull", "-q", "--no-edit", *(how or ("--no-rebase",)), str(there), branch)


def texts(folder: Path) -> dict[str, str]:
    with keepstone.open(folder, embedder="none") as home:
        return {entry.id: entry.text for entry in home.agent("a").session("main").entries()}


def test_git_init_writes_what_git_needs(tmp_path: Path) -> None:
    agent(tmp_path).session("main").add("note", text="x")
    (tmp_path / ".gitignore").write_text("mine\n", "utf-8")
    written = init(tmp_path, LAYOUTS["default"])
    assert written == [".gitattributes", ".gitignore", "agents/a/memory/sessions/.purged.ndjson"]
    assert init(tmp_path, LAYOUTS["default"]) == []
    assert (tmp_path / ".gitignore").read_text("utf-8").startswith("mine\n")
    commit(tmp_path)
    files = git(tmp_path, "ls-files").split()
    assert files == [".gitattributes", ".gitignore", "agents/a/memory/sessions/.purged.ndjson", LOG]
    assert "merge-log %O %A %B %P" in git(tmp_path, "config", "merge.keepstone.driver")


@pytest.mark.parametrize("name", [".gitattributes", ".gitignore"])
def test_git_init_writes_through_no_link(tmp_path: Path, name: str) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    agent(home).session("main").add("note", text="x")
    other.write_text("mine\n", "utf-8")
    (home / name).symlink_to(other)
    with pytest.raises(PathEscapeError, match=name):
        init(home, LAYOUTS["default"])
    assert other.read_text("utf-8") == "mine\n"


def test_what_both_devices_added_is_merged(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).session("main").add_many(
        [{"type": "note", "text": f"one {n}", "id": f"o{n}"} for n in range(3)]
    )
    agent(two).session("main").add_many(
        [{"type": "note", "text": f"two {n}", "id": f"t{n}"} for n in range(3)]
    )
    agent(two).session("only-there").add("note", text="x", id="x")
    pull(one, two)
    assert set(texts(one)) == {"a", "b", "c", "o0", "o1", "o2", "t0", "t1", "t2"}
    assert agent(one).get("x").text == "x"
    pull(two, one)
    assert texts(two) == texts(one)
    assert git(one, "status", "--porcelain") == ""


@pytest.mark.parametrize("swapped", [False, True])
def test_a_deletion_wins_over_an_edit(devices: tuple[Path, Path], *, swapped: bool) -> None:
    here, there = devices[::-1] if swapped else devices
    agent(here).delete("a")
    agent(there).update("a", text="edited there")
    agent(there).update("b", text="edited, too")
    pull(here, there)
    assert texts(here) == {"b": "edited, too", "c": "first c"}


def test_a_deletion_that_was_compacted_wins_over_an_edit(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).delete("a")
    agent(one).session("main").compact()
    agent(two).update("a", text="edited there")
    pull(two, one)
    assert set(texts(two)) == {"b", "c"}
    pull(one, two)
    assert set(texts(one)) == {"b", "c"}


def test_both_sides_compacted(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).update("a", text="from one")
    agent(one).session("main").compact()
    agent(two).update("a", text="from two")
    agent(two).update("b", text="from two")
    agent(two).session("main").compact()
    pull(one, two)
    assert texts(one) == {"a": "from two", "b": "from two", "c": "first c"}
    assert [version.text for version in agent(one).history("b")][-1] == "from two"


@pytest.mark.parametrize("how", ["--no-rebase", "--rebase"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_purge_wins_and_leaves_no_byte(devices: tuple[Path, Path], how: str, *, swapped: bool) -> None:
    here, there = devices[::-1] if swapped else devices
    agent(here).purge("a")
    agent(there).update("a", text="edited there")
    agent(there).session("main").compact()
    pull(here, there, how)
    assert set(texts(here)) == {"b", "c"}
    pull(there, here, how)
    assert set(texts(there)) == {"b", "c"}
    for folder in devices:
        files = [path for path in (folder / "agents").rglob("*") if path.is_file()]
        assert not [path for path in files if b"edited there" in path.read_bytes()]


def test_a_cleared_session_stays_clear_of_the_others_edits(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).session("main").clear()
    agent(two).update("a", text="edited there")
    agent(two).session("main").add("note", text="new", id="new")
    pull(two, one)
    assert texts(two) == {"new": "new"}


@pytest.mark.parametrize("end", ["delete", "purge"])
def test_an_id_added_again_survives_the_others_compaction(devices: tuple[Path, Path], end: str) -> None:
    one, two = devices
    getattr(agent(one), end)("a")
    pull(two, one)
    agent(two).session("main").add("note", text="again", id="a")
    agent(one).session("main").compact()
    agent(one).session("main").add("note", text="more", id="more")
    pull(one, two)
    assert texts(one) == {"a": "again", "b": "first b", "c": "first c", "more": "more"}


def test_what_was_purged_is_not_imported_again(devices: tuple[Path, Path], tmp_path: Path) -> None:
    from keepstone.importing import import_memory

    here = agent(devices[0])
    (tmp_path / "main.jsonl").write_text('{"id": "a", "text": "first a"}\n', "utf-8")
    here.purge("a")
    assert import_memory(here, "jsonl", tmp_path / "main.jsonl").imported == 0


def test_purges_are_recorded_as_digests_only(devices: tuple[Path, Path]) -> None:
    here = agent(devices[0])
    here.session("new").add("note", text="x", id="very-secret-name")
    here.purge("very-secret-name")
    folder = devices[0] / "agents" / "a" / "memory" / "sessions"
    recorded = (folder / ".purged.ndjson").read_text("utf-8")
    assert recorded.count("\n") == 1
    assert "very-secret-name" not in recorded


def test_a_home_that_meets_no_other_records_purges_too(tmp_path: Path) -> None:
    here = agent(tmp_path)
    here.session("main").add("note", text="x", id="x")
    here.purge("x")
    assert len(list(tmp_path.rglob(".purged.ndjson"))) == 1


def test_conflict_markers_are_named_by_the_doctor(devices: tuple[Path, Path]) -> None:
    one, two = devices
    for folder in devices:
        git(folder, "config", "--remove-section", "merge.keepstone")
        agent(folder).update("c", text=f"edited by {folder.name}")
        commit(folder)
    git(one, "pull", "-q", "--no-rebase", str(two), git(two, "branch", "--show-current").strip(), ok=False)
    with keepstone.open(one, embedder="none") as home:
        found = [finding for finding in home.doctor() if "conflict markers" in finding.message]
        assert [finding.subject for finding in found] == ["a/main"]
        assert "line" in found[0].message


def push_modules(folder: Path, proof: Path) -> None:
    """Commit modules that a merge driver would import if it looked into the work tree, and an entry."""
    code = f"open({str(proof)!r}, 'a').write(__name__)\n"
    (folder / "keepstone").mkdir()
    for name in ("keepstone/__init__.py", "keepstone/__main__.py", "json.py", "typer.py"):
        (folder / name).write_text(code, "utf-8")
    agent(folder).session("main").add("note", text="theirs", id="theirs")


def test_a_merge_runs_no_module_of_the_work_tree(devices: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = devices
    push_modules(two, tmp_path / "proof")
    agent(one).session("main").add("note", text="ours", id="ours")
    pull(one, two)
    agent(one).session("main").add("note", text="again", id="again")
    agent(two).session("main").add("note", text="there", id="there")
    pull(one, two)
    assert (one / "json.py").exists()
    assert not (tmp_path / "proof").exists()
    assert {"ours", "theirs", "again", "there"} <= texts(one).keys()


OLD_DRIVER = f"{sys.executable} -m keepstone git merge-log %O %A %B %P"


def test_git_init_replaces_a_driver_that_imports_from_the_work_tree(devices: tuple[Path, Path]) -> None:
    git(devices[0], "config", "merge.keepstone.driver", OLD_DRIVER)
    init(devices[0], LAYOUTS["default"])
    driver = git(devices[0], "config", "--get-all", "merge.keepstone.driver")
    assert driver.splitlines() == [f"{sys.executable} -P -m keepstone git merge-log %O %A %B %P"]


def about_the_driver(folder: Path) -> list[Finding]:
    with keepstone.open(folder, embedder="none") as home:
        return [finding for finding in home.doctor() if "merge driver" in finding.message]


def test_the_doctor_names_a_driver_that_imports_from_the_work_tree(devices: tuple[Path, Path]) -> None:
    git(devices[0], "config", "merge.keepstone.driver", OLD_DRIVER)
    (finding,) = about_the_driver(devices[0])
    assert finding.level == "error"
    assert OLD_DRIVER in finding.message
    assert finding.remedy == f"keepstone git init --home {devices[0]}"


@pytest.mark.parametrize("options", ["-P", "-I", "-IB"])
def test_the_doctor_accepts_a_driver_that_ignores_the_work_tree(
    devices: tuple[Path, Path], options: str
) -> None:
    line = f"python3 {options} -m keepstone git merge-log %O %A %B %P"
    git(devices[0], "config", "merge.keepstone.driver", line)
    assert about_the_driver(devices[0]) == []


def test_a_home_inside_a_repository_keeps_that(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    home = tmp_path / "project" / "memory"
    agent(home).session("main").add("note", text="x")
    init(home, LAYOUTS["default"])
    assert not (home / ".git").exists()
    git(tmp_path, "add", "-A")
    assert f"project/memory/{LOG}" in git(tmp_path, "ls-files").split()


def test_the_command_sets_a_home_up(tmp_path: Path) -> None:
    words = [*warm(), "-m", "keepstone", "git", "init", "--home", str(tmp_path / "home"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert '".gitattributes"' in done.stdout


def test_without_git_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="git is not installed"):
        init(tmp_path / "home", LAYOUTS["default"])


def test_a_merge_keeps_who_said_an_entry(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).session("main").add("note", text="from a page", id="page", origin="tool")
    agent(two).vouch("a")
    pull(one, two)
    assert [agent(one).get(name).trust for name in ("a", "b", "page")] == ["user", "program", "tool"]


def test_suggestions_of_both_branches_are_merged(devices: tuple[Path, Path]) -> None:
    one, two = devices
    agent(one).suggest("pin", ["a"], why="from one")
    made = agent(two).suggest("delete", ["b"], why="from two")
    agent(two).accept(made.id, by="Ada")
    pull(one, two)
    found = {item.why: (item.state, item.decided_by) for item in agent(one).suggestions(None)}
    assert found == {"from one": ("open", None), "from two": ("accepted", "Ada")}
    assert [entry.id for entry in agent(one).entries()] == ["a", "c"]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_purge_takes_suggestions_of_the_other_branch(devices: tuple[Path, Path], *, swapped: bool) -> None:
    one, two = devices
    agent(one).suggest("pin", ["a"], why="secret words")
    pull(two, one)
    agent(two).suggest("supersede", ["a"], "secret words", why="from two")
    agent(one).purge("a")
    agent(one).suggest("pin", ["b"], why="kept")
    here, there = (two, one) if swapped else (one, two)
    pull(here, there)
    assert [item.why for item in agent(here).suggestions(None)] == ["kept"]
    assert b"secret words" not in (here / "agents/a/memory/suggestions.ndjson").read_bytes()
