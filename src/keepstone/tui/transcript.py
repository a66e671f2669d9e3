"""The transcript: messages and answers on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from markdown_it import MarkdownIt
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from keepstone.chat.conversation import words_of_turn
from keepstone.chat.offline import OfflineResponder
from keepstone.model import Entry
from keepstone.text.display import harmless

_PREFIXES = {"user": "> ", "tool": "· ", "error": "! "}
"""Prefixes that show a text's kind without colours."""


_ABOVE = 2
"""Lines above a long answer that stay in view: the end of the question, and a gap."""


class PlainText(Static):
    """One text of the conversation, shown literally and escaped; it may grow."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(classes=kind)
        self._kind = kind
        self._text = text

    def on_mount(self) -> None:
        """Show the text."""
        self._show()

    async def grow(self, more: str) -> None:
        """Append to the text."""
        self._text += more
        self._show()

    async def end(self) -> None:
        """Mark the text as complete."""

    def _show(self) -> None:
        self.update(Content(_PREFIXES.get(self._kind, "") + harmless(self._text)))


class MarkdownText(Markdown):
    """A model's answer as Markdown without links; it may grow."""

    def __init__(self, text: str = "") -> None:
        super().__init__(harmless(text), classes="assistant", parser_factory=_parser, open_links=False)
        self._stream: MarkdownStream | None = None

    async def grow(self, more: str) -> None:
        """Append to the text; Textual batches chunks that come faster than it can draw."""
        if self._stream is None:
            self._stream = self.get_stream(self)
        await self._stream.write(harmless(more))

    async def end(self) -> None:
        """Draw the remaining chunks."""
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None


def answer_of(model: object, text: str = "") -> PlainText | MarkdownText:
    """Return the widget for a model's answer; answers of the offline responder are shown literally."""
    quotes = not isinstance(model, str) or model == OfflineResponder.name
    return PlainText("assistant", text) if quotes else MarkdownText(text)


def _parser() -> MarkdownIt:
    """Return a parser that leaves links, images, HTML and entities as text."""
    # A model's answer may quote memory: a link could lead anywhere, and an image would be fetched.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    links = ["link", "image", "autolink", "reference"]
    return parser.disable([*links, "html_block", "html_inline", "entity"])


class Transcript(VerticalScroll):
    """The conversation, newest last; it stays scrolled to the end unless the user scrolls up.

    The beginning of an answer that is longer than the screen stays in view.
    """

    def on_mount(self) -> None:
        """Stay at the end."""
        self.anchor()

    def say(self, kind: str, text: str) -> None:
        """Append a literal text of kind ``user``, ``assistant``, ``tool``, ``notice`` or ``error``."""
        if kind in {"user", "error"}:
            self.anchor()
        self.mount(PlainText(kind, text))

    def keep_beginning(self, answer: Widget) -> None:
        """Follow a growing answer only while its first line is in view; later messages are followed again."""
        # If the user has scrolled up, the screen does not move.
        if self.is_anchored and answer.virtual_region.height > self.scrollable_content_region.height:
            self.anchor(anchor=False)
            self.scroll_to(y=answer.virtual_region.y - _ABOVE, animate=False, force=True)

    def begin(self, turns: Iterable[Entry]) -> None:
        """Replace the content with other turns."""
        self.remove_children()
        for turn in turns:
            words = words_of_turn(turn)
            is_answer = turn.data["role"] == "assistant"
            self.mount(answer_of(turn.data.get("model"), words) if is_answer else PlainText("user", words))
            if turn.data.get("cut"):
                self.say("error", f"This answer is incomplete: {turn.data['cut']}")
