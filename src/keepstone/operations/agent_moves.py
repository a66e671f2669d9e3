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
    """Add an entry to the session of the same id of another agent, delete it here, and return the new one.

    It keeps its id, time, origin and marks. Its earlier versions stay here, deleted.

    Raises:
        ValueError: The target is the same agent, or has an entry with this id in that session.
    """
    _check_other(agent, target)

    def check(live: LiveSession) -> None:
        if live.get(entry.id) is not None:
            raise ValueError(f"agent {target.slug!r} has an entry {entry.id!r:.80} already: it stays here")

    # Added there before it is deleted here: a kill between the two leaves two copies, and never none. The
    # check runs under the target's lock, so that no writer can add the id between check and write.
    [moved] = target.session(entry.session).put_many([_item(entry)], check=check)
    agent.delete(entry.id, entry.session)
    return moved


def move_session(session: Session, agent: Agent, target: Agent) -> Session:
    """Give a session to another agent, under the same id, and return it there.

    Entries keep their ids, times, origins and marks; archived ones are live again. Earlier versions and
    deleted entries are not moved, and nothing of the session is left here. A move that is killed leaves the
    session here as it was, and perhaps the whole of it there.

    Raises:
        SessionNotFoundError: The session is missing.
        ValueError: The target is the same agent, has a session with this id, or the session was changed
            during the move; it is still here then.
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
    # A title is a line of the log without an entry, so that the entries do not bring it along.
    if summary.named:
        moved.set_title(summary.title)
    try:
        session.remove(check=lambda now: _check_same(before, now))
    except ValueError:
        # The check runs under the session's lock: it found a write that the copy lacks, so the copy goes.
        moved.remove()
        raise
    return moved


def _check_other(agent: Agent, target: Agent) -> None:
    if agent.slug == target.slug:
        raise ValueError(f"agent {agent.slug!r} has it already: choose another agent")


def _check_same(before: SessionInfo, now: SessionInfo | None) -> None:
    if now != before:
        raise ValueError(f"session {before.id!r:.80} was changed during the move, and stays here: try again")


def _item(entry: Entry) -> Record:
    return {key: value for key, value in entry.line.items() if key not in _LEFT_BEHIND}
