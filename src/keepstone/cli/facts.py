"""``keepstone set``, ``value`` and ``unset``: values by key."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from keepstone.cli.command import Answer, agent_command, argument_or_input
from keepstone.cli.options import complete_sessions, moment_or_none
from keepstone.errors import EntryNotFoundError
from keepstone.operations.documents import added_document
from keepstone.store.facts import DEFAULT_SESSION
from keepstone.text.display import clipped, harmless, one_line

if TYPE_CHECKING:
    from keepstone.agent import Agent

app = typer.Typer()

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="The name of what has the value.", show_default=False)
]
ValueArgument = Annotated[
    str | None,
    typer.Argument(metavar="[VALUE]", help="The value, a text; - reads standard input.", show_default=False),
]
DataOption = Annotated[
    str | None, typer.Option("--data", metavar="JSON", help="The value as JSON, in place of VALUE.")
]
FactsOption = Annotated[
    str,
    typer.Option(
        "--session", metavar="SESSION", help="The session of the facts.", autocompletion=complete_sessions
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="The value then: 7d, yesterday, 2026-03-01, or RFC 3339."),
]


@agent_command(app, "keepstone set plan Free", name="set")
def set_value(
    agent: "Agent",
    key: KeyArgument,
    value: ValueArgument = None,
    *,
    data: DataOption = None,
    session: FactsOption = DEFAULT_SESSION,
) -> Answer:
    """Set the value of a key. Its former value is superseded, and stays in the history."""
    entry = agent.set(key, _value(value, data), session)
    words = f"{key} is {_shown(entry.data['value'])}, entry {entry.id} in session {entry.session}"
    return Answer(added_document(entry), Text(harmless(words)))


@agent_command(app, "keepstone value plan")
def value(
    agent: "Agent", key: KeyArgument, *, session: FactsOption = DEFAULT_SESSION, as_of: AsOfOption = None
) -> Answer:
    """Print the value of a key."""
    found = agent.value(key, None, session, moment_or_none(as_of, "--as-of"))
    if found is None:
        raise EntryNotFoundError(
            f"session {session!r:.80} of agent {agent.slug!r} has no value of {key!r:.80}: set it with "
            "keepstone set KEY VALUE"
        )
    return Answer({"key": key, "value": found}, Text(harmless(_shown(found))))


@agent_command(app, "keepstone unset plan")
def unset(agent: "Agent", key: KeyArgument, *, session: FactsOption = DEFAULT_SESSION) -> Answer:
    """Delete the value of a key, which its history keeps."""
    done = agent.unset(key, session)
    words = f"{'unset' if done else 'there is no value of'} {key}"
    return Answer({"key": key, "unset": done}, Text(one_line(words)))


def _value(value: str | None, data: str | None) -> Any:
    # An empty text is a value; only None means that the value was not given.
    if (value is None) == (data is None):
        raise ValueError("give either VALUE, - or --data JSON")
    if data is None:
        return argument_or_input(value or "")
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"--data is not valid JSON ({error}): {clipped(data, 80)}") from None


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
