import logging
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.errors import (
    AccessDeniedError,
    AgentNotFoundError,
    InvalidAgentIdError,
    IsAFolderError,
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    StoreError,
)
from keepstone.files import AgentFiles
from keepstone.services.agent_files import AgentMemoryService, FileResult

AGENT = "coder-1"
READ, WRITE, APPEND = "read_agent_memory_file", "write_agent_memory_file", "append_to_agent_memory_file"
EVERY_TOOL = pytest.mark.parametrize("tool", [READ, WRITE, APPEND])
CHANGING_TOOL = pytest.mark.parametrize("tool", [WRITE, APPEND])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    st.lists,
    max_leaves=4,
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def service(cache: Path) -> Iterator[AgentMemoryService]:
    service = AgentMemoryService(cache)
    yield service
    service.close()


def run(service: AgentMemoryService, tool: str, agent: object, path: object) -> object:
    """Call the method of a tool with the arguments it needs."""
    content = {} if tool == READ else {"content": "new"}
    return getattr(service, tool)(agent, path, **content)


def code_of(service: AgentMemoryService, tool: str, **changes: object) -> str:
    """The code that a call answers, with some of its good arguments changed."""
    content = {} if tool == READ else {"content": "new"}
    answer = service.call(tool, {"agent_instance_id": AGENT, "path": "a.md", **content, **changes})
    assert answer["ok"] is False
    assert set(answer) == {"ok", "error"}
    assert answer["error"]["message"]
    return str(answer["error"]["code"])


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and path.suffix == ".md"}


@pytest.mark.requirement("files.us1.read-returns-content", "files.scope.service-class")
def test_a_file_is_read_by_agent_and_path(service: AgentMemoryService, cache: Path) -> None:
    folder = cache / "agent_memory" / AGENT / "plans"
    folder.mkdir(parents=True)
    (folder / "today.md").write_text("Call Ana")
    assert service.read_agent_memory_file(AGENT, "plans/today.md") == "Call Ana"


@pytest.mark.requirement("files.us1.missing-file-is-an-error")
def test_reading_a_missing_file_says_it_was_not_found(service: AgentMemoryService) -> None:
    with pytest.raises(MemoryFileNotFoundError, match=r"no file 'none\.md'"):
        service.read_agent_memory_file(AGENT, "none.md")
    assert code_of(service, READ) == "file_not_found"


@pytest.mark.requirement("files.us1.invalid-agent-is-an-error")
@EVERY_TOOL
@pytest.mark.parametrize("agent", ["", "..", "../other", "a/b", "a\0", "-a", "\ud800"])
def test_an_invalid_agent_is_refused_by_every_tool(
    service: AgentMemoryService, tool: str, agent: str
) -> None:
    with pytest.raises(InvalidAgentIdError):
        run(service, tool, agent, "a.md")
    assert code_of(service, tool, agent_instance_id=agent) == "invalid_agent"


@pytest.mark.requirement("files.us1.invalid-agent-is-an-error")
@EVERY_TOOL
@pytest.mark.parametrize("known", [["other"], {"other"}, (), lambda agent: agent == "other"])
def test_an_unknown_agent_is_refused_by_every_tool(
    cache: Path, tool: str, known: Collection[str] | Callable[[str], bool]
) -> None:
    service = AgentMemoryService(cache, known_agents=known)
    with pytest.raises(AgentNotFoundError, match=f"'{AGENT}'"):
        run(service, tool, AGENT, "a.md")
    assert code_of(service, tool) == "agent_not_found"
    assert files_below(cache) == set()
    service.close()


def test_an_invalid_agent_is_not_even_looked_up(cache: Path) -> None:
    asked: list[str] = []

    def known(agent: str) -> bool:
        asked.append(agent)
        return True

    service = AgentMemoryService(cache, known_agents=known)
    assert code_of(service, READ, agent_instance_id="..") == "invalid_agent"
    assert code_of(service, READ) == "file_not_found"
    assert asked == [AGENT]
    service.close()


def test_known_agents_may_grow_after_the_start(cache: Path) -> None:
    known = {"other"}
    service = AgentMemoryService(cache, known_agents=known)
    known.add(AGENT)
    assert service.write_agent_memory_file(AGENT, "a.md", "text").bytes == 4
    service.close()


def test_a_string_is_not_a_collection_of_agents(cache: Path) -> None:
    with pytest.raises(TypeError, match="known_agents"):
        AgentMemoryService(cache, known_agents="coder-1")


@pytest.mark.requirement("files.us1.escape-is-a-security-error", "files.scope.paths-are-confined")
@EVERY_TOOL
@pytest.mark.parametrize(
    "path", ["../coder-2/a.md", "/etc/passwd", "a/../../b.md", "a\\b", "C:a", "a\0", "a/.."]
)
def test_a_path_that_leads_out_is_a_security_error(service: AgentMemoryService, tool: str, path: str) -> None:
    with pytest.raises(PathEscapeError):
        run(service, tool, AGENT, path)
    assert code_of(service, tool, path=path) == "path_escape"


@pytest.mark.requirement("files.scope.paths-are-confined")
@EVERY_TOOL
def test_a_link_to_another_agent_is_a_security_error(
    service: AgentMemoryService, cache: Path, tool: str
) -> None:
    service.write_agent_memory_file("coder-2", "a.md", "secret")
    (cache / "agent_memory" / AGENT).symlink_to("coder-2")
    assert code_of(service, tool) == "path_escape"
    assert service.read_agent_memory_file("coder-2", "a.md") == "secret"


@pytest.mark.requirement("files.us2.write-creates-the-file")
def test_a_write_creates_the_file_and_reports_it(service: AgentMemoryService, cache: Path) -> None:
    result = service.write_agent_memory_file(AGENT, "plans/today.md", "Zürich")
    assert result == FileResult(path="plans/today.md", bytes=7)
    assert (cache / "agent_memory" / AGENT / "plans" / "today.md").read_text("utf-8") == "Zürich"


@pytest.mark.requirement("files.us2.write-overwrites-the-file")
def test_a_write_replaces_the_old_content_whole(service: AgentMemoryService) -> None:
    service.write_agent_memory_file(AGENT, "a.md", "a long old text")
    assert service.write_agent_memory_file(AGENT, "a.md", "new") == FileResult("a.md", 3)
    assert service.read_agent_memory_file(AGENT, "a.md") == "new"


@pytest.mark.requirement("files.us2.escape-writes-nothing", "files.us3.escape-changes-nothing")
@CHANGING_TOOL
@pytest.mark.parametrize("path", ["../outside.md", "../coder-2/a.md", "x/../../../outside.md"])
def test_a_change_outside_leaves_every_file_as_it_was(
    service: AgentMemoryService, tmp_path: Path, tool: str, path: str
) -> None:
    (tmp_path / "outside.md").write_text("outside")
    service.write_agent_memory_file("coder-2", "a.md", "old")
    assert code_of(service, tool, path=path) == "path_escape"
    assert (tmp_path / "outside.md").read_text() == "outside"
    assert service.read_agent_memory_file("coder-2", "a.md") == "old"
    assert files_below(tmp_path) == {"outside.md", "a.md"}


@pytest.mark.requirement("files.us3.append-extends-the-file")
def test_an_append_puts_content_behind_the_old(service: AgentMemoryService) -> None:
    service.write_agent_memory_file(AGENT, "a.md", "one")
    assert service.append_to_agent_memory_file(AGENT, "a.md", "two") == FileResult("a.md", 3)
    assert service.read_agent_memory_file(AGENT, "a.md") == "onetwo"


@pytest.mark.requirement("files.us3.append-creates-the-file")
def test_an_append_to_a_missing_file_creates_it(service: AgentMemoryService) -> None:
    assert service.append_to_agent_memory_file(AGENT, "logs/a.md", "one") == FileResult("logs/a.md", 3)
    assert service.read_agent_memory_file(AGENT, "logs/a.md") == "one"


@pytest.mark.requirement("files.scope.yaml-and-markdown")
@pytest.mark.parametrize("path", ["a.yaml", "a.yml", "a.md"])
@pytest.mark.parametrize("content", ["a: [1\r\n\tb: }", "# Ünïcode \U0001f600\n```", "\ufeffa: 1\0", ""])
def test_yaml_and_markdown_come_back_unchanged(service: AgentMemoryService, path: str, content: str) -> None:
    service.write_agent_memory_file(AGENT, path, content)
    service.append_to_agent_memory_file(AGENT, path, content)
    assert service.read_agent_memory_file(AGENT, path) == content * 2


@pytest.mark.requirement("files.scope.folder-is-made-on-first-write")
@CHANGING_TOOL
def test_the_first_change_makes_the_folder_and_no_read_does(
    service: AgentMemoryService, cache: Path, tool: str
) -> None:
    assert code_of(service, READ) == "file_not_found"
    assert not (cache / "agent_memory").exists()
    run(service, tool, AGENT, "a.md")
    assert (cache / "agent_memory" / AGENT / "a.md").read_text() == "new"


def test_agents_do_not_see_one_anothers_files(service: AgentMemoryService) -> None:
    service.write_agent_memory_file(AGENT, "a.md", "secret")
    assert code_of(service, READ, agent_instance_id="coder-2") == "file_not_found"


@pytest.mark.requirement("files.scope.file-errors-are-handled")
@EVERY_TOOL
def test_a_folder_in_a_files_place_is_a_clear_error(service: AgentMemoryService, tool: str) -> None:
    service.write_agent_memory_file(AGENT, "a.md/b.md", "text")
    with pytest.raises(IsAFolderError, match=r"'a\.md' is a folder"):
        run(service, tool, AGENT, "a.md")
    assert code_of(service, tool) == "is_a_directory"


@pytest.mark.requirement("files.scope.file-errors-are-handled")
def test_a_file_that_is_not_text_is_a_clear_error(service: AgentMemoryService, cache: Path) -> None:
    service.write_agent_memory_file(AGENT, "a.md", "text")
    (cache / "agent_memory" / AGENT / "a.md").write_bytes(b"\xff\xfe")
    with pytest.raises(NotTextError):
        service.read_agent_memory_file(AGENT, "a.md")
    assert code_of(service, READ) == "not_text"


@pytest.mark.requirement("files.scope.file-errors-are-handled")
@EVERY_TOOL
def test_a_file_without_permission_is_a_clear_error(
    service: AgentMemoryService, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    service.write_agent_memory_file(AGENT, "a.md", "text")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AccessDeniedError, match="owner and mode"):
        run(service, tool, AGENT, "a.md")
    assert code_of(service, tool) == "permission_denied"


@pytest.mark.requirement("files.scope.file-errors-are-handled")
@pytest.mark.parametrize("error", [StoreError("the disk is full"), LockTimeoutError("another writer")])
def test_a_failing_disk_or_lock_is_a_clear_answer(
    service: AgentMemoryService, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(AgentFiles, "write", fail)
    assert code_of(service, WRITE) == "store_error"


@pytest.mark.requirement("files.scope.operations-are-logged")
def test_each_operation_is_logged_without_its_content(
    service: AgentMemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "keepstone.files")
    service.write_agent_memory_file(AGENT, "plans/a.md", "secret")
    service.append_to_agent_memory_file(AGENT, "plans/a.md", "ü")
    service.read_agent_memory_file(AGENT, "plans/a.md")
    assert [record.getMessage() for record in caplog.records if record.name == "keepstone.files"] == [
        "write agent=coder-1 path='plans/a.md' bytes=6",
        "append agent=coder-1 path='plans/a.md' bytes=2",
        "read agent=coder-1 path='plans/a.md' bytes=8",
    ]


def test_a_path_cannot_forge_a_log_record(
    service: AgentMemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "keepstone.files")
    service.write_agent_memory_file(AGENT, "a\nwrite agent=x", "text")
    assert "\n" not in caplog.messages[-1]


@pytest.mark.requirement("files.tools.executor-definitions")
def test_the_tools_have_their_names_and_schemas(service: AgentMemoryService) -> None:
    tools = {tool["name"]: tool for tool in service.tools()}
    assert [*tools] == [READ, WRITE, APPEND]
    assert all(set(tool) == {"name", "description", "input_schema"} for tool in tools.values())
    schema = tools[APPEND]["input_schema"]
    assert schema["required"] == [*schema["properties"]] == ["agent_instance_id", "path", "content"]
    assert tools[READ]["input_schema"]["required"] == ["agent_instance_id", "path"]


@pytest.mark.requirement("files.tools.executor-definitions")
def test_each_tool_call_reaches_the_service(service: AgentMemoryService) -> None:
    target = {"agent_instance_id": AGENT, "path": "a.md"}
    assert service.call(WRITE, {**target, "content": "one"}) == {"ok": True, "path": "a.md", "bytes": 3}
    assert service.call(APPEND, {**target, "content": "two"}) == {"ok": True, "path": "a.md", "bytes": 3}
    assert service.call(READ, target) == {"ok": True, "content": "onetwo"}


@pytest.mark.parametrize("tool", ["", "close", "call", "__init__", "read", None, 7, ["x"], {}])
def test_any_other_tool_is_unknown(service: AgentMemoryService, tool: Any) -> None:
    answer = service.call(tool, {})
    assert answer["error"]["code"] == "unknown_tool"


@EVERY_TOOL
@pytest.mark.parametrize("arguments", [None, 7, "text", [], {}, {"path": "a.md"}, {1: 2}])
def test_arguments_of_another_shape_are_invalid(
    service: AgentMemoryService, tool: str, arguments: Any
) -> None:
    assert service.call(tool, arguments)["error"]["code"] == "invalid_argument"


@EVERY_TOOL
@pytest.mark.parametrize(
    "change",
    [
        {"path": ""},
        {"path": "."},
        {"path": 7},
        {"path": "\ud800"},
        {"agent_instance_id": None},
        {"mode": "w"},
    ],
)
def test_a_malformed_argument_is_invalid(
    service: AgentMemoryService, tool: str, change: dict[str, object]
) -> None:
    assert code_of(service, tool, **change) == "invalid_argument"


@CHANGING_TOOL
@pytest.mark.parametrize("content", [None, 7, ["a"], {"a": 1}, "\ud800"])
def test_content_that_is_not_text_writes_nothing(
    service: AgentMemoryService, cache: Path, tool: str, content: object
) -> None:
    assert code_of(service, tool, content=content) == "invalid_argument"
    assert files_below(cache) == set()


@given(
    st.sampled_from([READ, WRITE, APPEND]) | JSON,
    st.dictionaries(st.sampled_from(["agent_instance_id", "path", "content"]) | st.text(), JSON) | JSON,
)
def test_whatever_a_model_sends_is_answered(
    tmp_path_factory: pytest.TempPathFactory, tool: Any, arguments: Any
) -> None:
    service = AgentMemoryService(tmp_path_factory.mktemp("cache"))
    answer = service.call(tool, arguments)
    assert answer["ok"] is True or set(answer["error"]) == {"code", "message"}
    service.close()


@pytest.mark.parametrize(
    ("agent", "path", "code"),
    [
        (AGENT, "../secret.md", "path_escape"),
        (AGENT, "a\nforged agent=x", "file_not_found"),
        ("no agent", "a.md", "invalid_agent"),
        (AGENT, "", "invalid_argument"),
        (7, "a.md", "invalid_argument"),
    ],
)
def test_refused_paths_and_agents_are_logged_by_code(
    service: AgentMemoryService, caplog: pytest.LogCaptureFixture, agent: Any, path: str, code: str
) -> None:
    service.call(READ, {"agent_instance_id": agent, "path": path})
    assert [record.name for record in caplog.records] == ["keepstone.files"]
    assert caplog.messages == [f"read refused agent={agent!r} path={path!r} code={code}"]


@CHANGING_TOOL
def test_the_content_of_a_refused_write_is_not_logged(
    service: AgentMemoryService, caplog: pytest.LogCaptureFixture, tool: str
) -> None:
    service.call(tool, {"agent_instance_id": AGENT, "path": "/etc/x", "content": "hunter2"})
    assert "code=path_escape" in caplog.text
    assert "hunter2" not in caplog.text
