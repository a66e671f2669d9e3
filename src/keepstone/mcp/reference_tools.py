"""The nine tools of the reference memory server, with its names, schemas and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from keepstone.mcp.knowledge_graph import KnowledgeGraph
from keepstone.operations.tool_definitions import MemoryTool
from keepstone.operations.toolbox import Tool, ToolAnswer, string

if TYPE_CHECKING:
    from keepstone.model import Record


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _array(items: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    return {"type": "array", "items": items, **({"description": description} if description else {})}


_TEXTS = _array({"type": "string"})
_ENTITIES = _array(
    _object(
        name=string("The name of the entity, which no other entity has", 1000),
        entityType=string("The type of the entity, such as person or project"),
        observations=_array({"type": "string"}, "What is known about the entity, one fact each"),
    )
)
_RELATIONS = _array(
    _object(
        **{
            "from": string("The name of the entity where the relation starts"),
            "to": string("The name of the entity where the relation ends"),
            "relationType": string("The relation in active voice, such as works at"),
        }
    )
)
_GRAPH = _object(entities=_ENTITIES, relations=_RELATIONS)
_DONE = _object(success={"type": "boolean"}, message={"type": "string"})


def reference_tools(graph: KnowledgeGraph) -> list[MemoryTool]:
    """Return the tools in the order of the reference server."""
    return [
        _tool(
            "create_entities",
            "Add entities to the knowledge graph. Those whose names are there already are left as they are.",
            {"entities": _ENTITIES},
            lambda entities: {"entities": graph.create_entities(entities)},
            _object(entities=_ENTITIES),
            writes=True,
        ),
        _tool(
            "create_relations",
            "Add relations between entities to the knowledge graph, in active voice.",
            {"relations": _RELATIONS},
            lambda relations: {"relations": graph.create_relations(relations)},
            _object(relations=_RELATIONS),
            writes=True,
        ),
        _tool(
            "add_observations",
            "Add observations to entities that are in the knowledge graph.",
            {
                "observations": _array(
                    _object(
                        entityName=string("The name of the entity"),
                        contents=_array({"type": "string"}, "The observations to add"),
                    )
                )
            },
            lambda observations: {"results": graph.add_observations(observations)},
            _object(results=_array(_object(entityName={"type": "string"}, addedObservations=_TEXTS))),
            writes=True,
        ),
        _tool(
            "delete_entities",
            "Delete entities, and the relations that they have, from the knowledge graph.",
            {"entityNames": _array({"type": "string"}, "The names of the entities to delete")},
            _deleting("Entities", graph.delete_entities),
            _DONE,
            writes=True,
            destroys=True,
        ),
        _tool(
            "delete_observations",
            "Delete observations from entities of the knowledge graph.",
            {
                "deletions": _array(
                    _object(
                        entityName=string("The name of the entity that has the observations"),
                        observations=_array({"type": "string"}, "The observations to delete"),
                    )
                )
            },
            _deleting("Observations", graph.delete_observations),
            _DONE,
            writes=True,
            destroys=True,
        ),
        _tool(
            "delete_relations",
            "Delete relations from the knowledge graph.",
            {"relations": _RELATIONS},
            _deleting("Relations", graph.delete_relations),
            _DONE,
            writes=True,
            destroys=True,
        ),
        _tool("read_graph", "Read the whole knowledge graph.", {}, lambda: dict(graph.read()), _GRAPH),
        _tool(
            "search_nodes",
            "Search the knowledge graph for entities by their names, types and observations.",
            {"query": string("What the names, types or observations contain", 20_000)},
            lambda query: dict(graph.search(query)),
            _GRAPH,
        ),
        _tool(
            "open_nodes",
            "Open entities of the knowledge graph by their names.",
            {"names": _array({"type": "string"}, "The names of the entities to open")},
            lambda names: dict(graph.open(names)),
            _GRAPH,
        ),
    ]


def _tool(
    name: str,
    description: str,
    arguments: Mapping[str, Any],
    run: Callable[..., Record],
    output: Mapping[str, Any],
    *,
    writes: bool = False,
    destroys: bool = False,
) -> MemoryTool:
    def answer(**given: Any) -> ToolAnswer:
        data = run(**given)
        # Like the reference server, use the list alone as the text of a result with one list.
        (first, *others) = data.values()
        shown = data if others else first
        text = str(data["message"]) if "message" in data else json.dumps(shown, ensure_ascii=False, indent=2)
        return ToolAnswer(data, text)

    tool = Tool(name, description, arguments, tuple(arguments), answer)
    title = name.replace("_", " ").title()
    return MemoryTool(tool, title, output, writes=writes, destroys=destroys)


def _deleting(what: str, delete: Callable[[Any], None]) -> Callable[..., Record]:
    """Return a tool's function that deletes the items that its only argument names."""

    def run(**given: Any) -> Record:
        (named,) = given.values()
        delete(named)
        return {"success": True, "message": f"{what} deleted successfully"}

    return run
