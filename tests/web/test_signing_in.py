"""The server's sign-in as a browser meets it, and pages whose right to be seen ends while they are open."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.server.conftest import Server, serving
from tests.web.conftest import serious_faults
from tests.web.tabs import Tabs

import keepstone

SIGN_IN = "**/sign-in*"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def tab(tabs: Tabs) -> Iterator[Open]:
    """Open tabs that are signed in to nothing."""
    taken = []

    def opened(url: str, *, width: int = 1280, dark: bool = False) -> Page:
        taken.append(tabs.take(width=width, height=800, dark=dark))
        taken[-1].page.goto(url)
        return taken[-1].page

    yield opened
    for one in taken:
        tabs.give_back(one)


def sign_in(page: Page, secret: str) -> None:
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()


def signed_in(tab: Open, served: Server, secret: str, page: str = "sessions") -> Page:
    opened = tab(f"{served.url}/sign-in")
    sign_in(opened, secret)
    opened.wait_for_url("**/a/**")
    opened.goto(f"{served.url}/a/coder/{page}")
    opened.wait_for_function("window.Vue && document.querySelector('.page') && window.did_handshake")
    return opened


def test_a_token_in_the_form_opens_the_pages(served: Server, tab: Open) -> None:
    page = tab(served.url)
    assert page.url.endswith("/sign-in")
    sign_in(page, served.token)
    page.wait_for_url("**/sessions")
    expect(page.locator("h1")).to_have_text("Sessions")


def test_a_wrong_token_is_told_so_and_may_be_tried_again(served: Server, tab: Open) -> None:
    page = tab(served.url)
    sign_in(page, "kst_wrong")
    expect(page.get_by_role("alert")).to_contain_text("nvalid, expired or revoked token")
    sign_in(page, served.token)
    page.wait_for_url("**/sessions")


def test_after_too_many_tries_only_a_right_token_goes_on(tmp_path: Path, tab: Open) -> None:
    with serving(tmp_path) as server:
        page = tab(server.url)
        for _ in range(20):
            page.request.post(
                f"{server.url}/sign-in", form={"token": "kst_no"}, headers={"Origin": server.url}
            )
        sign_in(page, "kst_wrong")
        expect(page.get_by_role("alert")).to_contain_text("wait a minute")
        sign_in(page, server.token)
        page.wait_for_url("**/sessions")


def test_the_sign_in_page_has_no_serious_fault_of_accessibility(served: Server, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, bypass_csp=True)
    page = context.new_page()
    page.goto(served.url)
    sign_in(page, "kst_wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    faults = serious_faults(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert faults == []
    assert width <= 390


def test_signing_out_ends_all_open_pages_of_the_browser(served: Server, tab: Open) -> None:
    page = signed_in(tab, served, served.token)
    other = page.context.new_page()
    other.goto(f"{served.url}/a/coder/recall")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(SIGN_IN)
    other.wait_for_url(SIGN_IN)


def test_a_revoked_token_ends_an_open_page(served: Server, tab: Open) -> None:
    secret, token = served.tokens.create()
    page = signed_in(tab, served, secret)
    served.tokens.revoke(token.id)
    page.wait_for_url(SIGN_IN)
    expect(page.get_by_role("alert")).to_contain_text("revoked")


def test_an_open_page_ends_with_its_token(served: Server, tab: Open) -> None:
    secret, _ = served.tokens.create(lifetime=timedelta(seconds=4))
    page = signed_in(tab, served, secret)
    page.wait_for_url(SIGN_IN)


def test_a_page_that_will_not_go_shows_nothing_new_and_does_nothing(served: Server, tab: Open) -> None:
    secret, token = served.tokens.create()
    page = signed_in(tab, served, secret)
    page.evaluate("window.socket.off('run_javascript')")
    served.tokens.revoke(token.id)
    expect(page.locator(".page")).to_have_count(0)
    with keepstone.open(served.home, embedder="none") as home:
        home.agent("coder").session("later").add("note", {"content": "x"})
    listeners_fired(page)
    assert "later" not in page.content()


def test_other_agents_for_a_token_end_a_page_of_one_it_had(served: Server, tab: Open) -> None:
    secret, token = served.tokens.create(["coder", "writer"])
    page = signed_in(tab, served, secret)
    file = served.home / ".tokens.json"
    document = json.loads(file.read_text())
    for record in document["tokens"]:
        if record["id"] == token.id:
            record["agents"] = ["writer"]
    file.write_text(json.dumps(document))
    expect(page.locator("body")).to_contain_text("there is no such agent here")


EVENTS = """
async () => {
    const fired = [];
    const shown = document.querySelector("#app")._vnode.component.proxy;
    for (const [id, element] of Object.entries(shown.elements)) {
        for (const event of element.events ?? []) {
            for (const args of [["s"], [{content: "Kept", line: 3, text: "changed"}], []]) {
                window.socket.emit("event", {
                    id: Number(id), client_id: window.clientId, listener_id: event.listener_id,
                    args: args.map((one) => JSON.stringify(one)),
                });
            }
            fired.push(event.type);
        }
    }
    return fired;
}
"""


def listeners_fired(page: Page) -> list[Any]:
    """Send every event that the page's elements listen to, whether the page would or not."""
    fired = page.evaluate(EVENTS)
    page.wait_for_timeout(1500)  # What must not happen has no sign to wait for.
    return list(fired)


def state(served: Server) -> dict[str, bytes]:
    kept = (served.home / "agents", served.home.parent)
    return {
        str(path): path.read_bytes()
        for folder in kept
        for path in folder.rglob("*")
        if path.is_file() and ".index" not in path.parts and not path.name.startswith(".tokens")
    }


@pytest.mark.parametrize(
    "name", ["sessions", "session?id=s", "chat?session=s", "memory", "files?path=plan.md"]
)
def test_a_read_only_reader_changes_nothing_through_the_socket(served: Server, tab: Open, name: str) -> None:
    with keepstone.open(served.home, embedder="none") as home:
        agent = home.agent("coder")
        agent.session("s").add("message", {"role": "user", "content": "hello"}, id="one")
        agent.files.write("plan.md", "Call Ana")
    keepstone.Notes(served.home.parent, served.home.parent / "user" / "memory.md").add("Kept", "Project")
    secret, _ = served.tokens.create(read_only=True)
    page = signed_in(tab, served, secret, name)
    page.locator(".page").wait_for()
    before = state(served)
    assert listeners_fired(page)
    assert listeners_fired(page)  # Those of the dialogs that opened, too.
    assert state(served) == before


def test_no_page_breaks_the_policy_that_it_is_sent_with(served: Server, tab: Open) -> None:
    with keepstone.open(served.home, embedder="none") as home:
        home.agent("coder").session("told").add("message", {"content": "<img src=http://evil.example/x>"})
    page = tab(f"{served.url}/sign-in")
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    sign_in(page, served.token)
    page.wait_for_url("**/a/**")
    answer = page.goto(f"{served.url}/a/coder/session?id=told")
    expect(page.locator(".entry .text")).to_have_text("<img src=http://evil.example/x>")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; ")
    assert "frame-ancestors 'none'" in policy
    assert [words for words in told if "Content Security Policy" in words] == []
    blocked = "fetch('http://127.0.0.2:9/', {mode: 'no-cors'}).then(() => 'sent', (error) => 'blocked')"
    assert page.evaluate(blocked) == "blocked"
    assert any("Content Security Policy" in words for words in told)


def test_a_deep_link_survives_signing_in(served: Server, tab: Open) -> None:
    page = tab(f"{served.url}/a/coder/recall?q=pass+keys%26more")
    page.wait_for_url(SIGN_IN)
    sign_in(page, served.token)
    page.wait_for_url("**/a/coder/recall?q=pass+keys%26more")


def test_a_deep_link_survives_a_wrong_token(served: Server, tab: Open) -> None:
    page = tab(f"{served.url}/a/coder/files")
    sign_in(page, "kst_wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    sign_in(page, served.token)
    page.wait_for_url("**/a/coder/files")


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example", "/\\evil.example", "/a\nb"])
def test_signing_in_never_leads_to_another_server(served: Server, tab: Open, there: str) -> None:
    page = tab(f"{served.url}/sign-in?{urlencode({'next': there})}")
    sign_in(page, served.token)
    page.wait_for_url(f"{served.url}/a/**")


def test_a_used_link_goes_on_for_a_browser_that_is_signed_in(served: Server, tab: Open) -> None:
    page = signed_in(tab, served, served.token)
    page.goto(f"{served.url}/sign-in?once=used&next=%2Fa%2Fcoder%2Frecall")
    page.wait_for_url("**/a/coder/recall")


def test_the_sign_in_hint_names_the_home(served: Server, tab: Open) -> None:
    page = tab(f"{served.url}/sign-in")
    expect(page.locator("footer code")).to_have_text(f"keepstone token create --home {served.home}")


def test_two_servers_of_one_machine_do_not_sign_one_another_out(
    served: Server, tmp_path: Path, tab: Open
) -> None:
    page = signed_in(tab, served, served.token)
    with serving(tmp_path) as other:
        second = page.context.new_page()
        second.goto(other.link)
        second.wait_for_url("**/sessions")
        page.reload()
        expect(page.locator("h1")).to_have_text("Sessions")
        page.wait_for_function("window.did_handshake")
        assert len(page.context.cookies()) == 2


def test_a_browser_without_the_second_secret_signs_in_again(served: Server, tab: Open) -> None:
    page = signed_in(tab, served, served.token, "recall")
    page.evaluate("localStorage.removeItem('keepstone-page')")
    page.reload()
    page.wait_for_url(SIGN_IN)
    sign_in(page, served.token)
    page.wait_for_url("**/a/coder/recall")
    page.wait_for_function("window.did_handshake")


def test_a_file_is_imported_behind_the_sign_in(served: Server, tab: Open, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"text": "The gate closes at nine"}\n')
    page = signed_in(tab, served, served.token, "in-and-out")
    page.get_by_label("File to import").set_input_files(tmp_path / "notes.jsonl")
    page.get_by_role("button", name="Import 1 entry").click()
    expect(page.get_by_text("Imported 1 entry from jsonl")).to_be_visible()
