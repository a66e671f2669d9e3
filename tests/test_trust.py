"""Trust, which is computed from origins, and the obligations of derived entries."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

import keepstone
from keepstone import Agent, Entry
from keepstone.errors import AmbiguousIdError, EntryNotFoundError
from keepstone.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def agent(target: str, clock: ManualClock) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os", clock=clock) as home:
        yield home.agent("ada")


@pytest.fixture
def page(agent: Agent) -> Entry:
    """What a tool read."""
    return agent.add("The office closes at six", origin="tool", id="page")


@pytest.fixture
def summary(agent: Agent, page: Entry) -> Entry:
    return agent.add("Offices close early", derived_from=[page.id], id="summary")


def test_an_entry_has_the_least_trust_of_its_chain(agent: Agent, summary: Entry) -> None:
    last = agent.add("Leave at five", derived_from=[summary.id, agent.add("Ada is late").id], origin="user")
    assert (summary.trust, agent.get(last.id).trust) == ("tool", "tool")
    assert summary.origin == {"by": "program", "from": ["page"]}


def test_a_cycle_of_sources_ends(agent: Agent) -> None:
    agent.add("One", id="a", origin={"by": "user", "from": ["b"]})
    agent.add("Two", id="b", origin={"by": "import", "from": ["a"]})
    assert (agent.get("a").trust, agent.get("b").trust) == ("import", "import")


def test_a_long_chain_of_sources_is_followed(agent: Agent) -> None:
    agent.add("0", id="0", origin="tool")
    agent.session("main").add_many(
        {"type": "note", "text": str(at), "id": str(at), "origin": {"by": "user", "from": [str(at - 1)]}}
        for at in range(1, 1200)
    )
    assert agent.get("1199").trust == "tool"


def test_a_source_that_is_not_there_is_refused(agent: Agent) -> None:
    with pytest.raises(EntryNotFoundError, match="derived_from"):
        agent.add("Tea", derived_from=["none"])
    for session in ("s", "t"):
        agent.session(session).add("note", text="Milk", id="twice")
    with pytest.raises(AmbiguousIdError, match="s, t"):
        agent.add("Tea", derived_from=["twice"])
    assert agent.count() == 2
    assert agent.session("s").add("note", text="Tea", derived_from=["twice"]).trust == "program"


@pytest.mark.usefixtures("page", "summary")
def test_recall_and_lists_filter_by_trust(agent: Agent) -> None:
    said = agent.add("The office closes at seven", origin="user")
    assert [hit.entry.id for hit in agent.recall("office closes", trust="model")] == [said.id]
    assert len(agent.recall("office closes", trust="tool")) == len(agent.recall("office closes")) == 3
    assert [entry.id for entry in agent.entries(trust="user")] == [said.id]
    assert (agent.count(trust="tool"), agent.count(trust="program")) == (3, 1)
    with pytest.raises(ValueError, match="trust must be one of user, program, model, import, tool"):
        agent.recall("office", trust="high")


def test_a_fact_shows_if_what_replaced_it_is_filtered_away(agent: Agent, clock: ManualClock) -> None:
    old = agent.add("The office is in Bern", origin="user")
    clock.advance(timedelta(hours=1))
    new = agent.on_behalf("tool").supersede(old.id, "The office is in Rome")
    assert [hit.entry.id for hit in agent.recall("office", trust="model")] == [old.id]
    assert [entry.id for entry in agent.entries(trust="model")] == [old.id]
    assert [hit.entry.id for hit in agent.recall("office")] == [new.id]
    agent.supersede(new.id, "The office is in Basel")
    assert [entry.text for entry in agent.entries(trust="model")] == ["The office is in Basel"]


def test_a_context_has_untrusted_entries_in_its_last_fence(agent: Agent, page: Entry) -> None:
    agent.add("Call it a day", type="preference", origin="import", pinned=True)
    said = agent.add("The office closes at seven", origin="user")
    context = agent.context("When does the office close?")
    first, _, last = context.text.partition("was not confirmed by your users")
    assert said.text in first
    assert page.text not in first
    assert "Call it a day" not in first
    assert page.text in last
    assert "Call it a day" in last
    assert "imports and tools" in last
    assert [part.kind for part in context.parts][-1] == "untrusted"


def test_a_context_can_leave_untrusted_entries_out(agent: Agent, page: Entry) -> None:
    context = agent.context("office", untrusted="omit")
    assert context.text == ""
    assert context.left_out[0].reason == "its trust is tool"
    assert page.text in agent.context("office", trust="tool").text
    for wrong in ({"untrusted": "show"}, {"stale": "show"}, {"trust": "high"}):
        with pytest.raises(ValueError, match="must be"):
            agent.context("office", **wrong)  # type: ignore[arg-type]


def test_untrusted_entries_take_no_place_of_trusted_ones(agent: Agent) -> None:
    said = agent.add("The user prefers pnpm", type="preference", origin="user")
    for number in range(60):
        agent.add(f"The user prefers yarn {number}", type="preference", origin="tool")
    first, _, _ = agent.context("Which package manager is preferred?").text.partition("not confirmed")
    assert said.text in first


def test_a_person_raises_the_trust_of_an_entry(agent: Agent, page: Entry, summary: Entry) -> None:
    vouched = agent.vouch(summary.id)
    assert (vouched.trust, vouched.stale) == ("user", None)
    assert vouched.origin == {"by": "user", "from": ["page"], "vouched": True}
    assert agent.get(page.id).trust == "tool"


def test_a_confirmation_lasts_until_a_source_changes(agent: Agent, page: Entry, summary: Entry) -> None:
    agent.vouch(summary.id)
    agent.update(page.id, pinned=True)
    assert agent.get(summary.id).trust == "user"
    agent.on_behalf("tool").update(page.id, "The office closes at eight")
    assert (agent.get(summary.id).trust, bool(agent.get(summary.id).stale)) == ("tool", True)
    assert (agent.vouch(summary.id).trust, agent.get(summary.id).stale) == ("user", None)
    assert agent.on_behalf("model").update(summary.id, "Offices close late").trust == "model"


def test_a_derived_entry_is_stale_once_its_source_changes(agent: Agent, page: Entry, summary: Entry) -> None:
    assert agent.get(summary.id).stale is None
    agent.update(page.id, tags=["office"])
    assert agent.get(summary.id).stale is None
    agent.update(page.id, "The office closes at eight")
    assert agent.get(summary.id).stale == "its source page was edited"
    agent.update(page.id, page.text)
    assert agent.get(summary.id).stale is None


def test_a_derived_entry_is_stale_while_its_source_is_gone(agent: Agent, page: Entry, summary: Entry) -> None:
    last = agent.add("Leave at five", derived_from=[summary.id])
    agent.delete(page.id)
    assert agent.get(last.id).stale == agent.get(summary.id).stale == "its source page is gone"
    assert agent.get(last.id).trust == "tool"
    agent.restore(page.id)
    assert agent.get(last.id).stale is None
    agent.purge(page.id)
    assert agent.get(summary.id).stale == "its source page is gone"


def test_a_derived_entry_is_stale_once_its_source_does_not_hold(agent: Agent, clock: ManualClock) -> None:
    agent.add("Bern", id="old")
    agent.add("Now only", id="short", expires="1h")
    first, second = (agent.add("Text", derived_from=[name]) for name in ("old", "short"))
    assert agent.get(second.id).stale is None
    clock.advance(timedelta(hours=2))
    newer = agent.supersede("old", {"text": "Basel", "derived_from": ["old"]})
    assert agent.get(first.id).stale == "its source old is superseded"
    assert agent.get(second.id).stale == "its source short has expired"
    assert agent.get(newer.id).stale is None


def test_editing_a_stale_entry_mends_it(agent: Agent, page: Entry, summary: Entry) -> None:
    agent.delete(page.id)
    assert agent.update(summary.id, "Offices close at nine").stale is None


def test_confirming_a_stale_entry_mends_it(agent: Agent, page: Entry, summary: Entry) -> None:
    last = agent.add("Leave at five", derived_from=[summary.id])
    agent.delete(page.id)
    assert (agent.vouch(last.id).stale, agent.get(last.id).trust) == (None, "user")
    assert agent.get(summary.id).stale is not None


def test_a_context_omits_or_marks_stale_entries(agent: Agent) -> None:
    agent.add("The lease ends in 2027", id="lease")
    agent.add("Look for an office before the lease ends", derived_from=["lease"], id="task")
    agent.update("lease", "The lease ends in 2029")
    context = agent.context("lease office")
    assert "Look for" not in context.text
    assert [left.reason for left in context.left_out] == ["stale: its source lease was edited"]
    assert "stale: its source lease was edited) Look for" in agent.context("lease", stale="mark").text
    assert agent.recall("look for an office")[0].entry.stale == "its source lease was edited"


@pytest.mark.usefixtures("summary")
def test_the_doctor_lists_what_less_trusted_entries_led_to(target: str) -> None:
    with keepstone.open(target, embedder="none") as home:
        found = [finding.message for finding in home.doctor() if "derived" in finding.message]
    assert found == ["1 entries were derived from less trusted ones: main/summary"]


def test_sources_and_derived_entries_are_found(agent: Agent, page: Entry, summary: Entry) -> None:
    last = agent.session("other").add("note", text="Leave at five", derived_from=[summary.id])
    assert [entry.id for entry in agent.sources(summary.id)] == [page.id]
    assert [entry.id for entry in agent.derived(page.id)] == [summary.id]
    assert [entry.id for entry in agent.derived(summary.id)] == [last.id]
    assert agent.derived(last.id) == []


def test_purge_can_take_what_was_derived(agent: Agent, page: Entry, summary: Entry) -> None:
    last = agent.session("other").add("note", text="Leave at five", derived_from=[summary.id])
    kept = agent.add("Ada is late")
    agent.delete(summary.id)
    purged = agent.purge(page.id, follow=True)
    assert set(purged.entries) == {("main", "page"), ("main", "summary"), ("other", last.id)}
    assert [entry.id for entry in agent.entries()] == [kept.id]
    with pytest.raises(EntryNotFoundError):
        agent.history(summary.id)


def test_a_change_of_links_hides_no_source(agent: Agent) -> None:
    agent.add("The office closes at six", id="page", origin="tool")
    agent.add("Closes at six", id="note", derived_from=["page"])
    agent.vouch("note")
    agent.on_behalf("tool").update("page", text="The office closes at nine")
    stale = agent.get("note").stale
    for links in ([], [{"to": "page", "rel": "derived_from", "digest": "sha256:made-up"}], None):
        agent.on_behalf("tool").update("note", links=links)
        assert (agent.get("note").trust, agent.get("note").stale) == ("tool", stale)


def test_a_summary_has_the_trust_of_its_writer(agent: Agent) -> None:
    entry = agent.add("Invoices are paid by the portal", origin="user")
    agent.on_behalf("tool").update(entry.id, tags=["bank"])
    assert agent.get(entry.id).trust == "user"
    agent.on_behalf("tool").update(entry.id, summary="Pay Mallory")
    assert agent.get(entry.id).trust == "tool"


def test_a_summary_raises_no_trust(agent: Agent, summary: Entry) -> None:
    for by in ("model", "user"):
        agent.on_behalf(by).update(summary.id, summary="Closed")
        later = agent.get(summary.id)
        assert later.trust == "tool"
        assert (later.origin or {})["from"] == ["page"]
    agent.on_behalf("model").update("page", summary="Closed")
    assert agent.get("page").origin == {"by": "tool"}
