"""``keepstone expect`` and ``keepstone test``: tests of the hits that a memory returns."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from keepstone.cli.command import Answer, home_command
from keepstone.cli.options import AgentOption
from keepstone.operations import running_tests
from keepstone.operations.running_tests import run_tests, tests_file
from keepstone.store.memory_tests import LIMIT, read_tests
from keepstone.text.display import counted, harmless, one_line

if TYPE_CHECKING:
    from keepstone.home import Home

app = typer.Typer()

AskArgument = Annotated[str, typer.Argument(metavar="ASK", help="The question.", show_default=False)]
ExpectArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID…]", help="Entries that must be found, or texts they contain.", show_default=False
    ),
]
NeverOption = Annotated[
    list[str] | None, typer.Option("--never", metavar="ID", help="Must not be found; may be repeated.")
]
NothingOption = Annotated[bool, typer.Option("--nothing", help="Nothing may be relevant.")]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="Hits that are looked at.")]
NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why this is tested.")]
OnlyOption = Annotated[
    str | None, typer.Option("--agent", metavar="SLUG", help="Only the tests of this agent.")
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="PATH", help="The file of tests; default: tests.ndjson in the home."),
]


@home_command(app, "keepstone expect 'which package manager?' pnpm-decision")
def expect(
    home: "Home",
    ask: AskArgument,
    expected: ExpectArgument = None,
    *,
    never: NeverOption = None,
    nothing: NothingOption = False,
    limit: LimitOption = LIMIT,
    note: NoteOption = "",
    agent: AgentOption = "default",
    file: FileOption = None,
) -> Answer:
    """Add a test of memory: what a question must find, or must not."""
    place = _file_of(home, file)
    fields = {
        "expect": expected or [],
        "never": never or [],
        "nothing": nothing,
        "limit": limit,
        "note": note,
    }
    test = running_tests.expect(place, home.agent(agent).slug, ask, **fields)
    return Answer(test.line(), Text(f"added a test of {one_line(test.ask)!r} to {one_line(str(place))}"))


@home_command(app, "keepstone test --agent coder", name="test")
def run(home: "Home", agent: OnlyOption = None, file: FileOption = None) -> Answer:
    """Run the tests of memory. The status is 1 if one fails. Nothing is written."""
    place = _file_of(home, file)
    tests = [test for test in read_tests(place) if agent in (None, test.agent)]
    results = run_tests(home, tests)
    failed = [result for result in results if result.reason]
    document = {
        "passed": len(results) - len(failed),
        "failed": len(failed),
        "tests": [
            {
                "id": result.test.id,
                "ask": result.test.ask,
                "passed": not result.reason,
                "reason": result.reason,
            }
            for result in results
        ],
    }
    lines = [Text(harmless(f"FAILED {result.test.ask}\n    {result.reason}"), "red") for result in failed]
    words = f"{counted(len(results), 'test')}, {len(failed):,} failed" if results else "no tests"
    # A failed test sets the status, as in test runners, so that a CI job fails.
    return Answer(document, Group(*lines, Text(words)), status=1 if failed else 0)


def _file_of(home: "Home", file: Path | None) -> Path:
    if file is not None:
        return file.expanduser().absolute()
    return tests_file(home)
