"""Entries corrected where they are shown: on a session's page and on hits."""

import json

from playwright.sync_api import Locator, Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def opened(site: Site, agent: Agent, browse: Browse) -> Page:
    return browse(site.url(agent.slug, "session", id="talk"))


def more(row: Locator, item: str) -> None:
    row.locator("summary", has_text="More").click()
    row.get_by_role("button", name=item).click()


def test_text_tags_and_priority_are_edited_and_undone(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="The lease ends in 2027", tags=["office"])
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("The lease ends in 2029")
    page.get_by_label("Tags").fill("office, lease")
    page.get_by_label("Priority").fill("0.9")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".entry .text")).to_have_text("The lease ends in 2029")
    changed = agent.get(entry.id)
    assert (changed.tags, changed.priority) == (("office", "lease"), 0.9)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry .text")).to_have_text("The lease ends in 2027")
    assert (agent.get(entry.id).tags, agent.get(entry.id).priority) == (("office",), None)


def test_a_payload_is_edited_as_a_form(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("decision", {"decision": "Use OAuth", "votes": 3})
    page = opened(site, agent, browse)
    expect(page.locator(".rest")).to_have_text("votes3")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("decision").fill("Use passkeys")
    page.get_by_label("votes").fill("4")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".entry .text")).to_have_text("decision: Use passkeys")
    assert agent.get(entry.id).data == {"decision": "Use passkeys", "votes": 4}


def test_a_payload_is_edited_as_json_and_nonsense_is_refused(
    site: Site, agent: Agent, browse: Browse
) -> None:
    entry = agent.session("talk").add("decision", {"decision": "Use OAuth"})
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="As JSON").click()
    page.get_by_label("Payload as JSON").fill("{")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".q-notification")).to_contain_text("the payload is not JSON")
    page.get_by_label("Payload as JSON").fill(json.dumps({"decision": "Use passkeys", "by": {"team": 2}}))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".entry .rest")).to_contain_text('{"team": 2}')
    assert agent.get(entry.id).data == {"decision": "Use passkeys", "by": {"team": 2}}


def edited_in_two_tabs(site: Site, agent: Agent, browse: Browse) -> Page:
    entry = agent.session("talk").add("fact", text="one", tags=["office"])
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("mine")
    agent.update(entry.id, text="theirs", tags=["office", "lease"])
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("has changed since")
    return page


def test_an_edit_never_overwrites_a_change_made_since(site: Site, agent: Agent, browse: Browse) -> None:
    page = edited_in_two_tabs(site, agent, browse)
    expect(page.locator(".compare ins")).to_have_text(["+ mine", "+ theirs"])
    assert agent.entries()[0].text == "theirs"
    page.get_by_role("button", name="Go on editing").click()
    expect(page.get_by_role("dialog")).to_have_count(1)
    expect(page.get_by_label("Text")).to_have_value("mine")


def test_of_two_edits_mine_is_kept_with_their_other_changes(site: Site, agent: Agent, browse: Browse) -> None:
    page = edited_in_two_tabs(site, agent, browse)
    page.get_by_role("button", name="Keep mine").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".entry .text")).to_have_text("mine")
    assert agent.entries()[0].tags == ("office", "lease")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry .text")).to_have_text("theirs")


def test_of_two_edits_theirs_is_taken(site: Site, agent: Agent, browse: Browse) -> None:
    page = edited_in_two_tabs(site, agent, browse)
    page.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert agent.entries()[0].text == "theirs"


def test_edits_of_different_values_are_both_kept(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("decision", {"decision": "OAuth", "votes": 3})
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("decision").fill("Passkeys")
    agent.update(entry.id, data_merge={"votes": 4, "by": "Ada"})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert agent.get(entry.id).data == {"decision": "Passkeys", "votes": 4, "by": "Ada"}


def test_an_edit_of_a_deleted_entry_may_restore_it(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("mine")
    agent.session("talk").delete(entry.id)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Keep mine").click()
    expect(page.locator(".entry .text")).to_have_text("mine")
    assert agent.get(entry.id).text == "mine"


def test_a_refused_edit_keeps_what_was_typed(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="one")
    agent.session("talk").supersede(entry.id, {"text": "newer"})
    page = opened(site, agent, browse)
    first = page.locator(".entry").first
    more(first, "Supersede")
    page.get_by_label("Text").fill("typed")
    page.get_by_role("dialog").get_by_role("button", name="Supersede").click()
    expect(page.locator(".q-notification")).to_be_visible()
    expect(page.get_by_label("Text")).to_have_value("typed")


def test_an_entry_is_pinned_and_unpinned(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Pin").click()
    expect(page.locator(".entry .pin")).to_be_visible()
    assert agent.get(entry.id).pinned
    page.get_by_role("button", name="Unpin").click()
    expect(page.locator(".entry .pin")).to_have_count(0)
    assert not agent.get(entry.id).pinned


def test_an_undo_raises_nobodys_trust(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="Use OAuth", origin="tool")
    plain = agent.session("other").add("fact", text="Use passkeys")
    for session, name, trust in (("talk", entry.id, "tool"), ("other", plain.id, "program")):
        page = browse(site.url(agent.slug, "session", id=session))
        for key in ("p", "e"):
            page.locator("article").focus()
            page.keyboard.press(key)
            if key == "e":
                page.get_by_label("Text").fill("Use links")
                page.get_by_role("button", name="Save").click()
                expect(page.locator(".toast")).to_contain_text("Saved")
            else:
                expect(page.locator(".toast")).to_contain_text("Pinned")
            page.keyboard.press("Control+z")
            expect(page.locator(".toast")).to_contain_text("Undone")
            assert agent.get(name).trust == trust


def test_a_newer_fact_supersedes_and_the_old_one_is_reinstated(
    site: Site, agent: Agent, browse: Browse
) -> None:
    old = agent.session("talk").add("fact", text="The lease ends in 2027")
    page = opened(site, agent, browse)
    more(page.locator(".entry"), "Supersede")
    page.get_by_label("Text").fill("The lease ends in 2029")
    page.get_by_role("button", name="Supersede", exact=True).last.click()
    expect(page.locator(".entry .text")).to_have_text(["The lease ends in 2027", "The lease ends in 2029"])
    expect(page.locator(".entry").first).to_contain_text("superseded")
    assert not agent.holds(agent.get(old.id))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry .text")).to_have_text(["The lease ends in 2027"])
    assert agent.holds(agent.get(old.id))


def test_an_edit_that_contradicts_another_entry_says_so(site: Site, agent: Agent, browse: Browse) -> None:
    other = agent.session("office").add("fact", text="The lease of the office ends in 2027")
    entry = agent.session("talk").add("fact", text="The lease ends some day")
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("The lease of the office ends in 2029")
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("link", name="It contradicts “The lease of the office ends in 2027”.")
    conflict.click()
    expect(page).to_have_url(site.url(agent.slug, "session", id="office", entry=other.id))
    assert agent.get(entry.id).text == "The lease of the office ends in 2029"


def test_a_newer_fact_that_repeats_another_entry_says_so(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("office").add("fact", text="The lease of the office ends in 2029")
    agent.session("talk").add("fact", text="The lease of the office ends in 2027")
    page = opened(site, agent, browse)
    more(page.locator(".entry"), "Supersede")
    page.get_by_label("Text").fill("The lease of the office ends in 2029")
    page.get_by_role("button", name="Supersede", exact=True).last.click()
    expect(page.locator(".toast .conflict")).to_have_text(
        "It repeats “The lease of the office ends in 2029”."
    )


def test_an_edit_without_a_conflict_names_none(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("office").add("fact", text="The lease of the office ends in 2027")
    agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("The lease of the flat ends in 2029")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast > span")).to_have_text("Saved.")
    expect(page.locator(".toast a")).to_have_count(0)


def test_an_entry_is_linked_to_another(site: Site, agent: Agent, browse: Browse) -> None:
    first = agent.session("talk").add("fact", text="one", id="a")
    agent.session("other").add("fact", text="two", id="b")
    page = opened(site, agent, browse)
    more(page.locator(".entry"), "Link to another")
    page.get_by_label("Relation").fill("because")
    page.get_by_label("Words of the other entry").fill("two")
    page.get_by_role("dialog").get_by_role("link", name="two").click()
    expect(page.locator(".toast")).to_contain_text("Linked to “two”")
    assert agent.get(first.id).links == ({"to": "b", "rel": "because"},)


def test_a_deleted_entry_comes_back(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="one", tags=["x"])
    agent.session("talk").add("fact", text="two")
    page = opened(site, agent, browse)
    page.locator(".entry", has_text="one").get_by_role("button", name="Delete").click()
    expect(page.locator(".entry .text")).to_have_text(["two"])
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry .text")).to_have_count(2)
    assert agent.get(entry.id).tags == ("x",)


def test_a_purge_shows_first_what_it_removes(site: Site, agent: Agent, browse: Browse) -> None:
    text = "The code of the safe is 4711"
    entry = agent.session("talk").add("fact", text="unlike it")
    agent.update(entry.id, text=text)
    agent.session("other").add("fact", text=text)
    page = opened(site, agent, browse)
    more(page.locator(".entry"), "Purge")
    expect(page.get_by_role("dialog")).to_contain_text("with its 2 versions")
    expect(page.get_by_role("dialog")).not_to_contain_text("Dry run")
    expect(page.get_by_role("dialog")).to_contain_text("stays in 1 other entry")
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(page.locator(".entry")).to_have_count(0)
    assert agent.count() == 1


def test_an_earlier_version_is_restored(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="Use OAuth here")
    agent.update(entry.id, text="Use passkeys here")
    page = opened(site, agent, browse)
    page.get_by_role("button", name="History").click()
    expect(page.locator(".versions del")).to_have_text("OAuth")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".entry .text")).to_have_text("Use OAuth here")
    expect(page.locator(".panel > .text")).to_have_text("Use OAuth here")
    assert agent.get(entry.id).text == "Use OAuth here"


def test_deleted_and_archived_entries_are_shown_when_asked_for(
    site: Site, agent: Agent, browse: Browse
) -> None:
    session = agent.session("talk")
    gone = session.add("fact", text="deleted one")
    session.add("fact", {"content": "archived one"}, ts="2020-01-01T00:00:00Z")
    session.add("fact", text="live one")
    session.delete(gone.id)
    page = opened(site, agent, browse)
    page.get_by_role("combobox", name="State").click()
    page.get_by_role("option", name="Deleted").click()
    expect(page.locator(".entry .text")).to_have_text(["deleted one"])
    page.get_by_role("button", name="Restore").click()
    expect(page.locator(".box h2")).to_have_text("No deleted entries")
    assert agent.get(gone.id).text == "deleted one"
    session.archive_faded()
    page.get_by_role("combobox", name="State").click()
    page.get_by_role("option", name="Archived").click()
    expect(page.locator(".entry .text")).to_have_text(["archived one"])


def test_many_entries_are_chosen_tagged_deleted_and_brought_back(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.session("talk").add_many({"type": "fact", "text": f"entry {at}"} for at in range(4))
    page = opened(site, agent, browse)
    page.get_by_role("button", name="Select").click()
    for at in (1, 2):
        page.get_by_role("checkbox", name=f"entry {at}").check()
    expect(page.locator(".bulk")).to_contain_text("2 selected")
    page.locator(".bulk").get_by_role("button", name="Tag").click()
    page.get_by_label("Tags").fill("old")
    page.get_by_role("dialog").get_by_role("button", name="Tag").click()
    expect(page.locator(".entry .tag")).to_have_count(2)
    for at in (1, 2):
        page.get_by_role("checkbox", name=f"entry {at}").check()
    page.locator(".bulk").get_by_role("button", name="Delete").click()
    expect(page.locator(".entry")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry")).to_have_count(4)
    assert agent.count(tags=["old"]) == 2


def test_a_hit_is_corrected_where_it_was_found(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("fact", text="The lease ends in 2027")
    page = browse(site.url(agent.slug, "recall", q="when does the lease end"))
    expect(page.locator(".hits mark").first).to_have_text("lease")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("The lease ends in 2029")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".hits article > .text")).to_have_text("The lease ends in 2029")


def test_a_hit_is_pinned_deleted_and_brought_back_where_it_was_found(
    site: Site, agent: Agent, browse: Browse
) -> None:
    entry = agent.session("talk").add("fact", text="The lease ends in 2027")
    page = browse(site.url(agent.slug, "recall", q="when does the lease end"))
    page.get_by_role("button", name="Pin").click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    assert agent.get(entry.id).pinned
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".hits > li")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".hits article > .text")).to_have_text("The lease ends in 2027")


def test_a_hit_is_superseded_where_it_was_found(site: Site, agent: Agent, browse: Browse) -> None:
    old = agent.session("talk").add("fact", text="The lease ends in 2027")
    page = browse(site.url(agent.slug, "recall", q="when does the lease end"))
    more(page.locator(".hits > li"), "Supersede")
    page.get_by_label("Text").fill("The lease ends in 2029")
    page.get_by_role("dialog").get_by_role("button", name="Supersede").click()
    expect(page.locator(".hits article > .text")).to_have_text("The lease ends in 2029")
    assert not agent.holds(agent.get(old.id))


def test_a_hit_is_linked_and_purged_where_it_was_found(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", text="The lease ends in 2027")
    agent.session("other").add("note", text="Ask the owner", id="b")
    page = browse(site.url(agent.slug, "recall", q="when does the lease end"))
    more(page.locator(".hits > li"), "Link to another")
    page.get_by_label("Words of the other entry, or its id").fill("b")
    expect(page.get_by_role("dialog").get_by_role("link")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Linked to “Ask the owner”")
    assert [link["to"] for link in agent.get(entry.id).links] == ["b"]
    more(page.locator(".hits > li"), "Purge")
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(page.locator(".box h2")).to_have_text("Nothing found")
    assert agent.count() == 1


def test_the_text_and_a_link_of_an_entry_are_copied(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add_many({"type": "fact", "text": f"entry {at}"} for at in range(80))
    page = opened(site, agent, browse)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row = page.locator(".entry", has_text="entry 79")
    more(row, "Copy text")
    expect(row.locator(".told-small")).to_have_text("Text copied")
    assert page.evaluate("navigator.clipboard.readText()") == "entry 79"
    more(row, "Copy link")
    expect(row.locator(".told-small")).to_have_text("Link copied")
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    expect(page.locator(".entry", has_text="entry 79")).to_be_in_viewport()


def test_the_raw_line_and_the_id_are_at_hand(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("fact", {"content": "one", "n": 3})
    page = opened(site, agent, browse)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    more(page.locator(".entry"), "Copy id")
    expect(page.locator(".told-small")).to_have_text("Id copied")
    assert page.evaluate("navigator.clipboard.readText()") == entry.id
    more(page.locator(".entry"), "raw line")
    assert json.loads(page.locator("pre.raw").inner_text()) == entry.line
