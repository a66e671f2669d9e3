"""The addresses of the pages: who gets a page, and what another address leads to."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serve(tmp_path_factory.mktemp("limited"), ONLY="open")


def test_an_agent_of_no_valid_name_is_not_found(site: Site, browse: Browse, agent: Agent) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    answer = page.request.get(f"{site.base}/a/.secret/sessions")
    assert answer.status == 404
    assert "not an agent slug" in answer.text()


def test_the_address_alone_leads_to_the_sessions(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("note", {"content": "x"})
    page = browse(f"{site.base}/")
    assert page.url.endswith("/sessions")


def test_the_old_address_of_the_doctor_leads_to_its_findings(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.session("talk").add("note", text="x")
    log = site.home.root / "agents" / agent.slug / "memory/sessions/talk.ndjson"
    log.write_bytes(log.read_bytes() + b"not json\n")
    page = browse(site.url(agent.slug, "doctor"))
    page.wait_for_url("**/overview")
    expect(page.locator(".findings .error", has_text=agent.slug)).to_contain_text(
        "1 unreadable line",
        timeout=60_000,  # The agents of many tests are checked.
    )


def test_an_agent_that_is_not_allowed_is_as_good_as_not_there(limited: Site, browse: Browse) -> None:
    limited.home.agent("open").session("s").add("note", {"content": "x"})
    limited.home.agent("closed").session("s").add("note", {"content": "x"})
    page = browse(limited.url("open", "agents"))
    expect(page.locator(".links .name")).to_have_text(["open you are here"])
    answers = [page.request.get(limited.url(name, "sessions")) for name in ("closed", "nowhere")]
    assert [answer.status for answer in answers] == [404, 404]
    assert answers[0].text() == answers[1].text()


def test_who_is_not_known_gets_no_page(limited: Site, browse: Browse) -> None:
    page = browse(limited.url("open", "sessions"))
    answer = page.request.get(limited.url("open", "sessions", stranger="yes"))
    assert (answer.status, answer.text()) == (401, "sign in first")
    assert page.request.get(f"{limited.base}/?stranger=yes").status == 401
