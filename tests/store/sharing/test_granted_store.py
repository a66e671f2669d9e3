"""What one agent reads and writes of another one, call by call, in a folder and in a database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.store.sharing.conftest import SECRET, KeptHome, filled

import keepstone
from keepstone import Agent, Entry, Home, NotGrantedError
from keepstone.agent import view_of
from keepstone.store.sharing.acting import ACTING, Acting
from keepstone.store.sharing.granted_store import GrantedStore, Reach


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    """Such a home for one test."""
    with filled(target) as home:
        yield home


@pytest.fixture
def team(home: Home) -> Agent:
    return home.agent("team")


@pytest.fixture
def coder(home: Home) -> Agent:
    return home.agent("coder")


def ids(entries: Any) -> list[str]:
    return sorted(entry.id for entry in entries)


READS: dict[str, Callable[[Agent], list[Entry]]] = {
    "recall": lambda coder: [hit.entry for hit in coder.recall("walnut", shared=["team"])],
    "recall of files": lambda coder: [
        hit.entry for hit in coder.recall("walnut", include=("entries", "files"), shared=["team"])
    ],
    "context": lambda coder: [
        entry
        for part in coder.context("walnut releases on Fridays", shared=["team"]).parts
        for entry in part.entries
    ],
    "entries": lambda coder: [*coder.entries(shared=["team"])],
    "newest entries": lambda coder: [*coder.entries(newest_first=True, shared=["team"])],
    "iter_entries": lambda coder: [*coder.iter_entries(shared=["team"])],
    "get": lambda coder: [coder.get("open", of="team")],
    "get of a session": lambda coder: [coder.get("open", "main", of="team")],
    "entries of a session": lambda coder: coder.session("main", of="team").entries(),
    "newest of a session": lambda coder: coder.session("main", of="team").entries(1, ["decision"]),
}
COUNTS: dict[str, Callable[[Agent], Any]] = {
    "count": lambda coder: coder.count(shared=["team"]),
    "records": lambda coder: coder.session("main", of="team").records(),
    "messages": lambda coder: coder.session("main", of="team").messages(),
    "info": lambda coder: coder.session("main", of="team").info(),
    "entry_count": lambda coder: coder.session("main", of="team").entry_count(),
    "value": lambda coder: coder.session("facts", of="team").value("plan"),
    "values": lambda coder: coder.session("facts", of="team").values(),
}
TAGGED: Any = {"tags": ["ops", "web"]}
WRITES: dict[str, Callable[[Agent], Any]] = {
    "add": lambda coder: coder.session("new", of="team").add("decision", "x", **TAGGED),
    "add_many": lambda coder: coder.session("new", of="team").add_many(
        [{"type": "decision", "text": "x", **TAGGED}, {"type": "decision", "text": "y", **TAGGED}]
    ),
    "put": lambda coder: coder.session("main", of="team").put(
        {"id": "open", "text": "x", "type": "decision"}
    ),
    "put of a new one": lambda coder: coder.session("new", of="team").put(
        {"type": "decision", "text": "x", **TAGGED}
    ),
    "replace": lambda coder: coder.session("main", of="team").replace("open", "x"),
    "update": lambda coder: coder.session("main", of="team").update("open", "x"),
    "link": lambda coder: coder.session("main", of="team").link("open", "message", "of"),
    "supersede": lambda coder: coder.session("main", of="team").supersede("open", {"text": "x", **TAGGED}),
    "delete": lambda coder: coder.session("main", of="team").delete("open"),
    "share": lambda coder: coder.share(coder.add("x", type="decision", **TAGGED).id, to="team"),
}
NEVER: dict[str, Callable[[Agent], Any]] = {
    "purge": lambda coder: coder.session("main", of="team").purge("open"),
    "purge_many": lambda coder: coder.session("main", of="team").purge_many(["open"]),
    "clear": lambda coder: coder.session("main", of="team").clear(),
    "remove": lambda coder: coder.session("main", of="team").remove(),
    "drop": lambda coder: coder.session("main", of="team").drop(),
    "rename": lambda coder: coder.session("main", of="team").rename("x"),
    "copy": lambda coder: coder.session("main", of="team").copy("x"),
    "fork": lambda coder: coder.session("main", of="team").fork("x", "open"),
    "compact": lambda coder: coder.session("main", of="team").compact(),
    "archive_faded": lambda coder: coder.session("main", of="team").archive_faded(),
    "compacted_size": lambda coder: coder.session("main", of="team").compacted_size(),
    "set_title": lambda coder: coder.session("main", of="team").set_title("x"),
    "export": lambda coder: [*coder.session("main", of="team").export()],
    "gone": lambda coder: coder.session("main", of="team").gone(),
    "restore": lambda coder: coder.session("main", of="team").restore("open"),
    "reinstate": lambda coder: coder.session("main", of="team").reinstate("open"),
    "count of accesses": lambda coder: coder.session("main", of="team").count({"open": 1}),
    "as_of": lambda coder: coder.session("main", of="team").entries(as_of="7d"),
    "archived": lambda coder: coder.session("main", of="team").entries(archived=True),
    "records as_of": lambda coder: coder.session("main", of="team").records(as_of="7d"),
    "value as_of": lambda coder: coder.session("facts", of="team").value("plan", as_of="7d"),
    "recall as_of": lambda coder: coder.recall("walnut", as_of="7d", shared=["team"]),
    "history": lambda coder: view_of(coder, "team").history("open"),
    "related": lambda coder: view_of(coder, "team").related("open"),
    "sessions": lambda coder: view_of(coder, "team").sessions(),
    "session_summaries": lambda coder: view_of(coder, "team").session_summaries(),
    "dropped_sessions": lambda coder: view_of(coder, "team").dropped_sessions(),
    "entry_counts": lambda coder: view_of(coder, "team").entry_counts(),
    "files": lambda coder: view_of(coder, "team").files.list(),
    "conflicts": lambda coder: [*view_of(coder, "team").conflicts()],
    "recall in a view": lambda coder: view_of(coder, "team").recall("walnut"),
    "context in a view": lambda coder: view_of(coder, "team").context("walnut"),
    "purge_where": lambda coder: view_of(coder, "team").purge_where(types=["decision"]),
    "purge_matching": lambda coder: view_of(coder, "team").purge_matching("walnut"),
    "grants": lambda coder: view_of(coder, "team").grants(),
    "grant": lambda coder: view_of(coder, "team").grant("other", "write"),
    "revoke": lambda coder: view_of(coder, "team").revoke("coder"),
    "share on": lambda coder: view_of(coder, "team").share("open", to="other"),
    "a view of a view": lambda coder: view_of(view_of(coder, "team"), "other").get("open"),
}
CALLS = READS | COUNTS | WRITES | NEVER


def state(home: Home) -> list[Any]:
    """All that the team has."""
    team = home.agent("team")
    sessions = sorted(info.id for info in team.sessions())
    lines = [list(team.session(name).export()) for name in sessions]
    return [sessions, lines, [grant.as_dict() for grant in team.grants()]]


@pytest.mark.parametrize("name", CALLS)
def test_without_a_grant_every_call_is_refused_in_the_same_words(kept_home: KeptHome, name: str) -> None:
    home, other = kept_home("refusing"), kept_home("purged")
    before = state(home)
    with pytest.raises(NotGrantedError) as refused:
        CALLS[name](home.agent("coder"))
    with pytest.raises(NotGrantedError) as missing:
        CALLS[name](other.agent("coder"))
    assert str(missing.value) == str(refused.value)
    assert "team" not in other.agents()
    assert state(home) == before
    assert before[0] == ["main"]


@pytest.mark.parametrize("name", CALLS)
def test_a_grant_to_another_agent_gives_nothing(refusing: Home, name: str) -> None:
    home, team, coder = refusing, refusing.agent("team"), refusing.agent("coder")
    team.grant("other", "write")
    coder.grant("team", "write")
    before = state(home)
    with pytest.raises(NotGrantedError):
        CALLS[name](coder)
    assert state(home) == before


@pytest.mark.parametrize("name", [*WRITES, *NEVER])
def test_reading_lets_nothing_be_written(refusing: Home, name: str) -> None:
    home, team, coder = refusing, refusing.agent("team"), refusing.agent("coder")
    team.grant("coder", "read")
    before = state(home)
    with pytest.raises(NotGrantedError):
        CALLS[name](coder)
    assert state(home) == before


@pytest.mark.parametrize("name", NEVER)
def test_no_grant_covers_histories_titles_and_removal(refusing: Home, name: str) -> None:
    home, team, coder = refusing, refusing.agent("team"), refusing.agent("coder")
    team.grant("coder", "write")
    before = state(home)
    with pytest.raises(NotGrantedError):
        CALLS[name](coder)
    assert state(home) == before


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("may", ["read", "write"])
def test_what_is_granted_is_read(read_home: Home, name: str, may: Any) -> None:
    team, coder = read_home.agent("team"), read_home.agent("coder")
    team.grant("coder", may)
    assert "open" in ids(READS[name](coder)) or name == "newest of a session"


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    "limits", [{"types": ["decision"], "tags": ["web"]}, {"tags": ["web", "ops"]}], ids=["both", "tags"]
)
def test_what_a_grant_does_not_cover_is_never_read(read_home: Home, name: str, limits: Any) -> None:
    team, coder = read_home.agent("team"), read_home.agent("coder")
    team.grant("coder", **limits)
    found = READS[name](coder)
    assert "open" in ids(found)
    assert SECRET not in repr([entry.line for entry in found])
    assert {entry.id for entry in found} <= {"open", "own", "message"}


def test_counts_follow_the_grant(team: Agent, coder: Agent) -> None:
    team.grant("coder", types=["decision", "message"], tags=["web"])
    session = coder.session("main", of="team")
    assert (coder.count(shared=["team"]), coder.count(types=["note"], shared=["team"])) == (3, 1)
    assert (session.entry_count(), len(session.records()), len(session.messages())) == (2, 2, 1)


def test_a_session_tells_no_more_than_its_covered_entries(team: Agent, coder: Agent) -> None:
    team.grant("coder", types=["decision"], tags=["web"])
    info = coder.session("main", of="team").info()
    assert info == keepstone.SessionInfo("main", team.get("open").ts, 0)
    team.grant("coder", tags=["else"])
    assert coder.session("main", of="team").info() is None


def test_an_entry_that_is_not_covered_reads_as_missing(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write", tags=["web"])
    session = coder.session("main", of="team")
    acts: list[Callable[[], Any]] = [
        lambda: coder.get("note", of="team"),
        lambda: session.update("note", "x"),
        lambda: session.delete("note"),
        lambda: session.supersede("note", "x"),
        lambda: session.replace("note", "x"),
        lambda: session.link("note", "open", "of"),
    ]
    for act in acts:
        with pytest.raises(keepstone.EntryNotFoundError):
            act()
    assert team.get("note").text == SECRET


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("limits", [{}, {"types": ["decision"], "tags": ["ops"]}], ids=["all", "some"])
def test_a_writer_writes_what_the_grant_covers(
    home: Home, team: Agent, coder: Agent, name: str, limits: Any
) -> None:
    team.grant("coder", "write", **limits)
    before = state(home)[1]
    WRITES[name](coder)
    assert state(home)[1] != before


@pytest.mark.parametrize("limits", [{"types": ["fact"]}, {"tags": ["web", "else"]}], ids=["types", "tags"])
@pytest.mark.parametrize("name", WRITES)
def test_a_writer_writes_nothing_else(refusing: Home, name: str, limits: Any) -> None:
    home, team, coder = refusing, refusing.agent("team"), refusing.agent("coder")
    team.grant("coder", "write", **limits)
    before = state(home)
    with pytest.raises((NotGrantedError, keepstone.EntryNotFoundError, keepstone.EntryExistsError)):
        WRITES[name](coder)
    assert state(home) == before


CHANGES: list[Callable[[keepstone.Session], Any]] = [
    lambda session: session.update("open", tags=["ops"]),
    lambda session: session.update("open", tags=None),
    lambda session: session.update("open", type="note"),
    lambda session: session.replace("open", {"text": "x", "type": "note"}),
    lambda session: session.replace("open", {"text": "x", "tags": []}),
    lambda session: session.supersede("open", {"text": "x"}),
    lambda session: session.supersede("open", {"text": "x", "type": "note", **TAGGED}),
    lambda session: session.put({"id": "note", "type": "decision", "text": "x", **TAGGED}),
    lambda session: session.add("decision", "x", id="untagged", **TAGGED),
    lambda session: session.add_many(
        [{"type": "decision", "text": "x", **TAGGED}, {"type": "note", "text": "y", **TAGGED}]
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_a_writer_moves_no_entry_across_the_bounds(
    refusing: Home, change: Callable[[keepstone.Session], Any]
) -> None:
    home, team, coder = refusing, refusing.agent("team"), refusing.agent("coder")
    team.grant("coder", "write", types=["decision"], tags=["web"])
    before = state(home)
    with pytest.raises((NotGrantedError, keepstone.EntryExistsError)):
        change(coder.session("main", of="team"))
    assert state(home) == before


def test_facts_are_set_through_a_grant(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write", types=["fact"])
    facts = coder.session("facts", of="team")
    assert [facts.set("plan", plan).data["value"] for plan in ("Free", "Free", "Pro")] == [
        "Free",
        "Free",
        "Pro",
    ]
    assert (team.value("plan"), facts.values(), len(team.history(facts.set("plan", "Pro").id))) == (
        "Pro",
        {"plan": "Pro"},
        1,
    )
    assert (facts.unset("plan"), facts.unset("plan"), team.value("plan")) == (True, False, None)


def test_what_a_writer_says_carries_its_name(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    session = coder.session("main", of="team")
    added = session.add("note", {"text": "x"})
    session.update(added.id, data={"text": "y"})
    session.update(added.id, pinned=True)
    lines = [line for line in team.session("main").export() if line["id"] == added.id]
    said = {"by": "program", "via": "agent/coder"}
    assert [line.get("origin") for line in lines] == [said, said, None]


def test_a_missing_session_has_nothing_and_is_not_made(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    session = coder.session("none", of="team")
    assert (session.entries(), session.records(), session.info(), session.unset("x")) == ([], [], None, False)
    with pytest.raises(keepstone.EntryNotFoundError):
        session.delete("open")
    assert [info.id for info in team.sessions()] == ["main"]


def test_an_agent_shares_with_itself_without_a_grant(team: Agent) -> None:
    assert ids(team.entries(shared=["team", "team"])) == ["message", "note", "open", "untagged"]
    assert team.get("note", of="team").text == SECRET
    assert team.session("main", of="team").info() is not None


@pytest.mark.parametrize("name", ["../team", "*", "", "te am"])
def test_an_invalid_name_is_refused(coder: Agent, name: str) -> None:
    for act in (
        lambda: coder.recall("walnut", shared=[name]),
        lambda: coder.get("open", of=name),
        lambda: coder.session("main", of=name),
        lambda: coder.share("own", to=name),
    ):
        with pytest.raises(keepstone.InvalidAgentIdError):
            act()


@pytest.mark.parametrize("shared", ["team", b"team", 7, [7]])
def test_shared_is_a_list_of_names(coder: Agent, shared: Any) -> None:
    with pytest.raises(TypeError):
        coder.recall("walnut", shared=shared)


def test_where_filters_take_no_shared(coder: Agent) -> None:
    with pytest.raises(TypeError):
        coder.delete_where(types=["note"], shared=["team"])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        coder.purge_where(types=["note"], shared=["team"])  # type: ignore[call-arg]


# One ranking


def test_hits_of_all_agents_are_in_one_order(home: Home, team: Agent, coder: Agent) -> None:
    team.grant("coder")
    home.agent("ops").add("Invoices of walnut releases", id="ops")
    home.agent("ops").grant("coder")
    hits = coder.recall("walnut releases on Fridays", shared=["team", "ops"])
    assert (hits[0].agent, hits[0].entry.id) == ("team", "open")
    assert [hit.relevance for hit in hits] == sorted((hit.relevance for hit in hits), reverse=True)
    assert {hit.agent for hit in hits} == {"team", "coder", "ops"}
    assert len(coder.recall("walnut releases", limit=2, shared=["team", "ops"])) == 2


def test_shared_hits_rank_as_the_owner_sees_them(team: Agent, coder: Agent) -> None:
    team.grant("coder")
    seen = {hit.entry.id: hit.relevance for hit in coder.recall("walnut releases", shared=["team"])}
    assert {hit.entry.id: hit.relevance for hit in team.recall("walnut releases")}.items() <= seen.items()


def test_filters_hold_for_shared_entries(team: Agent, coder: Agent) -> None:
    team.grant("coder", types=["decision", "note"])
    found = coder.recall("walnut", types=["decision"], tags=["ops"], shared=["team"])
    assert [hit.entry.id for hit in found] == ["open"]
    assert ids(coder.entries(types=["message"], shared=["team"])) == []
    assert ids(coder.entries(ids=["note", "own"], shared=["team"])) == ["note", "own"]


def test_neighbours_are_only_covered_entries(team: Agent, coder: Agent) -> None:
    team.grant("coder", tags=["web"])
    hits = coder.recall("releases", neighbours=3, shared=["team"])
    assert [entry.id for hit in hits for entry in hit.neighbours] == ["message"]


def test_a_writer_hears_of_no_conflict(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    added = coder.session("main", of="team").add("decision", "walnut releases on Mondays", **TAGGED)
    assert added.conflicts == ()
    assert team.get(added.id).text == "walnut releases on Mondays"


# Pages, iterators and sessions made before


@pytest.mark.parametrize("order", [{"newest_first": False}, {"newest_first": True}], ids=["old", "new"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_hold_each_entry_once_by_time(
    home: Home, team: Agent, coder: Agent, limit: int, order: Any
) -> None:
    team.grant("coder")
    home.agent("ops").grant("coder", tags=["x"])
    for number in range(9):
        agent = (home.agent("ops"), team, coder)[number % 3]
        agent.add(f"entry {number}", id=f"{number}", ts=f"2026-01-0{1 + number // 2}T00:00:00Z", tags=["x"])
    every = [*coder.iter_entries(**order, shared=["ops", "team"])]
    times = [entry.ts for entry in every]
    assert times == sorted(times, reverse=order["newest_first"])
    found: list[Entry] = []
    cursor = None
    while True:
        page = coder.entries(limit=limit, cursor=cursor, **order, shared=["ops", "team"])
        found += page
        if (cursor := page.next) is None:
            break
    assert [entry.key for entry in found] == [entry.key for entry in every]
    assert len({entry.key for entry in found}) == coder.count(shared=["ops", "team"]) == 14


def test_a_cursor_is_bound_to_its_agents(home: Home, team: Agent, coder: Agent) -> None:
    team.grant("coder")
    home.agent("ops").grant("coder")
    cursor = coder.entries(limit=1, shared=["team"]).next
    for shared in (["ops"], ["team", "ops"], None):
        with pytest.raises(ValueError, match="cursor"):
            coder.entries(cursor=cursor, shared=shared)


def test_a_revocation_ends_what_was_begun_before(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    session = coder.session("main", of="team")
    cursor = coder.entries(limit=1, shared=["team"]).next
    iterator = coder.iter_entries(shared=["team"])
    newest = coder.iter_entries(newest_first=True, shared=["team"])
    assert next(iterator).agent == "team"
    assert next(newest).agent == "coder"
    team.revoke("coder")
    acts: list[Callable[[], Any]] = [
        lambda: next(iterator),
        lambda: next(newest),
        lambda: coder.entries(limit=1, cursor=cursor, shared=["team"]),
        session.entries,
        lambda: session.add("note", "x"),
        lambda: session.update("open", "x"),
    ]
    for act in acts:
        with pytest.raises(NotGrantedError):
            act()


def test_an_iterator_follows_a_narrower_grant(team: Agent, coder: Agent) -> None:
    team.grant("coder")
    iterator = coder.iter_entries(shared=["team"])
    assert next(iterator).id == "open"
    team.grant("coder", types=["message"])
    assert [entry.id for entry in iterator] == ["message", "own"]


PROGRAM = """
import keepstone, sys
with keepstone.open(sys.argv[1], embedder="none") as home:
    home.agent("team").{}
"""


def in_another_process(target: str, call: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM.format(call), target], check=True)


def test_another_process_grants_and_revokes_between_two_calls(target: str, coder: Agent) -> None:
    session = coder.session("main", of="team")
    with pytest.raises(NotGrantedError):
        session.entries()
    in_another_process(target, "grant('coder', 'write')")
    assert len(session.entries()) == 4
    session.add("note", "x")
    in_another_process(target, "revoke('coder')")
    for act in (
        session.entries,
        lambda: session.add("note", "x"),
        lambda: coder.recall("walnut", shared=["team"]),
    ):
        with pytest.raises(NotGrantedError):
            act()


# Sharing copies


def test_a_shared_copy_says_what_the_entry_says_and_where_it_is_from(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    entry = coder.add("Use pnpm", session="s", type="decision", data={"by": "Ada"}, tags=["x"], pinned=True)
    copied = coder.share(entry.id, to="team")
    assert (copied.agent, copied.session, copied.type, copied.text) == ("team", "s", "decision", "Use pnpm")
    assert (copied.data, copied.tags, copied.pinned, copied.ts) == ({"by": "Ada"}, ("x",), True, entry.ts)
    link = {"rel": "copy_of", "to": entry.id, "session": "s", "agent": "coder"}
    assert copied.links == (link,)
    assert team.get(copied.id).as_dict() == copied.as_dict()


def test_sharing_again_returns_the_same_copy(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    first = coder.share("own", to="team")
    team.update(first.id, "changed by the team")
    assert coder.share("own", to="team") == team.get(first.id)
    assert team.count(ids=[first.id]) == 1


def test_a_copy_leaves_links_to_other_entries_behind(team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    coder.link("own", coder.add("private").id, "because")
    assert [link["rel"] for link in coder.share("own", to="team").links] == ["copy_of"]


# Purging


def test_purging_an_agent_takes_its_grants_and_those_to_it(home: Home, team: Agent, coder: Agent) -> None:
    team.grant("coder", "write")
    team.grant("ops")
    coder.grant("team")
    home.purge_agent("coder")
    assert [grant.to for grant in team.grants()] == ["ops"]
    coder.add("a later agent of this name")
    assert coder.grants() == []
    with pytest.raises(NotGrantedError):
        coder.entries(shared=["team"])


# Isolation with the grants of a third agent


def test_grants_of_a_third_agent_leave_two_others_apart(home: Home, team: Agent, coder: Agent) -> None:
    third = home.agent("third")
    third.add("walnut of the third", id="third")
    for agent in (team, coder):
        third.grant(agent.slug, "write")
        agent.grant("third", "write")
    for call in CALLS.values():
        with pytest.raises(NotGrantedError):
            call(coder)
    assert SECRET not in repr([hit.entry.line for hit in coder.recall("walnut", shared=["third"])])
    through = view_of(view_of(coder, "third"), "team")
    with suppress(NotGrantedError):
        raise AssertionError(through.get("open"))
    assert ids(team.entries()) == ["message", "note", "open", "untagged"]


# The store behind these calls


@pytest.fixture
def granted(home: Home, team: Agent) -> GrantedStore:
    team.grant("coder", "write", types=["decision"])
    store = home._store  # noqa: SLF001  What the calls of an agent are made to.
    return GrantedStore(Reach(store, lambda: datetime.now(UTC), "coder", "team"))


def test_a_method_that_is_not_named_here_is_refused(granted: GrantedStore) -> None:
    with pytest.raises(NotGrantedError, match="no grant covers take raw lines"):
        granted.take_raw_lines  # noqa: B018  Looking it up is what is refused.


def test_a_refused_entry_makes_no_session(home: Home, granted: GrantedStore) -> None:
    note = {"id": "x", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": "x"}
    with pytest.raises(NotGrantedError, match="write only entries of type decision: nothing was written"):
        granted.put("team", "new", [note])
    assert "new" not in [info.id for info in home.agent("team").sessions()]


def test_calls_name_the_acting_agent_to_the_store(granted: GrantedStore) -> None:
    seen: list[Acting | None] = []

    def change(_: Entry) -> None:
        seen.append(ACTING.get())

    granted.modify("team", "main", "open", change)
    assert [(acting.to, acting.is_writing) for acting in seen if acting] == [("coder", True)]
    assert ACTING.get() is None
