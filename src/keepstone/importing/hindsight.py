"""Hindsight: archives of documents with their facts, or of a whole bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.json_text import whole
from keepstone.importing.origin import Origin
from keepstone.model import Record

_MANIFEST = "manifest.json"
_OBSERVATIONS = "observations.json"
_DOCUMENTS = "documents/"
_FACT_KEYS = ("context", "entities", "occurred_start", "occurred_end", "metadata", "chunk_index")
_OBSERVATION_KEYS = ("occurred_start", "occurred_end", "proof_count")
_TIMES = ("mentioned_at", "event_date", "occurred_start", "created_at")


def is_hindsight(origin: Origin) -> bool:
    """Return whether an archive or an unpacked archive has Hindsight's manifest."""
    if not (origin.is_folder or origin.is_zip) or _MANIFEST not in origin.names(".json"):
        return False
    with origin.open(_MANIFEST) as file:
        found = whole(file, _MANIFEST)
    return isinstance(found, dict) and {"schema_version", "source_bank_id"} <= found.keys()


def read_hindsight(origin: Origin, _: Options) -> Items:
    """Yield documents, their facts, and observations, all in one session for the bank."""
    with origin.open(_MANIFEST) as file:
        manifest = whole(file, _MANIFEST)
    if not isinstance(manifest, dict):
        raise SourceError(f"{_MANIFEST} is not an object")
    bank = named(manifest.get("source_bank_id")) or origin.name
    names = origin.names(".json")
    facts: dict[str, list[str]] = {}
    for name in names:
        if name.startswith(_DOCUMENTS):
            with origin.open(name) as file:
                found = whole(file, name)
            if not isinstance(found, dict) or named(found.get("id")) is None:
                yield Unread(name, "it is not a document with an id")
                continue
            document = str(found["id"])
            facts[document] = _fact_ids(document, found.get("facts"))
            yield from _document(found, facts[document], bank, name)
    # Observations come after the documents, as they name facts by their position in a document.
    if _OBSERVATIONS in names:
        with origin.open(_OBSERVATIONS) as file:
            observations = whole(file, _OBSERVATIONS)
        for number, observation in enumerate(observations if isinstance(observations, list) else [], 1):
            place = f"{_OBSERVATIONS}, {number}"
            if not isinstance(observation, dict) or not observation.get("text"):
                yield Unread(place, "it is not an observation with a text")
                continue
            sources = _objects(observation.get("sources"))
            links = [
                {
                    "to": _fact_id(facts, source.get("document_id"), source.get("fact_index")),
                    "rel": "derived_from",
                }
                for source in sources
            ]
            own = named(observation.get("source_id"))
            line = {"type": "observation", **_said(observation, _OBSERVATION_KEYS)}
            line |= ({"id": own} if own else {}) | ({"links": links} if links else {})
            yield Item(bank, line, place)
    yield from origin.refused


def _document(found: Record, ids: Sequence[str], bank: str, place: str) -> Items:
    document = str(found["id"])
    chunks = _objects(found.get("chunks"))  # In their order.
    text = found.get("original_text") or "\n".join(str(chunk.get("chunk_text") or "") for chunk in chunks)
    if text:
        line: Record = {"id": document, "ts": time_of(found.get("created_at")), "type": "document"}
        line |= {"text": text} | ({"tags": found["tags"]} if found.get("tags") else {})
        yield Item(bank, line, place)
    facts = found.get("facts")
    for number, fact in enumerate(facts if isinstance(facts, list) else []):
        where = f"{place}, fact {number}"
        if not isinstance(fact, dict) or not fact.get("text"):
            yield Unread(where, "it is not a fact with a text")
            continue
        links = [{"to": document, "rel": "derived_from"}] if text else []
        links += [
            {
                "to": _fact_id({document: ids}, document, relation.get("target_fact_index")),
                "rel": str(relation.get("relation_type")),
            }
            for relation in _objects(fact.get("causal_relations"))
        ]
        head: Record = {"id": ids[number], "type": named(fact.get("fact_type")) or "fact"}
        yield Item(bank, head | _said(fact, _FACT_KEYS) | ({"links": links} if links else {}), where)


def _objects(value: Any) -> list[Record]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _fact_ids(document: str, facts: Any) -> list[str]:
    """Return the ids of a document's facts: Hindsight's ids, or the positions of facts without an id."""
    return [
        (named(fact.get("source_id")) if isinstance(fact, dict) else None) or f"{document}#{number}"
        for number, fact in enumerate(facts if isinstance(facts, list) else [])
    ]


def _fact_id(facts: Mapping[str, Sequence[str]], document: Any, number: Any) -> str:
    # If the archive lacks the document, the link names the fact by its position, as an import of that
    # document will.
    ids = facts.get(str(document), ())
    return ids[number] if isinstance(number, int) and 0 <= number < len(ids) else f"{document}#{number}"


def _said(found: Record, kept: tuple[str, ...]) -> Record:
    """Return the time, text, payload and tags of a fact or an observation."""
    ts = next((time for key in _TIMES if (time := time_of(found.get(key)))), None)
    data = {key: found[key] for key in kept if found.get(key) not in (None, [], {})}
    line: Record = {"ts": ts, "text": str(found["text"])} | ({"data": data} if data else {})
    return line | ({"tags": found["tags"]} if found.get("tags") else {})
