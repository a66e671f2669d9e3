"""New files of a session without purged entries, written while others go on using the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from keepstone.index import Index
from keepstone.log import rewrite
from keepstone.log.replacement import OvertakenError, Replacement
from keepstone.model import Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.deletion import Found, changed_since, find_live, live_now
from keepstone.store.files.placing import IndexedPlacing
from keepstone.store.files.purge_marks import erase_entries, mentioned
from keepstone.store.files.spellings import holding, parts


class PurgedFiles:
    """A session's log and archive without the lines of some entries, and its files under other spellings."""

    def __init__(self, logs: AgentLogs, session: str, ids: Sequence[str], scope: Scope | None = None) -> None:
        self._logs = logs
        self._session = session
        self._ids = frozenset(ids)
        self._scope = scope
        self._found: Found | None = None
        self._log, self._archive = logs.log(session), logs.archive(session)
        self._others = logs.spellings(session)
        self.logs = [self._log, *self._others]
        """The logs of the session under all spellings."""
        self._mentions = mentioned(logs.folder, self.logs, self._ids)
        self.placing = IndexedPlacing(logs, session, self._log)
        self._new: dict[str, Replacement] = {}

    @property
    def gone(self) -> list[str]:
        """The ids to purge that any of the files mentions."""
        mentioned_ids = frozenset[str]().union(*(mentions.ids for mentions in self._mentions.values()))
        return sorted(self._ids & mentioned_ids)

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Write the new files beside the current ones; they are removed unless ``put`` is called."""
        self._find()
        with ExitStack() as stack:
            with self.placing.locked():
                if self.placing.is_held:  # Others may have moved lines between the files.
                    self._find_mentions()
                # Replacements that others are preparing still have the purged entries.
                self._log.clear_away(in_use=True)
                self._new = {}
                for part in (self._log, self._archive):
                    new = (
                        Replacement.begin(part, rewrite.without(self._ids))
                        if self._holds(part.name)
                        else None
                    )
                    if new is not None:
                        self._new[part.name] = stack.enter_context(new.closing(self.placing))
            self.placing.catch_up()
            for new in self._new.values():
                new.follow_all()
            # Search without the lock, so that ``check`` only has to read the lines that are added after this.
            self._find_mentions()
            yield

    def check(self) -> None:
        """Raise OvertakenError if others rewrote a file, or added purged ids to a file that was not prepared.

        It is also raised if an entry no longer matches the scope; the next try leaves that entry out. The
        session's lock is held.
        """
        self._check_scope()
        for new in self._new.values():
            new.check()
        self._find_mentions()
        if any(self._holds(part.name) and part.name not in self._new for part in (self._log, self._archive)):
            raise OvertakenError

    def put(self, ids: Sequence[str]) -> None:
        """Put the new files in place, and hide the rows of the entries. The lock is held."""
        # The log comes first: it is the longest, and if it cannot be written, nothing is changed at all.
        for name, new in self._new.items():
            new.end()
            if name == self._log.name:
                self.placing.put(new, ids, folded=False)
            else:
                new.put()
        for original in parts(self._logs.folder, self._log)[2:]:
            rewrite.purge(original, self._ids)
        for other in self._others:
            with holding(other):
                erase_entries(self._logs.folder, other, (), self._ids)
        if self._log.name not in self._new:
            self._logs.query(Index.hide, self._session, ids)

    def _find(self) -> None:
        """Look up which of the entries match the scope, and leave out all others."""
        if self._scope is not None:
            self._found = find_live(self._logs, self._session, sorted(self._ids), self._scope)
            if self._found is not None:
                self._ids = frozenset(self._found.live)

    def _check_scope(self) -> None:
        if self._scope is None:
            return
        changed = None if self._found is None else changed_since(self._log, self._found)
        if changed is None and not self.placing.is_held and self._found is not None:
            raise OvertakenError
        again = self._ids if changed is None else self._ids & changed
        lost = again.difference(live_now(self._logs, self._session, self._log, sorted(again), self._scope))
        if lost:
            self._ids -= lost
            raise OvertakenError

    def _find_mentions(self) -> None:
        """Find which of the entries each file mentions now."""
        self._mentions = mentioned(self._logs.folder, self.logs, self._ids, self._mentions)

    def _holds(self, name: str) -> bool:
        return not self._ids.isdisjoint(self._mentions[name].ids)
