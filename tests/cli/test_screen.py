"""What people see, and that it can do nothing to their terminal."""

import pytest

from keepstone.cli.screen import print_view, table


def test_table_cells_are_taken_literally(capsys: pytest.CaptureFixture[str]) -> None:
    from keepstone.cli.screen import console

    console().print(table(["name"], [["[red]x[/red] :smile:\x1b"]]))
    assert "[red]x[/red] :smile:\\x1b" in capsys.readouterr().out


def test_a_table_for_a_program_has_tabs_and_no_rule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_view(table(["name", "size"], [["a", "1"], ["long\ter", "2"]]))
    assert capsys.readouterr().out == "name\tsize\na\t1\nlong er\t2\n"


def test_lines_that_go_to_a_file_end_where_their_text_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print_view(table(["name", "size"], [["a", "1"], ["longer", "2"]]))
    lines = capsys.readouterr().out.splitlines()
    assert "longer" in "".join(lines)
    assert lines == [line.rstrip() for line in lines]
