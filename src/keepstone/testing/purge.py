"""Store checks: erasing entries, sessions and agents, and the isolation of agents."""

from __future__ import annotations

from keepstone.errors import EntryNotFoundError
from keepstone.model import Scope
from keepstone.store.protocol import Selected
from keepstone.testing.making import (
    AGENT,
    OTHER,
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


def check_purge(factory: Factory) -> None:
    """A purged entry, deleted or not, is removed from entries, history and search; its neighbours stay."""
    with factory() as store:
        store.append(
            AGENT, "s1", [record(name, f"{name}walnut", minute=at) for at, name in enumerate("abcd")]
        )
        amend(store, "s1", tombstone("a"))
        store.compact(AGENT, "s1")
        same(store.purge(AGENT, "s1", ["a", "b", "none"]), 2, "as many as there were")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["c", "d"], "the others stay")
        same(len(store.purge_times(AGENT)), 2, "the time of each is kept")
        for name in "ab":
            same(store.history(AGENT, name, None), [], "no history")
            same(search(store, [f"{name}walnut"]), [], "nothing is found")
        same(search(store, ["cwalnut"]), ["c"], "the others are found")
        raises(
            EntryNotFoundError,
            lambda: amend(store, "s1", {"id": "b", "ts": time_at(9), "access": 1}),
        )


def check_selected_entries_still_match(factory: Factory) -> None:
    """A removal by filters skips entries that no longer match since they were selected."""
    scope = Scope(AGENT, tags=("done",))
    with factory() as store:
        store.append(AGENT, "s1", [record(name, name, tags=["done"]) for name in "abcd"])
        for changed in "bd":
            amend(store, "s1", {"id": changed, "ts": time_at(1), "tags": ["open"]})
        same(store.delete(AGENT, "s1", Selected(["a", "b"], scope), time_at(2)), 1, "one is deleted")
        same(store.purge(AGENT, "s1", Selected(["c", "d"], scope)), 1, "one is purged")
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b", "d"], "the changed ones stay")


def check_clear_and_remove(factory: Factory) -> None:
    """``clear`` empties a session and returns its old size, ``remove`` removes it; both are permanent."""
    with factory() as store:
        for session in ("s1", "s2"):
            store.append(AGENT, session, [record("a", "walnut"), record("b", "two")])
            amend(store, session, tombstone("a"))
            store.compact(AGENT, session)
        sizes = {info.id: info.size for info in store.sessions(AGENT)}
        same((store.clear(AGENT, "s1"), store.remove(AGENT, "s2")), (sizes["s1"], True), "what they answer")
        same(
            [(info.id, info.size) for info in store.sessions(AGENT)], [("s1", 0)], "the cleared one is there"
        )
        same(store.history(AGENT, "a", None), [], "nothing is left in any history")
        same(search(store, ["walnut", "two"]), [], "nothing is found")
        store.append(AGENT, "s2", [record("a", "again")])
        same(ids_of(store.entries(AGENT, "s2", None, None)), ["a"], "a removed session can be used again")


def check_servers(factory: Factory) -> None:
    """Servers share tokens and responses through a database, or are notified of erasures in a folder."""
    with factory() as store:
        erased_agents: list[str] = []
        store.on_erased(erased_agents.append)
        store.append(AGENT, "s1", [record("a", "walnut")])
        before, sessions = store.erased_state(AGENT), store.sessions_state(AGENT)
        same(store.sessions_state(AGENT), sessions, "no session was made or removed")
        same(store.purge(AGENT, "s1", ["a"]), 1, "the entry was there")
        is_shared = store.answers is not None
        same(store.sign_ins is not None, is_shared, "tokens are where responses are")
        same(erased_agents, [] if is_shared else [AGENT], "who keeps responses hears of the purge")
        same(store.erased_state(AGENT) == before, is_shared, "and so do other servers")


def check_isolation(factory: Factory) -> None:
    """Changes to one agent do not affect another agent with the same session and entry ids."""
    with factory() as store:
        for agent in (AGENT, OTHER):
            store.append(agent, "s1", [record("a", f"walnut of {agent}"), record("b", "two")])
            store.files(agent).write("note.md", agent)
        amend(store, "s1", tombstone("a"))
        store.purge(AGENT, "s1", ["b"])
        store.clear(AGENT, "s1")
        store.files(AGENT).delete("note.md")
        same([entry.text for entry in store.find(OTHER, "a", None)], ["walnut of other"], "the other's entry")
        same(search(store, ["walnut", "two"]), [], "a search sees its own agent only")
        same(sorted(search(store, ["walnut", "two"], agent=OTHER)), ["a", "b"], "the other finds its own")
        same(store.files(OTHER).read("note.md"), OTHER, "the other's file")


def check_purge_of_an_agent(factory: Factory) -> None:
    """A purged agent is removed with all its data, other agents stay, and its name can be used again."""
    with factory() as store:
        for agent in (AGENT, OTHER):
            store.append(agent, "s1", [record("a", "walnut")])
        store.files(AGENT).write("note.md", "x")
        store.purge_agent(AGENT)
        same(store.agents(), [OTHER], "one agent is left")
        same((store.sessions(AGENT), store.files(AGENT).list()), ([], []), "nothing of the purged one")
        same(search(store, ["walnut"], agent=OTHER), ["a"], "all of the other")
        store.append(AGENT, "s1", [record("b", "again")])
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b"], "the name can be used again")


def check_suggestions(factory: Factory) -> None:
    """Suggestion lines are stored by agent, changed atomically, and removed with the entries they name."""
    lines = [b'{"id":"1","entries":["a"]}\n', b'{"id":"2","entries":["b"],"seen":[["s1","b",null]]}\n']
    with factory() as store:
        same(
            (store.keeps_suggestions, store.suggestion_lines(AGENT)), (True, []), "an unknown agent has none"
        )
        store.append(AGENT, "s1", [record(name, "walnut") for name in "abc"])
        store.change_suggestions(OTHER, lambda _: [*lines])
        store.change_suggestions(AGENT, lambda old: [*old, *lines])
        store.change_suggestions(AGENT, lambda old: [*old, b"damaged\n"])
        same(store.suggestion_lines(AGENT), [*lines, b"damaged\n"], "in the order of writing")
        raises(ZeroDivisionError, lambda: store.change_suggestions(AGENT, lambda _: [b"x\n"] * (1 // 0)))
        store.purge(AGENT, "s1", ["a"])
        same(store.suggestion_lines(AGENT), [lines[1], b"damaged\n"], "a purge removes what names the entry")
        store.clear(AGENT, "s1")
        same(store.suggestion_lines(AGENT), [b"damaged\n"], "a cleared session takes what names its entries")
        same(store.suggestion_lines(OTHER), lines, "another agent's stay")
        store.purge_agent(OTHER)
        same(store.suggestion_lines(OTHER), [], "a purged agent keeps none")
