"""Sessions: ordered logs of entries."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack

from keepstone.errors import EntryNotFoundError
from keepstone.log.arguments import (
    ADD_KEYS,
    AddedKeys,
    ChangedKeys,
    Clock,
    change_of,
    check_keys,
    entry_id_of,
    item_of,
    limit_of,
    name_of,
    names_of,
    new_record_of,
    new_records_of,
    now,
    record_of,
    text_and_data,
)
from keepstone.log.line import instant, is_put
from keepstone.log.merging import check_content, merged
from keepstone.log.time_words import moment_of
from keepstone.log.titles import TITLE_ID
from keepstone.model import SUPERSEDES, Entry, Record, Scope, SessionInfo
from keepstone.recall.shared import BoundToProcess, Shared
from keepstone.recall.vectors import Vectors
from keepstone.store.citations import refuse_citing
from keepstone.store.decay import Decay
from keepstone.store.facts import FACT, is_fact, setting, with_key
from keepstone.store.protocol import Compacted, LiveSession, SessionCheck
from keepstone.store.supersede import reinstating, superseding
from keepstone.store.validity import is_valid, newest_valid
from keepstone.tracing import traced
from keepstone.vector import EmbeddingLike

T = TypeVar("T")


class Session(BoundToProcess):
    """A session: one ordered log of entries."""

    def __init__(self, shared: Shared, agent: str, id: str) -> None:  # noqa: A002
        """Use ``Agent.session`` instead."""
        self.agent = agent
        self.id = id
        self._shared = shared
        self._store = shared.store
        self._clock = shared.clock

    def __repr__(self) -> str:
        return f"<Session {self.id!r} of agent {self.agent!r}>"

    @traced("add")
    def add(
        self,
        type: str,  # noqa: A002
        data: Mapping[str, Any] | str | None = None,
        *,
        id: str | None = None,  # noqa: A002
        text: str | None = None,
        ts: datetime | str | None = None,
        embedding: EmbeddingLike | None = None,
        summary: str | None = None,
        **reserved: Unpack[AddedKeys],
    ) -> Entry:
        """Add an entry. When this returns, the entry is on the disk.

        Args:
            type: The type of the entry, such as ``"message"`` or ``"decision"``.
            data: The payload: a JSON object. A string is taken as the text instead.
            id: The caller's id for the entry, unique in the session; default: a new id. Adding the same
                content with the same id again changes nothing.
            text: The text to index; default: the payload's strings.
            ts: The time of the entry; default: now.
            embedding: The vector of the text: a sequence or array of numbers, stored as float32 of unit
                length. In a home without an embedder, the first vector sets the dimension of all the agent's
                vectors.
            summary: A shorter wording to store with the entry.
            reserved: Reserved keys such as ``priority``, ``tags``, ``pinned``, ``expires``. In ``expires``
                and ``valid_to``, ``"7d"`` means seven days from now. ``origin`` says who said it, such as
                ``"tool"``, and ``derived_from`` names the entries that it was derived from.

        Raises:
            EntryNotFoundError, AmbiguousIdError: ``derived_from`` names no entry, or several; nothing was
                written.
            EntryExistsError: An entry with this id has other content.
            EmbeddingDimMismatchError: The agent's vectors have another dimension; nothing was written.
            InvalidEmbeddingError: The vector has NaN, infinity or only zeros; nothing was written.
            TypeError: A keyword is unknown, an argument has a wrong type, or there are two texts; nothing was
                written.
            ValueError: There is neither text nor payload, or a value cannot be stored; nothing was written.
            SecretError: The entry has a suspected secret, which the home refuses; nothing was written.
            LockTimeoutError: Another process held the session's lock for five seconds.
            StoreError: The disk is full or failed; nothing was written.

        Examples:
            >>> session.add("note", "Ada likes tea").text
            'Ada likes tea'
            >>> session.add("message", {"role": "user", "content": "Use pnpm"}, tags=["tools"]).text
            'user: Use pnpm'
        """
        if reserved:
            check_keys(reserved, ADD_KEYS)
        item: Record = {"id": id, "ts": ts, "type": name_of(type, "type")}
        text, payload = text_and_data(data, text)
        if text is not None:
            item["text"] = text
        if payload is not None:
            item["data"] = payload
        item |= reserved if summary is None else {"summary": summary, **reserved}
        if embedding is not None:
            item["embedding"] = embedding  # Last in the line: people who read it see the other keys first.
        return self._added(self._settle([new_record_of(item, self._clock)]))[0]

    @traced("add", {"keepstone.entries": len})
    def add_many(self, items: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Add many entries with one write and one sync: all of them, or none.

        Each item is a mapping with the keys of a log line, and has a ``type``. Without ``data``, its unknown
        keys become the payload. Items without a ``ts`` get the same time, so that entries of other writers do
        not come between them. See ``add``.
        """
        # Use one time for all entries of a batch; otherwise, sorting by time would mix the batches of
        # concurrent writers.
        clock = _stopped(self._clock)
        return self._added(self._settle(new_records_of(_checked(items), clock)))

    def put(self, item: Mapping[str, Any]) -> Entry:
        """Add an entry, or replace the type and payload of the entry with the item's id.

        The item is a mapping with the keys of a log line.
        """
        return self.put_many([item])[0]

    def put_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        check: Callable[[LiveSession], object] | None = None,
    ) -> list[Entry]:
        """Add or replace many entries with one write, each like ``put``: all of them, or none.

        ``check`` is called under the session's lock with an object whose ``get`` returns the live entry with
        an id, or None. If ``check`` raises, nothing is written. ``check`` must not use the home.

        Examples:
            >>> def is_missing(session):
            ...     if session.get("lease") is not None:
            ...         raise ValueError("the lease is taken")
            >>> session.put_many([{"id": "lease", "type": "note", "text": "Ada"}], check=is_missing)[0].text
            'Ada'
        """
        records = self._records(_checked(items))
        if check is None:
            return self._judged(self._store.put(self.agent, self.id, records))

        def revision(live: LiveSession) -> list[Record]:
            check(live)
            return records

        # ``revise`` needs an existing session.
        self._store.create(self.agent, self.id)
        ids = [record["id"] for record in records]
        return self._judged(self._store.revise(self.agent, self.id, revision, ids))

    def add_messages(self, messages: Iterable[Any]) -> list[Entry]:
        """Store chat messages in the format of a provider or framework: all of them, or none.

        Each becomes an entry of type ``message`` with the whole message as its ``data``. A message's ``id``
        becomes the entry's id; storing the same id again replaces the content. The message's role sets the
        origin of the entry: a user, a model or a tool. A message with a tool's result has the tool as its
        origin.

        Args:
            messages: Mappings, or objects with ``model_dump()``, such as the messages of OpenAI's chat and
                responses, of Anthropic, of LangChain and of the AI SDK.

        Raises:
            TypeError, ValueError: One of them cannot be stored; nothing was written.

        Examples:
            >>> [entry.type for entry in session.add_messages([{"role": "user", "content": "Hi"}])]
            ['message']
        """
        from keepstone.text.messages.providers import as_mapping
        from keepstone.text.messages.speakers import said_by

        items: list[Record] = []
        for message in _checked(messages):
            data = dict(as_mapping(message))
            own = data.get("id")
            named = {"id": own} if isinstance(own, str) and own else {}
            items.append({**named, "type": "message", "data": data, "origin": said_by(dict(data))})
        return self.put_many(items)

    def messages(
        self, provider: Literal["openai", "anthropic"] | None = None, limit: int | None = None
    ) -> list[Record]:
        """Return the session's messages as they were given, oldest first.

        With a provider, they are returned in the format of its API: messages in that format are unchanged,
        and other messages are converted. Each tool result comes right after its call; a call or result
        without its counterpart is left out. For OpenAI, the result is chat messages, or items of the
        Responses API if the session has any of these. For Anthropic, the first message is a user's, and
        system messages are left out, because the API takes them in a separate field.

        Args:
            provider: ``"openai"`` or ``"anthropic"``.
            limit: Use only the newest N messages; those that the provider would refuse are left out
                afterwards.

        Raises:
            ValueError: The provider is not known, or the limit is negative.

        Examples:
            >>> added = session.add_messages([{"role": "user", "content": "Hi"}])
            >>> session.messages("anthropic", limit=50)
            [{'role': 'user', 'content': 'Hi'}]
        """
        found = [entry.data for entry in self.entries(limit, ["message"], include_superseded=True)]
        if provider is None:
            return found
        from keepstone.text.messages.providers import for_provider

        return for_provider(found, provider)

    def set_title(self, title: str | None) -> None:
        """Set the session's title, or remove it with None. A title is a line of the log, not an entry.

        Raises:
            SessionNotFoundError: The session is missing.
            TypeError, ValueError: The title is not a string, or is blank.
            SecretError: The title has a suspected secret, which the home refuses.
        """
        given = None if title is None else name_of(title, "title").strip()
        if given == "":
            raise ValueError("title must not be blank; take it away with None")
        # A title may contain a secret, like any text.
        line = self.guarded({"id": TITLE_ID, "summary": given})
        self._store.set_title(self.agent, self.id, line["summary"], now(self._clock))

    def info(self) -> SessionInfo | None:
        """Return the id, last change and size of the session; None if it is missing."""
        return self._store.session(self.agent, self.id)

    def entries(
        self,
        limit: int | None = None,
        types: Iterable[str] | None = None,
        as_of: datetime | str | None = None,
        archived: bool = False,  # noqa: FBT001, FBT002  The design's signature.
        *,
        include_superseded: bool = False,
    ) -> list[Entry]:
        """Return the session's entries, oldest first. A missing session has none.

        Only valid entries are returned: from ``valid_from`` on, before ``valid_to`` and ``expires``.

        Args:
            limit: Only the newest N entries.
            types: Only entries of these types.
            as_of: Return the entries as they were at this time, from the log and the archive: an aware
                datetime, RFC 3339, a date, ``"7d"`` or ``"last week"``.
            archived: Include entries that were archived for their age. Deleted entries are never included.
            include_superseded: Include entries that are not valid now, or at ``as_of``: superseded, expired
                and future ones.
        """
        moment = self._moment(as_of)
        kinds, most = names_of(types, "types"), limit_of(limit)

        def newest(limit: int | None) -> list[Entry]:
            return self._store.entries(
                self.agent, self.id, limit, kinds, as_of=moment, archived=bool(archived)
            )

        if include_superseded:
            return self._judged(newest(most))
        return self._judged(newest_valid(newest, most, moment or self._now()))

    def records(
        self, *, as_of: datetime | str | None = None, archived: bool = False, include_superseded: bool = True
    ) -> Sequence[Record]:
        """Return all entries in the format of log lines, many times faster than ``entries``.

        The objects are shared with other callers and must not be changed. The arguments are as for
        ``entries``, but entries that are not valid are included by default.
        """
        moment = self._moment(as_of)
        found = self._store.records(self.agent, self.id, as_of=moment, archived=archived)
        if include_superseded:
            return found
        now = moment or self._now()
        return [record for record in found if is_valid(record, now)]

    def count(self, increments: Mapping[str, int], *, wait: bool = True) -> bool:
        """Increase the access counts of entries by id.

        Counts are not synced: a power failure may lose them. Without ``wait``, if the session is locked,
        nothing is counted and the result is False.
        """
        return self._store.count(self.agent, self.id, increments, wait=wait)

    def update(
        self,
        id: str,  # noqa: A002
        data: Mapping[str, Any] | str | None = None,
        *,
        text: str | None = None,
        data_merge: Mapping[str, Any] | None = None,
        type: str | None = None,  # noqa: A002
        **reserved: Unpack[ChangedKeys],
    ) -> Entry:
        """Change an entry, and return it.

        Keys that are not given stay, and a change without effect writes nothing. If the text changes, a
        vector that was given with the old text is removed, unless a new ``embedding`` is given.

        Args:
            id: The entry.
            data: A new payload, which replaces the whole old one; a text that was given stays. A string is
                taken as the new text instead.
            text: A new text; the payload stays.
            data_merge: Keys of the payload to set; None removes a key.
            type: A new type.
            reserved: Reserved keys to set, such as ``priority``, ``tags`` or ``pinned``; None removes a key.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
            TypeError: A keyword is not known, an argument has a wrong type, or there are two texts; nothing
                was written.
            ValueError: ``data`` and ``data_merge`` are both given, neither text nor payload would be left,
                or a value cannot be stored; nothing was written.

        Examples:
            >>> session.update(decision.id, data_merge={"by": "Ada"}, pinned=True).pinned
            True
            >>> session.update(decision.id, "Sign in with OAuth").text
            'Sign in with OAuth'
        """
        text, payload = text_and_data(data, text)
        named = {"text": text, "data": payload, "data_merge": data_merge, "type": type}
        keys = {key: value for key, value in named.items() if value is not None} | reserved
        changes = {"id": entry_id_of(id)} | change_of(keys, self._clock)
        (given,) = self._settle([changes], is_new=False)

        def change(entry: Entry) -> Record | None:
            later = self._shared.judge.relinked(entry, merged(entry.line, given))
            if is_put(later):
                later = self._shared.judge.signed(self._shared.writer, self.agent, self.id, later)
            elif later.get("summary"):  # A prompt may show the summary instead of the text.
                later |= self._shared.judge.lowered(self._shared.writer, entry)
            return self.guarded(self._later(id) | later) if later else None

        changed = self._store.modify(self.agent, self.id, id, change)
        return self._shared.conflicts.attach([changed])[0]

    def replace(self, id: str, item: Mapping[str, Any] | str) -> Entry:  # noqa: A002
        """Replace the type, text and payload of an entry.

        The item is a mapping with the keys of a log line, or the new text. Without ``type``, the entry keeps
        its type. Reserved keys that the item lacks keep their values.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
            ValueError: The item has another id, or neither text nor payload; nothing was written.

        Examples:
            >>> session.replace(decision.id, {"data": {"decision": "Use passkeys"}}).text
            'decision: Use passkeys'
        """
        item = item_of(item)
        given = record_of(item, self._clock)
        if item.get("id") not in (None, entry_id_of(id)):
            raise ValueError(f"the item has id {item['id']!r:.80}, not {id!r:.80}: leave it out")
        check_content(given)
        if item.get("type") is None:
            del given["type"]
        (record,) = self._settle([given | {"id": id, "ts": now(self._clock)}])
        return self._judged([self._store.modify(self.agent, self.id, id, lambda _: record)])[0]

    def link(self, id: str, target: str, rel: str) -> Entry:  # noqa: A002
        """Add a link from an entry to another entry's id, or move it to the end; see ``Agent.link``."""
        if rel == SUPERSEDES:
            raise ValueError(
                "a link 'supersedes' is made by supersede(old_id, item), which also closes the old entry"
            )
        made = {"to": entry_id_of(target), "rel": name_of(rel, "rel")}
        if not self._shared.writer.may_cite:
            refuse_citing({"links": [made]})
        (given,) = self._settle([{"links": [made]}], is_new=False)

        def change(entry: Entry) -> Record | None:
            (link,) = given["links"]
            links = [*(other for other in entry.links if other != link), link]
            return None if links == [*entry.links] else self._later(id) | {"links": links}

        return self._judged([self._store.modify(self.agent, self.id, entry_id_of(id), change)])[0]

    def supersede(self, id: str, item: Mapping[str, Any] | str) -> Entry:  # noqa: A002
        """Add an entry that replaces another entry from then on; see ``Agent.supersede``."""
        item = item_of(item)
        (record,) = self._records([item])
        check_content(record)
        has_type = item.get("type") is not None
        step = superseding(entry_id_of(id), record, now(self._clock), has_type=has_type)
        revised = self._store.revise(self.agent, self.id, step)
        return self._shared.conflicts.attach(revised[:1])[0]

    def reinstate(self, id: str) -> Entry:  # noqa: A002
        """Delete the replacements of an entry, and make it valid again; see ``Agent.reinstate``."""
        versions = self._store.history(self.agent, entry_id_of(id), self.id)
        step = reinstating(id, now(self._clock), versions)
        return self._judged(self._store.revise(self.agent, self.id, step))[0]

    def set(self, key: str, value: Any) -> Entry:
        """Set the value of a key, and return the entry of type ``fact`` that holds it.

        The entry with the previous value is superseded in the same step, and stays in the history. If the key
        already has this value, nothing is written, and the existing entry is returned.

        Args:
            key: The name of the fact.
            value: A JSON value other than None.

        Raises:
            TypeError, ValueError: The key or the value cannot be stored; nothing was written.
            SecretError: The value contains a suspected secret, which the home refuses; nothing was written.

        Examples:
            >>> entry = session.set("plan", "Free")
            >>> session.set("plan", "Pro").supersedes == (entry.id,)
            True
        """
        if value is None:
            raise ValueError(f"the value of {key!r:.80} must not be None: remove it with unset")
        data = {"key": name_of(key, "key"), "value": value}
        (record,) = self._records([{"type": FACT, "data": data}])
        self._store.create(self.agent, self.id)
        kept: list[Entry] = []
        revised = self._store.revise(self.agent, self.id, setting(record, self._now, kept.append))
        return kept[-1] if not revised else self._shared.conflicts.attach(revised[:1])[0]

    def value(self, key: str, default: Any = None, *, as_of: datetime | str | None = None) -> Any:
        """Return a key's value, now or at the time ``as_of``; ``default`` if it had none then.

        Examples:
            >>> entry = session.set("plan", "Free")
            >>> session.value("plan"), session.value("owner", "nobody")
            ('Free', 'nobody')
        """
        facts = self._facts(name_of(key, "key"), as_of)
        return facts[-1].data["value"] if facts else default

    def values(self, *, as_of: datetime | str | None = None) -> dict[str, Any]:
        """Return all keys with their values, now or at the time ``as_of``."""
        return {fact.data["key"]: fact.data["value"] for fact in self._facts(None, as_of)}

    def unset(self, key: str) -> bool:
        """Delete the value of a key, and return whether it had one. The value stays in the history."""
        ids = [fact.id for fact in self._facts(name_of(key, "key"))]
        return bool(ids) and self._store.delete(self.agent, self.id, ids, now(self._clock)) > 0

    def _facts(self, key: str | None, as_of: datetime | str | None = None) -> list[Entry]:
        """Return the valid facts, or only the facts with a key, sorted by time."""
        # The index contains current entries only; entries at an earlier time are read from the log.
        if key is None or as_of is not None:
            found = self.entries(types=[FACT], as_of=as_of)
            return [fact for fact in found if is_fact(fact) and key in (None, fact.data["key"])]
        where, now = tuple(with_key(key)), self._now()
        scope = Scope(self.agent, sessions=(self.id,), types=(FACT,), where=where, valid_at=now)
        return [*filter(is_fact, self._store.select(scope))]

    def delete(self, id: str, *, check: Callable[[Entry], object] | None = None) -> None:  # noqa: A002
        """Hide an entry. It is no longer returned, but its lines stay in the log until it is purged.

        ``check`` is called with the entry while no other writer can change it. If ``check`` raises, nothing
        is written.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
        """

        def change(entry: Entry) -> Record:
            if check is not None:
                check(entry)
            return {"id": id, "deleted": True, "ts": now(self._clock)}

        self._store.modify(self.agent, self.id, entry_id_of(id), change)

    def restore(self, id: str) -> Entry:  # noqa: A002
        """Restore a deleted entry with its id, payload and reserved keys; its time is that of this call.

        Raises:
            EntryNotFoundError: The session has no deleted entry with this id: the id is live, purged or
                unknown.

        Examples:
            >>> session.delete(decision.id)
            >>> session.restore(decision.id).data == decision.data
            True
        """

        def change(entry: Entry) -> Record:
            kept = {key: value for key, value in entry.line.items() if key != "modified"}
            # The home's rule about secrets may be newer than the entry.
            return self.guarded(kept | self._later(id))

        return self._judged([self._store.restore(self.agent, self.id, entry_id_of(id), change)])[0]

    @traced("purge")
    def purge(self, id: str) -> None:  # noqa: A002
        """Remove every byte of an entry, deleted or not, from the log, the archive and the index.

        Raises:
            EntryNotFoundError: No line of the session has this id.
            PurgePendingError: A reader keeps old index bytes; the next open completes the purge.
        """
        entry_id_of(id)
        if not self._store.purge(self.agent, self.id, [id]):
            raise EntryNotFoundError(f"session {self.id!r:.80} has no entry {id!r:.80}")

    @traced("purge", {"keepstone.entries": int})
    def purge_many(self, ids: Iterable[str]) -> int:
        """Remove every byte of entries, deleted or not, and return the number of entries purged.

        Unknown ids are ignored, so that a call can be repeated.
        """
        return self._store.purge(self.agent, self.id, [*map(entry_id_of, names_of(ids, "ids") or ())])

    def compact(self) -> int:
        """Move old versions and deleted entries to the archive, and return the number of bytes saved.

        Long logs are compacted automatically.
        """
        return self._store.compact(self.agent, self.id).saved

    def archive_faded(self, decay: Decay | None = None, *, wait: bool = True) -> Compacted:
        """Compact the log, archive faded live entries, and return the bytes saved and the number archived.

        ``entries(archived=True)`` returns archived entries. By default, entries have faded if their current
        priority is 0.3 or less and they are not pinned; ``decay`` changes this rule. Without ``wait``,
        nothing is done if the session is locked.
        """
        rule = decay or Decay(self._now())
        return self._store.compact(self.agent, self.id, rule, wait=wait)

    def compacted_size(self) -> int:
        """Return the size of the log in bytes after its last compaction; 0 if unknown."""
        return self._store.compacted_size(self.agent, self.id)

    def clear(self, *, check: SessionCheck | None = None) -> bool:
        """Remove all entries, including archived ones, and keep the session; False if it is missing.

        ``check`` is called with the ``SessionInfo`` while the lock is held. If ``check`` raises, nothing is
        removed.
        """
        return self._store.clear(self.agent, self.id, check=check) is not None

    def remove(self, *, check: SessionCheck | None = None) -> bool:
        """Remove the session and every byte of it; False if it is missing. ``check`` is as for ``clear``."""
        return self._store.remove(self.agent, self.id, check=check)

    def drop(self, *, check: SessionCheck | None = None) -> int:
        """Remove the session, mark it as dropped, and return the number of entries it had.

        For a missing session, the result is 0 and nothing is marked. A later session with this id starts
        empty. ``check`` is as for ``clear``.
        """
        return self._store.drop(self.agent, self.id, now(self._clock), check=check)

    def rename(self, new_id: str) -> Session:
        """Rename the session, and return it under its new id. This object's session is then missing.

        Entries keep their ids, history and vectors, and nothing is left under the old id. The call waits for
        writers of either session. If the process is killed, the rename is either complete or not done at all.

        Raises:
            SessionNotFoundError: The session is missing.
            ValueError: A session ``new_id`` exists; nothing was changed.
            InvalidSessionIdError: The id is empty or too long for a file name.
        """
        self._store.rename(self.agent, self.id, self._store.check_session(new_id))
        return Session(self._shared, self.agent, new_id)

    def copy(self, new_id: str) -> Session:
        """Copy the session with its whole history into a new session, and return the new session.

        Entries keep their ids.

        Raises:
            SessionNotFoundError, ValueError, InvalidSessionIdError: As for ``rename``.
        """
        self._store.copy(self.agent, self.id, self._store.check_session(new_id))
        return Session(self._shared, self.agent, new_id)

    def fork(self, new_id: str, until: str) -> Session:
        """Copy the entries up to and including ``until`` into a new session, and return the new session.

        The copies have the current content, the history and the ids of the entries. Deleted entries are not
        copied.

        Raises:
            EntryNotFoundError: The session has no entry ``until``.
            SessionNotFoundError, ValueError, InvalidSessionIdError: As for ``rename``.

        Examples:
            >>> [entry.id for entry in session.fork("retry", until=decision.id).entries()] == [decision.id]
            True
        """
        self._store.copy(self.agent, self.id, self._store.check_session(new_id), entry_id_of(until))
        return Session(self._shared, self.agent, new_id)

    def export(self) -> Iterator[Record]:
        """Yield the lines of the session's log as objects, oldest first: entries, changes and deletions.

        Unreadable lines are left out, and so is the key ``batch``, which marks lines that were written
        together.
        """
        return self._store.lines(self.agent, self.id)

    def gone(self) -> Container[str]:
        """Return a container with the ids of entries that were deleted, archived or, under git, purged.

        Imports use it to skip records whose entries were deleted here.

        Examples:
            >>> session.delete(decision.id)
            >>> decision.id in session.gone()
            True
        """
        return self._store.gone(self.agent, self.id)

    def entry_count(self) -> int:
        """Return the number of entries in the session; 0 if it is missing."""
        return self._store.entry_counts(self.agent, self.id).get(self.id, 0)

    def _added(self, records: list[Record]) -> list[Entry]:
        added = self._store.append(self.agent, self.id, records)
        given = 0
        for record in records:
            given += "embedding" in record
        if given:
            self._shared.meaning.given(self.agent, given)
        return self._shared.conflicts.attach(added)

    def _records(self, items: Iterable[Mapping[str, Any]]) -> list[Record]:
        clock = _stopped(self._clock)
        return self._settle([record_of(item, clock) for item in items])

    def guarded(self, item: Record) -> Record:
        """Return an item to write, with its secrets masked if the home masks secrets.

        Raises:
            SecretError: The item contains a suspected secret, which the home refuses.
        """
        return item if self._shared.guard is None else self._shared.guard(self.id, [item])[0]

    def _settle(self, records: list[Record], *, is_new: bool = True) -> list[Record]:
        """Return the lines to write: with origins, checked vectors, and secrets masked or refused."""
        if is_new:
            sign, writer = self._shared.judge.signed, self._shared.writer
            if not writer.may_cite:
                for record in records:
                    refuse_citing(record)
            records = [sign(writer, self.agent, self.id, record) for record in records]
        if self._shared.guard is not None:
            records = self._shared.guard(self.id, records)
        self._shared.meaning.claim(self.agent)
        for record in records:
            if record.get("embedding"):
                Vectors(self._store, self.agent, self._shared.meaning).settle(records)
                break
        return records

    def _judged(self, entries: list[Entry]) -> list[Entry]:
        return self._shared.judge.attach(entries)

    def _moment(self, as_of: datetime | str | None) -> datetime | None:
        return None if as_of is None else moment_of(as_of, self._now(), "as_of")

    def _now(self) -> datetime:
        return instant(self._clock(), "the clock's time")

    def _later(self, id: str) -> Record:  # noqa: A002
        """Return the id and time for a later line of an entry."""
        return {"id": id, "ts": now(self._clock)}


def _stopped(clock: Clock) -> Clock:
    """Return a clock that always returns the time of this call."""
    moment = clock()
    return lambda: moment


def _checked(items: Iterable[T]) -> Iterable[T]:
    if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"items must be an iterable of mappings, not {items.__class__.__name__}")
    return items
