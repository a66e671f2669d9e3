"""Store checks: writing and reading back entries, sessions and files."""

from __future__ import annotations

import threading

from keepstone.errors import (
    AgentNotFoundError,
    EntryExistsError,
    EntryNotFoundError,
    InvalidAgentIdError,
    InvalidSessionIdError,
)
from keepstone.log.where import conditions_of
from keepstone.model import Entry, Record
from keepstone.store.paging import pages
from keepstone.store.protocol import Compacted, LiveSession, Store
from keepstone.testing.making import (
    AGENT,
    Factory,
    amend,
    ids_of,
    raises,
    record,
    same,
    search,
    time_at,
    tombstone,
)


def check_append_and_entries(factory: Factory) -> None:
    """Appended entries are returned unchanged and in order, also after the store was closed."""
    records = [record("a", "Größe\0\U0001f600"), record("b", "", data={"n": [1, 2.5, None, {"x": True}]})]
    with factory() as store:
        returned = store.append(AGENT, "s1", records)
        same([entry.as_dict() for entry in returned], records, "append returns the entries")
        store.close()
        found = store.entries(AGENT, "s1", None, None)
        same([entry.as_dict() for entry in found], records, "entries returns what was appended")
        same(
            [(entry.agent, entry.session) for entry in found],
            [(AGENT, "s1")] * 2,
            "entries know their place",
        )


def check_append_is_all_or_nothing(factory: Factory) -> None:
    """If one record of a call cannot be stored, no record is, and no session is created."""
    with factory() as store:
        bad = [record("a", "one"), record("b", "\ud800")]
        raises(ValueError, lambda: store.append(AGENT, "s1", bad))
        twice = [record("a", "one"), record("a", "other")]
        raises(EntryExistsError, lambda: store.append(AGENT, "s1", twice))
        same((store.sessions(AGENT), store.agents()), ([], []), "a refused append makes no session")
        store.append(AGENT, "s1", [record("c", "there")])
        raises(
            EntryExistsError, lambda: store.append(AGENT, "s1", [record("d", "new"), record("c", "other")])
        )
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["c"], "a refused append adds nothing")


def check_append_of_a_known_id(factory: Factory) -> None:
    """Appending the same content again adds nothing; appending a deleted id creates a new entry."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "one"), record("b", "two")])
        again = store.append(AGENT, "s1", [record("a", "one", minute=9)])
        same(again[0].as_dict(), record("a", "one"), "the entry as it is comes back")
        amend(store, "s1", tombstone("a"))
        store.append(AGENT, "s1", [record("a", "again", minute=9)])
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b", "a"], "a deleted id makes a new entry")


def check_puts_and_patches(factory: Factory) -> None:
    """A put replaces the payload and keeps place and time; a patch sets reserved keys, None removes a key."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "one", tags=["x"]), record("b", "two")])
        put = amend(store, "s1", {"id": "a", "ts": time_at(5), "data": {"content": "changed"}})
        expected = record("a", "changed", tags=["x"], modified=time_at(5))
        same(put.as_dict(), expected, "a put keeps time, type and reserved keys")
        amend(store, "s1", {"id": "a", "ts": time_at(6), "pinned": True, "tags": None})
        expected = record("a", "changed", pinned=True, modified=time_at(6))
        found = store.entries(AGENT, "s1", None, None)
        same([entry.as_dict() for entry in found], [expected, record("b", "two")], "a patch sets and removes")
        same(store.find(AGENT, "a", None), found[:1], "find sees puts and patches")
        raises(
            EntryNotFoundError,
            lambda: amend(store, "s1", {"id": "none", "ts": time_at(7), "pinned": True}),
        )


def check_put_makes_or_replaces(factory: Factory) -> None:
    """``put`` adds an entry, or replaces the entry with the record's id."""
    with factory() as store:
        store.put(AGENT, "s1", [record("a", "one"), record("b", "two")])
        store.put(AGENT, "s1", [record("a", "grown", minute=9), record("c", "three", minute=9)])
        found = store.entries(AGENT, "s1", None, None)
        same(
            [(entry.id, entry.text) for entry in found], [("a", "grown"), ("b", "two"), ("c", "three")], "put"
        )


def check_modify(factory: Factory) -> None:
    """A change is computed from the entry's current state, so that concurrent changes are not lost."""
    together = threading.Barrier(4)

    def work(store: Store, name: str) -> None:
        together.wait(30)
        for at in range(10):
            store.modify(AGENT, "s1", "a", lambda entry, at=at: _tagged(entry, f"{name}{at}"))  # type: ignore[misc]

    def fail(_: Entry) -> Record:
        raise ZeroDivisionError

    with factory() as store:
        store.append(AGENT, "s1", [record("a", "one", tags=["first"])])
        same(store.modify(AGENT, "s1", "a", lambda _: None).tags, ("first",), "None changes nothing")
        raises(ZeroDivisionError, lambda: store.modify(AGENT, "s1", "a", fail))
        raises(EntryNotFoundError, lambda: store.modify(AGENT, "s1", "none", fail))
        same(len(store.history(AGENT, "a", None)), 1, "nothing was written")
        threads = [threading.Thread(target=work, args=(store, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        expected = {"first", *(f"{name}{at}" for name in "abcd" for at in range(10))}
        same(set(store.find(AGENT, "a", "s1")[0].tags), expected, "every change of every thread")


def _tagged(entry: Entry, tag: str) -> Record:
    return {"id": entry.id, "ts": time_at(1), "tags": [*entry.tags, tag]}


def check_revise(factory: Factory) -> None:
    """Several entries are changed atomically, computed from the session's current state."""
    newer = record("b", "two", links=[{"to": "a", "rel": "supersedes"}, {"to": "c", "rel": "because"}])
    closed = {"id": "a", "ts": time_at(1), "valid_to": time_at(1)}

    def replacing(session: LiveSession) -> list[Record]:
        same((session.links("supersedes"), session.get("b")), ([], None), "the session as it is")
        return [newer, closed]

    def undoing(session: LiveSession) -> list[Record]:
        same(session.links("supersedes"), [("b", "a")], "links of this relation")
        found = session.select("note", conditions_of({"content": {"in": ["one", "two"]}}))
        same(ids_of(found), ["a", "b"], "entries of a type that meet conditions, by place")
        same(session.select("fact", ()), [], "entries of another type")
        return [{"id": "a", "ts": time_at(2), "valid_to": None}, tombstone("b")]

    def fail(_: LiveSession) -> list[Record]:
        raise ZeroDivisionError

    with factory() as store:
        raises(EntryNotFoundError, lambda: store.revise(AGENT, "s1", replacing))
        same(store.sessions(AGENT), [], "a refused revision made nothing")
        store.append(AGENT, "s1", [record("a", "one")])
        raises(ZeroDivisionError, lambda: store.revise(AGENT, "s1", fail))
        same(store.revise(AGENT, "s1", lambda _: []), [], "no lines change nothing")
        same(len(store.history(AGENT, "a", None)), 1, "nothing was written")
        named = store.revise(AGENT, "s1", replacing, ["a", "missing"])
        same(ids_of(named), ["b", "a"], "live entries in the order of lines, looked up at once or not")
        same(
            [entry.line["valid_to"] for entry in store.find(AGENT, "a", None)],
            [time_at(1)],
            "the patched entry",
        )
        same(ids_of(store.revise(AGENT, "s1", undoing)), ["a"], "live entries without the deleted one")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["a"], "entries after both")
        same(store.find(AGENT, "a", None)[0].valid_to, None, "null removes the key")


def check_delete(factory: Factory) -> None:
    """A deleted entry is not returned, not found, and not restored by a patch."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut"), record("b", "two")])
        amend(store, "s1", tombstone("a"))
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b"], "entries without the deleted one")
        same(store.find(AGENT, "a", None), [], "find without the deleted one")
        same(search(store, ["walnut"]), [], "search without the deleted one")
        gone = store.gone(AGENT, "s1")
        same(
            ["a" in gone, "b" in gone, "c" in gone], [True, False, False], "the deleted one is gone, no other"
        )
        raises(
            EntryNotFoundError,
            lambda: amend(store, "s1", {"id": "a", "ts": time_at(3), "deleted": False}),
        )


def check_order_and_limits(factory: Factory) -> None:
    """Entries are ordered by time, then place; a limit keeps the newest; types apply before the limit."""
    minutes = [5, 1, 9, 1, 7]
    records = [
        record(str(at), "x", minute=m, kind="even" if at % 2 else "odd") for at, m in enumerate(minutes)
    ]
    with factory() as store:
        store.append(AGENT, "s1", records)
        same(
            ids_of(store.entries(AGENT, "s1", None, None)),
            ["1", "3", "0", "4", "2"],
            "by time, then place",
        )
        same(
            ids_of(store.entries(AGENT, "s1", 2, None)),
            ["4", "2"],
            "the newest two, oldest first",
        )
        same(ids_of(store.entries(AGENT, "s1", 99, ["even"])), ["1", "3"], "types choose")
        same(ids_of(store.entries(AGENT, "s1", 1, ["even"])), ["3"], "types choose before the limit counts")
        for nothing in (store.entries(AGENT, "s1", 0, None), store.entries(AGENT, "s1", None, [])):
            same(nothing, [], "limit 0 and no types give nothing")


def check_pages(factory: Factory) -> None:
    """Pages of a list contain each item once, even if items are added or removed in between."""
    with factory() as store:
        for name in ("s1", "s2", "s3"):
            store.append(AGENT, name, [record(f"{at}", "walnut") for at in range(5)])
        sessions = pages(lambda cursor: store.sessions(AGENT, 2, cursor))
        same(list(sessions), store.sessions(AGENT), "pages of sessions")
        matching = pages(lambda cursor: store.matching(AGENT, "walnut", None, 4, cursor))
        same(list(matching), store.matching(AGENT, "walnut", None), "pages of what holds a text")
        amend(store, "s1", tombstone("4"))
        versions = pages(lambda cursor: store.history(AGENT, "4", None, 1, cursor))
        same(list(versions), store.history(AGENT, "4", None), "pages of versions")
        newest = store.entries(AGENT, "s2", 2, None)
        store.purge(AGENT, "s2", ["3"])
        store.append(AGENT, "s2", [record("5", "walnut")])
        older = store.entries(AGENT, "s2", 2, None, cursor=newest.next)
        last = store.entries(AGENT, "s2", 2, None, cursor=older.next)
        found = [ids_of(page) for page in (newest, older, last)]
        same(found, [["3", "4"], ["1", "2"], ["0"]], "pages of entries from the newest on")
        same((last.next, store.entries(AGENT, "s2", 9, None).next), (None, None), "the last page")


def check_missing_things(factory: Factory) -> None:
    """Reading a missing session returns nothing, changing it is refused, and neither creates it."""
    with factory() as store:
        same(store.sessions(AGENT), [], "no sessions")
        same(store.entries(AGENT, "none", None, None), [], "no entries")
        same(store.entries(AGENT, "none", 3, None), [], "no newest entries")
        same(store.find(AGENT, "a", "none"), [], "no entry")
        same(store.history(AGENT, "a", None), [], "no history")
        same((store.clear(AGENT, "none"), store.remove(AGENT, "none")), (None, False), "nothing to remove")
        same(
            (store.compact(AGENT, "none"), store.purge(AGENT, "none", ["a"])),
            (Compacted(), 0),
            "nothing to rewrite",
        )
        raises(AgentNotFoundError, lambda: store.purge_agent(AGENT))
        same(search(store, ["walnut"]), [], "nothing to be found")
        with store.reader(AGENT) as reader:
            same((store.agents(), reader.stale), ([], False), "asking made nothing")


def check_sessions(factory: Factory) -> None:
    """Sessions are created empty or by their first entry; different ids are different sessions."""
    names = ["s1", "S 2", "../s3", "ä\0/é", "a.b", ".hidden"]
    with factory() as store:
        store.create(AGENT, names[0])
        for name in names[1:]:
            store.append(AGENT, name, [record("a", f"in {name}")])
        store.create(AGENT, names[1])
        same(sorted(info.id for info in store.sessions(AGENT)), sorted(names), "all sessions are listed")
        sizes = {info.id: info.size for info in store.sessions(AGENT)}
        same(
            (sizes["s1"], min(sizes[name] for name in names[1:]) > 0),
            (0, True),
            "an empty session has size 0",
        )
        same(
            sorted(entry.session for entry in store.find(AGENT, "a", None)),
            sorted(names[1:]),
            "one a session",
        )
        same([entry.text for entry in store.find(AGENT, "a", "../s3")], ["in ../s3"], "find in one session")


def check_names(factory: Factory) -> None:
    """Invalid slugs and session ids are refused, and ``session`` returns the same info as ``sessions``."""
    with factory() as store:
        same((store.check_agent(AGENT), store.check_session("S 2/ä")), (AGENT, "S 2/ä"), "good names")
        for bad in ("", "../x", "a b", "x."):
            raises(InvalidAgentIdError, lambda bad=bad: store.check_agent(bad))  # type: ignore[misc]
        for bad in ("", "\ud800", "x" * 1000):
            raises(InvalidSessionIdError, lambda bad=bad: store.check_session(bad))  # type: ignore[misc]
        same(store.agents(), [], "asking made nothing")
        store.append(AGENT, "s1", [record("a", "one")])
        same(
            (store.session(AGENT, "none"), [store.session(AGENT, "s1")]), (None, store.sessions(AGENT)), "one"
        )


def check_files(factory: Factory) -> None:
    """An agent's files are written, appended to, listed and deleted, and are not sessions."""
    with factory() as store:
        files = store.files(AGENT)
        same((files.list(), files.write("plans/today.md", "one\n")), ([], 4), "write tells the bytes")
        same((files.append("plans/today.md", "zwö"), files.read("plans/today.md")), (4, "one\nzwö"), "append")
        same(
            (files.list(), store.sessions(AGENT)),
            (["plans/today.md"], []),
            "files are listed, not as sessions",
        )
        for text, paths in (("ONE", ["plans/today.md"]), ("today", ["plans/today.md"]), ("other", [])):
            same(files.matching(text), paths, f"files that hold {text}")
        files.delete("plans/today.md")
        raises(FileNotFoundError, lambda: files.read("plans/today.md"))


def check_threads(factory: Factory) -> None:
    """Threads that append to one session at the same time lose no entries."""
    together = threading.Barrier(4)

    def work(store: Store, name: str) -> None:
        together.wait(30)
        for at in range(10):
            store.append(AGENT, "s1", [record(f"{name}{at}", "x")])

    with factory() as store:
        threads = [threading.Thread(target=work, args=(store, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        found = set(ids_of(store.entries(AGENT, "s1", None, None)))
        same(found, {f"{name}{at}" for name in "abcd" for at in range(10)}, "every entry of every thread")
