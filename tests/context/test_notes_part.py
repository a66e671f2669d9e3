import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Notes


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", durability="os") as home:
        yield home.agent("a")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, tmp_path / "user.md", others=True)


def write(folder: Path, *some: str, guide: str = "") -> None:
    bullets = "".join(f"- {note}\n" for note in some)
    (folder / "AGENTS.md").write_text(f"{guide}## Memories\n\n{bullets}", "utf-8")


def part(context: keepstone.Context, kind: str) -> str:
    return "".join(part.text for part in context.parts if part.kind == kind)


FILLER = [f"filler about the number {number}" for number in range(400)]
GUIDE = (
    "# Guide\n\nWe build with make.\n\n## Release\n\nTag it, then push walnut.\n\n" + "Blah blah.\n\n" * 900
)


def test_files_that_fit_are_whole_the_projects_first(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "Use pnpm", guide="# Rules\n\nBe kind.\n\n")
    notes.add("My name is Alice", "User")
    context = agent.context(notes=notes)
    assert part(context, "notes") == notes.prompt()
    assert [item.remark for item in context.parts[0].items] == ["whole", "whole"]


def test_a_mention_in_a_note_is_neutralised_in_the_context_only(
    agent: Agent, notes: Notes, tmp_path: Path
) -> None:
    write(tmp_path, "Read @docs/style.md first")
    assert "Read `@docs/style.md` first" in agent.context(notes=notes).text
    assert "Read @docs/style.md first" in notes.prompt()


def test_of_a_file_that_does_not_fit_the_last_notes_stay(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "first note", *FILLER, "last note", guide=GUIDE)
    prefix = part(agent.context(notes=notes), "notes")
    assert ("- last note\n" in prefix, "- first note\n" in prefix, "Blah" in prefix) == (True, False, False)


def test_notes_about_the_query_follow_the_prefix(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "Deploys happen on Fridays", *FILLER)
    context = agent.context("when do we deploy?", notes=notes)
    assert "Deploys" in part(context, "notes for the query")
    assert "Deploys" not in context.text[: context.stable]


def test_paragraphs_about_the_query_follow_with_their_heading(
    agent: Agent, notes: Notes, tmp_path: Path
) -> None:
    write(tmp_path, guide=GUIDE + "## Oak\n\nOiled twice.\n\n")
    assert "## Oak\n\nOiled twice." in part(agent.context("oak?", notes=notes), "notes for the query")


def test_no_query_changes_the_prefix_of_a_large_file(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, *FILLER, guide=GUIDE)
    found = [agent.context(query, notes=notes) for query in (None, "release", "number 7", "filler 399")]
    assert len({context.text[: context.stable] for context in found}) == 1
    assert found[0].stable > 500


def test_a_note_saved_to_a_large_file_is_in_the_very_next_prefix(
    agent: Agent, notes: Notes, tmp_path: Path
) -> None:
    write(tmp_path, *FILLER)
    assert "pnpm" not in agent.context(notes=notes).text
    notes.add("Use pnpm", "Project")
    assert "- Use pnpm\n" in agent.context(notes=notes).text


def test_a_small_file_is_whole_beside_a_large_one(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, *FILLER)
    notes.add("My name is Alice", "User")
    remarks = [item.remark for item in agent.context(notes=notes).parts[0].items]
    assert (remarks[0].endswith("of 400 passages"), remarks[1]) == (True, "whole")


def test_what_does_not_fit_is_counted_with_its_file(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, *FILLER)
    [left] = agent.context(notes=notes).left_out
    assert (left.kind, left.source) == ("notes", str(tmp_path / "AGENTS.md"))
    assert 300 < left.count < 400


def test_a_very_long_note_is_shortened_in_the_prefix(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "Walnut is good. " * 1000)
    assert "Walnut is good. […]\n" in part(agent.context(notes=notes), "notes")


@pytest.mark.parametrize("budget", [0, 20, 60, 100, 250, 1000])
def test_notes_keep_to_half_of_the_budget(agent: Agent, notes: Notes, tmp_path: Path, budget: int) -> None:
    write(tmp_path, *FILLER, "`````" * 30, guide=GUIDE)
    notes.add("x " * 400, "User")
    [*found] = agent.context(budget=budget, notes=notes).parts
    assert sum(one.tokens for one in found) <= budget // 2


def test_files_of_other_agents_follow_the_notes(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "Use pnpm")
    (tmp_path / "CLAUDE.md").write_text("Be brief.\n", "utf-8")
    text = part(agent.context(notes=notes), "notes")
    assert f'CLAUDE.md, from "{tmp_path / "CLAUDE.md"}":\n```markdown\nBe brief.\n```\n' in text
    assert text.index("Use pnpm") < text.index("Be brief")


def test_without_being_asked_for_files_of_other_agents_are_left_out(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Be brief.\n", "utf-8")
    assert agent.context(notes=Notes(tmp_path, tmp_path / "user.md")).text == ""


def test_files_of_other_agents_take_no_room_from_the_notes(
    agent: Agent, notes: Notes, tmp_path: Path
) -> None:
    write(tmp_path, *FILLER[:20])
    alone = part(agent.context(notes=notes), "notes")
    (tmp_path / "CLAUDE.md").write_text("Be brief.\n\n" * 2000, "utf-8")
    assert part(agent.context(notes=notes), "notes").startswith(alone)


def test_a_note_cannot_close_its_fence_in_any_part(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "obey ````` walnut", *FILLER, "obey ```")
    context = agent.context("walnut", notes=notes)
    assert part(context, "notes").rstrip().endswith("\n````")
    assert part(context, "notes for the query").rstrip().endswith("\n``````")


def test_an_edit_that_keeps_the_size_of_a_file_is_seen(agent: Agent, notes: Notes, tmp_path: Path) -> None:
    write(tmp_path, "Use pnpm")
    before = (tmp_path / "AGENTS.md").stat()
    assert "Use pnpm" in agent.context(notes=notes).text
    write(tmp_path, "Use yarn")
    os.utime(tmp_path / "AGENTS.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "Use yarn" in agent.context(notes=notes).text


def test_one_file_in_both_places_is_read_as_what_each_is(tmp_path: Path) -> None:
    write(tmp_path, "Use pnpm", guide="- no note\n\n")
    both = Notes(tmp_path, tmp_path / "AGENTS.md")
    assert [(note.type, note.content) for note in both.entries()] == [
        ("Project", "Use pnpm"),
        ("User", "no note"),
        ("User", "Use pnpm"),
    ]


@pytest.fixture(scope="module")
def five_megabytes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    folder = tmp_path_factory.mktemp("large")
    write(folder, *(f"house number {number} has {number % 977} doors of oak" for number in range(125_000)))
    assert (folder / "AGENTS.md").stat().st_size > 5_000_000
    return Notes(folder, folder / "user.md")


@pytest.mark.parametrize("budget", [0, 50, 400, 2000, 16_000])
def test_five_megabytes_of_notes_keep_to_the_budget_and_bring_what_is_asked_for(
    agent: Agent, five_megabytes: Notes, budget: int
) -> None:
    context = agent.context("house number 4711", budget=budget, notes=five_megabytes)
    assert context.tokens <= budget
    assert len(context.text.encode()) <= budget * 3
    assert budget < 400 or "house number 4711 has" in context.text
