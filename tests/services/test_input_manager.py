from pathlib import Path

import pytest

from keepstone.errors import IsAFolderError
from keepstone.notes.notes import Notes
from keepstone.services.input_manager import InputManager, MemorySelectorState

CLOSED = MemorySelectorState(is_active=False, message="")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, tmp_path / "user.md")


@pytest.fixture
def manager(notes: Notes) -> InputManager:
    return InputManager(notes)


@pytest.mark.requirement(
    "notes.us1.hash-opens-the-selector", "notes.fr001.hash-triggers-saving", "notes.entity.selector-state"
)
@pytest.mark.parametrize("text", ["# Use pnpm", "#Use pnpm", "## Use pnpm \n", "# # Use pnpm"])
def test_a_message_that_begins_with_a_hash_opens_the_selector(manager: InputManager, text: str) -> None:
    assert manager.selector == CLOSED
    assert manager.submit(text) == "selecting"
    assert manager.selector == MemorySelectorState(is_active=True, message="Use pnpm")


@pytest.mark.requirement("notes.fr001.hash-triggers-saving")
@pytest.mark.parametrize("text", ["", "hello", " # a", "a # b", "#", "## # ", "#\n", "\n# a"])
def test_any_other_text_is_an_ordinary_message(manager: InputManager, text: str) -> None:
    assert manager.submit(text) == "message"
    assert manager.selector == CLOSED


@pytest.mark.requirement("notes.fr002.choice-of-project-or-user")
def test_nothing_is_saved_before_the_choice(manager: InputManager, notes: Notes, tmp_path: Path) -> None:
    manager.submit("# Use pnpm")
    assert list(tmp_path.iterdir()) == []
    result = manager.select("project")
    assert (result.saved, notes.entries(), manager.selector) == (True, [result.entry], CLOSED)


@pytest.mark.requirement("notes.us2.user-goes-to-the-user-file")
def test_the_choice_of_user_saves_to_the_user_file(manager: InputManager, tmp_path: Path) -> None:
    manager.submit("# My name is Alice")
    manager.select("user")
    assert (tmp_path / "user.md").read_text() == "- My name is Alice\n"


def test_cancelling_closes_the_selector_without_saving(manager: InputManager, notes: Notes) -> None:
    manager.submit("# a")
    manager.cancel()
    manager.cancel()
    assert (manager.selector, notes.entries()) == (CLOSED, [])


def test_a_later_note_takes_the_place_of_the_open_one(manager: InputManager) -> None:
    manager.submit("# a")
    manager.submit("# b")
    manager.submit("hello")
    assert manager.selector.message == "b"


def test_a_choice_without_an_open_selector_is_an_error(manager: InputManager) -> None:
    with pytest.raises(RuntimeError, match="submit a message"):
        manager.select("user")


def test_a_choice_that_is_none_keeps_the_selector_open(manager: InputManager) -> None:
    manager.submit("# a")
    with pytest.raises(ValueError, match="'project' or 'user'"):
        manager.select("Project")  # type: ignore[arg-type]
    assert manager.selector.is_active


def test_arguments_of_a_wrong_type_are_refused(manager: InputManager) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        manager.submit(b"# a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'project' or 'user'"):
        manager.select(None)  # type: ignore[arg-type]


def test_a_note_that_cannot_be_saved_keeps_the_selector_open(manager: InputManager, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    manager.submit("# a")
    with pytest.raises(IsAFolderError):
        manager.select("project")
    assert manager.selector.message == "a"
