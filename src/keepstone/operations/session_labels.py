"""Labels of sessions for people."""

from __future__ import annotations

from collections.abc import Iterable

from keepstone.agent import Agent
from keepstone.text.display import clipped, one_line

_LONGEST = 60
"""Maximum characters of a title."""


def session_labels(agent: Agent, sessions: Iterable[str]) -> dict[str, str]:
    """Return the labels of sessions by id: the title in quotation marks, or the id if there is no title.

    Examples:
        >>> _ = agent.session("databases").add("note", text="PostgreSQL")
        >>> agent.session("databases").set_title("Choosing a database")
        >>> session_labels(agent, ["databases", "main"])
        {'databases': '“Choosing a database”', 'main': 'main'}
    """
    # One query for all sessions, as a list of labels may be long.
    ids = list(dict.fromkeys(sessions))
    titles = {summary.id: summary.title for summary in agent.session_summaries(ids)} if ids else {}
    return {
        name: f"“{clipped(one_line(title), _LONGEST)}”" if (title := titles.get(name)) else one_line(name)
        for name in ids
    }
