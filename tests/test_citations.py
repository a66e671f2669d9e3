"""Citations of a project's files: what became of the text that an entry is about."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Entry
from keepstone.store import citations

LINES = ["def check(token):", "    if token.expired:", "        raise Expired", "    return True", ""]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "auth.py").write_text("\n".join(LINES))
    return tmp_path / "project"


@pytest.fixture
def agent(target: str, project: Path) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os", project=project) as home:
        yield home.agent("ada")


@pytest.fixture
def rule(agent: Agent) -> Entry:
    return agent.add("Expired tokens are refused", cites=["src/auth.py#L2-L3"], id="rule")


def state(agent: Agent) -> tuple[str, str]:
    (found,) = agent.verify()
    return found.state, found.lines


def test_a_citation_keeps_a_digest_and_the_first_words(rule: Entry) -> None:
    (link,) = rule.links
    assert (link["rel"], link["to"]) == ("cites", "file:src/auth.py#L2-L3")
    assert link["text"] == "if token.expired: raise Expired"
    assert link["digest"].startswith("sha256:")
    assert link["project"]["name"] == "project"


def test_whole_files_and_single_lines_are_cited(agent: Agent) -> None:
    entry = agent.add("Text", cites=["file:src/auth.py", "src/auth.py#L4"])
    assert [link["to"] for link in entry.links] == ["file:src/auth.py", "file:src/auth.py#L4"]
    assert [one.state for one in agent.verify()] == ["fresh", "fresh"]


@pytest.mark.usefixtures("rule")
def test_a_moved_text_is_found_at_its_new_lines(agent: Agent, project: Path) -> None:
    assert state(agent) == ("fresh", "")
    (project / "src" / "auth.py").write_text("\r\n".join(["import jwt", "", *LINES]))
    assert state(agent) == ("moved", "L4-L5")
    assert agent.get("rule").stale is None


@pytest.mark.usefixtures("rule")
def test_a_changed_text_makes_its_entry_stale(agent: Agent, project: Path) -> None:
    assert agent.get("rule").stale is None
    (project / "src" / "auth.py").write_text("\n".join(LINES).replace("raise", "return"))
    assert state(agent) == ("changed", "")
    assert agent.get("rule").stale == "it cites src/auth.py#L2-L3, which has changed"
    assert "Expired tokens" not in agent.context("expired tokens").text
    assert "which has changed) Expired tokens" in agent.context("expired tokens", stale="mark").text


@pytest.mark.usefixtures("rule")
def test_a_file_that_is_gone_makes_its_entry_stale(agent: Agent, project: Path) -> None:
    (project / "src" / "auth.py").unlink()
    assert state(agent) == ("gone", "")
    assert agent.recall("expired tokens")[0].entry.stale == "it cites src/auth.py#L2-L3, which is gone"
    (project / "src" / "auth.py").symlink_to("/etc/hostname")
    assert state(agent) == ("gone", "")


@pytest.mark.usefixtures("rule")
def test_a_person_accepts_the_new_text(agent: Agent, project: Path) -> None:
    (project / "src" / "auth.py").write_text("\n".join(["", *LINES]).replace("raise", "return"))
    assert [one.state for one in agent.verify(accept="rule")] == ["fresh"]
    assert agent.get("rule").stale is None
    (project / "src" / "auth.py").unlink()
    with pytest.raises(FileNotFoundError, match="no file"):
        agent.verify(accept="rule")


@pytest.mark.usefixtures("rule")
def test_a_citation_of_another_project_is_not_judged(target: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with keepstone.open(target, embedder="none", project=tmp_path / "elsewhere") as home:
        assert state(home.agent("ada")) == ("elsewhere", "")
        assert home.agent("ada").get("rule").stale is None


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("src/none.py", FileNotFoundError, "no file"),
        ("../secret", PermissionError, r"\.\."),
        ("/etc/hostname", PermissionError, "/etc"),
        ("src", IsADirectoryError, "folder"),
        ("link.py", PermissionError, "link"),
        ("picture.png", ValueError, "binary"),
        ("large.txt", ValueError, "4 MiB"),
        ("src/auth.py#L9", ValueError, "has 4 lines"),
        ("src/auth.py#L0", ValueError, "count from 1"),
        ("src/auth.py#L3-L2", ValueError, "count from 1"),
    ],
)
def test_what_cannot_be_cited_is_refused(
    agent: Agent, project: Path, place: str, error: type[Exception], message: str
) -> None:
    (project / "link.py").symlink_to("src/auth.py")
    (project / "picture.png").write_bytes(b"\x89PNG\0")
    (project / "large.txt").write_bytes(b"a" * (4 << 20) + b"b")
    with pytest.raises(error, match=message):
        agent.add("Text", cites=["src/auth.py", place])
    assert agent.count() == 0


def test_the_commit_that_changed_a_citation_is_named(agent: Agent, project: Path, rule: Entry) -> None:
    git_program = shutil.which("git") or "git"

    def git(*words: str) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        return subprocess.run(
            [git_program, *who, *words], cwd=project, check=True, capture_output=True, text=True
        ).stdout.strip()

    for text in ("raise", "return"):
        (project / "src" / "auth.py").write_text("\n".join(LINES).replace("raise", text))
        git(*(["init", "-q"] if text == "raise" else ["status"]))
        git("add", ".")
        git("commit", "-qm", text)
    assert [(one.id, one.commit) for one in agent.verify()] == [(rule.id, git("rev-parse", "HEAD"))]


@pytest.mark.parametrize("setting", ["filter.planted.clean", "remote.origin.uploadpack"])
def test_no_program_that_a_repository_names_runs(
    agent: Agent, project: Path, tmp_path: Path, setting: str
) -> None:
    program, proof = shutil.which("git") or "git", tmp_path / "it ran"

    def git(*words: str) -> str:
        return subprocess.run(
            [program, *words], cwd=project, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "first")
    (project / ".git" / "info" / "attributes").write_text("* filter=planted\n")
    for key, value in {"url": str(project), "promisor": "true", "partialclonefilter": "blob:none"}.items():
        git("config", f"remote.origin.{key}", value)
    git("config", setting, f"touch '{proof}'; cat")
    agent.add("Expired tokens are refused", cites=["src/auth.py#L2-L3"])
    blob = git("rev-parse", "HEAD:src/auth.py").strip()
    if setting.startswith("remote"):
        (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (project / "src" / "auth.py").write_text("changed\n")
    assert [(one.state, one.commit) for one in agent.verify()] == [("changed", None)]
    assert not proof.exists()


def test_a_search_for_a_text_that_moved_has_an_end(
    agent: Agent, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "blank.txt").write_text("x\n" * 3000)
    entry = agent.add("Blank", cites=["blank.txt#L1-L1000"])
    (project / "blank.txt").write_text("x\n" * 900 + "y\n" + "x\n" * 999 + "y\n" + "x\n" * 1090)
    compared: list[str] = []
    digest = citations._digest  # noqa: SLF001  What is counted.

    def counted(text: str) -> str:
        compared.append(text)
        return digest(text)

    monkeypatch.setattr(citations, "_digest", counted)
    monkeypatch.setattr(citations, "_COMPARED", 5000)
    assert agent.get(entry.id).stale is not None
    assert len(compared) < 30


def test_nothing_below_the_folder_of_git_is_cited(agent: Agent, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("url = https://token@example.com\n")
    with pytest.raises(ValueError, match="belongs to git"):
        agent.add("Text", cites=[".git/config#L1"])


def test_a_long_configuration_of_git_is_read_to_a_bound(agent: Agent, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text('[remote "origin"]\n' + "\n" * 1_000_000 + "url = x\n")
    entry = agent.add("Text", cites=["src/auth.py"])
    assert entry.stale is None


def test_a_link_to_an_entry_is_no_citation_of_a_file(agent: Agent) -> None:
    agent.add("The paper", id="paper")
    agent.add("The summary", id="summary")
    agent.link("summary", "paper", "cites")
    assert agent.get("summary").stale is None
    assert agent.verify() == []
    assert agent.update("summary", links=[{"to": "paper", "rel": "cites"}]).links[0]["to"] == "paper"


def test_entries_shown_one_by_one_are_all_compared(
    target: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(citations, "_READS", 2)
    with keepstone.open(target, embedder="none", project=project) as home:
        check_one_by_one(home.agent("ada"), project)


def check_one_by_one(agent: Agent, project: Path) -> None:
    for number in range(4):
        (project / f"{number}.txt").write_text("old")
        agent.add("Text", id=f"e{number}", cites=[f"{number}.txt"])
        (project / f"{number}.txt").write_text("new text")
    assert sum(agent.get(f"e{number}").stale is not None for number in range(4)) == 4


def test_only_an_entry_that_cites_something_takes_a_new_text(agent: Agent) -> None:
    agent.add("Text", id="plain")
    with pytest.raises(ValueError, match="'plain' cites no file"):
        agent.verify(accept="plain")


def test_the_folder_of_git_is_known_by_any_case(agent: Agent) -> None:
    with pytest.raises(ValueError, match="belongs to git"):
        agent.add("Text", cites=[".GIT/config#L1"])


def test_a_writer_from_another_machine_cites_no_file(agent: Agent) -> None:
    remote = agent.on_behalf("program", may_cite=False)
    link = {"to": "file:src/auth.py", "rel": "cites", "digest": "sha256:0"}
    remote.add("Text", id="plain")
    remote.add("Named like a file", id="file:src/auth.py")
    for write in (
        lambda: remote.add("Text", links=[link]),
        lambda: remote.add("Text", cites=["src/auth.py#L1"]),
        lambda: remote.on_behalf("model").add("Text", cites=["src/auth.py#L1"]),
        lambda: remote.supersede("plain", {"text": "Other", "links": [link]}),
        lambda: remote.link("plain", "file:src/auth.py", "cites"),
        lambda: remote.suggest("add", item={"text": "Text", "links": [link]}, why="a guess"),
    ):
        with pytest.raises(ValueError, match=r"cites? no files"):
            write()
    assert remote.update("plain", links=[link]).links == ()
    assert [entry.links for entry in agent.entries()] == [(), ()]
    assert remote.suggestions(None) == []


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize(
    "remote",
    [
        "git@Example.com:ada/work.git",
        "ssh://git@example.com/ada/work.git",
        "https://token@example.com/ada/work",
        "https://example.com/ada/work.git/",
    ],
)
def test_clones_over_other_protocols_are_one_project(agent: Agent, project: Path, remote: str) -> None:
    config = project / ".git" / "config"
    config.parent.mkdir()
    config.write_text('[remote "origin"]\nurl = https://example.com/ada/work\n')
    agent.add("Text", cites=["src/auth.py"], id="cited")
    config.write_text(f'[remote "origin"]\nurl = {remote}\n')
    assert [one.state for one in agent.verify() if one.id == "cited"] == ["fresh"]
