"""The conformance suite of a store, and a clock that tests set.

Every ``Store`` keeps one contract (``recollect.store.base``), and these checks
say what it means. Ours pass them, and so does a store of somebody else's:

Example:
    >>> @pytest.mark.parametrize("check", recollect.testing.CHECKS)
    ... def test_my_store_keeps_the_contract(check, tmp_path):
    ...     check(lambda: closing(MyStore(tmp_path)))

A check takes a factory: each call of it gives a context manager over an empty
store, which need not hold more agents than ``default``, except in the checks of
``CHECKS_OF_TWO_AGENTS``. A check that fails raises ``AssertionError``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.errors import AgentNotFoundError, EntryExistsError, EntryNotFoundError
from recollect.line import format_time
from recollect.model import Entry, Record, Scope
from recollect.store.base import Store

Factory = Callable[[], AbstractContextManager[Store]]
"""Opens a store that is empty."""
Check = Callable[[Factory], None]
"""Raises ``AssertionError`` if a store does not keep one part of the contract."""

START = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)

_AGENT = "default"
_OTHER = "other"


class ManualClock:
    """A clock that stands still until a test moves it. ``recollect.open`` takes one as ``clock``.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance(timedelta(days=7))
        >>> clock().isoformat()
        '2026-01-18T14:31:00+00:00'
    """

    def __init__(self, start: datetime = START) -> None:
        """Begin at ``start``, an aware datetime."""
        self.now = start

    def __call__(self) -> datetime:
        """Return the time it was set to."""
        return self.now

    def advance(self, by: float | timedelta) -> datetime:
        """Move by seconds or a timedelta, backwards if negative, and return the new time."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self.now


def check_store(factory: Factory, *, several_agents: bool = True) -> None:
    """Run every check; without ``several_agents`` those that one agent can show."""
    for check in CHECKS + (CHECKS_OF_TWO_AGENTS if several_agents else ()):
        check(factory)


def check_append_and_entries(factory: Factory) -> None:
    """What was appended comes back equal, in order, also after the store was closed."""
    records = [_record("a", "Größe\0\U0001f600"), _record("b", "", data={"n": [1, 2.5, None, {"x": True}]})]
    with factory() as store:
        returned = store.append(_AGENT, "s1", records)
        _same([entry.as_dict() for entry in returned], records, "append returns the entries")
        store.close()
        found = store.entries(_AGENT, "s1", None, None)
        _same([entry.as_dict() for entry in found], records, "entries returns what was appended")
        _same(
            [(entry.agent, entry.session) for entry in found],
            [(_AGENT, "s1")] * 2,
            "entries know their place",
        )


def check_append_is_all_or_nothing(factory: Factory) -> None:
    """One record that cannot be stored keeps all others of its call out, and makes no session."""
    with factory() as store:
        bad = [_record("a", "one"), _record("b", "\ud800")]
        _raises(ValueError, lambda: store.append(_AGENT, "s1", bad))
        _same(store.sessions(_AGENT), [], "a refused append makes no session")
        store.append(_AGENT, "s1", [_record("c", "there")])
        _raises(
            EntryExistsError, lambda: store.append(_AGENT, "s1", [_record("d", "new"), _record("c", "other")])
        )
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["c"], "a refused append adds nothing")


def check_append_of_a_known_id(factory: Factory) -> None:
    """The same content again adds nothing; an id that was deleted makes a new entry."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "one"), _record("b", "two")])
        again = store.append(_AGENT, "s1", [_record("a", "one", minute=9)])
        _same(again[0].as_dict(), _record("a", "one"), "the entry as it is comes back")
        store.amend(_AGENT, "s1", _tombstone("a"))
        store.append(_AGENT, "s1", [_record("a", "anew", minute=9)])
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["b", "a"], "a deleted id makes a new entry")


def check_puts_and_patches(factory: Factory) -> None:
    """A put replaces the payload and keeps place and time; a patch sets reserved keys, None removes one."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "one", tags=["x"]), _record("b", "two")])
        put = store.amend(_AGENT, "s1", {"id": "a", "ts": _time(5), "data": {"content": "changed"}})
        expected = _record("a", "changed", tags=["x"])
        _same(put.as_dict(), expected, "a put keeps time, type and reserved keys")
        store.amend(_AGENT, "s1", {"id": "a", "ts": _time(6), "pinned": True, "tags": None})
        expected = _record("a", "changed", pinned=True)
        found = store.entries(_AGENT, "s1", None, None)
        _same(
            [entry.as_dict() for entry in found], [expected, _record("b", "two")], "a patch sets and removes"
        )
        _same(store.find(_AGENT, "a", None), found[:1], "find sees puts and patches")
        _raises(
            EntryNotFoundError,
            lambda: store.amend(_AGENT, "s1", {"id": "none", "ts": _time(7), "pinned": True}),
        )


def check_put_makes_or_replaces(factory: Factory) -> None:
    """``put`` adds an entry, and replaces the one that has the record's id."""
    with factory() as store:
        store.put(_AGENT, "s1", [_record("a", "one"), _record("b", "two")])
        store.put(_AGENT, "s1", [_record("a", "grown", minute=9), _record("c", "three", minute=9)])
        found = store.entries(_AGENT, "s1", None, None)
        _same(
            [(entry.id, entry.text) for entry in found], [("a", "grown"), ("b", "two"), ("c", "three")], "put"
        )


def check_delete(factory: Factory) -> None:
    """A deleted entry is not given out, not found, and not brought back by a patch."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "walnut"), _record("b", "two")])
        store.amend(_AGENT, "s1", _tombstone("a"))
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["b"], "entries without the deleted one")
        _same(store.find(_AGENT, "a", None), [], "find without the deleted one")
        _same(_search(store, ["walnut"]), [], "search without the deleted one")
        _raises(
            EntryNotFoundError,
            lambda: store.amend(_AGENT, "s1", {"id": "a", "ts": _time(3), "deleted": False}),
        )


def check_order_and_limits(factory: Factory) -> None:
    """Entries come by time, ties by place; a limit keeps the newest; types choose before the limit counts."""
    minutes = [5, 1, 9, 1, 7]
    records = [
        _record(str(at), "x", minute=m, kind="even" if at % 2 else "odd") for at, m in enumerate(minutes)
    ]
    with factory() as store:
        store.append(_AGENT, "s1", records)
        _same(
            _ids(store.entries(_AGENT, "s1", None, None)), ["1", "3", "0", "4", "2"], "by time, then by place"
        )
        _same(
            _ids(store.entries(_AGENT, "s1", 2, None)), ["4", "2"], "the newest two, the oldest of them first"
        )
        _same(_ids(store.entries(_AGENT, "s1", 99, ["even"])), ["1", "3"], "types choose")
        _same(_ids(store.entries(_AGENT, "s1", 1, ["even"])), ["3"], "types choose before the limit counts")
        for nothing in (store.entries(_AGENT, "s1", 0, None), store.entries(_AGENT, "s1", None, [])):
            _same(nothing, [], "limit 0 and no types give nothing")


def check_missing_things(factory: Factory) -> None:
    """What is not there reads as nothing, is refused where it was to be changed, and asking makes nothing."""
    with factory() as store:
        _same(store.sessions(_AGENT), [], "no sessions")
        _same(store.entries(_AGENT, "none", None, None), [], "no entries")
        _same(store.entries(_AGENT, "none", 3, None), [], "no newest entries")
        _same(store.find(_AGENT, "a", "none"), [], "no entry")
        _same(store.history(_AGENT, "a", None), [], "no history")
        _same((store.clear(_AGENT, "none"), store.remove(_AGENT, "none")), (None, False), "nothing to remove")
        _same(
            (store.compact(_AGENT, "none"), store.purge(_AGENT, "none", ["a"])), (0, 0), "nothing to rewrite"
        )
        _raises(AgentNotFoundError, lambda: store.purge_agent(_AGENT))
        _same((store.agents(), store.stale(_AGENT)), ([], False), "asking made nothing")


def check_sessions(factory: Factory) -> None:
    """Sessions are made empty or by their first entry; any id is one session's and no other's."""
    names = ["s1", "S 2", "../s3", "ä\0/é", "a.b", ".hidden"]
    with factory() as store:
        store.create(_AGENT, names[0])
        for name in names[1:]:
            store.append(_AGENT, name, [_record("a", f"in {name}")])
        store.create(_AGENT, names[1])
        _same(sorted(info.id for info in store.sessions(_AGENT)), sorted(names), "all sessions are listed")
        sizes = {info.id: info.size for info in store.sessions(_AGENT)}
        _same(
            (sizes["s1"], min(sizes[name] for name in names[1:]) > 0),
            (0, True),
            "an empty session has size 0",
        )
        _same(
            sorted(entry.session for entry in store.find(_AGENT, "a", None)),
            sorted(names[1:]),
            "one a session",
        )
        _same([entry.text for entry in store.find(_AGENT, "a", "../s3")], ["in ../s3"], "find in one session")


def check_search(factory: Factory) -> None:
    """Words find entries, best first; ``near`` finds entries by their neighbours' words too."""
    texts = ["apple pie", "banana bread", "apple apple apple", "cherries"]
    with factory() as store:
        store.append(_AGENT, "s1", [_record(str(at), text, minute=at) for at, text in enumerate(texts)])
        _same(sorted(_search(store, ["apple"])), ["0", "2"], "both entries with the word")
        _same(_search(store, ["apple"], limit=1), ["2"], "the best one first")
        _same(sorted(_search(store, ["banana", "cherries"])), ["1", "3"], "any of the words")
        _same(_search(store, ["durian"]), [], "a word that nobody used")
        _same(sorted(_search(store, ["banana"], near=True))[::2], ["0", "2"], "neighbours are found by near")


def check_search_in_scope(factory: Factory) -> None:
    """Sessions, types, tags and times limit a search; an empty choice finds nothing."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "apple"), _record("b", "apple", minute=5, tags=["x", "y"])])
        store.append(_AGENT, "s2", [_record("c", "apple", minute=9, kind="decision")])
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
            _same(sorted(_search(store, ["apple"], **limits)), expected, f"a search in {limits}")


def check_search_follows_changes(factory: Factory) -> None:
    """A replaced text is no longer found, and the entries around it are."""
    with factory() as store:
        store.append(
            _AGENT, "s1", [_record(name, f"{name}walnut", minute=at) for at, name in enumerate("abc")]
        )
        store.amend(_AGENT, "s1", {"id": "b", "ts": _time(9), "data": {"content": "pecan"}})
        _same(_search(store, ["bwalnut"]), [], "the old words are gone")
        _same(_search(store, ["bwalnut"], near=True), [], "the old words are gone from the neighbours")
        _same((_search(store, ["pecan"]), _search(store, ["awalnut"])), (["b"], ["a"]), "the rest is found")


def check_history(factory: Factory) -> None:
    """Every version of an entry is kept, deletions too, also by a compaction."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "one"), _record("b", "two")])
        store.amend(_AGENT, "s1", {"id": "a", "ts": _time(2), "data": {"content": "changed"}})
        store.amend(_AGENT, "s1", _tombstone("a"))
        for _ in range(2):
            versions = store.history(_AGENT, "a", None)
            expected = [("one", False), ("changed", False), ("changed", True)]
            _same(
                [(version.text, version.deleted) for version in versions], expected, "all versions in order"
            )
            _same(versions[1].written - versions[0].written, timedelta(minutes=2), "versions know their time")
            store.compact(_AGENT, "s1")
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["b"], "compaction keeps the live entries")


def check_purge(factory: Factory) -> None:
    """A purged entry, deleted or not, is gone from entries, history and search; its neighbours stay."""
    with factory() as store:
        store.append(
            _AGENT, "s1", [_record(name, f"{name}walnut", minute=at) for at, name in enumerate("abcd")]
        )
        store.amend(_AGENT, "s1", _tombstone("a"))
        store.compact(_AGENT, "s1")
        _same(store.purge(_AGENT, "s1", ["a", "b", "none"]), 2, "as many as there were")
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["c", "d"], "the others stay")
        for name in "ab":
            _same(store.history(_AGENT, name, None), [], "no history")
            _same(_search(store, [f"{name}walnut"], near=True), [], "nothing is found")
        _same(_search(store, ["cwalnut"]), ["c"], "the others are found")
        _raises(
            EntryNotFoundError, lambda: store.amend(_AGENT, "s1", {"id": "b", "ts": _time(9), "pinned": True})
        )


def check_clear_and_remove(factory: Factory) -> None:
    """``clear`` leaves an empty session and says how long it was, ``remove`` none; both are for good."""
    with factory() as store:
        for session in ("s1", "s2"):
            store.append(_AGENT, session, [_record("a", "walnut"), _record("b", "two")])
            store.amend(_AGENT, session, _tombstone("a"))
            store.compact(_AGENT, session)
        sizes = {info.id: info.size for info in store.sessions(_AGENT)}
        _same(
            (store.clear(_AGENT, "s1"), store.remove(_AGENT, "s2")), (sizes["s1"], True), "what they answer"
        )
        _same(
            [(info.id, info.size) for info in store.sessions(_AGENT)], [("s1", 0)], "the cleared one is there"
        )
        _same(store.history(_AGENT, "a", None), [], "nothing is left in any history")
        _same(_search(store, ["walnut", "two"]), [], "nothing is found")
        store.append(_AGENT, "s2", [_record("a", "anew")])
        _same(_ids(store.entries(_AGENT, "s2", None, None)), ["a"], "a removed session can begin anew")


def check_files(factory: Factory) -> None:
    """An agent's files are written, grown, listed and deleted, and are no sessions."""
    with factory() as store:
        files = store.files(_AGENT)
        _same((files.list(), files.write("plans/today.md", "one\n")), ([], 4), "write tells the bytes")
        _same(
            (files.append("plans/today.md", "zwö"), files.read("plans/today.md")), (4, "one\nzwö"), "append"
        )
        _same(
            (files.list(), store.sessions(_AGENT)),
            (["plans/today.md"], []),
            "files are listed, not as sessions",
        )
        files.delete("plans/today.md")
        _raises(FileNotFoundError, lambda: files.read("plans/today.md"))


def check_threads(factory: Factory) -> None:
    """Threads that append to one session at the same time lose nothing."""
    together = threading.Barrier(4)

    def work(store: Store, name: str) -> None:
        together.wait(30)
        for at in range(10):
            store.append(_AGENT, "s1", [_record(f"{name}{at}", "x")])

    with factory() as store:
        threads = [threading.Thread(target=work, args=(store, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        found = set(_ids(store.entries(_AGENT, "s1", None, None)))
        _same(found, {f"{name}{at}" for name in "abcd" for at in range(10)}, "every entry of every thread")


def check_rebuild_and_doctor(factory: Factory) -> None:
    """What is derived can be made anew from what is kept, and a sound store has nothing to complain of."""
    with factory() as store:
        store.append(_AGENT, "s1", [_record("a", "walnut")])
        told: list[tuple[int, int]] = []
        _same(store.rebuild(lambda done, of: told.append((done, of))), 1, "one session was read")
        _same(told[-1:], [told[-1][::-1]], "progress ends at the end")
        store.sync()
        _same(_search(store, ["walnut"]), ["a"], "what was found is found again")
        _same({finding.level for finding in store.doctor()}, {"ok"}, "all is well")


def check_isolation(factory: Factory) -> None:
    """Nothing that is done to one agent shows in another, under the same session and entry ids."""
    with factory() as store:
        for agent in (_AGENT, _OTHER):
            store.append(agent, "s1", [_record("a", f"walnut of {agent}"), _record("b", "two")])
            store.files(agent).write("note.md", agent)
        store.amend(_AGENT, "s1", _tombstone("a"))
        store.purge(_AGENT, "s1", ["b"])
        store.clear(_AGENT, "s1")
        store.files(_AGENT).delete("note.md")
        _same(
            [entry.text for entry in store.find(_OTHER, "a", None)], ["walnut of other"], "the other's entry"
        )
        _same(_search(store, ["walnut", "two"]), [], "a search sees its own agent only")
        _same(sorted(_search(store, ["walnut", "two"], agent=_OTHER)), ["a", "b"], "the other finds its own")
        _same(store.files(_OTHER).read("note.md"), _OTHER, "the other's file")


def check_purge_of_an_agent(factory: Factory) -> None:
    """A purged agent is gone with all it had, the others stay, and its name can begin anew."""
    with factory() as store:
        for agent in (_AGENT, _OTHER):
            store.append(agent, "s1", [_record("a", "walnut")])
        store.files(_AGENT).write("note.md", "x")
        store.purge_agent(_AGENT)
        _same(store.agents(), [_OTHER], "one agent is left")
        _same((store.sessions(_AGENT), store.files(_AGENT).list()), ([], []), "nothing of the purged one")
        _same(_search(store, ["walnut"], agent=_OTHER), ["a"], "all of the other")
        store.append(_AGENT, "s1", [_record("b", "anew")])
        _same(_ids(store.entries(_AGENT, "s1", None, None)), ["b"], "the name begins anew")


CHECKS: tuple[Check, ...] = (
    check_append_and_entries,
    check_append_is_all_or_nothing,
    check_append_of_a_known_id,
    check_puts_and_patches,
    check_put_makes_or_replaces,
    check_delete,
    check_order_and_limits,
    check_missing_things,
    check_sessions,
    check_search,
    check_search_in_scope,
    check_search_follows_changes,
    check_history,
    check_purge,
    check_clear_and_remove,
    check_files,
    check_threads,
    check_rebuild_and_doctor,
)
"""The checks that a store with room for one agent, ``default``, must pass."""

CHECKS_OF_TWO_AGENTS: tuple[Check, ...] = (check_isolation, check_purge_of_an_agent)
"""The checks that need a second agent."""


def _time(minute: int) -> str:
    return format_time(START + timedelta(minutes=minute))


def _record(
    entry_id: str,
    content: str,
    *,
    minute: int = 0,
    kind: str = "note",
    data: Record | None = None,
    **keys: Any,
) -> Record:
    head = {"id": entry_id, "ts": _time(minute), "type": kind}
    return head | {"data": {"content": content} if data is None else data} | keys


def _tombstone(entry_id: str) -> Record:
    return {"id": entry_id, "deleted": True, "ts": _time(8)}


def _ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def _search(
    store: Store,
    terms: Sequence[str],
    *,
    agent: str = _AGENT,
    limit: int = 50,
    near: bool = False,
    **scope: Any,
) -> list[str]:
    """Return the ids of what a search finds, best first."""
    keys = [found.key for found in store.search(terms, Scope(agent, **scope), limit, near=near)]
    loaded = store.load(agent, keys)
    return [loaded[key].id for key in keys if key in loaded]


def _same(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def _raises(error: type[Exception], act: Callable[[], object]) -> None:
    try:
        result = act()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}, found {result!r}")
