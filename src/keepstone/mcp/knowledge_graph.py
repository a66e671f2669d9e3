"""A knowledge graph of entities, observations and relations, in the entries of one session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keepstone.integrations.homes import clock_of, revise, writer_of
from keepstone.log.arguments import now
from keepstone.model import PROGRAM, RELEVANT, Entry, Record, own_trust, sources_of
from keepstone.store.protocol import LiveSession

if TYPE_CHECKING:
    from keepstone.agent import Agent

SESSION = "memory"
"""The session of the graph. An import of the reference server's ``memory.jsonl`` uses it, too."""
_ENTITY, _RELATION = "entity", "relation"
_FOUND = 10
"""Maximum number of entities that are found without containing the query."""
Graph = dict[str, list[Record]]
_Change = Callable[[dict[str, Record], dict[str, Record]], None]
"""Changes the entities by name and the relations by id."""


class KnowledgeGraph:
    """Entities with observations, and relations between them; each entity and relation is an entry.

    Each change is atomic: no other process writes between its read and its write, and it is written
    completely or not at all.

    Args:
        agent: The agent whose memory contains the graph.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._session = agent.session(SESSION)
        self.session = SESSION

    def create_entities(self, given: Iterable[Record]) -> list[Record]:
        """Add the entities whose names are new, and return them."""
        made: list[Record] = []

        def change(entities: dict[str, Record], _: dict[str, Record]) -> None:
            for entity in given:
                if entity["name"] not in entities:
                    entities[entity["name"]] = _entity(entity)
                    made.append(_entity(entity))

        self._change(change)
        return made

    def create_relations(self, given: Iterable[Record]) -> list[Record]:
        """Add the relations that are new, and return them."""
        made: list[Record] = []

        def change(_: dict[str, Record], relations: dict[str, Record]) -> None:
            for relation in map(_relation, given):
                if _id_of(relation) not in relations:
                    relations[_id_of(relation)] = relation
                    made.append(relation)

        self._change(change)
        return made

    def add_observations(self, given: Iterable[Record]) -> list[Record]:
        """Add observations to entities, and return the new observations of each.

        Raises:
            ValueError: An entity does not exist; nothing was written.
        """
        results: list[Record] = []

        def change(entities: dict[str, Record], _: dict[str, Record]) -> None:
            for addition in given:
                name = addition["entityName"]
                if name not in entities:
                    raise ValueError(f"Entity with name {name} not found")
                before = entities[name]["observations"]
                added = [text for text in addition["contents"] if text not in before]
                entities[name] = {**entities[name], "observations": [*before, *added]}
                # The keys are those of the reference server, whose clients read them.
                results.append({"entityName": name, "addedObservations": added})

        self._change(change)
        return results

    def delete_entities(self, names: Sequence[str]) -> None:
        """Delete entities and the relations that begin or end at them."""

        def change(entities: dict[str, Record], relations: dict[str, Record]) -> None:
            for name in names:
                entities.pop(name, None)
            for key, relation in [*relations.items()]:
                if relation["from"] in names or relation["to"] in names:
                    del relations[key]

        self._change(change)

    def delete_observations(self, given: Iterable[Record]) -> None:
        """Delete observations of entities; unknown ones are ignored."""

        def change(entities: dict[str, Record], _: dict[str, Record]) -> None:
            for deletion in given:
                if (entity := entities.get(deletion["entityName"])) is not None:
                    left = [text for text in entity["observations"] if text not in deletion["observations"]]
                    entities[entity["name"]] = {**entity, "observations": left}

        self._change(change)

    def delete_relations(self, given: Iterable[Record]) -> None:
        """Delete relations; unknown ones are ignored."""

        def change(_: dict[str, Record], relations: dict[str, Record]) -> None:
            for relation in given:
                relations.pop(_id_of(relation), None)

        self._change(change)

    def read(self) -> Graph:
        """Return all entities and relations, in the order in which they were made."""
        return _graph(*self._read())

    def search(self, query: str) -> Graph:
        """Return the entities that contain a query, ignoring case, and their relations.

        If no entity contains it literally, return those that recall finds relevant.
        """
        entities, relations = self._read()
        # Search like the reference server first, so that prompts written for it get the same results.
        wanted = query.lower()
        found = [entity for entity in entities if any(wanted in text.lower() for text in _texts(entity))]
        if not found and wanted.strip():
            hits = self._agent.recall(
                query, limit=_FOUND, sessions=[SESSION], types=[_ENTITY], min_relevance=RELEVANT
            )
            by_name = {entity["name"]: entity for entity in entities}
            found = [by_name[hit.entry.id] for hit in hits if hit.entry.id in by_name]
        return _graph(found, _touching(relations, {entity["name"] for entity in found}))

    def open(self, names: Sequence[str]) -> Graph:
        """Return the entities of these names, and their relations."""
        entities, relations = self._read()
        found = [entity for entity in entities if entity["name"] in names]
        return _graph(found, _touching(relations, {entity["name"] for entity in found}))

    def _read(self) -> tuple[list[Record], list[Record]]:
        entries = self._session.entries(types=[_ENTITY, _RELATION])
        entities, relations = _parts(entries)
        return [*entities.values()], [*relations.values()]

    def _change(self, change: _Change) -> None:
        """Change the graph in one step, and write the entities and relations that differ."""
        ts = now(clock_of(self._agent))

        def lines(live: LiveSession) -> list[Record]:
            # Read under the lock, so that servers on the same home do not lose each other's changes.
            entries = [*live.select(_ENTITY, ()), *live.select(_RELATION, ())]
            before, stored = _parts(entries), {entry.id: entry for entry in entries}
            after = (dict(before[0]), dict(before[1]))
            change(*after)
            gone = [
                name
                for old, new in zip(before, after, strict=True)
                for name in old
                if name not in new and live.get(name) is not None
            ]
            put = [_entity_line(entity) for name, entity in after[0].items() if before[0].get(name) != entity]
            put += [_relation_line(relation) for key, relation in after[1].items() if key not in before[1]]
            # An imported entity may have an id other than its name, but a change is written with the name as
            # its id.
            named = {_name_of(entry): entry for entry in entries if entry.type == _ENTITY}
            put = [line | self._origin((stored | named).get(line["id"])) for line in put]
            cut = _without_links(stored, set(before[1]) - set(after[1]), {*gone})
            return [
                *({"id": entry_id, "ts": ts, "deleted": True} for entry_id in gone),
                *({**line, "ts": ts} for line in [*put, *cut]),
            ]

        revise(self._session, lines)

    def _origin(self, stored: Entry | None) -> Record:
        """Return the origin of a line that adds an entry or changes a stored one."""
        # A changed entity repeats observations of earlier writers, whose trust must not rise.
        writer = writer_of(self._agent)
        writer = replace(writer, by=writer.by or PROGRAM)
        before: Record = {}
        if stored is not None:
            before = {"by": own_trust(stored.line), "from": sources_of(stored.line)}
        origin = writer.origin(before)
        return {} if origin is None else {"origin": origin}


def _name_of(entity: Entry) -> str:
    return str(entity.data.get("name") or entity.id)


def _parts(entries: Iterable[Entry]) -> tuple[dict[str, Record], dict[str, Record]]:
    """Return entities by name and relations by id; an imported entity has its relations as links."""
    entities, relations = dict[str, Record](), dict[str, Record]()
    for entry in entries:
        data = entry.data
        if entry.type == _ENTITY:
            name = _name_of(entry)
            texts = [str(text) for text in data.get("observations") or [entry.text]]
            kind = str(data.get("entityType") or _ENTITY)
            # An entity may have no observations. Its entry still has a text, which must not become an
            # observation.
            observations = [] if data.get("observations") == [] else texts
            entities[name] = {"name": name, "entityType": kind, "observations": observations}
            for link in entry.links:
                relation = {"from": name, "to": link["to"], "relationType": link["rel"]}
                relations[_id_of(relation)] = relation
        elif {"from", "to", "relationType"} <= data.keys():
            relations[_id_of(data)] = _relation(data)
    return entities, relations


def _without_links(stored: Mapping[str, Entry], removed: set[str], gone: set[str]) -> list[Record]:
    """Return patches that remove deleted relations from the links of entities."""
    patches: list[Record] = []
    for name, entry in stored.items():
        links = [dict(link) for link in entry.links]
        left = [
            link
            for link in links
            if _id_of({"from": name, "to": link["to"], "relationType": link["rel"]}) not in removed
        ]
        if left != links and name not in gone:
            patches.append({"id": name, "links": left or None})
    return patches


def _entity(given: Mapping[str, Any]) -> Record:
    return {
        "name": given["name"],
        "entityType": given["entityType"],
        "observations": [*given["observations"]],
    }


def _relation(given: Mapping[str, Any]) -> Record:
    return {"from": given["from"], "to": given["to"], "relationType": given["relationType"]}


def _id_of(relation: Mapping[str, Any]) -> str:
    # JSON keeps the parts apart, whatever characters they contain.
    return json.dumps([relation["from"], relation["relationType"], relation["to"]], ensure_ascii=False)


def _entity_line(entity: Record) -> Record:
    # Recall puts the name before the text, like the name of a speaker.
    text = "\n".join([entity["entityType"], *entity["observations"]])
    return {"id": entity["name"], "type": _ENTITY, "text": text, "data": entity}


def _relation_line(relation: Record) -> Record:
    text = f"{relation['from']} {relation['relationType']} {relation['to']}"
    return {"id": _id_of(relation), "type": _RELATION, "text": text, "data": relation}


def _texts(entity: Record) -> list[str]:
    return [entity["name"], entity["entityType"], *entity["observations"]]


def _touching(relations: Iterable[Record], names: set[str]) -> list[Record]:
    return [relation for relation in relations if relation["from"] in names or relation["to"] in names]


def _graph(entities: list[Record], relations: list[Record]) -> Graph:
    return {"entities": entities, "relations": relations}
