"""What the lists send to the browser."""

from pathlib import Path

import nicegui
from nicegui import Client
from tests.web.page import on_a_page

import keepstone.web
from keepstone.web.components import FindingList, NoteList


def test_a_list_sends_again_only_what_has_changed() -> None:
    async def steps(page: Client) -> None:
        notes = NoteList()
        notes.show(notes=[{"key": "1"}], locked=False)
        page.outbox.updates.clear()
        notes.show(notes=[{"key": "1"}])
        assert notes.id not in page.outbox.updates
        notes.show(notes=[{"key": "2"}])
        assert notes.id in page.outbox.updates

    on_a_page(steps)


def test_a_list_keeps_items_that_an_update_omits() -> None:
    async def steps(_: Client) -> None:
        findings = FindingList()
        findings.show(findings=["a"], busy=True)
        findings.show(busy=False)
        assert findings.props == {"findings": ["a"], "busy": False}

    on_a_page(steps)


def test_each_list_has_a_component_of_its_own() -> None:
    async def steps(_: Client) -> None:
        assert NoteList().component != FindingList().component

    on_a_page(steps)


def test_no_component_is_named_like_one_of_nicegui() -> None:
    # It would refuse ours as soon as its own is imported, which older versions do at once.
    elements = Path(nicegui.__file__).parent / "elements"
    theirs = {path.stem for path in elements.rglob("*") if path.suffix in (".js", ".vue")}
    ours = {path.stem for path in (Path(keepstone.web.__file__).parent / "components").iterdir()}
    assert len(theirs) > 20
    assert ours
    assert not ours & theirs
