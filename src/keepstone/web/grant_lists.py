"""The sharing section of the settings page: an agent's grants to others, and their grants to it."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from keepstone.operations.error_codes import message_of
from keepstone.store.sharing.grants import Grant
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
    undoing,
)
from keepstone.web.phrases import moment
from keepstone.web.site import Place

_MAY = {"read": "Read", "write": "Read and write"}
_UNTIL = {"": "Never", "1d": "In a day", "30d": "In 30 days", "90d": "In 90 days"}


class Sharing:
    """Lists of the grants that an agent has given and received."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the section."""
        with box(classes="head"):
            say("h2", "Sharing")
            box(classes="fill")
            if self.place.is_admin:
                button("Grant access", self._grant, "main")
        say("p", f"Who may access the memory of {self.place.agent.slug}, and whose memory it may.", "hint")
        self.lists = box()
        await self._list()

    def _load(self) -> tuple[list[Grant], list[tuple[str, Grant]]]:
        agent, home = self.place.agent, self.place.site.home
        own = agent.grants()
        # A grant is stored with the agent that gives it, so grants to this agent are searched in all other
        # agents.
        others = [slug for slug in home.agents() if slug != agent.slug]
        return own, [
            (slug, grant) for slug in others for grant in home.agent(slug).grants() if grant.to == agent.slug
        ]

    async def _list(self) -> None:
        try:
            own, received = await aside(self._load)
        except EXPECTED as error:
            self.lists.clear()
            with self.lists:
                failure(message_of(error))
            return
        self.lists.clear()
        with self.lists:
            if not own and not received:
                say("p", "Nothing is shared.")
            if own:
                with box("ul", "links", aria_label="Granted to others"):
                    for grant in own:
                        self._row(grant.to, grant, is_own=True)
            if received:
                say("h3", "From others")
                with box("ul", "links", aria_label="Granted by others"):
                    for slug, grant in received:
                        self._row(slug, grant, is_own=False)

    def _row(self, slug: str, grant: Grant, *, is_own: bool) -> None:
        with box("li"):
            say("strong", slug)
            say("span", rights(grant), "fill")
            if grant.by is not None:
                say("span", f"by {grant.by}", "hint")
            say("span", f"until {moment(grant.until)}" if grant.until else "does not expire", "hint")
            if is_own and self.place.is_admin:
                name = f"Revoke the access of {slug}"
                button("Revoke", lambda: self._revoke(slug), "quiet danger", aria_label=name)

    async def _grant(self) -> None:
        """Ask for the other agent and its rights, and grant them."""
        with dialog("Grant access") as question:
            to = field("Agent", "team").props("autofocus")
            may = ui.select(_MAY, value="read", label="May").props("outlined dense")
            types = field("Types", "All types")
            tags = field("Tags", "All tags")
            say(
                "p",
                "With commas between them. An entry must be of one of the types, and have all tags.",
                "hint",
            )
            until = ui.select(_UNTIL, value="", label="Expires").props("outlined dense")
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                button("Grant", lambda: question.submit("yes"), "main")
        if await answer_of(question) != "yes":
            return
        with attempt():
            # Grants decide who reads this memory, so the sign-in is checked again: it may have ended since
            # the page was opened.
            await self.place.check_admin()
            before = await aside(self.place.agent.grants)
            grant = await aside(
                self.place.agent.grant,
                str(to.value or "").strip(),
                may.value,
                types=_names(types.value),
                tags=_names(tags.value),
                until=until.value or None,
            )
            undo = partial(self._put_back, grant.to, before, grant)
            tell(f"Granted to {grant.to}: {rights(grant)}", undoing(undo, self._list))
        await self._list()

    async def _revoke(self, slug: str) -> None:
        words = f"{slug} loses its access to the memory of {self.place.agent.slug} with its next call."
        if not await confirmed("Revoke this access?", words, "Revoke"):
            return
        with attempt():
            await self.place.check_admin()
            before = await aside(self.place.agent.grants)
            await aside(self.place.agent.revoke, slug)
            undo = partial(self._put_back, slug, before, None)
            tell(f"Revoked the access of {slug}", undoing(undo, self._list))
        await self._list()

    def _put_back(self, slug: str, before: list[Grant], after: Grant | None) -> None:
        """Restore another agent's access from before a change, unless it was changed again later."""
        agent, old = self.place.agent, _of(slug, before)
        # Undo is offered for a while. It must not take back a right that someone else has granted or revoked
        # since then.
        if _of(slug, agent.grants()) != after:
            raise ValueError(f"the access of {slug} has changed since: nothing was undone")
        if old is None or old.may == "nothing":
            agent.revoke(slug)
        else:
            agent.grant(slug, old.may, types=old.types, tags=old.tags, until=old.until, by=old.by)


def _of(slug: str, grants: list[Grant]) -> Grant | None:
    """Return the access of another agent, if it has any."""
    return next((grant for grant in grants if grant.to == slug and grant.may != "nothing"), None)


def rights(grant: Grant) -> str:
    """Return the rights of a grant in words."""
    words = _MAY[grant.may].lower()
    words += f", of type {' or '.join(grant.types)}" if grant.types is not None else ""
    return words + (f", with {' and '.join(f'#{tag}' for tag in grant.tags)}" if grant.tags else "")


def _names(value: object) -> list[str] | None:
    return [name.strip() for name in str(value or "").split(",") if name.strip()] or None
