"""The list of past chats beside the chat."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from keepstone.model import SessionSummary
from keepstone.web.components import LinkList
from keepstone.web.elements import box, say
from keepstone.web.live import Live
from keepstone.web.phrases import ago, shown
from keepstone.web.site import Place

_LISTED = 30
"""Maximum number of chats, the one with the newest entry first."""
_EXAMINED = 300
"""Maximum newest sessions that are searched for chats, which requires reading the beginning of each."""


class PastChats:
    """Sessions that a person began in a chat of keepstone, each with a link that continues it.

    Args:
        place: The place of the agent that has the sessions.
        current: Returns the id of the session on the page; None before its first message.
    """

    def __init__(self, place: Place, current: Callable[[], str | None]) -> None:
        self._place = place
        self._current = current

    async def build(self) -> None:
        """Draw the list; on a wide screen it is open beside the chat."""
        with box("details", "past", data_wide=""):
            say("summary", "Past chats")
            self._live = Live(self._load, self._draw)
            self._list = LinkList()
            self._none = say("p", "None yet.", "hint")
            await self._live.start()

    async def refresh(self) -> None:
        """Load and draw the list now."""
        await self._live.refresh()

    def _load(self) -> tuple[str, list[tuple[SessionSummary, str]]]:
        agent, now = self._place.agent, datetime.now(UTC)
        ids = [summary.id for summary in agent.session_summaries(texts=False)[:_EXAMINED]]
        chats: list[SessionSummary] = []
        # The first entries show whether a session is a chat, so sessions are read in batches until the list
        # is full.
        while ids and len(chats) < _LISTED:
            chats += [summary for summary in agent.session_summaries(ids[:_LISTED]) if summary.is_chat]
            ids = ids[_LISTED:]
        return self._current() or "", [(chat, ago(chat.changed, now)) for chat in chats[:_LISTED]]

    def _draw(self, loaded: tuple[str, list[tuple[SessionSummary, str]]]) -> None:
        current, summaries = loaded
        items = [
            {
                "name": shown(summary.title or summary.id),
                "detail": changed,
                "href": self._place.link("chat", session=summary.id),
                "current": summary.id == current,
            }
            for summary, changed in summaries
        ]
        self._list.show(items=items, label="Past chats")
        self._none.set_visibility(not items)
