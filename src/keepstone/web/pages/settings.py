"""The settings page: theme and times of this browser, the model, the embedder, sharing, and access tokens."""

from __future__ import annotations

from datetime import timedelta

from nicegui import ui

from keepstone.model import Hits
from keepstone.operations.error_codes import message_of
from keepstone.server.tokens import LIFETIME, LONGEST_NAME, Token, Tokens
from keepstone.text.display import counted
from keepstone.text.pasting import placed, split_commands
from keepstone.web.answering import Talking
from keepstone.web.components import Choice, command
from keepstone.web.elements import (
    EXPECTED,
    answer_of,
    aside,
    attempt,
    box,
    button,
    confirmed,
    dialog,
    failure,
    field,
    say,
    tell,
)
from keepstone.web.frame import frame
from keepstone.web.grant_lists import Sharing
from keepstone.web.phrases import moment, shown
from keepstone.web.site import Place

_LEAD = "How this browser shows the pages, what answers and finds, and who has access."
_THEMES = (("system", "System"), ("light", "Light"), ("dark", "Dark"))
_TIMES = (("utc", "UTC"), ("local", "Local time"))
_LIFETIMES = {0: "Never", 1: "In a day", 30: "In 30 days", 90: "In 90 days", 365: "In a year"}


class SettingsPage:
    """The sections of the page."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page; the state of the embedder is read after the page has opened."""
        with frame(self.place, "settings", "Settings", _LEAD):
            with box(classes="source"):
                say("h2", "This browser")
                Choice().show(name="theme", legend="Theme", options=_THEMES)
                Choice().show(name="times", legend="Times", options=_TIMES)
                say("p", "Filters and charts count days in UTC.", "hint")
            with box(classes="source"):
                say("h2", "Model")
                self._model()
            with box(classes="source"):
                say("h2", "Embedder")
                self.embedder = box(role="status")
                with self.embedder:
                    say("p", "Asking the index …", "hint")
            with box(classes="source"):
                await Sharing(self.place).build()
            if self.place.site.tokens is not None and self.place.is_admin:
                with box(classes="source"):
                    await self._build_tokens(self.place.site.tokens)
            ui.timer(0, self._look, once=True)

    def _model(self) -> None:
        answerer = self.place.site.answerer
        if isinstance(answerer, Talking):
            say("p", f"Answers in the chat: {answerer.model.name}")
            if answerer.reason:
                say("p", answerer.reason, "hint")
        else:
            say("p", "Answers in the chat: by the application that shows these pages")

    async def _look(self) -> None:
        """Show the state of the embedder, which the result of a recall includes."""
        try:
            # The state of the embedder is known only after its use, and loading it takes seconds, so this
            # runs after the page has opened.
            hits = await aside(self.place.agent.recall, "memory", limit=1)
        except EXPECTED as error:
            self.embedder.clear()
            with self.embedder:
                failure(message_of(error))
            return
        self.embedder.clear()
        with self.embedder:
            for kind, piece in split_commands(placed(_embedder(hits), self.place.site.place)):
                if kind == "command":
                    command(piece)
                else:
                    say("p", piece)

    async def _build_tokens(self, tokens: Tokens) -> None:
        with box(classes="head"):
            say("h2", "Access tokens")
            box(classes="fill")
            button("Create token", lambda: self._create(tokens), "main", data_new="")
        say("p", "Programs and browsers sign in with them. Only their hashes are stored.", "hint")
        self.tokens = box()
        await self._list(tokens)

    async def _list(self, tokens: Tokens) -> None:
        try:
            found = await aside(tokens.all)
        except EXPECTED as error:
            self.tokens.clear()
            with self.tokens:
                failure(message_of(error))
            return
        self.tokens.clear()
        with self.tokens:
            if not found:
                say("p", "No tokens yet.")
                return
            with box("ul", "links tokens", aria_label="Tokens"):
                for token in found:
                    self._row(tokens, token)

    def _row(self, tokens: Tokens, token: Token) -> None:
        with box("li"):
            if token.name:
                say("strong", token.name)
            say("code", token.id)
            say("span", _rights(token), "fill")
            say("span", f"created {moment(token.created)}", "hint")
            say("span", f"expires {moment(token.expires)}" if token.expires else "never expires", "hint")
            button(
                "Revoke",
                lambda: self._revoke(tokens, token),
                "quiet danger",
                aria_label=f"Revoke token {token.id}",
            )

    async def _create(self, tokens: Tokens) -> None:
        """Ask for the token's rights, create it, and show its secret once."""
        with dialog("Create a token") as question:
            name = field("Name", "laptop").props(f"autofocus maxlength={LONGEST_NAME}")
            agents = field("Agents", "All agents, and the home itself")
            say("p", "Slugs with commas between them; empty for all.", "hint")
            read_only = ui.checkbox("Read only")
            lifetime = ui.select(_LIFETIMES, value=LIFETIME.days, label="Expires").props("outlined dense")
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                button("Create", lambda: question.submit("yes"), "main")
        if await answer_of(question) != "yes":
            return
        slugs = [slug.strip() for slug in str(agents.value or "").split(",") if slug.strip()]
        days = int(lifetime.value or 0)
        with attempt():
            await self.place.check_admin()
            secret, token = await aside(
                tokens.create,
                slugs or None,
                read_only=bool(read_only.value),
                lifetime=timedelta(days=days) if days else None,
                name=str(name.value or ""),
            )
            await self._list(tokens)
            await _show_once(secret, token)

    async def _revoke(self, tokens: Tokens, token: Token) -> None:
        words = (
            f"Programs and browsers that use {_named(token)} ({_rights(token)}) lose their access at once."
        )
        if not await confirmed("Revoke this token?", words, "Revoke"):
            return
        with attempt():
            await self.place.check_admin()
            await aside(tokens.revoke, token.id)
            tell(f"Revoked {_named(token)}")
        await self._list(tokens)


async def _show_once(secret: str, token: Token) -> None:
    with dialog("Your new token") as window:
        say("p", f"Copy it now: it is not shown again. It is listed as {_named(token)}.")
        command(secret, "Token")
        with box(classes="row-end"):
            button("Done", lambda: window.submit(None), "main", autofocus=True)
    await answer_of(window)


def _named(token: Token) -> str:
    return f"{token.name} ({token.id})" if token.name else token.id


def _rights(token: Token) -> str:
    who = "all agents" if token.agents is None else ", ".join(token.agents)
    return f"{who}: {'read' if token.read_only else 'read and write'}"


def _embedder(hits: Hits) -> str:
    """Return how recall searches, and which parts are missing."""
    if hits.lexical_only:
        said = f"Recall is by words only: {hits.reason}"
    else:
        said = f"Recall is by words and by meaning, with {hits.embedder}: {hits.reason}"
    pending = f". {counted(hits.pending, 'entry')} not yet embedded" if hits.pending else ""
    return shown(said + pending)


async def build(place: Place) -> None:
    """Draw the page."""
    await SettingsPage(place).build()
