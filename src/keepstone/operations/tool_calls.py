"""The functions of a model's tools."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from keepstone.agent import shares
from keepstone.context.fence import fenced, line_of
from keepstone.errors import EntryNotFoundError, MemoryFileNotFoundError, PurgePendingError
from keepstone.log.line import format_time
from keepstone.model import Entry, Hit, Hits
from keepstone.operations.agent_tools import (
    AS_DATA,
    LONGEST_FILE,
    AgentMemory,
    hits_answer,
    shortened,
)
from keepstone.operations.toolbox import ToolAnswer
from keepstone.store.facts import DEFAULT_SESSION

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.notes.notes import Notes

SESSION = "main"
"""The session that a call uses if it names none."""
BUDGET = 2000
HITS = 10
TURNS = 20
_HISTORY = 20_000
"""Maximum characters of all texts of a history, about 5,000 tokens; beyond it texts are shortened."""
_LEAST = 200
"""Minimum length to which an entry in a history is shortened, in characters."""


class ToolCalls(AgentMemory):
    """The functions of the tools. Each method gets validated arguments."""

    finder = "memory_search"
    lister = "memory_files with action list"

    def __init__(
        self,
        agent: Agent,
        notes: Notes | None,
        session: str = SESSION,
        shared: Collection[str] = (),
    ) -> None:
        super().__init__(agent, session)
        self._notes = notes
        self._shared = shared

    def save(
        self,
        text: str,
        type: str = "note",  # noqa: A002
        session: str | None = None,
        tags: Sequence[str] = (),
        pinned: bool = False,  # noqa: FBT001, FBT002
        priority: float | None = None,
        derived_from: Sequence[str] = (),
        cites: Sequence[str] = (),
    ) -> ToolAnswer:
        """Save a memory."""
        holder = self.session if session is None else session
        saved = self.remember(
            text,
            type,
            tags,
            pinned,
            session=holder,
            priority=priority,
            derived_from=derived_from,
            cites=cites,
        )
        return ToolAnswer({**saved.data, "session": holder}, saved.text)

    def set(self, key: str, value: str | float, session: str = DEFAULT_SESSION) -> ToolAnswer:
        """Set the value of a key."""
        entry = self.agent.set(key, value, session)
        return ToolAnswer({"id": entry.id, "session": session, "key": key}, f"set, id {entry.id}")

    def suggest(
        self,
        do: str,
        why: str,
        entries: Sequence[str] = (),
        item: Mapping[str, Any] | None = None,
        evidence: Sequence[str] = (),
    ) -> ToolAnswer:
        """Propose a change, which a person accepts or rejects."""
        made = self.agent.suggest(do, entries, item, why=why, evidence=evidence, by="model")
        return ToolAnswer(
            {"id": made.id, "state": made.state}, f"suggested, id {made.id}; a person decides about it"
        )

    def search(
        self,
        query: str,
        limit: int = HITS,
        session: str | None = None,
        types: Sequence[str] | None = None,
        min_relevance: float | None = None,
        trust: str | None = None,
    ) -> ToolAnswer:
        """Search memories; the answer reports memories that were compared by words only."""
        sessions = None if session is None else [session]
        hits = self.agent.recall(
            query,
            limit=limit,
            sessions=sessions,
            types=types or None,
            min_relevance=min_relevance or 0.0,
            shared=self.sharing(),
            trust=trust,
        )
        shown: Sequence[Hit] = hits
        note = None
        # A model that gives a minimum relevance decides itself; only otherwise weak hits are marked.
        if min_relevance is None:
            shown, note = self.told(hits, limit, session, types or None, trust)
        answer = hits_answer(shown, note)
        found = [
            {**item, "session": hit.entry.session, **self._whose(hit.entry.agent)}
            for item, hit in zip(answer.data["hits"], shown, strict=True)
        ]
        state = {"lexical_only": hits.lexical_only, "pending": hits.pending}
        return ToolAnswer({**answer.data, "hits": found, **state}, answer.text + _state_of(hits))

    def get(self, id: str) -> ToolAnswer:  # noqa: A002
        """Return one memory, shortened only beyond ``LONGEST_FILE`` characters."""
        entry = self._readable(id)
        text = shortened(entry.text, LONGEST_FILE)
        document = _document(entry, text) | self._whose(entry.agent)
        # A payload cannot be shortened, so a payload that is too long is left out.
        if len(json.dumps(entry.data)) <= LONGEST_FILE:
            document["data"] = entry.data
        return ToolAnswer(document, AS_DATA + fenced([line_of("1", entry, text, with_id=True)]))

    def forget_or_purge(self, id: str, purge: bool = False) -> ToolAnswer:  # noqa: A002, FBT001, FBT002
        """Hide a memory, or erase its bytes."""
        if not purge:
            return ToolAnswer({"id": id, "purged": False}, self.forget(id).text)
        try:
            self.agent.purge(id)
        except PurgePendingError:
            pending = "another program still reads the memory, and the next write erases the last bytes"
            return ToolAnswer({"id": id, "purged": True}, f"erased {id}; {pending}")
        except EntryNotFoundError:
            self.found(id)  # Raises an error that names what a model can do.
            raise
        return ToolAnswer({"id": id, "purged": True}, f"erased {id}")

    def context(self, query: str | None = None, budget: int = BUDGET) -> ToolAnswer:
        """Return the context block that precedes a conversation."""
        found = self.agent.context(query, budget=budget, notes=self._notes, ids=True, shared=self.sharing())
        sources = [
            {"ref": item.ref, "session": item.session, "id": item.id, **self._whose(item.agent)}
            for item in found.sources
        ]
        data = {"text": found.text, "tokens": found.tokens, "sources": sources}
        return ToolAnswer(data, found.text or found.reason or "")

    def sharing(self) -> list[str]:
        """Return the agents that share with this one at present; a grant may end while a server runs."""
        return [name for name in self._shared if shares(self.agent, name)]

    def _readable(self, id: str) -> Entry:  # noqa: A002
        """Return a memory of the agent, or a memory that is shared with the agent."""
        with suppress(EntryNotFoundError):
            return self.agent.get(id)
        # The agent's own entries come first, so that another agent cannot replace one by using its id.
        for name in self.sharing():
            with suppress(EntryNotFoundError):
                return self.agent.get(id, of=name)
        return self.found(id)  # Raises an error that names what a model can do.

    def _whose(self, agent: str) -> dict[str, str]:
        return {} if agent == self.agent.slug else {"agent": agent}

    def history(self, session: str | None = None, limit: int = TURNS) -> ToolAnswer:
        """Return the newest entries of a session, oldest first."""
        session = self.session if session is None else session
        entries = self.agent.session(session).entries(limit)
        texts = _fitted([entry.text for entry in entries])
        lines = [
            line_of(str(number), entry, text, with_id=True)
            for number, (entry, text) in enumerate(zip(entries, texts, strict=True), 1)
        ]
        found = [_document(entry, text) for entry, text in zip(entries, texts, strict=True)]
        shown = AS_DATA + fenced(lines) if lines else f"session {session!r:.80} has no entries"
        return ToolAnswer({"session": session, "entries": found}, shown)

    def files(self, action: str, path: str | None = None, content: str | None = None) -> ToolAnswer:
        """Read or change a file."""
        if action == "list":
            return self.list_files()
        if path is None:
            raise ValueError(f"path is missing; {action} needs the path of a file")
        if action == "read":
            # Programs get the file's exact text as ``content``; only the text for the model is fenced.
            answer = self.read_file(path)
            return ToolAnswer(answer.data, AS_DATA + fenced([f"{answer.text}\n"]))
        if action == "delete":
            return self._delete_file(path)
        if content is None:
            raise ValueError(f"content is missing; {action} needs the text to {action}")
        if action == "write":
            return self.write_file(path, content)
        added = self.agent.files.append(path, content)
        return ToolAnswer({"path": path, "bytes": added}, f"appended {added} bytes to {path}")

    def _delete_file(self, path: str) -> ToolAnswer:
        try:
            self.agent.files.delete(path)
        except MemoryFileNotFoundError:
            raise MemoryFileNotFoundError(
                f"there is no file {path!r}; {self.lister} says which there are"
            ) from None
        return ToolAnswer({"path": path, "deleted": True}, f"deleted {path}")


def _fitted(texts: list[str]) -> list[str]:
    """Return the texts unchanged if they fit together, otherwise each shortened to an equal share."""
    if sum(map(len, texts)) <= _HISTORY:
        return texts
    return [shortened(text, max(_LEAST, _HISTORY // len(texts))) for text in texts]


def _document(entry: Entry, text: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": entry.id,
        "session": entry.session,
        "type": entry.type,
        "ts": format_time(entry.ts),
        "text": text,
    }
    kept = {"tags": [*entry.tags], "priority": entry.priority, "summary": entry.summary}
    kept |= {"trust": None if entry.origin is None else entry.trust, "stale": entry.stale}
    return document | {key: value for key, value in kept.items() if value}


def _state_of(hits: Hits) -> str:
    """Return a remark if memories were compared by words only, otherwise an empty string."""
    if hits.lexical_only:
        return f"\nOnly words were compared ({hits.reason}): try other words if something is missing.\n"
    if hits.pending:
        return f"\n{hits.pending:,} memories were compared by words only; their vectors are being made.\n"
    return ""
