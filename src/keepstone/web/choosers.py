"""Filter fields with the values that an agent's entries have: types, tags and sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nicegui import ui

from keepstone.agent import Agent
from keepstone.model import TRUST
from keepstone.text.display import clipped
from keepstone.web.elements import aside
from keepstone.web.phrases import shown

Values = dict[str, str]
"""Values with their displayed texts."""

_LABELS = {"type": "Types", "tag": "Tags, all of them", "session": "Sessions"}
_ENTRIES = 500
"""Number of newest entries whose types and tags are offered."""
_SESSIONS = 200
"""Maximum number of offered sessions, the one with the newest entry first."""
_TITLE = 60


class Choosers:
    """One field for each kind of filter, in which known values are chosen and others typed.

    Args:
        names: The filters to show, of ``type``, ``tag`` and ``session``.
        given: The chosen values of each filter, comma-separated as in an address.
        changed: Called when a choice has changed.
    """

    def __init__(self, names: Iterable[str], given: dict[str, str], changed: Callable[[], Any]) -> None:
        self._fields = {name: _field(_LABELS[name], names_of(given.get(name, "")), changed) for name in names}

    def chosen(self, name: str) -> list[str]:
        """Return the chosen values of a filter."""
        return [
            str(value).removeprefix("#") if name == "tag" else str(value)
            for value in self._fields[name].value
        ]

    def text(self, name: str) -> str:
        """Return the chosen values, comma-separated as in an address."""
        return ", ".join(self.chosen(name))

    def clear(self, name: str) -> None:
        """Clear a filter, which calls ``changed``."""
        self._fields[name].value = []

    async def offer(self, agent: Agent) -> None:
        """Offer the values that the agent's entries have."""
        for name, values in (await aside(known_values, agent)).items():
            if name in self._fields:
                made = self._fields[name]
                # Values that the reader typed or the address contains become options, because NiceGUI's
                # select shows only options.
                made.set_options(
                    {**values, **{value: shown(value) for value in made.value if value not in values}}
                )


def known_values(agent: Agent) -> dict[str, Values]:
    """Return the types and tags of the newest entries, the most frequent first, and sessions."""
    counts: dict[str, dict[str, int]] = {"type": {}, "tag": {}}
    for entry in agent.entries(limit=_ENTRIES, newest_first=True, include_superseded=True):
        for kind, values in (("type", (entry.type,)), ("tag", entry.tags)):
            for value in values:
                counts[kind][value] = counts[kind].get(value, 0) + 1
    known = {
        kind: {value: shown(value) for value in sorted(many, key=lambda value: (-many[value], value))}
        for kind, many in counts.items()
    }
    # Titles are read from the logs, so they are read for the offered sessions only.
    ids = [summary.id for summary in agent.session_summaries(texts=False)[:_SESSIONS]]
    known["session"] = {
        summary.id: shown(f"{clipped(summary.title, _TITLE)} · {summary.id}" if summary.title else summary.id)
        for summary in agent.session_summaries(ids)
    }
    return known


def _field(label: str, chosen: list[str], changed: Callable[[], Any]) -> ui.select:
    made = ui.select(
        {value: shown(value) for value in chosen},
        label=label,
        value=chosen,
        multiple=True,
        new_value_mode="add-unique",
        clearable=True,
        on_change=lambda _: changed(),
    )
    return made.props("outlined dense options-dense use-chips hide-dropdown-icon").classes("wide chooser")


def trust_field(given: str, changed: Callable[[], Any]) -> ui.select:
    """Show the choice of the minimum trust of entries; its value is empty for any trust."""
    levels = {"": "any", **{level: level for level in TRUST}}
    made = ui.select(levels, label="Trust, at least", value=given if given in levels else "")
    made.on_value_change(lambda _: changed())
    return made.props("outlined dense options-dense").classes("wide chooser")


def names_of(words: str) -> list[str]:
    """Return the values of a comma-separated list."""
    return [word.strip() for word in words.split(",") if word.strip()]
