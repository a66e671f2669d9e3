import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site
from tests.web.test_pages import PAGES, furnished

from keepstone import Agent
from keepstone.operations import running_tests


def filled(agent: Agent) -> None:
    for session, type_, words in (
        ("one", "decision", "We chose passkeys for sign-in"),
        ("one", "note", "Ben asked about lunch"),
        ("two", "note", "The passkeys of two phones were lost"),
    ):
        agent.session(session).add(type_, {"content": words}, tags=["auth"] if type_ == "decision" else [])


def ask(page: Page, words: str) -> None:
    page.get_by_label("Question or words").fill(words)
    page.keyboard.press("Enter")


def choose(page: Page, label: str, value: str) -> None:
    page.get_by_label(label).click()
    page.get_by_role("option", name=value).click()
    page.keyboard.press("Escape")


def test_each_hit_says_why_it_was_found(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    ask(page, "passkeys")
    first = page.locator(".hits > li").first
    expect(first.locator(".text")).to_contain_text("passkeys")
    expect(first.locator(".said")).to_have_text("says passkeys")
    expect(first.locator(".score")).not_to_be_visible()
    first.locator("summary", has_text="Parts of the score").click()
    expect(first.locator(".score")).to_be_visible()
    assert first.locator(".why .bar i").first.evaluate("bar => bar.offsetWidth") > 20


def test_hits_that_are_not_about_the_question_are_called_uncertain(
    site: Site, agent: Agent, browse: Browse
) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    ask(page, "which plumber chose the boiler?")
    expect(page.locator(".answer-line")).to_contain_text("Nothing certain")
    ask(page, "passkeys")
    expect(page.locator(".answer-line")).not_to_contain_text("Nothing certain")
    expect(page.locator(".hits .scale").first).to_have_class("scale strong")
    page.get_by_text("Filters", exact=True).click()
    page.locator("summary", has_text="More filters").click()
    page.get_by_label("Relevance").fill("0.9")
    ask(page, "which plumber chose the boiler?")
    expect(page.locator(".hits > li")).to_have_count(0)


def test_filters_narrow_what_is_found(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_text("Filters", exact=True).click()
    choose(page, "Types", "decision")
    ask(page, "passkeys")
    expect(page.locator(".hits .text")).to_have_text(["We chose passkeys for sign-in"])
    page.wait_for_url("**type=decision**")
    page.reload()
    expect(page.locator(".hits .text")).to_have_text(["We chose passkeys for sign-in"])


def test_neighbours_unfold_below_a_hit(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="chose"))
    page.locator("summary", has_text="Around it").first.click()
    expect(page.locator(".around").first).to_contain_text("Ben asked about lunch")


def test_a_hit_leads_to_its_place_in_the_session(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="chose"))
    page.locator(".hits a").first.click()
    expect(page.locator("h1")).to_have_text("one")
    expect(page.locator(".entry").first).to_contain_text("We chose passkeys")


def test_a_filter_that_means_nothing_is_explained(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "recall", since="someday"))
    ask(page, "anything")
    expect(page.get_by_role("alert")).to_contain_text("someday")


def test_nothing_found_says_what_to_try(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="xyzzy"))
    expect(page.locator(".box h2")).to_have_text("Nothing found")


def test_filters_offer_the_types_tags_and_sessions_that_entries_have(
    site: Site, agent: Agent, browse: Browse
) -> None:
    filled(agent)
    agent.session("one").set_title("Sign-in talks")
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_text("Filters", exact=True).click()
    for label, values in (
        ("Sessions", ["two", "Sign-in talks · one"]),
        ("Types", ["note", "decision"]),
        ("Tags", ["auth"]),
    ):
        page.get_by_label(label).click()
        expect(page.get_by_role("option")).to_have_text(values)
        page.keyboard.press("Escape")
        expect(page.get_by_role("option")).to_have_count(0)


def test_a_chosen_session_narrows_at_once_and_stays_in_the_address(
    site: Site, agent: Agent, browse: Browse
) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="passkeys"))
    expect(page.locator(".hits > li").first).to_be_visible()
    page.get_by_text("Filters", exact=True).click()
    choose(page, "Sessions", "two")
    expect(page.locator(".hits .text")).to_have_text(["The passkeys of two phones were lost"])
    page.wait_for_url("**session=two**")


def test_a_value_that_no_recent_entry_has_can_be_typed(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="passkeys"))
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Types").fill("rare")
    page.keyboard.press("Enter")
    expect(page.locator(".box h2")).to_have_text("Nothing found")


@pytest.mark.parametrize(
    ("label", "typed", "told"),
    [
        ("Hits", "500", "a whole number from 1 to 100"),
        ("Hits", "2.5", "a whole number from 1 to 100"),
        ("Neighbours", "-1", "a whole number from 0 to 10"),
        ("Relevance", "1.5", "a number from 0 to 1"),
    ],
)
def test_a_number_out_of_range_is_refused_at_its_field(
    site: Site, agent: Agent, browse: Browse, label: str, typed: str, told: str
) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_text("Filters", exact=True).click()
    page.get_by_text("More filters").click()
    page.get_by_label(label).fill(typed)
    ask(page, "passkeys")
    expect(page.locator(".q-field", has=page.get_by_label(label)).get_by_role("alert")).to_have_text(told)
    expect(page.locator(".hits > li")).to_have_count(0)
    expect(page.get_by_label(label)).to_have_value(typed)
    page.get_by_label(label).fill("0" if label == "Relevance" else "1")
    page.keyboard.press("Enter")
    expect(page.locator(".hits > li").first).to_be_visible()


def test_a_hit_names_its_speaker_and_marks_matched_words(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("message", {"role": "user", "name": "maya", "content": "We retried the payment"})
    page = browse(site.url(agent.slug, "recall", q="retry of payments"))
    hit = page.locator(".hits > li").first
    expect(hit.locator(".who")).to_have_text("Maya")
    expect(hit.locator("mark")).to_have_text(["retried", "payment"])


def test_the_one_number_falls_from_hit_to_hit(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="which plumber of two phones chose lunch"))
    share = "bar => bar.offsetWidth / bar.parentElement.offsetWidth"
    expect(page.locator(".hits > li").first).to_be_visible()
    numbers = [float(words.split()[-1]) for words in page.locator(".relevance strong").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > numbers[-1]
    assert [bar.evaluate(share) for bar in page.locator(".scale i").all()] == pytest.approx(numbers, abs=0.02)


@pytest.mark.parametrize(
    ("button", "key"), [("This should have been found", "expect"), ("This should not", "never")]
)
def test_a_hit_becomes_a_test_of_memory_that_can_be_undone(
    site: Site, agent: Agent, browse: Browse, button: str, key: str
) -> None:
    entry = agent.session("one").add("decision", text="We chose passkeys for sign-in")
    page = browse(site.url(agent.slug, "recall", q="passkeys"))
    page.get_by_role("button", name=button).click()
    expect(page.locator(".toast")).to_contain_text("Added a test of memory: “passkeys”")
    [test] = [one for one in running_tests.tests_of(site.home) if one.agent == agent.slug]
    line = test.line()
    assert (line["ask"], line[key]) == ("passkeys", [entry.id])
    page.keyboard.press("Control+z")
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert [one for one in running_tests.tests_of(site.home) if one.agent == agent.slug] == []


def test_only_entries_of_the_chosen_trust_are_found(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("note", text="The mail says passkeys", origin={"by": "tool"})
    agent.session("s").add("note", text="Ada says passkeys", origin={"by": "user"})
    page = browse(site.url(agent.slug, "recall", q="passkeys"))
    expect(page.locator(".hits > li")).to_have_count(2)
    page.get_by_text("Filters", exact=True).click()
    page.get_by_text("More filters").click()
    choose(page, "Trust", "user")
    expect(page.locator(".hits .text")).to_have_text(["Ada says passkeys"])
    page.wait_for_url("**trust=user**")
    page.goto(site.url(agent.slug, "timeline", trust="user"))
    expect(page.locator(".entry .text")).to_have_text(["Ada says passkeys"])
    choose(page, "Trust", "any")
    expect(page.locator(".entry .text")).to_have_count(2)


def test_filters_open_with_four_fields(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_text("Filters", exact=True).click()
    expect(page.locator(".filters .q-field:visible")).to_have_count(4)
    page.get_by_text("More filters").click()
    expect(page.get_by_label("Payload values")).to_be_visible()


def test_each_filter_that_is_on_is_a_chip_that_takes_it_off(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="passkeys", type="decision", limit="5"))
    chips = page.locator(".chips button")
    expect(chips).to_have_text(["Types: decision ✕", "Hits: 5 ✕"])
    chips.first.click()
    expect(page.locator(".hits > li")).to_have_count(3)
    chips.first.click()
    expect(chips).to_have_count(0)
    page.wait_for_url("**/recall?q=passkeys")


@pytest.mark.parametrize("name", PAGES)
def test_no_field_of_a_page_looks_as_if_it_had_a_value(
    site: Site, agent: Agent, browse: Browse, name: str
) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, name, **({"id": "talk"} if name == "session" else {})))
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    seen = page.locator(":is(input, textarea):placeholder-shown").evaluate_all(
        "all => all.filter((one) => one.checkVisibility() && one !== document.activeElement"
        " && getComputedStyle(one, '::placeholder').opacity !== '0').map((one) => one.placeholder.trim())"
    )
    assert [words for words in seen if words] == []


def test_a_field_without_a_value_shows_no_example(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_text("Filters", exact=True).click()
    opacity = "field => getComputedStyle(field, '::placeholder').opacity"
    since = page.get_by_label("Made since")
    assert since.evaluate(opacity) == "0"
    since.focus()
    page.wait_for_function(f"({opacity})(document.activeElement) === '1'")
    assert since.get_attribute("placeholder") == "e.g. yesterday, 2026-03-01"


def test_shared_hits_name_their_agent_and_have_no_menu(site: Site, agent: Agent, browse: Browse) -> None:
    team = site.home.agent("team")
    team.add("We chose passkeys for sign-in", session="s", type="decision", tags=["auth"])
    team.add("passkeys of the payroll")
    agent.add("The passkeys of two phones were lost", session="s")
    page = browse(site.url(agent.slug, "recall", q="passkeys", shared="team"))
    expect(page.locator(".page")).to_contain_text("does not let")
    team.grant(agent.slug, types=["decision"])
    ask(page, "passkeys")
    expect(page.locator(".hits > li")).to_have_count(2)
    shared = page.locator(".hits > li", has_text="chose passkeys")
    expect(shared.locator("header")).to_contain_text("team: s")
    expect(shared.locator(".acts")).to_have_count(0)
    own = page.locator(".hits > li", has_text="two phones")
    expect(own.locator("header a").first).to_have_text("s")
    expect(own.locator(".acts")).to_have_count(1)
    expect(page.locator(".page")).not_to_contain_text("payroll")
    team.revoke(agent.slug)
    ask(page, "passkeys")
    expect(page.locator(".hits > li")).to_have_count(0)
