"""Origin: every surface says who wrote an entry."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent

MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("user", {"role": "user", "content": "Hi"}),
    ("model", {"role": "assistant", "content": "Hello"}),
    ("program", {"role": "system", "content": "Be brief"}),
    ("program", {"role": "narrator", "content": "Night falls"}),
    ("tool", {"role": "tool", "tool_call_id": "c1", "content": "42"}),
    ("tool", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]}),
    ("tool", {"role": "assistant", "parts": [{"type": "tool-search", "toolCallId": "c", "output": "42"}]}),
    ("tool", {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}),
    ("tool", {"type": "function_call_output", "call_id": "c1", "output": "42"}),
    ("model", {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
    ("model", {"type": "ai", "data": {"content": "Hello"}}),
]


@pytest.fixture
def agent(target: str) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os") as home:
        yield home.agent("ada")


def test_an_entry_without_origin_counts_as_a_programs(agent: Agent) -> None:
    entry = agent.add("Ada likes tea")
    assert (entry.origin, entry.trust) == (None, "program")
    assert "origin" not in agent.add("Ada likes milk", origin="program").line


def test_a_program_says_who_said_an_entry(agent: Agent) -> None:
    entry = agent.session("s").add("note", text="Tea", origin="tool")
    assert (entry.origin, entry.trust) == ({"by": "tool"}, "tool")
    given = {"by": "model", "via": "crawler"}
    assert agent.get(agent.add("Milk", origin=given).id).origin == given


@pytest.mark.parametrize("origin", ["web", {"by": "root"}, {"by": "user", "to": "x"}, {"by": 1}, {}, 7])
def test_an_unknown_origin_is_refused_and_nothing_is_written(agent: Agent, origin: Any) -> None:
    if origin == {}:
        assert agent.add("Tea", origin=origin).origin is None
        return
    with pytest.raises((ValueError, TypeError), match="origin"):
        agent.add("Tea", origin=origin)
    assert agent.count() == 0


def test_an_update_takes_no_origin(agent: Agent) -> None:
    entry = agent.add("Tea", origin="tool")
    with pytest.raises(ValueError, match="vouch"):
        agent.update(entry.id, origin="user")  # type: ignore[call-arg]
    assert agent.get(entry.id).trust == "tool"


def test_a_new_text_has_the_origin_of_its_writer(agent: Agent) -> None:
    entry = agent.add("Tea", origin="tool")
    assert agent.update(entry.id, pinned=True).trust == "tool"
    assert agent.update(entry.id, "Milk").origin is None
    assert agent.on_behalf("model").update(entry.id, "Water").origin == {"by": "model"}
    assert agent.session("main").replace(entry.id, "Juice").trust == "program"
    assert [version.trust for version in agent.history(entry.id)] == [
        "tool",
        "tool",
        "program",
        "model",
        "program",
    ]


@pytest.mark.parametrize(("by", "message"), MESSAGES)
def test_a_message_has_the_least_origin_of_role_and_parts(agent: Agent, by: str, message: Any) -> None:
    assert agent.session("s").add_messages([message])[0].trust == by


def test_a_surface_caps_what_is_written_through_it(agent: Agent) -> None:
    crawler = agent.on_behalf("tool", "crawler")
    assert crawler.add("Tea", origin="user").origin == {"by": "tool", "via": "crawler"}
    assert crawler.set("drink", "tea").trust == "tool"
    assert crawler.on_behalf("user").add("Milk").trust == "tool"
    assert crawler.session("s").add_messages([{"role": "user", "content": "Hi"}])[0].trust == "tool"
    assert crawler.supersede(agent.add("Water").id, "Juice").trust == "tool"


def test_what_a_model_saves_is_the_models(agent: Agent) -> None:
    saved = agent.call("memory_save", {"text": "Ada likes tea"})
    assert agent.get(saved["id"]).origin == {"by": "model"}
    agent.call("memory_update", {"id": saved["id"], "text": "Ada likes milk"})
    assert agent.get(saved["id"]).trust == "model"
    remembered = agent.call("remember", {"text": "Ada likes water"})
    assert agent.get(remembered["id"]).trust == "model"


@pytest.mark.parametrize("tool", ["memory_save", "remember"])
def test_a_model_cannot_name_an_origin(agent: Agent, tool: str) -> None:
    answer = agent.call(tool, {"text": "Ada likes tea", "origin": "user"})
    assert (answer["ok"], agent.count()) == (False, 0)


def test_an_import_has_no_more_trust_than_import(agent: Agent, tmp_path: Path) -> None:
    agent.add("From the user", origin={"by": "user", "via": "page"}, id="a")
    agent.add("From a tool", origin="tool", id="b")
    agent.add("From a program", id="c")
    with keepstone.open(tmp_path / "other", embedder="none") as home:
        agent.export(tmp_path / "out.ndjson")
        home.import_from("auto", tmp_path / "out.ndjson", agent="ada")
        found = {entry.id: entry.origin for entry in home.agent("ada").entries()}
    assert {name: origin["by"] for name, origin in found.items() if origin} == {
        "a": "import",
        "b": "tool",
        "c": "import",
    }
    assert found["a"] == {"by": "import", "via": "page"}
    assert found["c"] is not None
    assert found["c"]["via"].startswith("import/")


def test_an_import_keeps_origins_on_request(agent: Agent, tmp_path: Path) -> None:
    agent.vouch(agent.add("From a tool", origin="tool", id="a").id)
    agent.add("From a program", id="b")
    with keepstone.open(tmp_path / "other", embedder="none") as home:
        agent.export(tmp_path / "out.ndjson")
        home.import_from("auto", tmp_path / "out.ndjson", agent="ada", keep_origin=True)
        assert {entry.id: entry.trust for entry in home.agent("ada").entries()} == {
            "a": "user",
            "b": "program",
        }


def test_keeping_origins_raises_no_trust(agent: Agent, tmp_path: Path) -> None:
    agent.session("s").add("message", {"role": "user", "content": "Tea"}, id="m")
    agent.export(tmp_path / "out.ndjson")
    with keepstone.open(tmp_path / "other", embedder="none") as home:
        home.import_from("auto", tmp_path / "out.ndjson", agent="ada", keep_origin=True)
        assert home.agent("ada").get("m").trust == agent.get("m").trust == "program"


def test_a_second_import_of_the_same_file_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"id": "a", "text": "Tea"}) + "\n")
    with keepstone.open(tmp_path / "other", embedder="none") as home:
        results = [home.import_from("jsonl", source) for _ in range(2)]
    assert [(result.imported, result.unchanged) for result in results] == [(1, 0), (0, 1)]


def test_copies_and_archives_keep_origins(agent: Agent) -> None:
    session = agent.session("s")
    entry = session.add("note", text="Tea", origin="tool")
    session.update(entry.id, priority=0.5)
    session.compact()
    assert session.copy("t").entries()[0].trust == session.entries()[0].trust == "tool"
    session.delete(entry.id)
    assert session.restore(entry.id).trust == "tool"


def test_a_damaged_origin_has_the_least_trust(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("ada").session("s").add("note", text="Tea", id="a")
        log = next(tmp_path.rglob("s.ndjson"))
        log.write_text(log.read_text().replace('"text"', '"origin":"page","text"'))
        assert home.agent("ada").get("a", "s").trust == "tool"
