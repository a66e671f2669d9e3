"""Suggestions: what a program proposes, and a person accepts, rejects or takes back."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import keepstone
from keepstone.store.files.file_store import FileStore
from keepstone.store.files.purge import Eraser
from keepstone.store.suggestion_lines import signed
from keepstone.testing import ManualClock

AGENT = "coder"
LINES = f"agents/{AGENT}/memory/suggestions.ndjson"


@pytest.fixture
def agent(target: str) -> Iterator[keepstone.Agent]:
    """An agent of an empty home, in files and in a database."""
    with keepstone.open(target, clock=ManualClock()) as home:
        yield home.agent(AGENT)


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[keepstone.Agent]:
    """An agent of an empty home in files."""
    with keepstone.open(tmp_path / "home") as home:
        yield home.agent(AGENT)


def texts(agent: keepstone.Agent) -> list[str]:
    return sorted(entry.text for entry in agent.entries())


def test_a_suggestion_changes_no_entry(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    made = agent.suggest("delete", [entry.id], why="nobody uses it", evidence=["test"], by="nightly")
    assert (made.do, made.entries, made.item, made.why) == ("delete", (entry.id,), None, "nobody uses it")
    assert (made.evidence, made.by, made.state) == (("test",), "nightly", "open")
    assert agent.suggestions() == [made]
    assert agent.get(entry.id) == entry


def test_an_accepted_merge_supersedes_entries_of_two_sessions(agent: keepstone.Agent) -> None:
    one, two = agent.add("Use OAuth", type="decision"), agent.add("OAuth it is", session="b")
    made = agent.suggest("merge", [one.id, two.id], "Use OAuth to sign in", why="they say the same")
    done = agent.accept(made.id, by="Ada")
    assert (done.state, done.decided_by) == ("accepted", "Ada")
    assert agent.suggestions("accepted") == [done]
    merged = agent.get(made.id)
    assert (merged.type, merged.session, merged.supersedes) == ("decision", "main", (one.id, two.id))
    assert texts(agent) == ["Use OAuth to sign in"]
    assert agent.get(two.id).valid_to == merged.ts


def test_an_undone_merge_leaves_the_entries_as_they_were(agent: keepstone.Agent) -> None:
    one, two = agent.add("Use OAuth"), agent.add("OAuth it is", session="b")
    made = agent.suggest("merge", [one.id, two.id], "Use OAuth to sign in", why="they say the same")
    agent.accept(made.id)
    undone = agent.undo(made.id, by="Bo")
    assert (undone.state, undone.decided_by) == ("undone", "Bo")
    assert texts(agent) == ["OAuth it is", "Use OAuth"]
    assert agent.get(two.id).valid_to is None
    assert made.id not in [entry.id for entry in agent.entries(include_superseded=True)]


@pytest.mark.parametrize(
    ("do", "item"),
    [("supersede", {"text": "Use passkeys"}), ("delete", None), ("tag", {"tags": ["auth"]}), ("pin", None)],
)
def test_undo_takes_back_each_change(agent: keepstone.Agent, do: str, item: dict[str, object] | None) -> None:
    entry = agent.add("Use OAuth", tags=["old"], priority=0.5)
    made = agent.suggest(do, [entry.id], item, why="a reason")
    agent.accept(made.id)
    changed = [one.line for one in agent.entries()]
    agent.undo(made.id)
    left = {
        key: value for key, value in agent.get(entry.id).line.items() if key not in ("ts", "modified", "life")
    }
    assert changed != [entry.line]
    assert left == {key: value for key, value in entry.line.items() if key != "ts"}
    assert [one.id for one in agent.entries()] == [entry.id]


def test_accepted_tags_are_added_to_those_there(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth", tags=["old"])
    agent.accept(agent.suggest("tag", [entry.id], {"tags": ["auth", "old"]}, why="a reason").id)
    assert agent.get(entry.id).tags == ("old", "auth")


def test_an_accepted_addition_has_the_id_of_its_suggestion(agent: keepstone.Agent) -> None:
    made = agent.suggest("add", item={"text": "Ada likes tea", "tags": ["drinks"]}, why="she said so")
    assert texts(agent) == []
    agent.accept(made.id)
    assert (agent.get(made.id).text, agent.get(made.id).type) == ("Ada likes tea", "note")


def test_a_suggestion_whose_entry_changed_is_outdated(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    made = agent.suggest("delete", [entry.id], why="a reason")
    agent.update(entry.id, "Use passkeys")
    assert [one.id for one in agent.suggestions("outdated")] == [made.id]
    with pytest.raises(keepstone.SuggestionOutdatedError, match="changed since"):
        agent.accept(made.id)
    assert (agent.suggestions(), texts(agent)) == ([], ["Use passkeys"])


def test_an_access_count_makes_no_suggestion_outdated(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    made = agent.suggest("pin", [entry.id], why="a reason")
    agent.session("main").count({entry.id: 3})
    assert agent.accept(made.id).state == "accepted"


def test_undo_is_refused_once_an_entry_changed(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    made = agent.suggest("pin", [entry.id], why="a reason")
    agent.accept(made.id)
    agent.update(entry.id, tags=["auth"])
    with pytest.raises(keepstone.SuggestionOutdatedError, match="nothing was changed"):
        agent.undo(made.id)
    assert agent.get(entry.id).pinned
    assert [one.decided_by for one in agent.suggestions("accepted")] == ["user"]


def test_a_decision_is_final(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    wanted, unwanted = (agent.suggest("pin", [entry.id], why=why) for why in ("a", "b"))
    agent.reject(unwanted.id, by="Ada")
    agent.accept(wanted.id)
    for call, made in ((agent.accept, wanted), (agent.reject, wanted), (agent.accept, unwanted)):
        with pytest.raises(ValueError, match="already"):
            call(made.id)
    assert [one.state for one in agent.suggestions(None)] == ["accepted", "rejected"]


def test_a_rejected_suggestion_is_open_again_once_undone(agent: keepstone.Agent) -> None:
    made = agent.suggest("pin", [agent.add("Use OAuth").id], why="a reason")
    agent.reject(made.id)
    assert agent.undo(made.id) == made
    assert agent.suggestions() == [made]
    assert agent.accept(made.id).state == "accepted"


def test_a_rejection_within_the_same_tick_counts_after_an_undo(agent: keepstone.Agent) -> None:
    made = agent.suggest("pin", [agent.add("Use OAuth").id], why="a reason")
    for _ in range(3):
        agent.reject(made.id)
        assert agent.suggestions(None)[0].state == "rejected"
        agent.undo(made.id)
        assert agent.suggestions(None) == [made]


def test_what_is_open_cannot_be_undone(agent: keepstone.Agent) -> None:
    made = agent.suggest("pin", [agent.add("Use OAuth").id], why="a reason")
    with pytest.raises(ValueError, match="only an accepted or a rejected one"):
        agent.undo(made.id)


def test_an_unknown_suggestion_is_named(agent: keepstone.Agent) -> None:
    for call in (agent.accept, agent.reject, agent.undo):
        with pytest.raises(keepstone.EntryNotFoundError, match="no suggestion 'none'"):
            call("none")
    with pytest.raises(ValueError, match="state must be one of"):
        agent.suggestions("done")


def test_what_cannot_be_suggested_is_refused(agent: keepstone.Agent) -> None:
    one, two = agent.add("Use OAuth"), agent.add("Use passkeys")
    wrong = [
        ("forget", [one.id], None),
        ("merge", [one.id], {"text": "x"}),
        ("merge", [one.id, one.id], {"text": "x"}),
        ("supersede", [one.id, two.id], {"text": "x"}),
        ("delete", [one.id], {"text": "x"}),
        ("delete", [], None),
        ("tag", [one.id], {"text": "x"}),
        ("add", [one.id], {"text": "x"}),
        ("add", [], {"tags": ["x"]}),
        ("add", [], {"id": "mine", "text": "x"}),
    ]
    for do, entries, item in wrong:
        with pytest.raises(ValueError, match=r"takes|must|needs|has no"):
            agent.suggest(do, entries, item, why="a reason")
    with pytest.raises(keepstone.EntryNotFoundError):
        agent.suggest("pin", ["none"], why="a reason")
    assert agent.suggestions(None) == []


def test_an_entry_that_is_superseded_is_not_replaced_again(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    agent.supersede(entry.id, "Use passkeys")
    with pytest.raises(ValueError, match="not valid now"):
        agent.suggest("supersede", [entry.id], "Use magic links", why="a reason")


def test_at_most_a_thousand_suggestions_are_open(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    line = json.dumps({"do": "pin", "entries": [entry.id], "why": "x", "ts": "2036-01-01T00:00:00Z"})
    many = [f'{{"id":"{number}",{line[1:]}\n'.encode() for number in range(1000)]
    store = agent._store  # noqa: SLF001  A thousand calls take long.
    store.change_suggestions(AGENT, lambda lines: [*lines, *many])
    with pytest.raises(ValueError, match="1,000 open suggestions"):
        agent.suggest("pin", [entry.id], why="one more")
    agent.update(entry.id, tags=["changed"])
    store.change_suggestions(AGENT, lambda lines: [raw.replace(b"2036", b"2006") for raw in lines])
    assert agent.suggest("pin", [entry.id], why="one more").state == "open"


def test_purging_an_entry_removes_what_names_it(agent: keepstone.Agent) -> None:
    one, two = agent.add("Use OAuth"), agent.add("Use passkeys", session="b")
    agent.accept(agent.suggest("delete", [one.id], why="about OAuth").id)
    agent.suggest("pin", [two.id], why="a reason", evidence=[one.id])
    kept = agent.suggest("pin", [two.id], why="kept")
    agent.purge(one.id)
    assert agent.suggestions(None) == [kept]
    assert not any(one.id.encode() in raw for raw in agent._store.suggestion_lines(AGENT))  # noqa: SLF001


def test_a_killed_purge_leaves_no_suggestion(
    filed: keepstone.Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = filed.add("Use OAuth")
    filed.suggest("supersede", [entry.id], "hunter2", why="a reason")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Eraser, "_purge", die)
    with pytest.raises(KeyboardInterrupt):
        filed.purge(entry.id)
    assert b"hunter2" not in (tmp_path / "home" / LINES).read_bytes()


@pytest.mark.parametrize("call", ["clear", "remove", "drop"])
def test_emptying_a_session_removes_suggestions_about_it(agent: keepstone.Agent, call: str) -> None:
    one, two = agent.add("Use OAuth"), agent.add("Use passkeys", session="b")
    agent.suggest("pin", [one.id], why="a reason")
    kept = agent.suggest("pin", [two.id], why="kept")
    getattr(agent.session("main"), call)()
    assert agent.suggestions(None) == [kept]


def test_purge_by_a_text_searches_suggestions(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth")
    made = agent.suggest("supersede", [entry.id], "The password is hunter2", why="a reason")
    kept = agent.suggest("pin", [entry.id], why="kept")
    assert agent.purge_matching("HUNTER2", dry_run=True).suggestions == (made.id,)
    assert len(agent.suggestions()) == 2
    agent.purge_matching("HUNTER2")
    assert agent.suggestions(None) == [kept]


def test_a_state_written_by_hand_changes_nothing(filed: keepstone.Agent, tmp_path: Path) -> None:
    entry = filed.add("Use OAuth")
    made = filed.suggest("delete", [entry.id], why="a reason")
    path = tmp_path / "home" / LINES
    path.write_text(path.read_text().replace('"open"', '"accepted"'))
    with path.open("a") as file:
        file.write(json.dumps({"id": made.id, "state": "accepted", "by": "me", "ts": "2026-01-01T00:00:00Z"}))
    assert [one.state for one in filed.suggestions(None)] == ["open"]
    assert texts(filed) == ["Use OAuth"]
    assert filed.accept(made.id).state == "accepted"


def test_any_program_may_write_a_line(filed: keepstone.Agent, tmp_path: Path) -> None:
    entry = filed.add("Use OAuth")
    line = {"id": "mine", "do": "pin", "entries": [entry.id], "why": "a reason", "ts": "2099-01-01T00:00:00Z"}
    (tmp_path / "home" / LINES).write_text(f"{json.dumps(line)}\nnot a line\n[]\n{{}}")
    assert [one.id for one in filed.suggestions()] == ["mine"]
    filed.accept("mine")
    assert filed.get(entry.id).pinned


@pytest.mark.parametrize("killed_at", ["main", "b"])
def test_a_killed_step_is_finished_by_accepting_it_again_and_by_no_reading(
    filed: keepstone.Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    one, two = filed.add("Use OAuth"), filed.add("OAuth it is", session="b")
    made = filed.suggest("merge", [one.id, two.id], "Use OAuth to sign in", why="they say the same")
    revise = FileStore.revise

    def dying(self: FileStore, agent: str, session: str, *args: object) -> object:
        if session == killed_at:
            raise KeyboardInterrupt
        return revise(self, agent, session, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(FileStore, "revise", dying)
        with pytest.raises(KeyboardInterrupt):
            filed.accept(made.id, by="Ada")
    with keepstone.open(tmp_path / "home") as home:
        agent = home.agent(AGENT)
        before = (tmp_path / "home" / LINES).read_bytes(), texts(agent)
        assert [one.state for one in agent.suggestions(None)] == ["open"]
        with pytest.raises(ValueError, match="accept it to finish that"):
            agent.reject(made.id)
        assert ((tmp_path / "home" / LINES).read_bytes(), texts(agent)) == before
        done = agent.accept(made.id, by="Eve")
        assert (done.state, done.decided_by) == ("accepted", "Ada")
        assert texts(agent) == ["Use OAuth to sign in"]


def test_a_step_that_fails_in_one_session_leaves_the_other(
    filed: keepstone.Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = filed.add("Use OAuth"), filed.add("OAuth it is", session="b")
    made = filed.suggest("merge", [one.id, two.id], "Use OAuth to sign in", why="they say the same")
    revise = FileStore.revise

    def failing(self: FileStore, agent: str, session: str, *args: object) -> object:
        if session == "b":
            raise keepstone.LockTimeoutError("locked")
        return revise(self, agent, session, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(FileStore, "revise", failing)
        with pytest.raises(keepstone.LockTimeoutError):
            filed.accept(made.id)
    assert texts(filed) == ["OAuth it is", "Use OAuth"]
    assert filed.accept(made.id).state == "accepted"


def test_the_file_lies_beside_the_sessions(tmp_path: Path) -> None:
    for layout, place in (("default", LINES), ("cache", f"agent_sessions/{AGENT}/.suggestions.ndjson")):
        with keepstone.open(tmp_path / layout, layout=layout) as home:
            home.agent(AGENT).suggest("add", item="Ada likes tea", why="she said so")
            assert (tmp_path / layout / place).is_file()
            assert [info.id for info in home.agent(AGENT).sessions()] == []


def test_a_layout_of_one_agent_keeps_no_suggestions(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, layout="bmad") as home:
        agent = home.agent("default")
        entry = agent.add("Use OAuth")
        with pytest.raises(ValueError, match="layout with one agent"):
            agent.suggest("pin", [entry.id], why="a reason")
        assert agent.purge_matching("oauth").entries == (("main", entry.id),)


def test_secrets_in_a_suggestion_are_refused(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, secrets="refuse") as home:
        agent = home.agent(AGENT)
        with pytest.raises(keepstone.SecretError):
            agent.suggest("add", item="ghp_" + "a1B2" * 9, why="a reason")
        assert agent.suggestions(None) == []


def test_purging_an_agent_removes_its_suggestions(agent: keepstone.Agent) -> None:
    agent.add("Use OAuth")
    agent.suggest("add", item="Ada likes tea", why="she said so")
    agent._store.purge_agent(AGENT)  # noqa: SLF001
    assert agent.suggestions(None) == []


def test_the_doctor_names_lines_that_change_nothing(filed: keepstone.Agent, tmp_path: Path) -> None:
    made = filed.suggest("add", item="Ada likes tea", why="she said so")
    filed.accept(made.id)
    with (tmp_path / "home" / LINES).open("a") as file:
        file.write(f'damaged\n{{"id": "{made.id}", "state": "undone", "ts": "2026-01-01T00:00:00Z"}}\n')
    with keepstone.open(tmp_path / "home") as home:
        [found] = [finding for finding in home.doctor() if "suggestions" in finding.subject]
    assert (found.level, found.message[:7]) == ("warning", "2 lines")


def test_the_doctor_names_a_file_that_is_a_link(filed: keepstone.Agent, tmp_path: Path) -> None:
    filed.add("Use OAuth")
    (tmp_path / "home" / LINES).symlink_to(tmp_path / "elsewhere")
    with keepstone.open(tmp_path / "home") as home:
        [found] = [finding for finding in home.doctor() if "suggestions" in finding.subject]
    assert (found.level, "link" in found.message) == ("error", True)


def test_of_many_who_accept_at_once_one_does(agent: keepstone.Agent) -> None:
    made = agent.suggest("add", item="Ada likes tea", why="she said so")

    def accept(number: int) -> str:
        try:
            return str(agent.accept(made.id, by=f"person {number}").decided_by)
        except ValueError:
            return ""

    with ThreadPoolExecutor(6) as pool:
        done = {name for name in pool.map(accept, range(6)) if name}
    [decided] = agent.suggestions("accepted")
    assert done == {decided.decided_by}
    assert texts(agent) == ["Ada likes tea"]


@pytest.mark.parametrize("key", ["origin", "cites"])
def test_a_suggested_item_says_nothing_of_its_own_trust(agent: keepstone.Agent, key: str) -> None:
    item = {"text": "Use OAuth", "origin": {"by": "user", "vouched": True}, "cites": [".env#L1"]}
    with pytest.raises(ValueError, match=f"has no {key}"):
        agent.suggest("add", item={"text": "Use OAuth", key: item[key]}, why="it helps")


def test_an_accepted_item_is_said_by_who_accepted_it(agent: keepstone.Agent) -> None:
    made = agent.suggest("add", item="Use OAuth", why="it helps")
    agent.on_behalf("user").accept(made.id)
    assert agent.get(made.id).origin == {"by": "user"}


@pytest.mark.parametrize("by", ["model", "tool", "import"])
def test_only_persons_and_programs_decide(agent: keepstone.Agent, by: str) -> None:
    memory = agent.on_behalf(by)
    made = memory.suggest("add", item="Use OAuth", why="it helps")
    entry = memory.add("Tea")
    for decide in (memory.accept, memory.reject, memory.vouch, memory.undo):
        with pytest.raises(ValueError, match=f"a {by} confirms nothing"):
            decide(entry.id if decide == memory.vouch else made.id)
    assert (agent.get(entry.id).trust, agent.suggestions("open")) == (by, [made])


STEP = {"session": "main", "lines": [], "undo": [], "before": {}, "after": {}}


@pytest.mark.parametrize(
    "decision",
    [
        {"state": "begun"},
        {"state": "begun", "to": "accepted", "steps": "text"},
        {"state": "begun", "to": [], "steps": []},
        {"state": "accepted", "steps": 5},
        {"state": "accepted", "steps": ["text"]},
        {"state": "accepted", "steps": [STEP | {"before": []}]},
        {"state": "accepted", "steps": [STEP | {"lines": [{"id": 5}]}]},
        {"state": "accepted", "steps": [STEP | {"after": {"a": 5}}]},
        {"state": "rejected", "by": ["x"]},
        {"state": "rejected", "ts": 5},
        {"state": "open"},
        {"state": "open", "undoes": "text"},
    ],
)
def test_a_decision_of_another_shape_changes_nothing(
    filed: keepstone.Agent, tmp_path: Path, decision: dict[str, object]
) -> None:
    made = filed.suggest("add", item="Use OAuth", why="it helps")
    line = signed({"id": made.id, "by": None, "ts": "2026-01-01T00:00:00Z"} | decision)
    with (tmp_path / "home" / LINES).open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert [one.id for one in filed.suggestions("open")] == [made.id]
    filed.purge_matching("OAuth")
    assert filed.suggestions(None) == []
