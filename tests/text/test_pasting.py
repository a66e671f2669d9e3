import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.pasting import placed, split_commands


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("keepstone index --rebuild", ["$ keepstone index --rebuild"]),
        (
            "end the programs that still read this home, then: keepstone doctor --fix",
            ["end the programs that still read this home, then:", "$ keepstone doctor --fix"],
        ),
        (
            "abort the merge, run keepstone git init, and merge again",
            ["abort the merge, run", "$ keepstone git init", "and merge again"],
        ),
        (
            "tokenizers is missing: pip install 'keepstone[minilm]' (in a clone: pip install '.[minilm]')",
            [
                "tokenizers is missing:",
                "$ pip install 'keepstone[minilm]'",
                "in a clone:",
                "$ pip install '.[minilm]'",
            ],
        ),
        (
            "run keepstone model install minilm (/models/minilm)",
            ["run", "$ keepstone model install minilm", "/models/minilm"],
        ),
        ("keepstone supersede OLD TEXT, or delete one", ["$ keepstone supersede OLD TEXT", "or delete one"]),
        ("it was merged without keepstone's driver", ["it was merged without keepstone's driver"]),
        ("keepstone serves nobody", ["keepstone serves nobody"]),
    ],
)
def test_commands_are_told_from_prose(text: str, pieces: list[str]) -> None:
    found = [f"$ {piece}" if kind == "command" else piece for kind, piece in split_commands(text)]
    assert found == pieces


def test_a_quoted_argument_belongs_to_its_command_whatever_it_holds() -> None:
    command = placed("keepstone doctor --fix", ["--home", "/srv/a, b; (c) and d"])
    assert list(split_commands(f"take it out: {command}")) == [
        ("prose", "take it out:"),
        ("command", "keepstone doctor --home '/srv/a, b; (c) and d' --fix"),
    ]


@given(st.text())
def test_text_without_a_command_is_one_piece_of_prose(text: str) -> None:
    assert [piece for kind, piece in split_commands(text) if kind == "command"] == []
    assert [piece for _, piece in split_commands(text)] == ([text.strip()] if text.strip() else [])
