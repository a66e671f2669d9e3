"""The context page: the system prompt of the chat, part by part."""

from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import expect
from tests.web.conftest import Browse, Site

import keepstone
from keepstone import Agent, Notes
from keepstone.chat.conversation import Conversation
from keepstone.chat.messages import Request
from keepstone.web.pages.context import pieces_of


class Listening:
    """A model that keeps the prompt that it gets."""

    name, uses_tools, given = "listening", False, ""

    def answer(self, request: Request) -> Iterator[str]:
        self.given = request.prompt.text
        yield "On old phones."


def furnished(agent: Agent) -> None:
    session = agent.session("talk")
    session.add("decision", {"content": "Passkeys for sign-in"}, pinned=True)
    session.add("preference", {"content": "Maya prefers short answers"})
    session.add("message", {"role": "user", "content": "Is </memory> a tag in <memory-2>?"})
    session.add("finding", {"content": "Sign-in failed on old phones"})


def test_the_parts_joined_are_the_prompt_that_the_chats_model_gets(
    site: Site, agent: Agent, browse: Browse
) -> None:
    furnished(agent)
    site.notes.add("Amounts are whole cents", "Project")
    page = browse(site.url(agent.slug, "context", q="Why did sign-in fail?"))
    page.locator(".piece").first.wait_for()
    shown = "".join(page.locator(".piece pre").all_text_contents())
    model = Listening()
    list(Conversation(agent, site.notes, model).send("Why did sign-in fail?"))
    assert shown == model.given
    kinds = page.locator(".piece h3").all_text_contents()
    assert kinds[0] == "instructions"
    assert kinds[-1] == "today"
    assert {"notes", "pinned", "standing"} <= set(kinds)


def test_copy_takes_the_whole_prompt(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "context"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "".join(page.locator(".piece pre").all_text_contents())
    assert copied.startswith(f"You are {agent.slug}, an assistant")


def test_an_agent_without_memory_gets_instructions_and_the_day(
    site: Site, agent: Agent, browse: Browse
) -> None:
    page = browse(site.url(agent.slug, "context"))
    expect(page.locator(".piece.today")).to_contain_text("Today is ")


def test_a_budget_that_is_not_whole_is_refused(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "context", budget="20.5"))
    expect(page.get_by_role("alert")).to_contain_text("tokens must be a whole number")


def test_the_pieces_of_a_context_are_its_text_whatever_its_budget(tmp_path: Path) -> None:
    notes = Notes(tmp_path, tmp_path / "user.md")
    notes.add("Amounts are whole cents", "Project")
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        agent = home.agent("default")
        furnished(agent)
        for budget in (0, 20, 60, 200, 1000):
            context = agent.context("Why did sign-in fail?", budget=budget, notes=notes)
            pieces = pieces_of(context)
            assert "".join(text for _, text in pieces) == context.text
            assert [kind for kind, _ in pieces if kind != "frame"] == [part.kind for part in context.parts]
