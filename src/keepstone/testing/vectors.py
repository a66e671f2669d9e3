"""Store checks: vector search, entries without a vector, and vectors that come too late."""

from __future__ import annotations

from collections.abc import Sequence

from keepstone.model import Record, Scope
from keepstone.store.protocol import Store
from keepstone.testing.making import AGENT, Factory, amend, load, rebuild, record, same, time_at, tombstone
from keepstone.vector import Space, encode, unit

_SPACE = "given:2"


def check_similar(factory: Factory) -> None:
    """A vector finds entries in scope, the largest cosine first, and never vectors of another space."""
    with factory() as store:
        store.append(AGENT, "s1", [_record("a", [1, 0]), _record("b", [1, 1]), _record("c", [0, 1])])
        store.append(AGENT, "s2", [_record("d", [1, 0.1]), record("e", "without")])
        store.append(AGENT, "s2", [record("f", "f", embedding=encode("other", unit([1, 0])))])
        same(_near(store, limit=3), ["a", "d", "b"], "the nearest first")
        same(_near(store, sessions=("s1",)), ["a", "b", "c"], "one session's")
        same(_near(store, sessions=("s2",), space="other"), ["f"], "another space's")
        same((_near(store, sessions=()), _near(store, limit=0)), ([], []), "nothing asked, nothing found")
        with store.reader(AGENT) as reader:
            found = reader.similar(unit([1, 0]), _SPACE, Scope(AGENT, ("s1",)), 3)
        same([round(candidate.score, 6) for candidate in found], [1.0, 0.707107, 0.0], "the cosines")
        same(store.spaces(AGENT), [Space(_SPACE, 2), Space("other", 2)], "the spaces there are")


def check_cosine_quartiles(factory: Factory) -> None:
    """Quartiles of a vector's cosines are available once there are enough vectors."""
    with factory() as store:
        for count, expected in ((3, None), (90, (0.0, 1.0))):
            items = [_record(f"{count}-{at}", [1, 0] if at % 3 == 0 else [0, 1]) for at in range(count)]
            store.append(AGENT, "s1", items)
            with store.reader(AGENT) as reader:
                found = reader.cosine_quartiles(unit([1, 0]), _SPACE)
            same(found, expected, f"the quartiles with {count} more vectors")


def check_upkeep(factory: Factory) -> None:
    """Upkeep finishes, and the structures that it builds do not change the results."""
    with factory() as store:
        store.append(AGENT, "s1", [_record(str(at), [1, at]) for at in range(30)])
        scope, vector = Scope(AGENT), unit([1, 7.2])
        with store.reader(AGENT) as reader:
            first = reader.similar(vector, _SPACE, scope, 5, hnsw_from=10)
        same(first.searched, "exact", "how the first of its kind is answered")
        # The loop is bounded, so that a store whose upkeep never ends fails instead of hanging.
        for _ in range(100):
            if not store.maintenance.upkeep(AGENT):
                break
        same([store.maintenance.upkeep(AGENT)], [False], "nothing is left to be done")
        store.purge(AGENT, "s1", ["7"])
        with store.reader(AGENT) as reader:
            second = reader.similar(vector, _SPACE, scope, 4, hnsw_from=10)
            names = load(reader, [candidate.key for candidate in second])
        same(names, ["8", "6", "9", "10"], "the nearest but the one that was purged")


def check_vectors_follow_changes(factory: Factory) -> None:
    """A vector is found only while its entry has the text it was given with, also after a rebuild."""
    with factory() as store:
        store.append(AGENT, "s1", [_record(name, [1, at]) for at, name in enumerate("abcd")])
        amend(store, "s1", {"id": "a", "ts": time_at(9), "data": {"content": "changed"}})
        amend(store, "s1", {"id": "b", "ts": time_at(9), "pinned": True})
        amend(store, "s1", tombstone("c"))
        store.purge(AGENT, "s1", ["d"])
        store.append(AGENT, "s1", [record("c", "c")])
        for _ in range(2):
            same(_near(store), ["b"], "only the one whose text is as it was")
            store.compact(AGENT, "s1")
            rebuild(store)


def check_made_vectors(factory: Factory) -> None:
    """Entries without a vector are listed, and a vector for a text that has changed is discarded."""
    with factory() as store:
        store.append(
            AGENT, "s1", [record(name, name) for name in "abc"] + [record("d", ""), _record("e", [1, 0])]
        )
        scope = Scope(AGENT, ("s1",))
        with store.reader(AGENT) as reader:
            pending = reader.pending(_SPACE, scope)
            same(load(reader, pending), ["a", "b", "c"], "those with text and no vector")
            same(reader.pending_count(_SPACE, scope), 3, "how many they are")
            same(reader.pending(_SPACE, scope, 2), pending[:2], "the first page")
            same(reader.pending(_SPACE, scope, 2, pending[1]), pending[2:], "the page after it")
            newest = pending[::-1]
            same(reader.pending(_SPACE, scope, 2, newest_first=True), newest[:2], "the newest")
            same(reader.pending(_SPACE, scope, 2, newest[1], newest_first=True), newest[2:], "those before")
            same(reader.pending(_SPACE, scope, keys=newest[:2]), pending[1:], "of some keys")
            same(reader.pending(_SPACE, scope, keys=[]), [], "of no keys")
            late = [(entry, unit([0, 1])) for entry in reader.load(pending).values()]
        store.purge(AGENT, "s1", ["b"])
        amend(store, "s1", {"id": "c", "ts": time_at(9), "data": {"content": "changed"}})
        store.keep_vectors(AGENT, _SPACE, late)
        same(sorted(store.vectors(AGENT, "s1", _SPACE, list("abce"))), ["a", "e"], "kept, or given")
        with store.reader(AGENT) as reader:
            same(load(reader, reader.pending(_SPACE, scope)), ["c"], "still to be made")


def check_spaces(factory: Factory) -> None:
    """A store keeps its home's space, compares vectors by key, and discards a space's vectors on request."""
    with factory() as store:
        same(store.home_space(), None, "a new store has no space")
        store.set_home_space(Space(_SPACE, 2))
        same(store.home_space(), Space(_SPACE, 2), "the space that was set")
        store.append(AGENT, "s1", [_record("a", [1, 0]), _record("b", [0, 1]), record("c", "walnut")])
        with store.reader(AGENT) as reader:
            [entry] = reader.load(reader.pending("made", Scope(AGENT, ("s1",)))[2:]).values()
        same(store.keep_vectors(AGENT, "made", [(entry, unit([1, 0]))]), 1, "one is kept")
        with store.reader(AGENT) as reader:
            keys = [found.key for found in reader.similar(unit([1, 0]), _SPACE, Scope(AGENT), 9)]
            near = reader.cosines(unit([1, 0]), _SPACE, keys)
            same([round(near[key], 6) for key in keys], [1.0, 0.0], "how near they are")
            same(reader.cosines(unit([1, 0]), "made", keys), {}, "no vectors of that space")
        same(
            (store.forget_vectors(AGENT, "made"), store.forget_vectors(AGENT, "made")), (1, 0), "thrown away"
        )
        same((_near(store), store.spaces(AGENT)), (["a", "b"], [Space(_SPACE, 2)]), "the others are there")


def check_drop_and_counts(factory: Factory) -> None:
    """A dropped session is removed with its data and can be used again; counts include only live entries."""
    with factory() as store:
        store.append(AGENT, "s1", [_record(name, [1, 0]) for name in "abc"])
        store.append(AGENT, "s2", [record("d", "other")])
        store.create(AGENT, "s3")
        amend(store, "s1", tombstone("a"))
        same(store.entry_counts(AGENT), {"s1": 2, "s2": 1}, "live entries of sessions that have any")
        same(store.drop(AGENT, "s1", time_at(5)), 2, "as many as there were")
        same(store.drop(AGENT, "none", time_at(5)), 0, "none of a missing session")
        same((store.entry_counts(AGENT), _near(store)), ({"s2": 1}, []), "nothing of it is left")
        same(store.dropped(AGENT), ["s1"], "what was dropped is on record")
        store.append(AGENT, "s1", [record("a", "again")])
        same(store.entry_counts(AGENT, "s1"), {"s1": 1}, "its name begins again")
        same(store.dropped(AGENT), ["s1"], "that it was dropped stays on record")


def _record(name: str, vector: Sequence[float]) -> Record:
    return record(name, name, embedding=encode(_SPACE, unit(vector)))


def _near(
    store: Store, *, limit: int = 10, sessions: tuple[str, ...] | None = None, space: str = _SPACE
) -> list[str]:
    with store.reader(AGENT) as reader:
        found = reader.similar(unit([1, 0]), space, Scope(AGENT, sessions), limit)
        return load(reader, [candidate.key for candidate in found])
