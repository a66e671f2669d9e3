"""The settings page: theme, times, model, embedder and tokens."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.server.conftest import Server, serving
from tests.web.conftest import Browse, Site, serve
from tests.web.tabs import Tabs

from keepstone import Agent
from keepstone.server.tokens import LIFETIME

Sign = Callable[[str], Page]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def settings(tabs: Tabs, served: Server) -> Iterator[Sign]:
    """Open the settings, signed in with a token."""
    taken = []

    def opened(secret: str) -> Page:
        taken.append(tabs.take(width=1280, height=720, dark=False))
        page = taken[-1].page
        page.goto(f"{served.url}/sign-in")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/a/**")
        page.goto(f"{served.url}/a/coder/settings")
        page.wait_for_function("window.Vue && document.querySelector('.page') && window.did_handshake")
        return page

    yield opened
    for one in taken:
        tabs.give_back(one)


def status_of(served: Server, secret: str) -> int:
    """Return the status of a request with a token."""
    with served.client(secret) as http:
        return http.get("/v1/agents").status_code


def test_the_theme_follows_the_system_until_another_is_chosen(
    site: Site, agent: Agent, browse: Browse
) -> None:
    page = browse(site.url(agent.slug, "settings"), dark=True)
    theme, root = page.get_by_role("group", name="Theme"), page.locator("html")
    expect(theme.get_by_label("System")).to_be_checked()
    expect(root).to_have_attribute("data-theme", "dark")
    theme.get_by_label("Light").check()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")
    expect(theme.get_by_label("Light")).to_be_checked()
    theme.get_by_label("System").check()
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-theme", "dark")


def test_times_are_shown_in_utc_or_in_the_browsers_zone(chromium: Browser, site: Site, agent: Agent) -> None:
    agent.session("s").add("note", {"content": "x"}, ts="2026-03-01T23:30:00Z")
    context = chromium.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    page.goto(site.url(agent.slug, "session", id="s"))
    expect(page.locator(".entry time").first).to_have_text("23:30")
    expect(page.locator(".day")).to_have_text("Sunday, 1 March 2026")
    page.goto(site.url(agent.slug, "settings"))
    times = page.get_by_role("group", name="Times")
    expect(times.get_by_label("UTC")).to_be_checked()
    with page.expect_navigation():
        times.get_by_label("Local time").check()
    expect(times.get_by_label("Local time")).to_be_checked()
    page.goto(site.url(agent.slug, "session", id="s"))
    expect(page.locator(".entry time").first).to_have_text("08:30")
    expect(page.locator(".entry time").first).to_have_attribute("title", "2026-03-02 08:30 JST")
    expect(page.locator(".day")).to_have_text("Monday, 2 March 2026")
    context.close()


@pytest.mark.parametrize("zone", ["../../etc/passwd", "No/Where", "%00", "x" * 3000])
def test_a_zone_that_does_not_exist_is_shown_as_utc(site: Site, agent: Agent, zone: str) -> None:
    agent.session("s").add("note", {"content": "x"}, ts="2026-03-01T23:30:00Z")
    cookie = {"Cookie": f"keepstone-zone={zone}"}
    answer = httpx.get(site.url(agent.slug, "session", id="s"), headers=cookie)
    assert answer.status_code == 200
    assert "2026-03-01 23:30 UTC" in answer.text


def test_the_state_of_model_and_embedder_is_reported(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("note", {"content": "x"})
    page = browse(site.url(agent.slug, "settings"))
    expect(page.locator(".page")).to_contain_text("Answers in the chat: offline")
    expect(page.locator(".page")).to_contain_text("Recall is by words only: no embedder was wanted")


def test_a_created_token_works_and_is_shown_once(served: Server, settings: Sign) -> None:
    page = settings(served.token)
    page.get_by_role("button", name="Create token").click()
    dialog = page.get_by_role("dialog", name="Create a token")
    dialog.get_by_label("Name").fill("laptop")
    dialog.get_by_label("Agents").fill("coder, writer")
    dialog.get_by_role("checkbox", name="Read only").click()
    dialog.get_by_role("button", name="Create").click()
    shown = page.get_by_role("dialog", name="Your new token")
    secret = shown.locator("pre").inner_text()
    assert status_of(served, secret) == 200
    shown.get_by_role("button", name="Done").click()
    expect(shown).to_have_count(0)
    expect(page.get_by_role("button", name="Create token")).to_be_focused()
    made = served.tokens.all()[-1]
    row = page.locator(".tokens li", has_text=made.id)
    expect(row).to_contain_text("laptop")
    expect(row).to_contain_text("coder, writer: read")
    assert made.expires is not None
    assert (made.name, made.expires - made.created) == ("laptop", LIFETIME)
    assert secret not in page.content()
    page.reload()
    expect(row).to_be_visible()
    assert secret not in page.content() + served.log
    kept = [path.read_bytes() for path in served.home.rglob("*") if path.is_file()]
    assert [data for data in kept if secret.encode() in data] == []


def test_a_token_for_no_valid_agent_is_refused(served: Server, settings: Sign) -> None:
    before = served.tokens.all()
    page = settings(served.token)
    page.get_by_role("button", name="Create token").click()
    page.get_by_role("dialog").get_by_label("Agents").fill("no such name")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(page.locator(".q-notification")).to_contain_text("no such name")
    assert [token.id for token in served.tokens.all()] == [token.id for token in before]


def test_a_revoked_token_is_refused_at_once(served: Server, settings: Sign) -> None:
    secret, token = served.tokens.create(["coder"])
    page = settings(served.token)
    page.get_by_role("button", name=f"Revoke token {token.id}").click()
    dialog = page.get_by_role("dialog", name="Revoke this token?")
    expect(dialog).to_contain_text("coder: read and write")
    dialog.get_by_role("button", name="Cancel").click()
    assert status_of(served, secret) == 200
    page.get_by_role("button", name=f"Revoke token {token.id}").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("button", name=f"Revoke token {token.id}")).to_have_count(0)
    assert status_of(served, secret) == 401


@pytest.mark.parametrize("rights", [{"agents": ["coder"]}, {"read_only": True}])
def test_who_may_not_change_everything_sees_no_tokens(
    served: Server, settings: Sign, rights: dict[str, list[str]]
) -> None:
    secret, _ = served.tokens.create(**rights)  # type: ignore[arg-type]
    page = settings(secret)
    expect(page.get_by_role("heading", name="Embedder")).to_be_visible()
    expect(page.get_by_role("heading", name="Access tokens")).to_have_count(0)
    assert served.tokens.all()[0].id not in page.content()


def test_an_application_without_tokens_shows_none(tmp_path: Path, browse: Browse) -> None:
    for site in serve(tmp_path, WITHOUT_TOKENS="1"):
        page = browse(site.url("default", "settings"))
        expect(page.get_by_role("heading", name="Model")).to_be_visible()
        expect(page.get_by_role("heading", name="Access tokens")).to_have_count(0)
        page.close()  # Before its server, which it would look for.
