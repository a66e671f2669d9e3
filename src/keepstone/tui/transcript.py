"""What was said, on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from markdown_it import MarkdownIt
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from keepstone.chat.conversation import words_of_turn
from keepstone.chat.offline import OfflineResponder
from keepstone.model import Entry
from keepstone.text.display import harmless

_BEFORE = {"user": "> ", "tool": "· ", "error": "! "}
"""What stands before a text, so that its kind shows without colours too."""


class PlainText(Static):
    """One text of the conversation, shown literally and harmless; it may grow."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(classes=kind)
        self._kind = kind
        self._text = text

    def on_mount(self) -> None:
        """Show the text."""
        self._show()

    async def grow(self, more: str) -> None:
        """Add to the text."""
        self._text += more
        self._show()

    async def end(self) -> None:
        """Say that nothing more comes."""

    def _show(self) -> None:
        self.update(Content(_BEFORE.get(self._kind, "") + harmless(self._text)))


class MarkdownText(Markdown):
    """What a model answers, which is Markdown; it may grow. Nothing in it is a link or hides an address."""

    def __init__(self, text: str = "") -> None:
        super().__init__(harmless(text), classes="assistant", parser_factory=_parser, open_links=False)
        self._stream: MarkdownStream | None = None

    async def grow(self, more: str) -> None:
        """Add to the text; what comes quicker than it can be shown is shown together."""
        if self._stream is None:
            self._stream = self.get_stream(self)
        await self._stream.write(harmless(more))

    async def end(self) -> None:
        """Show what has not been shown yet."""
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None


def answer_of(model: object, text: str = "") -> PlainText | MarkdownText:
    """Return the answer of a model that people call so; what only quotes memory is shown literally."""
    quotes = not isinstance(model, str) or model == OfflineResponder.name
    return PlainText("assistant", text) if quotes else MarkdownText(text)


def _parser() -> MarkdownIt:
    """Return a parser that leaves links, pictures, HTML and numbers of characters as they are written."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    links = ["link", "image", "autolink", "reference"]
    return parser.disable([*links, "html_block", "html_inline", "entity"])


class Transcript(VerticalScroll):
    """The conversation so far, the newest below, where it stays unless a person scrolls up."""

    def on_mount(self) -> None:
        """Stay at the end."""
        self.anchor()

    def say(self, kind: str, text: str) -> None:
        """Add a text, shown literally: ``user``, ``assistant``, ``tool``, ``notice`` or ``error``."""
        self.mount(PlainText(kind, text))

    def begin(self, turns: Iterable[Entry]) -> None:
        """Show other turns instead of what is there."""
        self.remove_children()
        for turn in turns:
            words = words_of_turn(turn)
            is_answer = turn.data["role"] == "assistant"
            self.mount(answer_of(turn.data.get("model"), words) if is_answer else PlainText("user", words))
            if turn.data.get("cut"):
                self.say("error", f"This answer is not whole: {turn.data['cut']}")
