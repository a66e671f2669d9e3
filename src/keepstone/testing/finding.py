"""Store checks: search by words, neighbours, links, history and time travel."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from keepstone.model import Scope
from keepstone.store.decay import Decay, Fading
from keepstone.store.protocol import Store
from keepstone.store.reader import ExpiredError, Reader, with_reader
from keepstone.testing.clock import START
from keepstone.testing.making import (
    AGENT,
    Factory,
    amend,
    ids_of,
    load,
    rebuild,
    record,
    same,
    search,
    time_at,
    tombstone,
)


def check_search(factory: Factory) -> None:
    """A word search finds entries, the best first."""
    texts = ["apple pie", "banana bread", "apple apple apple", "cherries"]
    with factory() as store:
        store.append(AGENT, "s1", [record(str(at), text, minute=at) for at, text in enumerate(texts)])
        same(sorted(search(store, ["apple"])), ["0", "2"], "both entries with the word")
        same(search(store, ["apple"], limit=1), ["2"], "the best one first")
        same(sorted(search(store, ["banana", "cherries"])), ["1", "3"], "any of the words")
        same(search(store, ["durian"]), [], "a word that no entry has")
        store.append(AGENT, "s2", [record("4", "durian")])
        with store.reader(AGENT) as reader:
            found = reader.search(["apple", "durian", "fig"], Scope(AGENT, ("s1",)), 1)
        same(
            (found.rows, found.holders), (5, {"apple": 2, "durian": 1, "fig": 0}), "counts over all sessions"
        )
        same(found.length, 9 / 5, "the mean number of words of all entries")
        same(store.language, "en", "the language of a store opened without one")


def check_search_in_scope(factory: Factory) -> None:
    """Sessions, types, tags and times limit a search; an empty list of sessions or types finds nothing."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "apple"), record("b", "apple", minute=5, tags=["x", "y"])])
        store.append(AGENT, "s2", [record("c", "apple", minute=9, kind="decision")])
        five = START + timedelta(minutes=5)
        scopes: list[tuple[dict[str, Any], list[str]]] = [
            ({"sessions": ("s2",)}, ["c"]),
            ({"types": ("note",)}, ["a", "b"]),
            ({"tags": ("y", "x")}, ["b"]),
            ({"since": five}, ["b", "c"]),
            ({"until": five}, ["a"]),
            ({"sessions": ()}, []),
            ({"types": ()}, []),
        ]
        for limits, expected in scopes:
            same(sorted(search(store, ["apple"], **limits)), expected, f"a search in {limits}")


def check_search_follows_changes(factory: Factory) -> None:
    """A replaced text is no longer found; the new text and the entries around it are."""
    with factory() as store:
        store.append(AGENT, "s1", [record(name, f"{name}walnut", minute=at) for at, name in enumerate("abc")])
        amend(store, "s1", {"id": "b", "ts": time_at(9), "data": {"content": "pecan"}})
        same(search(store, ["bwalnut"]), [], "the old words are gone")
        same((search(store, ["pecan"]), search(store, ["awalnut"])), (["b"], ["a"]), "the rest is found")


def check_neighbours(factory: Factory) -> None:
    """Neighbours of an entry are in its session and in the scope."""
    with factory() as store:
        for name in "abcde":
            store.append(AGENT, "s1", [record(name, f"{name}walnut")])
            store.append(AGENT, "s2", [record(name, "pecan", kind="fact")])
        with store.reader(AGENT) as reader:
            [key] = [found.key for found in reader.search(["bwalnut"], Scope(AGENT), 5)]
            for types, expected in ((None, [("a", 1), ("c", 1), ("d", 2)]), (("fact",), [])):
                found = reader.neighbours([key], 2, Scope(AGENT, types=types))
                near = [(load(reader, [other])[0], distance) for _, other, distance in found]
                same(sorted(near), expected, f"neighbours of types {types}")


def check_neighbours_of_deleted(factory: Factory) -> None:
    """Neighbours are the next live entries, however many deleted or purged entries are in between."""
    with factory() as store:
        for name in "abcdef":
            store.append(AGENT, "s1", [record(name, f"{name}walnut")])
        store.delete(AGENT, "s1", ["b", "c"], time_at(9))
        store.purge(AGENT, "s1", ["e"])
        with store.reader(AGENT) as reader:
            [key] = [found.key for found in reader.search(["dwalnut"], Scope(AGENT), 5)]
            for reach in (2, 200):
                found = reader.neighbours([key], reach, Scope(AGENT))
                near = [(load(reader, [other])[0], distance) for _, other, distance in found]
                expected = [("a", 1), ("f", 1)]
                same(sorted(near), expected, f"the next live entries, {reach} places away at most")


def check_counts_and_links(factory: Factory) -> None:
    """Access counts add up, links are found from their target, and neither creates an entry."""
    with factory() as store:
        link = {"to": "b", "rel": "because"}
        store.append(AGENT, "s1", [record("a", "one", links=[link]), record("b", "two", access=2)])
        same(store.count(AGENT, "s1", {"b": 3, "none": 1}, wait=True), True, "counted")  # noqa: FBT003
        found = store.entries(AGENT, "s1", None, None)
        same([(entry.id, entry.access) for entry in found], [("a", 0), ("b", 5)], "counts add up")
        same(ids_of(store.linked(AGENT, ["b"], None, 9)), ["a"], "links lead back")
        same(ids_of(store.linked(AGENT, ["a", "b"], "because", 9)), ["a"], "links of a relation lead back")
        for ids, rel, limit in ((["a"], None, 9), (["b"], "after", 9), (["b"], None, 0)):
            same(store.linked(AGENT, ids, rel, limit), [], f"links to {ids} by {rel}, at most {limit}")


def check_pinned_and_standing(factory: Factory) -> None:
    """Pinned entries, and the newest preferences and decisions, are listed across sessions by time."""
    with factory() as store:
        made_of = [("a", "decision", 3), ("b", "note", 2), ("c", "preference", 1), ("d", "decision", 0)]
        for at, (name, kind, minute) in enumerate(made_of):
            made = record(name, f"{name}walnut", minute=minute, kind=kind, pinned=name in "ab")
            store.append(AGENT, f"s{at % 2}", [made])
        same(ids_of(store.pinned(AGENT)), ["b", "a"], "what is pinned")
        same(ids_of(store.standing(AGENT, 2)), ["c", "a"], "the newest preferences and decisions")
        amend(store, "s0", tombstone("a"))
        same(ids_of(store.standing(AGENT, 2)), ["d", "c"], "a deleted one is left out")


def check_history(factory: Factory) -> None:
    """Every version of an entry, including deletions, is kept, also after a compaction."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "one"), record("b", "two")])
        amend(store, "s1", {"id": "a", "ts": time_at(2), "data": {"content": "changed"}})
        amend(store, "s1", tombstone("a"))
        # Check once before and once after the compaction, which must not change the history.
        for _ in range(2):
            versions = store.history(AGENT, "a", None)
            expected = [("one", False), ("changed", False), ("changed", True)]
            same([(version.text, version.deleted) for version in versions], expected, "all versions in order")
            same(versions[1].written - versions[0].written, timedelta(minutes=2), "versions know their time")
            store.compact(AGENT, "s1")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b"], "compaction keeps the live entries")


def check_time_travel_and_archive(factory: Factory) -> None:
    """Past states of entries can be read, also after a compaction; archived entries are read on request."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "one", priority=0.2)])
        store.append(AGENT, "s1", [record("b", "two", priority=0.2, pinned=True), record("c", "three")])
        amend(store, "s1", {"id": "a", "ts": time_at(2), "data": {"content": "changed"}})
        same(store.compacted_size(AGENT, "s1"), 0, "not compacted yet")
        decay = Decay(START + timedelta(days=365), fading={"note": Fading(1.0, 0.0)})
        accessed = store.compact(AGENT, "s1", replace(decay, accesses={"a": 10}))
        same(accessed.archived, 0, "accesses that are not counted yet keep an entry")
        same(store.compact(AGENT, "s1", decay).archived, 1, "what has faded is archived, unless pinned")
        info = store.session(AGENT, "s1")
        same(store.compacted_size(AGENT, "s1"), info.size if info else None, "the size after the compaction")
        then = store.entries(AGENT, "s1", None, None, as_of=START + timedelta(minutes=1))
        same([entry.text for entry in then], ["one", "two", "three"], "entries as they were")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b", "c"], "the live entries")
        kept = store.entries(AGENT, "s1", None, None, archived=True)
        same([entry.text for entry in kept], ["changed", "two", "three"], "archived and live entries")
        same(
            store.records(AGENT, "s1", archived=True),
            [entry.as_dict() for entry in kept],
            "the same as records",
        )


def check_search_in_the_past(factory: Factory) -> None:
    """Past versions of entries are searched like current ones, in all sessions or some."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut"), record("b", "pecan")])
        store.append(AGENT, "s2", [record("c", "walnut"), record("d", "walnut", minute=5)])
        amend(store, "s1", {"id": "a", "ts": time_at(2), "data": {"content": "hazel"}})
        amend(store, "s2", tombstone("c"))
        for sessions, expected in ((None, ["a", "c"]), (("s1",), ["a"]), ((), [])):
            with store.reader(AGENT, START + timedelta(minutes=1)) as reader:
                keys = [found.key for found in reader.search(["walnut"], Scope(AGENT, sessions), 9)]
                texts = {entry.id: entry.text for entry in reader.load(keys).values()}
            same(texts, dict.fromkeys(expected, "walnut"), f"what was there of sessions {sessions}")
        with store.reader(AGENT, START + timedelta(minutes=1)) as reader:
            keys = reader.pending("made", Scope(AGENT, ("s1",)))
            same(load(reader, keys), ["a", "b"], "what had no vector then")
            near = [
                (load(reader, [key, other]), far)
                for key, other, far in reader.neighbours(keys, 1, Scope(AGENT))
            ]
            same(sorted(near), [(["a", "b"], 1), (["b", "a"], 1)], "neighbours at that time")
            same([text for text, _ in reader.heads(keys).values()], ["walnut", "pecan"], "how texts began")
        same(sorted(search(store, ["walnut"])), ["d"], "what is there today")
        _check_search_again(store)


def _check_search_again(store: Store) -> None:
    """Later writes do not change results for an earlier time; purges do."""

    def found() -> list[str]:
        with store.reader(AGENT, START + timedelta(minutes=1)) as reader:
            keys = [candidate.key for candidate in reader.search(["walnut"], Scope(AGENT), 9)]
            searched = ids_of(reader.load(keys).values())
        listed = store.entries(AGENT, "s2", None, None, as_of=START + timedelta(minutes=1))
        return [*sorted(searched), *ids_of(listed)]

    same(found(), ["a", "c", "c"], "what was there when asked again")
    store.append(AGENT, "s2", [record("later", "walnut", minute=6)])
    store.append(AGENT, "s3", [record("new", "walnut", minute=6)])
    same(found(), ["a", "c", "c"], "what is added later was not there")
    store.append(AGENT, "s2", [record("early", "walnut")])
    same(found(), ["a", "c", "early", "c", "early"], "what is added as of an earlier time was there")
    store.compact(AGENT, "s2")
    same(found(), ["a", "c", "early", "c", "early"], "a compaction changes no earlier time")
    store.purge(AGENT, "s2", ["early"])
    same(found(), ["a", "c", "c"], "what is purged was never there")


def check_matching_and_pinned(factory: Factory) -> None:
    """A text is found in every stored version, so that all occurrences can be purged; pins are listed."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "xWALNUTx"), record("b", "pecan"), record("c", "walnut")])
        store.append(AGENT, "s2", [record("d", "pecan", tags=["walnut"], pinned=True)])
        store.append(AGENT, "s2", [record("e", "pecan", minute=-1, pinned=True)])
        amend(store, "s1", {"id": "a", "ts": time_at(2), "data": {"content": "pecan"}})
        amend(store, "s1", tombstone("c"))
        for _ in range(2):
            found = [("s1", "a"), ("s1", "c"), ("s2", "d")]
            same(store.matching(AGENT, "walnut", None), found, "changed, deleted and live entries")
            same(store.matching(AGENT, "WalNut", "s2"), found[2:], "in one session, in any case")
            store.compact(AGENT, "s1")
        same(ids_of(store.pinned(AGENT)), ["e", "d"], "pinned entries by time")
        store.purge(AGENT, "s1", ["a", "c"])
        same(store.matching(AGENT, "walnut", "s1"), [], "nothing is left of it")


def check_keys(factory: Factory) -> None:
    """Keys return the beginnings of entries in each reader of their epoch; afterwards they expire."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut " * 20), record("b", "pecan", minute=3)])
        with store.reader(AGENT) as reader:
            [key] = [found.key for found in reader.search(["walnut"], Scope(AGENT), 5)]
            [(text, made)] = reader.heads([key]).values()
        same((text[:64], made), (("walnut " * 20)[:64], START), "how it begins, and when it was made")
        store.append(AGENT, "s2", [record("c", "hazel")])
        same(_led_to(store, key), ["a"], "an entry more leaves the keys of others alone")
        rebuild(store)
        same(_led_to(store, key) in (["a"], ["expired"]), True, "a key after a rebuild")  # noqa: FBT003


def _led_to(store: Store, key: int) -> list[str]:
    try:
        with store.reader(AGENT) as reader:
            return load(reader, [key])
    except ExpiredError:
        return ["expired"]


def check_ask(factory: Factory) -> None:
    """A query that a rebuild interrupts is repeated with a new reader, whose index is not behind."""
    attempts: list[bool] = []
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut"), record("b", "pecan")])

        def question(reader: Reader) -> list[str]:
            attempts.append(bool(attempts))
            keys = [found.key for found in reader.search(["walnut"], Scope(AGENT), 5)]
            if attempts == [False]:
                rebuild(store)
            found = load(reader, keys)
            same(reader.stale, False, "all was found")  # noqa: FBT003
            return found

        same(with_reader(store, AGENT, question), ["a"], "the answer, whatever was done to the index")
        same(attempts in ([False], [False, True]), True, "asked once more at most")  # noqa: FBT003
