"""A session: one ordered log of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from keepstone.errors import EntryNotFoundError
from keepstone.log.arguments import (
    change_of,
    entry_id_of,
    limit_of,
    name_of,
    names_of,
    now,
    record_of,
)
from keepstone.log.line import ENVELOPE, RESERVED, instant
from keepstone.model import SUPERSEDES, Entry, Record, SessionInfo
from keepstone.recall.conflicts import ConflictFinder
from keepstone.recall.validity import newest_valid
from keepstone.recall.vectors import Vectors
from keepstone.shared import Shared
from keepstone.store.decay import Decay
from keepstone.store.protocol import Compacted, SessionCheck
from keepstone.store.supersede import reinstating, superseding

T = TypeVar("T")


class Session:
    """One ordered log of entries."""

    def __init__(self, shared: Shared, agent: str, id: str) -> None:  # noqa: A002
        """Use ``Agent.session`` instead."""
        self.agent = agent
        self.id = id
        self._shared = shared
        self._store = shared.store
        self._clock = shared.clock

    def __repr__(self) -> str:
        return f"<Session {self.id!r} of agent {self.agent!r}>"

    def add(
        self,
        type: str,  # noqa: A002
        data: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002
        text: str | None = None,
        ts: datetime | str | None = None,
        embedding: Any = None,
        **keys: Any,
    ) -> Entry:
        """Remember one thing. When this returns, the entry is on the disk.

        Args:
            type: What kind of thing, such as ``"message"`` or ``"decision"``.
            data: The payload: a JSON object.
            id: An id of the caller's own, unique in the session; made if not given. Adding the
                same content with the same id again changes nothing.
            text: The text to index, where the payload's own strings are not it.
            ts: When it happened; now if not given.
            embedding: The vector of the text: a sequence or array of numbers. It is kept as float32 of unit
                length. In a home without an embedder the first one decides of which dimension the agent's
                vectors are.
            keys: Reserved keys such as ``priority``, ``tags``, ``pinned``, ``summary``, and payload
                keys to store beside the envelope.

        Raises:
            EntryExistsError: An entry with this id has other content.
            EmbeddingDimMismatchError: The agent's vectors have another dimension; nothing was written.
            InvalidEmbeddingError: The vector has NaN, infinity or only zeros; nothing was written.
            TypeError, ValueError: An argument cannot be stored; nothing was written.
            SecretError: It holds what looks like a secret, and the home refuses these; nothing was written.
            LockTimeoutError: Another program kept the session locked for five seconds.
            StoreError: The disk is full or failed; nothing was written.

        Example:
            >>> session.add("message", {"role": "user", "content": "Use pnpm"}, tags=["tools"]).text
            'user: Use pnpm'
        """
        item: Record = {"id": id, "ts": ts, "type": name_of(type, "type")}
        if text is not None:
            item["text"] = text
        if data is not None:
            item["data"] = data
        item |= keys
        if embedding is not None:
            item["embedding"] = embedding  # Last in the line, where it is least in the way of readers.
        return self._added(self._settle([record_of(item, self._clock)]))[0]

    def add_many(self, items: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Remember many things with one write and one sync: all of them, or none.

        Each item is a mapping with the keys of a log line: ``type``, ``data`` and so on. See ``add``.
        """
        return self._added(self._records(_checked(items)))

    def put(self, item: Mapping[str, Any]) -> Entry:
        """Add an entry, or replace type and payload of the one with the item's id.

        The item is a mapping with the keys of a log line.
        """
        return self.put_many([item])[0]

    def put_many(self, items: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Add or replace many entries, each as ``put`` does, with one write: all of them, or none."""
        return self._store.put(self.agent, self.id, self._records(_checked(items)))

    def add_messages(self, messages: Iterable[Any]) -> list[Entry]:
        """Remember chat messages as a provider or framework has them: all of them, or none.

        Each becomes an entry of type ``message`` with the message, whole, as its ``data``. A message with an
        ``id`` is the entry of this id: the same id again replaces what it said.

        Args:
            messages: Mappings, or objects with ``model_dump()``, such as the messages of OpenAI's chat and
                responses, of Anthropic, of LangChain and of the AI SDK.

        Raises:
            TypeError, ValueError: One of them cannot be stored; nothing was written.

        Example:
            >>> session.add_messages([{"role": "user", "content": "Hi"}, completion.choices[0].message])
        """
        from keepstone.text.messages.providers import as_mapping

        items: list[Record] = []
        for message in _checked(messages):
            data = as_mapping(message)
            own = data.get("id")
            named = {"id": own} if isinstance(own, str) and own else {}
            items.append({**named, "type": "message", "data": data})
        return self.put_many(items)

    def messages(
        self, provider: Literal["openai", "anthropic"] | None = None, limit: int | None = None
    ) -> list[Record]:
        """Return the session's messages as they were given, oldest first.

        With a provider they are what its API takes: a message of its own form as it was given, others
        rewritten; tool results right after their calls, and neither without the other. OpenAI's are chat
        messages, or items of the Responses API if the session has any of these. Anthropic's begin with a
        user's; system messages are left out, for they go into the request's own field.

        Args:
            provider: ``"openai"`` or ``"anthropic"``.
            limit: Keep the newest N, before what a provider would refuse is left out.

        Raises:
            ValueError: The provider is not known, or the limit is negative.

        Example:
            >>> client.messages.create(messages=session.messages("anthropic", limit=50), ...)
        """
        found = [entry.data for entry in self.entries(limit, ["message"])]
        if provider is None:
            return found
        from keepstone.text.messages.providers import for_provider

        return for_provider(found, provider)

    def info(self) -> SessionInfo | None:
        """Return id, last change and size of the session, None if it is missing."""
        return self._store.session(self.agent, self.id)

    def entries(
        self,
        limit: int | None = None,
        types: Iterable[str] | None = None,
        as_of: datetime | str | None = None,
        archived: bool = False,  # noqa: FBT001, FBT002  The design's signature.
        *,
        valid_only: bool = False,
    ) -> list[Entry]:
        """Return the session's entries, oldest first. A missing session has none.

        Args:
            limit: Keep the newest so many.
            types: Only entries of these types.
            as_of: As they were at this time, from log and archive.
            archived: Also entries that were archived for their age; deleted ones never.
            valid_only: Only entries that hold now, or at ``as_of``: from ``valid_from`` on, before
                ``valid_to`` and ``expires``.
        """
        moment = None if as_of is None else instant(as_of, "as_of")
        kinds, most = names_of(types, "types"), limit_of(limit)

        def newest(limit: int | None) -> list[Entry]:
            return self._store.entries(
                self.agent, self.id, limit, kinds, as_of=moment, archived=bool(archived)
            )

        if not valid_only:
            return newest(most)
        return newest_valid(newest, most, moment or instant(self._clock(), "the clock's time"))

    def records(self, *, as_of: datetime | str | None = None, archived: bool = False) -> Sequence[Record]:
        """Return what ``entries`` does in the shape of log lines, many times faster.

        The objects are shared with other callers: read them, do not change them.
        """
        moment = None if as_of is None else instant(as_of, "as_of")
        return self._store.records(self.agent, self.id, as_of=moment, archived=archived)

    def count(self, increments: Mapping[str, int], *, wait: bool = True) -> bool:
        """Add to the access counts of entries, by their ids. Not synced: a power cut may lose counts.

        Without ``wait``, False at once if a writer is at work, and nothing is counted.
        """
        return self._store.count(self.agent, self.id, increments, wait=wait)

    def update(self, id: str, **keys: Any) -> Entry:  # noqa: A002
        """Change an entry and return it.

        Reserved keys alone (``priority``, ``tags``, ``pinned`` …) are set, None removes one. A new
        ``data``, ``text`` or payload key replaces text and payload whole. If that changes the
        text, a vector given with the old one goes too, unless a new ``embedding`` comes along.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.

        Example:
            >>> session.update(decision.id, pinned=True).pinned
            True
        """
        (given,) = self._settle([{"id": entry_id_of(id)} | change_of(keys)])
        keeps_body = "type" in keys and keys.keys() <= {"type", *RESERVED}

        def change(entry: Entry) -> Record:
            # A line with a type is a put, and a put without a payload would leave none.
            body = _body_of(entry) if keeps_body else {}
            return self.guarded(self._later(id) | given | body)

        return self._store.modify(self.agent, self.id, id, change)

    def link(self, id: str, target: str, rel: str) -> Entry:  # noqa: A002
        """Add a link from an entry to another one's id, or make it the last; see ``Agent.link``."""
        if rel == SUPERSEDES:
            raise ValueError(
                "a link 'supersedes' is made by supersede(old_id, item), which also closes the old entry"
            )
        (given,) = self._settle([{"links": [{"to": entry_id_of(target), "rel": name_of(rel, "rel")}]}])

        def change(entry: Entry) -> Record | None:
            (link,) = given["links"]
            links = [*(other for other in entry.links if other != link), link]
            return None if links == [*entry.links] else self._later(id) | {"links": links}

        return self._store.modify(self.agent, self.id, entry_id_of(id), change)

    def supersede(self, id: str, item: Mapping[str, Any]) -> Entry:  # noqa: A002
        """Add an entry that replaces another one from then on; see ``Agent.supersede``."""
        (record,) = self._records([_checked_item(item)])
        has_type = item.get("type") is not None
        step = superseding(entry_id_of(id), record, now(self._clock), has_type=has_type)
        revised = self._store.revise(self.agent, self.id, step)
        return ConflictFinder(self._store, self._clock).attach(revised[:1])[0]

    def reinstate(self, id: str) -> Entry:  # noqa: A002
        """Delete what replaced an entry, and let it hold again; see ``Agent.reinstate``."""
        versions = self._store.history(self.agent, entry_id_of(id), self.id)
        step = reinstating(id, now(self._clock), versions[0].valid_to if versions else None)
        return self._store.revise(self.agent, self.id, step)[0]

    def delete(self, id: str) -> None:  # noqa: A002
        """Hide an entry: it is no longer returned, and its lines stay in the log until purged.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
        """
        self._store.modify(
            self.agent,
            self.id,
            entry_id_of(id),
            lambda _: {"id": id, "deleted": True, "ts": now(self._clock)},
        )

    def purge(self, id: str) -> None:  # noqa: A002
        """Remove every byte of an entry, deleted or not: from log, archive and index.

        Raises:
            EntryNotFoundError: No line of the session speaks of this id.
            PurgePendingError: It is gone, but a reader elsewhere keeps old bytes; the next open finishes.
        """
        entry_id_of(id)
        if not self._store.purge(self.agent, self.id, [id]):
            raise EntryNotFoundError(f"session {self.id!r:.80} has no entry {id!r:.80}")

    def purge_many(self, ids: Iterable[str]) -> int:
        """Remove every byte of entries, deleted or not, as ``purge`` does; return how many there were.

        Ids that the session does not have are left out, so that a call can be repeated.
        """
        return self._store.purge(self.agent, self.id, [*map(entry_id_of, names_of(ids, "ids") or ())])

    def compact(self) -> int:
        """Fold old versions and deleted entries away into the archive; return the bytes saved.

        A long log does this by itself.
        """
        return self._store.compact(self.agent, self.id).saved

    def archive_faded(self, decay: Decay | None = None, *, wait: bool = True) -> Compacted:
        """Compact the log, and archive live entries that have faded; return what was saved and archived.

        ``entries(archived=True)`` has them. Without ``decay`` those have faded whose priority is 0.3 or
        less now, unless they are pinned. Without ``wait``, nothing is done if a writer is at work.
        """
        rule = decay or Decay(instant(self._clock(), "the clock's time"))
        return self._store.compact(self.agent, self.id, rule, wait=wait)

    def compacted_size(self) -> int:
        """Return how many bytes the log had after its last compaction; 0 if that is not known."""
        return self._store.compacted_size(self.agent, self.id)

    def clear(self, *, check: SessionCheck | None = None) -> bool:
        """Remove all entries, archived ones too, and keep the session; False if it is missing.

        ``check`` is called with the session's ``SessionInfo`` while no other writer can change it;
        what it raises stops the call, and nothing is removed.
        """
        return self._store.clear(self.agent, self.id, check=check) is not None

    def remove(self, *, check: SessionCheck | None = None) -> bool:
        """Remove the session and every byte of it; False if it is missing. ``check`` is as for ``clear``."""
        return self._store.remove(self.agent, self.id, check=check)

    def drop(self, *, check: SessionCheck | None = None) -> int:
        """Remove the session as ``remove`` does, mark it as dropped, and return how many entries it had.

        A missing session has none, and is not marked. What is added later begins anew. ``check`` is as
        for ``clear``.
        """
        return self._store.drop(self.agent, self.id, now(self._clock), check=check)

    def entry_count(self) -> int:
        """Return how many entries the session has; 0 if it is missing."""
        return self._store.entry_counts(self.agent, self.id).get(self.id, 0)

    def _added(self, records: list[Record]) -> list[Entry]:
        return ConflictFinder(self._store, self._clock).attach(
            self._store.append(self.agent, self.id, records)
        )

    def _records(self, items: Iterable[Mapping[str, Any]]) -> list[Record]:
        return self._settle([record_of(item, self._clock) for item in items])

    def guarded(self, item: Record) -> Record:
        """Return an item as the home lets it be written: with its secrets masked, where it masks them.

        Raises:
            SecretError: It holds what looks like a secret, and the home refuses these.
        """
        return item if self._shared.guard is None else self._shared.guard(self.id, [item])[0]

    def _settle(self, records: list[Record]) -> list[Record]:
        """Return the lines as they may be written: vectors of the right space, secrets masked or refused."""
        if self._shared.guard is not None:
            records = self._shared.guard(self.id, records)
        self._shared.meaning.claim(self.agent)
        for record in records:
            if record.get("embedding"):
                Vectors(self._store, self.agent, self._shared.meaning).settle(records)
                break
        return records

    def _later(self, id: str) -> Record:  # noqa: A002
        """Return the head of a later line of an entry."""
        return {"id": id, "ts": now(self._clock)}


def _body_of(entry: Entry) -> Record:
    """Return what an entry's line says beside envelope and reserved keys."""
    return {key: value for key, value in entry.line.items() if key not in ENVELOPE and key not in RESERVED}


def _checked_item(item: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise TypeError(f"an item must be a mapping, not {type(item).__name__}: {item!r:.80}")
    return item


def _checked(items: Iterable[T]) -> Iterable[T]:
    if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"items must be an iterable of mappings, not {items.__class__.__name__}")
    return items
