"""``keepstone suggest``, ``suggestions`` and ``review``: changes that a person accepts or rejects."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command
from keepstone.cli.diff import shown_change
from keepstone.cli.screen import console, table
from keepstone.errors import SuggestionOutdatedError
from keepstone.operations.documents import suggestion_document
from keepstone.text.display import clipped, counted, moment, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.model import Suggestion

app = typer.Typer()

StateOption = Annotated[
    str,
    typer.Option("--state", metavar="STATE", help="open, accepted, rejected, undone, outdated or all."),
]
ByOption = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Your name; default: user.")]
_KEYS = "y accept, n reject, u undo the last decision, Enter skip, q quit"
_LAST_KEYS = "that was the last one: u undo the last decision, Enter end"


@agent_command(app, "keepstone suggest", needs_home=True)
def suggest(agent: "Agent") -> Answer:
    """Suggest what to do about entries that repeat or contradict one another; needs no model.

    Nothing is changed: keepstone review shows the suggestions. What was suggested before is left out.
    """
    from keepstone.operations.suggesting import make

    made = make(agent)
    return _listed(made, f"{counted(len(made), 'new suggestion')}: keepstone review shows them")


@agent_command(app, "keepstone suggestions --state all", needs_home=True)
def suggestions(agent: "Agent", *, state: StateOption = "open") -> Answer:
    """List the suggestions in a state, oldest first."""
    found = agent.suggestions(None if state == "all" else state)
    return _listed(found, "" if found else "no suggestions")


@agent_command(app, "keepstone review --by Ada", needs_home=True)
def review(agent: "Agent", *, by: ByOption = None) -> Answer:
    """Show the open suggestions one by one, with what they would change, and ask what to do.

    Each decision is kept at once.
    """
    from keepstone.operations.suggesting import effects

    suggestions, at = agent.suggestions(), 0
    decided: list[tuple[str, int]] = []
    while at < len(suggestions) or decided:
        is_at_end = at == len(suggestions)
        if not is_at_end:
            _say(_view(suggestions[at], f"{at + 1} of {len(suggestions)}"))
            _say(Text("\n").join(shown_change(*effect) for effect in effects(agent, suggestions[at])))
        answer = _asked(_LAST_KEYS if is_at_end else _KEYS)
        if answer == "q" or (is_at_end and answer != "u"):
            break
        if answer == "u":
            at = _undone(agent, suggestions, decided, at, by)
            continue
        decide = {"y": agent.accept, "n": agent.reject}.get(answer)
        if decide is not None and _was_done(decide, suggestions[at], by):
            decided.append((answer, at))
        at += 1
    accepted, rejected = ([suggestions[index].id for how, index in decided if how == key] for key in "yn")
    words = f"accepted {len(accepted)}, rejected {len(rejected)}, open {len(agent.suggestions())}"
    return Answer(
        {"accepted": accepted, "rejected": rejected}, Text(words if suggestions else "no suggestions")
    )


def _say(view: Text) -> None:
    """Show a text of the dialog on standard error, as standard output has the command's answer."""
    console(stderr=True).print(view, crop=False)


def _asked(keys: str) -> str:
    while True:
        try:
            answer = str(typer.prompt(f"[{keys}]", "", show_default=False, err=True)).strip().lower()[:1]
        except typer.Abort:  # The end of the input.
            return "q"
        if answer in ("", *"ynuq"):
            return answer


def _was_done(decide: Callable[[str, str | None], object], suggestion: "Suggestion", by: str | None) -> bool:
    """Decide, or show why that failed: entries may have changed, or another process may have decided."""
    try:
        decide(suggestion.id, by)
    except (SuggestionOutdatedError, ValueError) as error:
        _say(Text(one_line(str(error)), "yellow"))
        return False
    return True


def _undone(
    agent: "Agent",
    suggestions: Sequence["Suggestion"],
    decided: list[tuple[str, int]],
    at: int,
    by: str | None,
) -> int:
    """Undo the last decision; return the index of the suggestion to show next."""
    if not decided:
        _say(Text("nothing to undo"))
        return at
    how, index = decided.pop()
    if not _was_done(agent.undo, suggestions[index], by):
        return at
    # After an undone rejection the suggestion is open again, and is shown once more. After an undone
    # acceptance it stays undone.
    if how == "n":
        return index
    _say(Text(f"undone: {one_line(suggestions[index].id)}"))
    return at


def _view(suggestion: "Suggestion", place: str) -> Text:
    head = f"{place}: {suggestion.do} {counted(len(suggestion.entries), 'entry')}"
    lines = [f"  why: {clipped(suggestion.why, 400)}"]
    lines += [f"  based on: {clipped(', '.join(suggestion.evidence), 400)}"] if suggestion.evidence else []
    lines += [f"  by: {one_line(suggestion.by)}"] if suggestion.by else []
    return Text.assemble((f"{head}\n", "bold"), "\n".join(lines))


def _listed(suggestions: Sequence["Suggestion"], words: str) -> Answer:
    rows = [
        (moment(suggestion.ts), suggestion.state, suggestion.do, suggestion.id, clipped(suggestion.why))
        for suggestion in suggestions
    ]
    view = Text(words) if not rows else table(("time (UTC)", "state", "do", "id", "why"), rows)
    return Answer({"suggestions": [*map(suggestion_document, suggestions)]}, view)
