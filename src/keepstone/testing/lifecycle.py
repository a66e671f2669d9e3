"""Store checks: restoring entries, titles, copying and renaming sessions, lines and changes."""

from __future__ import annotations

from keepstone.errors import EntryNotFoundError, SessionNotFoundError
from keepstone.model import Entry, Record
from keepstone.store.protocol import Store
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


def check_restore(factory: Factory) -> None:
    """A deleted entry is restored in its last state with a new time; live and purged entries are not."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut", tags=["x"]), record("b", "two", minute=1)])
        amend(store, "s1", {"id": "a", "ts": time_at(5), "type": "note", "data": {"content": "pecan"}})
        raises(EntryNotFoundError, lambda: _restored(store, "a"))
        # After a compaction the deleted entry is only in the archive.
        for compacted in (False, True):
            amend(store, "s1", tombstone("a"))
            if compacted:
                store.compact(AGENT, "s1")
            expected = record("a", "pecan", minute=9, tags=["x"])
            same(_restored(store, "a"), expected, "the entry as it was before")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b", "a"], "its time is new")
        same(search(store, ["pecan"]), ["a"], "it is found")
        amend(store, "s1", tombstone("a"))
        store.purge(AGENT, "s1", ["a"])
        raises(EntryNotFoundError, lambda: _restored(store, "a"))
        raises(EntryNotFoundError, lambda: store.restore(AGENT, "none", "a", lambda entry: entry.line))


def _restored(store: Store, entry_id: str) -> Record:
    def change(entry: Entry) -> Record:
        return {key: value for key, value in entry.line.items() if key != "modified"} | {"ts": time_at(9)}

    return store.restore(AGENT, "s1", entry_id, change).as_dict()


def check_titles(factory: Factory) -> None:
    """A session's title is only in its summary; the default is the first user message."""
    with factory() as store:
        said = record("a", "x") | {"data": {"role": "user", "content": "Which walnut?"}}
        store.append(AGENT, "s1", [said])
        store.append(AGENT, "s2", [record("b", "two", minute=1)])
        raises(SessionNotFoundError, lambda: store.set_title(AGENT, "none", "x", time_at(5)))
        found = store.summaries(AGENT)
        same([summary.id for summary in found], ["s2", "s1"], "the newest entry first")
        same([summary.title for summary in found], [None, "Which walnut?"], "titles from messages")
        store.set_title(AGENT, "s1", "Trees", time_at(5))
        (titled,) = store.summaries(AGENT, ["s1"], texts=False)
        same(
            (titled.title, titled.named, titled.entries, titled.preview),
            ("Trees", True, 1, ""),
            "the given title",
        )
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["a"], "a title is no entry")
        store.set_title(AGENT, "s1", None, time_at(6))
        same(store.summaries(AGENT, ["s1"], texts=False)[0].title, None, "the title was taken away")


def check_rename(factory: Factory) -> None:
    """A renamed session has its entries and history only under the new id; an existing id is refused."""
    with factory() as store:
        _fill(store)
        store.append(AGENT, "taken", [record("t", "other")])
        raises(ValueError, lambda: store.rename(AGENT, "s1", "taken"))
        raises(ValueError, lambda: store.rename(AGENT, "s1", "s1"))
        raises(SessionNotFoundError, lambda: store.rename(AGENT, "none", "new"))
        same(sorted(info.id for info in store.sessions(AGENT)), ["s1", "taken"], "a refusal changes nothing")
        store.rename(AGENT, "s1", "new")
        same(sorted(info.id for info in store.sessions(AGENT)), ["new", "taken"], "the sessions there are")
        same(ids_of(store.entries(AGENT, "new", None, None)), ["b", "c"], "the entries")
        same(search(store, ["pecan"]), ["b"], "what is found")
        same({version.session for version in store.history(AGENT, "a", None)}, {"new"}, "the history")
        store.append(AGENT, "s1", [record("b", "again")])
        same(len(store.find(AGENT, "b", None)), 2, "the old id can begin again")


def check_rename_over_ended_lives(factory: Factory) -> None:
    """Entries of a session renamed to a removed session's id get later lives than those that ended there."""
    with factory() as store:
        store.append(AGENT, "new", [record("a", "gone"), record("t", "gone, too")])
        store.remove(AGENT, "new")
        store.append(AGENT, "s1", [record("a", "walnut"), record("b", "two", minute=1)])
        amend(store, "s1", {"id": "a", "ts": time_at(5), "type": "note", "data": {"content": "pecan"}})
        amend(store, "s1", tombstone("b"))
        store.copy(AGENT, "s1", "copied")
        store.rename(AGENT, "s1", "new")
        for session, life in (("new", 2), ("copied", None)):
            (found,) = store.entries(AGENT, session, None, None)
            same((found.id, found.line.get("life")), ("a", life), f"the life of an entry in {session}")
        written = [(line["id"], line.get("life")) for line in store.lines(AGENT, "new") if "data" in line]
        same(written, [("a", 2), ("b", None), ("a", 2)], "what the lines say")
        same(search(store, ["pecan"]), ["a", "a"], "what is found")
        same(len(store.history(AGENT, "a", "new")), 2, "the history")


def check_copy_and_fork(factory: Factory) -> None:
    """A copy has the entries, ids and history of a session; a fork has them up to an entry."""
    with factory() as store:
        _fill(store)
        store.copy(AGENT, "s1", "copy")
        store.copy(AGENT, "s1", "fork", "b")
        raises(EntryNotFoundError, lambda: store.copy(AGENT, "s1", "x", "a"))
        raises(ValueError, lambda: store.copy(AGENT, "s1", "fork"))
        raises(SessionNotFoundError, lambda: store.copy(AGENT, "none", "x"))
        names = ("s1", "copy", "fork")
        same(sorted(info.id for info in store.sessions(AGENT)), sorted(names), "the sessions there are")
        found = [ids_of(store.entries(AGENT, name, None, None)) for name in names]
        same(found, [["b", "c"], ["b", "c"], ["b"]], "the entries")
        same([len(store.history(AGENT, "b", name)) for name in names], [2, 2, 2], "the history")
        same([len(store.history(AGENT, "a", name)) for name in names], [2, 2, 0], "of what was deleted")
        store.purge(AGENT, "copy", ["b"])
        same(len(store.find(AGENT, "b", None)), 2, "the others stay")


def check_lines(factory: Factory) -> None:
    """The lines of a session, including changes and deletions, are returned in the order of writing."""
    with factory() as store:
        written = [record("a", "one"), record("b", "two")]
        store.append(AGENT, "s1", written)
        amend(store, "s1", tombstone("a"))
        same(list(store.lines(AGENT, "s1")), [*written, tombstone("a")], "the lines")
        same(list(store.lines(AGENT, "none")), [], "a missing session has none")


def check_changes(factory: Factory) -> None:
    """Changes are reported once, in the order of each session; a cursor continues after its change."""
    with factory() as store:
        _fill(store)
        poll = store.changes(None, None)
        same(poll(), [], "what was there before is not told")
        store.append(AGENT, "s1", [record("d", "new")])
        amend(store, "s1", {"id": "d", "ts": time_at(6), "pinned": True})
        store.count(AGENT, "s1", {"d": 1}, wait=True)
        amend(store, "s1", tombstone("d"))
        first, *later = poll()
        same(
            [(change.session, change.id, change.kind) for change in (first, *later)],
            [("s1", "d", "add"), ("s1", "d", "update"), ("s1", "d", "delete")],
            "the changes of an entry",
        )
        same(
            [change.kind for change in store.changes([AGENT], first.cursor)()],
            ["update", "delete"],
            "what came after a cursor",
        )
        store.purge(AGENT, "s1", ["b"])
        same([(change.id, change.kind) for change in poll()], [("b", "purge")], "a purge")
        store.remove(AGENT, "s1")
        same([(change.id, change.kind) for change in poll()], [(None, "remove")], "a removed session")
        raises(ValueError, lambda: store.changes(None, "made up"))


def _fill(store: Store) -> None:
    store.append(AGENT, "s1", [record(name, "walnut", minute=at) for at, name in enumerate("abc")])
    amend(store, "s1", {"id": "b", "ts": time_at(5), "type": "note", "data": {"content": "pecan"}})
    amend(store, "s1", tombstone("a"))
    store.compact(AGENT, "s1")
