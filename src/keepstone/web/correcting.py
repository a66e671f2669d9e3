"""Correcting entries in place: the actions of the menu that entries and hits have."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from keepstone.errors import EntryNotFoundError
from keepstone.log.line import body_of
from keepstone.model import CHAT, PROGRAM, Entry, Record
from keepstone.operations.agent_moves import move_entry
from keepstone.session import Session
from keepstone.text.display import clipped, counted
from keepstone.web.agent_menu import pick_agent
from keepstone.web.conflict import ask_deleted
from keepstone.web.elements import answer_of as answer_to
from keepstone.web.elements import aside, attempt, box, button, confirmed, dialog, field, say, tell, undoing
from keepstone.web.entry_form import EntryForm, ask_changed, names_in
from keepstone.web.finder import pick_entry
from keepstone.web.site import Place, address

_LEAST_MATCHED = 8
"""Minimum characters of a text for which a purge searches other entries and files that contain it."""
_CONFLICTS = 3
"""Maximum number of conflicts that are named after a change."""
_VERBS = {"duplicate": "repeats", "contradiction": "contradicts"}
_CHANGED = "This entry has changed since the page showed it: choose what to keep"


class Correcting:
    """Carries out the actions of an entry's menu, and offers to undo them.

    Args:
        place: The place of the agent that has the entries.
        reload: Shows the entries again after a change.
    """

    def __init__(self, place: Place, reload: Callable[[], Awaitable[object]]) -> None:
        self._place = place
        self._reload = reload
        self._acts: dict[str, Callable[[Session, Entry], Awaitable[None]]] = {
            "edit": self._edit,
            "pin": self._pin,
            "supersede": self._supersede,
            "link": self._link,
            "vouch": self._vouch,
            "move": self._move,
            "delete": self._delete,
            "purge": self._purge,
            "raw": self._raw,
        }

    async def act(self, request: Mapping[str, Any]) -> None:
        """Carry out a menu's request: ``verb``, and the keys of the entry and its session."""
        verb = str(request["verb"])
        # The menu of a read-only page lacks the changing actions, but a browser may send their names anyway.
        if verb not in self._acts or (self._place.read_only and verb != "raw"):
            return
        # Keys are JSON, because ids may contain invisible characters that rows show escaped: see ``key_of``.
        session = self._place.agent.session(json.loads(request["session"]))
        with attempt():
            entry = await aside(self._place.agent.get, json.loads(request["entry"]), session.id)
            await self._acts[verb](session, entry)

    async def act_on_many(self, verb: str, session: Session, ids: list[str]) -> None:
        """Delete, pin or tag several entries of a session."""
        if self._place.read_only or not ids:
            return
        tags: list[str] = []
        if verb == "tag":
            tags = await _asked_tags(len(ids))
            if not tags:
                return
        with attempt():
            # Read all entries before the first change: a missing id then ends the action before anything has
            # changed, and undo has every entry's earlier state.
            before = [await aside(self._place.agent.get, entry_id, session.id) for entry_id in ids]
            for entry in before:
                if verb == "delete":
                    await aside(session.delete, entry.id)
                else:
                    keys = {"pinned": True} if verb == "pin" else {"tags": _joined(entry.tags, tags)}
                    await aside(session.update, entry.id, **keys)
            done = {"delete": "Deleted", "pin": "Pinned", "tag": "Tagged"}[verb]

            def undo() -> None:
                for entry in before:
                    if verb == "delete":
                        session.restore(entry.id)
                    else:
                        self._put_back(session, entry)

            self._offer(f"{done} {counted(len(ids), 'entry')}.", undo)
        await self._reload()

    async def restore_version(self, session: Session, entry_id: str, line: Record) -> None:
        """Restore an earlier version of an entry; a deleted entry is restored, too."""
        if self._place.read_only:
            return
        with attempt():
            before = await aside(self._live, session, entry_id)
            if before is None:
                await aside(session.restore, entry_id)
            # Leave ``valid_to`` unchanged, and thus whether the entry is superseded: to reinstate it would
            # also delete the entries that replaced it.
            kept = {key: value for key, value in line.items() if key != "valid_to"}
            await aside(session.replace, entry_id, _content(kept))
            await aside(
                session.update, entry_id, **{key: kept.get(key) for key in _MARKS if key != "valid_to"}
            )
            undo = (
                partial(session.delete, entry_id)
                if before is None
                else partial(self._put_back, session, before)
            )
            self._offer("Restored this version.", undo)
        await self._reload()

    async def reinstate(self, session: Session, entry_id: str) -> None:
        """Make a superseded entry valid again; the entries that replaced it are deleted."""
        if self._place.read_only:
            return
        with attempt():
            before, gone = await aside(self._reinstated, session, entry_id)

            def undo() -> None:
                for newer_id in gone:
                    session.restore(newer_id)
                self._put_back(session, before)

            self._offer("It holds again.", undo)
        await self._reload()

    def _reinstated(self, session: Session, entry_id: str) -> tuple[Entry, list[str]]:
        """Reinstate an entry; return it as it was before, and the ids of the entries that were deleted."""
        self._check_unmerged(entry_id)
        before = self._place.agent.get(entry_id, session.id)
        # ``reinstate`` does not return which entries it deleted. They are the entries with ``supersedes``
        # that no longer exist afterwards.
        newer = [entry.id for entry in session.entries(include_superseded=True) if entry.supersedes]
        session.reinstate(entry_id)
        return before, [newer_id for newer_id in newer if self._live(session, newer_id) is None]

    def _check_unmerged(self, entry_id: str) -> None:
        """Refuse to reinstate an entry that was merged with others.

        These would stay superseded, without the entry that replaces them.
        """
        for suggestion in self._place.agent.suggestions("accepted"):
            if suggestion.do == "merge" and entry_id in suggestion.entries:
                raise ValueError(
                    f"entry {entry_id!r:.80} was merged with others: undo that suggestion in the inbox"
                )

    def _put_back(self, session: Session, entry: Entry) -> None:
        """Restore an entry's content, origin and marks; restored content has to be confirmed again."""
        # A replaced entry loses its confirmation, so an action that changed only marks is undone by restoring
        # only the marks.
        if _said(self._place.agent.get(entry.id, session.id)) != _said(entry):
            session.replace(entry.id, _content(entry.line))
        session.update(entry.id, **{key: entry.line.get(key) for key in _MARKS})

    def _live(self, session: Session, entry_id: str) -> Entry | None:
        try:
            return self._place.agent.get(entry_id, session.id)
        except EntryNotFoundError:
            return None

    def _conflicts(self, entry: Entry) -> list[tuple[str, str]]:
        """Return the conflicts of an entry that was just written, each with the other entry's address."""
        conflicts = () if entry.type in CHAT else entry.conflicts[:_CONFLICTS]
        others = [
            (conflict, self._live(self._place.agent.session(conflict.session), conflict.id))
            for conflict in conflicts
        ]
        return [
            (
                f"It {_VERBS[conflict.kind]} “{clipped(other.text, 80)}”.",
                self._place.link("session", id=conflict.session, entry=conflict.id),
            )
            for conflict, other in others
            if other is not None
        ]

    def _offer(
        self, words: str, undo: Callable[[], object], conflicts: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Report an action, and offer to undo it for a while."""
        tell(words, undoing(undo, self._reload), conflicts)

    async def _edit(self, session: Session, entry: Entry) -> None:
        async def save(keys: Record) -> bool:
            now = await aside(self._live, session, entry.id)
            if now is None:
                kept = await ask_deleted(entry.text, "entry")
                if kept is None or kept[0] == "theirs":
                    return kept is not None
                # The reader wants to keep the text, and only a live entry can be updated.
                now = await aside(session.restore, entry.id)
            if now.line != entry.line:
                tell(_CHANGED)
            merged = await ask_changed(entry, keys, now)
            if merged:
                changed = await aside(session.update, entry.id, **merged)
                conflicts = await aside(self._conflicts, changed)
                self._offer("Saved.", lambda: self._put_back(session, now), conflicts)
                await self._reload()
            return merged is not None

        await EntryForm(entry).ask("Edit this entry", "Save", save, with_marks=True)

    async def _pin(self, session: Session, entry: Entry) -> None:
        await aside(session.update, entry.id, pinned=None if entry.pinned else True)
        done = "Unpinned." if entry.pinned else "Pinned: always in the context."
        self._offer(done, lambda: self._put_back(session, entry))
        await self._reload()

    async def _vouch(self, session: Session, entry: Entry) -> None:
        confirmed = await aside(self._place.agent.vouch, entry.id, session.id)
        words = f"Confirmed: its trust is {confirmed.trust} until it or a source changes."
        self._offer(words, lambda: self._put_back(session, entry))
        await self._reload()

    async def _supersede(self, session: Session, entry: Entry) -> None:
        async def save(item: Record) -> bool:
            kept = {key: entry.line[key] for key in ("text", "tags") if key in entry.line}
            # The form returns only the changed keys, but a superseding entry must be complete: the other keys
            # come from the old entry.
            item = kept | {"data": dict(entry.data)} | item if entry.data else kept | item
            newer = await aside(session.supersede, entry.id, item)
            conflicts = await aside(self._conflicts, newer)
            undo = partial(session.reinstate, entry.id)
            self._offer("Superseded: the old entry held until now.", undo, conflicts)
            await self._reload()
            return True

        await EntryForm(entry).ask("Supersede with a newer fact", "Supersede", save, with_marks=False)

    async def _link(self, session: Session, entry: Entry) -> None:
        given = await pick_entry(self._place, "Link to another entry", entry)
        if given is not None:
            other, rel = given
            await aside(session.link, entry.id, other.id, rel)
            self._offer(f"Linked to “{clipped(other.text, 60)}”.", lambda: self._put_back(session, entry))
            await self._reload()

    async def _move(self, session: Session, entry: Entry) -> None:
        agent = self._place.agent
        words = "It leaves this agent, whose history keeps its earlier versions until they are purged."
        slug = await pick_agent(self._place, "Move this entry to another agent", words)
        if slug is not None:
            target = self._place.other(slug)
            moved = await aside(move_entry, entry, agent, target)

            def undo() -> None:
                target.delete(moved.id, moved.session)
                session.restore(entry.id)

            moved_link = (
                f"It is in {moved.session} there",
                address(slug, "session", id=moved.session, entry=moved.id),
            )
            self._offer(f"Moved to {slug}.", undo, [moved_link])
            await self._reload()

    async def _delete(self, session: Session, entry: Entry) -> None:
        await aside(session.delete, entry.id)
        self._offer(f"Deleted “{clipped(entry.text, 60)}”.", lambda: session.restore(entry.id))
        await self._reload()

    async def _purge(self, session: Session, entry: Entry) -> None:
        versions = await aside(self._place.agent.history, entry.id, session.id)
        words = f"This removes every byte of this entry with its {counted(len(versions), 'version')}: "
        words += "from log, archive and index. It cannot be undone."
        said = entry.text.strip()
        if len(said) >= _LEAST_MATCHED:
            # A purge of an entry removes only the entry's own bytes. A person who purges a secret wants to
            # know where else it is.
            same = await aside(self._place.agent.purge_matching, said, dry_run=True)
            others = [place for place in same.entries if place != (session.id, entry.id)]
            kinds = ((len(others), "other entry"), (len(same.files), "file"))
            left = " and ".join(counted(count, kind) for count, kind in kinds if count)
            words += f"\n\nThe same text stays in {left}: “In and out” purges it everywhere." if left else ""
        if await confirmed("Purge this entry?", f"“{clipped(said, 200)}”\n\n{words}", "Purge"):
            await aside(session.purge, entry.id)
            tell("Purged.")
            await self._reload()

    async def _raw(self, _: Session, entry: Entry) -> None:
        with dialog("The line of this entry", "broad") as window:
            text = json.dumps(entry.line, ensure_ascii=False, indent=2)
            say("pre", text, "raw", tabindex="0", aria_label="Line as JSON")
            with box(classes="row-end"):
                button("Close", lambda: window.submit(None), autofocus=True)
        await answer_to(window)


_NOT_PUT = frozenset({"deleted", "modified", "access", "ts", "batch", "embedding"})
"""Keys of a version that are not restored with it."""
_MARKS = ("priority", "pinned", "tags", "links", "summary", "valid_from", "valid_to", "expires", "aliases")


def _content(line: Record) -> Record:
    """Return an item with a line's content and origin, so that the reader's trust does not apply to it."""
    return {"origin": {"by": PROGRAM}} | {key: value for key, value in line.items() if key not in _NOT_PUT}


def _said(entry: Entry) -> tuple[Any, ...]:
    return entry.type, body_of(entry.line), entry.line.get("origin")


def _joined(tags: tuple[str, ...], more: list[str]) -> list[str]:
    return [*dict.fromkeys((*tags, *more))]


async def _asked_tags(count: int) -> list[str]:
    with dialog(f"Tag {counted(count, 'entry')}") as question:
        line = field("Tags", "auth, release").props("autofocus")
        _buttons(question, "Tag", lambda: names_in(line.value))
    return list(await answer_to(question) or ())


def _buttons(question: ui.dialog, verb: str, answer: Callable[[], object]) -> None:
    def submit() -> None:
        with attempt():
            question.submit(answer())

    with box(classes="row-end"):
        button("Cancel", lambda: question.submit(None))
        button(verb, submit, "main")
