"""Moving entries and sessions from one agent of a home to another."""

from __future__ import annotations

from keepstone.agent import Agent
from keepstone.errors import SessionNotFoundError
from keepstone.model import Entry, Record, SessionInfo
from keepstone.session import Session
from keepstone.store.protocol import LiveSession

_LEFT_BEHIND = frozenset({"modified", "batch", "deleted", "life"})
"""Keys of a line that belong to the log that it was read from."""


def move_entry(entry: Entry, agent: Agent, target: Agent) -> Entry:
    """Move an entry to another agent, into the session with the id of its own session; return the new entry.

    The entry keeps its id, time, origin and marks. Its earlier versions stay with ``agent``, deleted.

    Raises:
        ValueError: The target is the same agent, or has an entry with this id in that session.
    """
    _check_other(agent, target)

    def check(live: LiveSession) -> None:
        if live.get(entry.id) is not None:
            raise ValueError(f"agent {target.slug!r} has an entry {entry.id!r:.80} already: it stays here")

    # Add the entry before deleting it: a kill between the two leaves two copies, never none. The check runs
    # under the target's lock, so that no writer can add the id between check and write.
    [moved] = target.session(entry.session).put_many([_item(entry)], check=check)
    agent.delete(entry.id, entry.session)
    return moved


def move_session(session: Session, agent: Agent, target: Agent) -> Session:
    """Move a session to another agent under the same id, and return the new session.

    Entries keep their ids, times, origins and marks; archived ones are live again. Earlier versions and
    deleted entries are removed. A killed move leaves the session with ``agent`` unchanged, and perhaps a
    complete copy with ``target``.

    Raises:
        SessionNotFoundError: The session is missing.
        ValueError: The target is the same agent, has a session with this id, or the session was changed
            during the move, which then does not happen.
    """
    _check_other(agent, target)
    before = session.info()
    if before is None:
        raise SessionNotFoundError(agent.slug, session.id)
    moved = target.session(session.id)
    if moved.info() is not None:
        raise ValueError(
            f"agent {target.slug!r} has a session {session.id!r:.80} already: rename one of the two first"
        )
    [summary] = agent.session_summaries([session.id])
    moved.put_many(map(_item, session.entries(archived=True, include_superseded=True)))
    # A title is a log line without an entry, so it is not among the entries.
    if summary.named:
        moved.set_title(summary.title)
    try:
        session.remove(check=lambda now: _check_same(before, now))
    except ValueError:
        # The check, under the session's lock, found a write that the copy lacks: remove the copy.
        moved.remove()
        raise
    return moved


def _check_other(agent: Agent, target: Agent) -> None:
    if agent.slug == target.slug:
        raise ValueError(
            f"the source and the target are the same agent, {agent.slug!r}: choose another target"
        )


def _check_same(before: SessionInfo, now: SessionInfo | None) -> None:
    if now != before:
        raise ValueError(f"session {before.id!r:.80} was changed during the move, and stays here: try again")


def _item(entry: Entry) -> Record:
    return {key: value for key, value in entry.line.items() if key not in _LEFT_BEHIND}
