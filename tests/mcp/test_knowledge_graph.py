"""A knowledge graph in the entries of one session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.mcp.knowledge_graph import SESSION, KnowledgeGraph

Record = dict[str, Any]
ADA: Record = {"name": "Ada", "entityType": "person", "observations": ["takes the ferry"]}
DOVER: Record = {"name": "Dover", "entityType": "harbour", "observations": []}
VISITS: Record = {"from": "Ada", "to": "Dover", "relationType": "visits"}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("coder")


@pytest.fixture
def graph(agent: Agent) -> KnowledgeGraph:
    graph = KnowledgeGraph(agent)
    graph.create_entities([ADA, DOVER])
    graph.create_relations([VISITS])
    return graph


def imported(agent: Agent) -> KnowledgeGraph:
    """A graph as an import leaves it: relations are links of the entity that they begin at."""
    links = [{"to": "Dover", "rel": "visits"}, {"to": "Bo", "rel": "knows"}]
    agent.session(SESSION).add("entity", ADA, id="Ada", links=links)
    agent.session(SESSION).add("entity", DOVER, id="Dover")
    return KnowledgeGraph(agent)


def ids(agent: Agent) -> set[str]:
    return {entry.id for entry in agent.session(SESSION).entries()}


def test_each_entity_and_each_relation_is_an_entry(agent: Agent, graph: KnowledgeGraph) -> None:
    assert ids(agent) == {"Ada", "Dover", '["Ada", "visits", "Dover"]'}
    assert agent.get("Ada").data == ADA
    assert graph.read() == {"entities": [ADA, DOVER], "relations": [VISITS]}


def test_of_two_new_entities_of_one_name_the_first_is_made(agent: Agent) -> None:
    graph = KnowledgeGraph(agent)
    assert graph.create_entities([ADA, ADA | {"observations": ["other"]}]) == [ADA]
    assert graph.read()["entities"] == [ADA]


def test_relations_with_quotes_and_brackets_stay_distinct(agent: Agent) -> None:
    given = [
        {"from": 'a", "b', "to": "c", "relationType": "d"},
        {"from": "a", "to": "c", "relationType": 'b", "d'},
    ]
    graph = KnowledgeGraph(agent)
    assert graph.create_relations(given) == given
    assert graph.read()["relations"] == given


def test_more_keys_of_a_caller_are_not_kept(agent: Agent) -> None:
    graph = KnowledgeGraph(agent)
    assert graph.create_entities([ADA | {"extra": 1}]) == [ADA]
    assert graph.create_relations([VISITS | {"extra": 1}]) == [VISITS]


def test_an_addition_to_an_unknown_entity_writes_none_of_the_others(graph: KnowledgeGraph) -> None:
    additions = [
        {"entityName": "Ada", "contents": ["new"]},
        {"entityName": "Eve", "contents": ["lost"]},
    ]
    with pytest.raises(ValueError, match="Entity with name Eve not found"):
        graph.add_observations(additions)
    assert graph.open(["Ada"])["entities"] == [ADA]


def test_two_additions_to_one_entity_are_both_kept(graph: KnowledgeGraph) -> None:
    additions = [{"entityName": "Dover", "contents": [text]} for text in ("chalk", "ferries")]
    graph.add_observations(additions)
    assert graph.open(["Dover"])["entities"][0]["observations"] == ["chalk", "ferries"]


def test_nothing_is_written_where_nothing_changes(agent: Agent, graph: KnowledgeGraph) -> None:
    before = [entry.line for entry in agent.session(SESSION).entries()]
    graph.add_observations([{"entityName": "Ada", "contents": ADA["observations"]}])
    graph.delete_entities(["Nobody"])
    graph.delete_observations([{"entityName": "Nobody", "observations": ["x"]}])
    graph.delete_relations([VISITS | {"relationType": "leaves"}])
    assert [entry.line for entry in agent.session(SESSION).entries()] == before
    assert len(agent.history("Ada")) == 1


def test_links_of_an_imported_entity_are_relations(agent: Agent) -> None:
    assert imported(agent).read() == {
        "entities": [ADA, DOVER],
        "relations": [VISITS, {"from": "Ada", "to": "Bo", "relationType": "knows"}],
    }


def test_a_relation_that_is_a_link_is_not_made_again(agent: Agent) -> None:
    graph = imported(agent)
    assert graph.create_relations([VISITS]) == []
    assert ids(agent) == {"Ada", "Dover"}


def test_deleting_a_relation_takes_only_its_link(agent: Agent) -> None:
    graph = imported(agent)
    graph.delete_relations([VISITS])
    assert [dict(link) for link in agent.get("Ada").links] == [{"to": "Bo", "rel": "knows"}]
    assert graph.read()["entities"] == [ADA, DOVER]


def test_deleting_the_target_of_a_link_takes_the_link(agent: Agent) -> None:
    graph = imported(agent)
    graph.delete_entities(["Dover"])
    assert graph.read() == {
        "entities": [ADA],
        "relations": [{"from": "Ada", "to": "Bo", "relationType": "knows"}],
    }


def test_an_entity_that_goes_with_its_links_gets_no_line_but_its_deletion(
    agent: Agent, tmp_path: Path
) -> None:
    imported(agent).delete_entities(["Ada"])
    (log,) = (tmp_path / "home").rglob(f"{SESSION}.ndjson")
    assert len(log.read_bytes().splitlines()) == 3


def test_an_entity_that_another_way_in_wrote_is_shown_by_its_text(agent: Agent) -> None:
    agent.session(SESSION).add("entity", text="Sails", id="Bo")
    assert KnowledgeGraph(agent).read()["entities"] == [
        {"name": "Bo", "entityType": "entity", "observations": ["Sails"]}
    ]


def test_other_entries_of_the_session_are_no_part_of_the_graph(agent: Agent, graph: KnowledgeGraph) -> None:
    agent.session(SESSION).add("note", text="Ada called")
    agent.session(SESSION).add("relation", {"from": "Ada"}, text="half a relation")
    assert graph.read() == {"entities": [ADA, DOVER], "relations": [VISITS]}


@pytest.mark.parametrize("query", ["ada", "PERSON", "the FERRY"])
def test_a_search_ignores_case_and_brings_the_relations(graph: KnowledgeGraph, query: str) -> None:
    assert graph.search(query) == {"entities": [ADA], "relations": [VISITS]}


def test_an_empty_query_finds_all_as_the_reference_server_does(graph: KnowledgeGraph) -> None:
    assert graph.search("")["entities"] == [ADA, DOVER]


def test_opened_names_come_in_the_order_of_the_graph(graph: KnowledgeGraph) -> None:
    assert graph.open(["Dover", "Ada", "Nobody"])["entities"] == [ADA, DOVER]
    assert graph.open([]) == {"entities": [], "relations": []}


def test_what_a_model_adds_is_trusted_as_a_models(agent: Agent) -> None:
    graph = KnowledgeGraph(agent.on_behalf("model", "mcp/cursor"))
    graph.create_entities([ADA])
    graph.create_relations([VISITS])
    origins = {entry.id: entry.origin for entry in agent.session(SESSION).entries()}
    said = {"by": "model", "via": "mcp/cursor"}
    assert origins == {"Ada": said, '["Ada", "visits", "Dover"]': said}


@pytest.mark.parametrize(
    ("first", "then", "trust"),
    [
        ("user", "model", "model"),
        ("program", "model", "model"),
        ("import", "model", "import"),
        ("tool", "program", "tool"),
        ("user", "program", "program"),
    ],
)
def test_an_observation_never_raises_the_trust_of_the_others(
    agent: Agent, first: str, then: str, trust: str
) -> None:
    KnowledgeGraph(agent.on_behalf(first)).create_entities([ADA])
    graph = KnowledgeGraph(agent.on_behalf(then))
    graph.add_observations([{"entityName": "Ada", "contents": ["sails"]}])
    assert agent.get("Ada").trust == trust


def test_a_program_that_adds_an_observation_confirms_nothing(agent: Agent) -> None:
    agent.session(SESSION).add("entity", ADA, id="Ada", origin={"by": "user", "vouched": True})
    KnowledgeGraph(agent).add_observations([{"entityName": "Ada", "contents": ["sails"]}])
    assert agent.get("Ada").origin is None


def test_deleting_a_relation_leaves_the_trust_of_its_entity(agent: Agent) -> None:
    imported(agent.on_behalf("import"))
    KnowledgeGraph(agent.on_behalf("model")).delete_relations([VISITS])
    assert agent.get("Ada").trust == "import"


def test_an_entity_whose_id_is_not_its_name_keeps_its_trust(agent: Agent) -> None:
    agent.on_behalf("tool").session(SESSION).add("entity", ADA)
    graph = KnowledgeGraph(agent.on_behalf("model"))
    graph.add_observations([{"entityName": "Ada", "contents": ["sails"]}])
    assert agent.get("Ada").trust == "tool"


def test_a_changed_entity_names_the_way_by_which_it_was_changed(agent: Agent) -> None:
    KnowledgeGraph(agent.on_behalf("import", "import/mcp-memory")).create_entities([ADA])
    graph = KnowledgeGraph(agent.on_behalf("model", "mcp/cursor"))
    graph.add_observations([{"entityName": "Ada", "contents": ["sails"]}])
    assert agent.get("Ada").origin == {"by": "import", "via": "mcp/cursor"}


@pytest.mark.parametrize("damaged", [5, "abc", [{"x": 1}]])
def test_an_entity_with_damaged_sources_takes_an_observation(
    agent: Agent, tmp_path: Path, damaged: Any
) -> None:
    agent.session(SESSION).add("entity", ADA, id="Ada")
    [path] = (tmp_path / "home").rglob(f"{SESSION}.ndjson")
    line = json.loads(path.read_text()) | {"origin": {"by": "model", "from": damaged}}
    path.write_text(json.dumps(line) + "\n")
    KnowledgeGraph(agent).add_observations([{"entityName": "Ada", "contents": ["sails"]}])
    assert "sails" in agent.get("Ada").text
