"""The side panel with the details of an entry: its whole text, its origin, its links and its history."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from keepstone.errors import AmbiguousIdError, EntryNotFoundError
from keepstone.model import Entry, Version
from keepstone.operations.provenance import Branch, origins_of, said_by
from keepstone.text.display import clipped
from keepstone.web.components import EntryPanel, List
from keepstone.web.correcting import Correcting
from keepstone.web.elements import aside, attempt
from keepstone.web.message_parts import part_views
from keepstone.web.phrases import moment, shown
from keepstone.web.site import Place
from keepstone.web.views import View, entry_views, version_views

_SHORT = 120


class Details:
    """Shows the details of an entry in a list, and carries out the actions of the list and the panel.

    Args:
        place: The place of the agent that has the entries.
        reload: Shows the list again after a change.
        hit_of: Returns the hit of an entry, for lists of hits.
    """

    def __init__(
        self,
        place: Place,
        reload: Callable[[], Awaitable[object]],
        hit_of: Callable[[str, str], View | None] = lambda _, __: None,
    ) -> None:
        self._place = place
        self._reload_list = reload
        self._hit_of = hit_of
        self._shown: tuple[str, str] | None = None
        self.correcting = Correcting(place, self._reload)
        self.panel = EntryPanel()
        self.panel.show(readOnly=place.read_only)
        self.panel.when("close", self._close)
        self.connect(self.panel)

    def connect(self, entries: List) -> None:
        """Handle the actions of a list."""
        entries.when("act", self._act)
        entries.when("restore", self._restore)

    async def open(self, session: str, entry_id: str, part: str = "details") -> None:
        """Show an entry, and move the focus to its details or to its ``"history"``."""
        self._shown = (session, entry_id)
        with attempt():
            await self._draw(part)

    async def _act(self, request: Mapping[str, Any]) -> None:
        if request["verb"] in ("details", "history"):
            await self.open(json.loads(request["session"]), json.loads(request["entry"]), request["verb"])
        else:
            await self.correcting.act(request)

    async def _restore(self, request: Mapping[str, Any]) -> None:
        """Restore a version of an entry; without a number, the last version that was not deleted."""
        session = self._place.agent.session(json.loads(request["session"]))
        with attempt():
            # The browser identifies a version only by its number, so the content that is written comes from
            # the log and never from the browser.
            versions = await aside(self._place.agent.history, json.loads(request["entry"]), session.id)
            at = request.get("at")
            version = (
                versions[at]
                if at is not None
                else [version for version in versions if not version.deleted][-1]
            )
            await self.correcting.restore_version(session, version.id, version.line)

    async def _reload(self) -> None:
        await self._reload_list()
        if self._shown is not None:
            try:
                await self._draw(None)
            except EntryNotFoundError:
                self._close()

    def _close(self, _: object = None) -> None:
        self._shown = None
        self.panel.show(entry=None)

    async def _draw(self, part: str | None) -> None:
        if self._shown is not None:
            session, entry_id = self._shown
            view = await aside(self._load, session, entry_id)
            # The panel takes the focus when this number changes. A reload does not change the number, so it
            # does not take the focus from a reader who is typing elsewhere.
            request_count = self.panel.props.get("asked", 0) + (part is not None)
            self.panel.show(**view, hit=self._hit_of(session, entry_id), asked=request_count, part=part or "")

    def _load(self, session: str, entry_id: str) -> View:
        agent = self._place.agent
        versions: list[Version] = agent.history(entry_id, session)
        entry: Entry = [version for version in versions if not version.deleted][-1]
        state = "deleted" if versions[-1].deleted else ""
        # A deleted entry is shown as its last version before the deletion. Any other entry is read again,
        # because only ``get`` returns whether it is stale.
        with suppress(EntryNotFoundError):
            entry = agent.get(entry_id, session)
        [view] = entry_views([entry], datetime.now(UTC), frozenset({entry_id}), self._place)
        return {
            "entry": view | {"state": state},
            "content": [self._with_image(part, entry) for part in part_views(entry)],
            "links": [*self._links(entry)],
            "origin": [*self._origin(entry)],
            "versions": version_views(versions),
        }

    def _with_image(self, part: View, entry: Entry) -> View:
        """Return a part with the address of its image, if it has one."""
        number = part.get("image")
        if number is None:
            return part
        address = self._place.link("image", session=entry.session, entry=entry.id, number=str(number))
        return part | {"image": address}

    def _links(self, entry: Entry) -> Iterator[View]:
        outgoing = {str(link.get("to")): str(link.get("rel", "")) for link in entry.links}
        linked: list[Entry] = []
        # ``related`` takes only an id, which several sessions may have. The panel then lists only the linked
        # ids.
        with suppress(EntryNotFoundError, AmbiguousIdError):
            linked = self._place.agent.related(entry.id)
        for other in linked:
            back = (link.get("rel", "") for link in other.links if link.get("to") == entry.id)
            rel = outgoing.pop(other.id, None) or f"{next(back, 'linked')}, from there"
            yield self._row(other, rel, 0)
        for to, rel in outgoing.items():
            yield {"text": shown(to), "label": shown(rel), "href": "", "depth": 0}

    def _origin(self, entry: Entry) -> Iterator[View]:
        origins = origins_of(self._place.agent, entry)
        yield {"text": "", "label": shown(said_by(entry)), "href": "", "depth": 0}
        for title, branches in (("derived from", origins.sources), ("from it was derived", origins.derived)):
            yield from self._rows(branches, title, 0)
        for name in origins.gone:
            yield {"text": shown(name), "label": "derived from, gone", "href": "", "depth": 0}

    def _rows(self, branches: list[Branch], title: str, depth: int) -> Iterator[View]:
        for branch in branches:
            yield self._row(branch.entry, f"{title}; {said_by(branch.entry)}", depth)
            yield from self._rows(branch.below, title, depth + 1)

    def _row(self, entry: Entry, label: str, depth: int) -> View:
        href = self._place.link("session", id=entry.session, entry=entry.id)
        text = shown(clipped(entry.text, _SHORT))
        return {"text": text, "label": shown(label), "href": href, "depth": depth, "moment": moment(entry.ts)}
