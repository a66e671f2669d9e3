from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def filled(agent: Agent) -> None:
    for session, type_, words in (
        ("one", "decision", "We chose passkeys for sign-in"),
        ("one", "note", "Somebody asked about lunch"),
        ("two", "note", "The passkeys of two phones were lost"),
    ):
        agent.session(session).add(type_, {"content": words}, tags=["auth"] if type_ == "decision" else [])


def ask(page: Page, words: str) -> None:
    page.get_by_label("Question or words").fill(words)
    page.keyboard.press("Enter")


def test_each_hit_says_why_it_was_found(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    ask(page, "passkeys")
    first = page.locator(".hits > li").first
    expect(first.locator(".text")).to_contain_text("passkeys")
    expect(first.locator(".why")).to_contain_text("Score")
    expect(first.locator(".why")).to_contain_text("holds: passkeys")
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
    assert page.locator(".hits meter").first.evaluate("meter => meter.value") > 0.6
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Relevance").fill("0.9")
    ask(page, "which plumber chose the boiler?")
    expect(page.locator(".hits > li")).to_have_count(0)


def test_filters_narrow_what_is_found(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall"))
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Types").fill("decision")
    ask(page, "passkeys")
    expect(page.locator(".hits .text")).to_have_text(["We chose passkeys for sign-in"])
    page.wait_for_url("**type=decision**")
    page.reload()
    expect(page.locator(".hits .text")).to_have_text(["We chose passkeys for sign-in"])


def test_neighbours_unfold_below_a_hit(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="chose"))
    page.locator("summary", has_text="Around it").first.click()
    expect(page.locator(".around").first).to_contain_text("Somebody asked about lunch")


def test_a_hit_leads_to_its_place_in_the_session(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="chose"))
    page.locator(".hits a").first.click()
    expect(page.locator("h1")).to_have_text("one")
    expect(page.locator(".entry").first).to_contain_text("We chose passkeys")


def test_a_filter_that_means_nothing_is_explained(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "recall", since="yesterday"))
    ask(page, "anything")
    expect(page.get_by_role("alert")).to_contain_text("yesterday")


def test_nothing_found_says_what_to_try(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "recall", q="xyzzy"))
    expect(page.locator(".box h2")).to_have_text("Nothing found")
