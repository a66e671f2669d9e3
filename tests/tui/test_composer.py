"""The fields of the chat: what is pasted, sent and put back."""

from __future__ import annotations

from tests.tui.screens import Shown, on
from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from keepstone.tui.composer import Composer


class Desk(Screen[None]):
    """A composer, and what it has sent."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Composer()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.field

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.sent.append(event.text)


def typed(*keys: str, text: str = "") -> Desk:
    """Return a composer after a text was pasted and keys were pressed."""
    desk = Desk()

    async def steps(shown: Shown[None]) -> None:
        shown.app.post_message(events.Paste(text))
        await shown.press(*keys)

    on(desk, steps)
    return desk


def test_enter_sends_a_text_and_leaves_it_until_it_is_taken() -> None:
    desk = typed("H", "i", "enter")
    assert (desk.sent, desk.field.text) == (["Hi"], "Hi")


def test_shift_and_enter_begin_a_new_line_in_place() -> None:
    desk = typed("a", "b", "left", "shift+enter")
    assert (desk.sent, desk.field.text) == ([], "a\nb")


def test_lines_of_any_system_are_pasted_as_lines() -> None:
    assert typed(text="one\r\ntwo\rthree\n\r\n").field.text == "one\ntwo\nthree\n\n"


def test_letters_of_any_script_are_pasted_as_they_are() -> None:
    text = "\tקפה 咖啡 👩‍🚀 e\u0301"
    assert typed(text=text).field.text == text


def test_a_text_that_is_put_back_goes_on_at_its_end() -> None:
    desk = Desk()

    async def steps(shown: Shown[None]) -> None:
        desk.field.restore("one\ntwo")
        await shown.press("!")

    on(desk, steps)
    assert desk.field.text == "one\ntwo!"
