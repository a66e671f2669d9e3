"""What may be done to a home, and what has to be there afterwards.

Each entry, note and file has a word of its own, by which its bytes can be looked for.
"""

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.memories import Letters

import keepstone
from keepstone import Home, Notes, Session

AGENT = "a"
SESSIONS = ("s0", "s1", "s2")
FILES = ("plan.md", "deep/er/list.md")


class Operation(NamedTuple):
    """One call: what is done, where, to which ids or names, with which words."""

    kind: str
    place: str = ""
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass
class Known:
    """An entry with every word that it ever had, the newest last."""

    words: list[str]
    priority: float | None = None
    deleted: bool = False
    closed: bool = False
    """Whether another entry superseded it, also if that one is gone."""
    supersedes: str | None = None


@dataclass
class Model:
    """What a home has to hold, in plain values."""

    sessions: dict[str, dict[str, Known]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Words that no byte of the home may spell any more."""

    def after(self, operation: Operation) -> "Model":
        """What the home has to hold once the operation is done."""
        model = deepcopy(self)
        CHANGES.get(operation.kind, _nothing)(model, operation)
        return model

    def live(self, session: str) -> list[str]:
        """The ids of a session's live entries."""
        return [name for name, known in self.sessions.get(session, {}).items() if not known.deleted]

    def after_entry(self, session: str, name: str) -> list[str]:
        """The ids of the live entries that superseded an entry, one after another."""
        entries, later = self.sessions[session], []
        newer: list[str] = [name]
        while newer:
            newer = [one for one in self.live(session) if entries[one].supersedes in newer]
            later += newer
        return later

    def seen(self) -> dict[str, Any]:
        """The same as ``seen`` of a home that holds this."""
        sessions = {
            session: [
                (name, entries[name].words[-1], entries[name].priority, entries[name].closed)
                for name in self.live(session)
            ]
            for session, entries in self.sessions.items()
            if self.live(session)
        }
        return {"sessions": sessions, "files": self.files, "notes": self.notes}


def _nothing(model: Model, operation: Operation) -> None:
    """Compaction, a rebuild and another embedder change nothing that is seen."""


def _added(model: Model, operation: Operation) -> None:
    entries = model.sessions.setdefault(operation.place, {})
    for name, word in zip(operation.names, operation.words, strict=True):
        entries.setdefault(name, Known([])).words.append(word)


def _patched(model: Model, operation: Operation) -> None:
    model.sessions[operation.place][operation.names[0]].priority = float(operation.words[0])


def _superseded(model: Model, operation: Operation) -> None:
    old, new = operation.names
    model.sessions[operation.place][old].closed = True
    model.sessions[operation.place][new] = Known([*operation.words], supersedes=old)


def _reinstated(model: Model, operation: Operation) -> None:
    (old,) = operation.names
    for name in model.after_entry(operation.place, old):
        model.sessions[operation.place][name].deleted = True
    model.sessions[operation.place][old].closed = False


def _deleted(model: Model, operation: Operation) -> None:
    model.sessions[operation.place][operation.names[0]].deleted = True


def _restored(model: Model, operation: Operation) -> None:
    entries = model.sessions[operation.place]
    known = entries[operation.names[0]] = entries.pop(operation.names[0])
    known.deleted = False


def _renamed(model: Model, operation: Operation) -> None:
    model.sessions[operation.names[0]] = model.sessions.pop(operation.place)


def _purged(model: Model, operation: Operation) -> None:
    for name in operation.names:
        model.gone.update(model.sessions[operation.place].pop(name).words)


def _cleared(model: Model, operation: Operation) -> None:
    for known in model.sessions[operation.place].values():
        model.gone.update(known.words)
    model.sessions[operation.place] = {}


def _removed(model: Model, operation: Operation) -> None:
    _cleared(model, operation)
    del model.sessions[operation.place]


def _written(model: Model, operation: Operation) -> None:
    model.files[operation.place] = operation.words[0]


def _appended(model: Model, operation: Operation) -> None:
    model.files[operation.place] = model.files.get(operation.place, "") + operation.words[0]


def _unlinked(model: Model, operation: Operation) -> None:
    del model.files[operation.place]


def _noted(model: Model, operation: Operation) -> None:
    model.notes.append(operation.words[0])


def _unnoted(model: Model, operation: Operation) -> None:
    model.notes.remove(operation.words[0])


CHANGES: dict[str, Callable[[Model, Operation], None]] = {
    "add": _added,
    "add_many": _added,
    "put": _added,
    "patch": _patched,
    "supersede": _superseded,
    "reinstate": _reinstated,
    "delete": _deleted,
    "restore": _restored,
    "rename": _renamed,
    "purge": _purged,
    "clear": _cleared,
    "remove": _removed,
    "drop": _removed,
    "write": _written,
    "append": _appended,
    "unlink": _unlinked,
    "note": _noted,
    "unnote": _unnoted,
}


def do(home: Home, operation: Operation) -> None:
    """Call what the operation names."""
    kind, place, names, words = operation
    agent, session, notes = home.agent(AGENT), home.agent(AGENT).session(place or "s0"), notes_of(home.root)
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: session.add("note", {"content": words[0]}, id=names[0]),
        "add_many": lambda: session.add_many(_item(*pair) for pair in zip(names, words, strict=True)),
        "put": lambda: session.put(_item(names[0], words[0])),
        "patch": lambda: session.update(names[0], priority=float(words[0])),
        "supersede": lambda: session.supersede(names[0], _item(names[1], words[0])),
        "reinstate": lambda: session.reinstate(names[0]),
        "delete": lambda: session.delete(names[0]),
        "restore": lambda: session.restore(names[0]),
        "rename": lambda: session.rename(names[0]),
        "copy": lambda: session.copy(names[0]),
        "purge": lambda: session.purge(names[0]),
        "compact": session.compact,
        "clear": session.clear,
        "remove": session.remove,
        "drop": session.drop,
        "rebuild": home.rebuild,
        "reembed": lambda: home.reembed(Letters(4, words[0])),
        "write": lambda: agent.files.write(place, words[0]),
        "append": lambda: agent.files.append(place, words[0]),
        "unlink": lambda: agent.files.delete(place),
        "note": lambda: notes.add(words[0], "Project"),
        "unnote": lambda: [notes.remove(one) for one in notes.entries("Project") if one.content == words[0]],
    }
    calls[kind]()


def _item(name: str, word: str) -> dict[str, Any]:
    return {"id": name, "type": "note", "data": {"content": word}}


def notes_of(root: Path) -> Notes:
    """The project notes beside the home's folders."""
    return Notes(root, root / "user.md")


KINDS = (*CHANGES, "compact", "rebuild", "reembed")


class Inventor:
    """Thinks up operations that a home can carry out, at random but the same for one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seed = seed
        self._count = 0

    def word(self) -> str:
        """A word that nothing else has."""
        self._count += 1
        return "".join(self._random.choices("bcdfghjklmnpqrstvwxz", k=14))

    def next(self, model: Model) -> Operation:
        """Return what may be done next."""
        while True:
            operation = self.of_kind(self._random.choice(KINDS), model)
            if operation:
                return operation

    def surely(self, kind: str, model: Model) -> Operation:
        """Return an operation of a kind in the first session."""
        while True:
            operation = self.of_kind(kind, model)
            if operation and operation.place in {"", SESSIONS[0], *FILES}:
                return operation

    def of_kind(self, kind: str, model: Model) -> Operation | None:
        """Return an operation of a kind, None if the home has nothing to do it to."""
        if kind in ("add", "add_many"):
            count = 1 if kind == "add" else self._random.randint(2, 200)
            words = tuple(self.word() for _ in range(count))
            names = tuple(f"{self._seed}-{self._count}-{place}" for place in range(count))
            return Operation(kind, self._random.choice(SESSIONS), names, words)
        if kind in ("put", "patch", "delete", "purge"):
            return self._of_entry(kind, model)
        if kind == "restore":
            return self._restore(model)
        if kind in ("supersede", "reinstate"):
            return self._of_chain(kind, model)
        if kind in ("compact", "clear", "remove", "drop", "rename"):
            return self._of_session(kind, model)
        return self._of_others(kind, model)

    def _of_entry(self, kind: str, model: Model) -> Operation | None:
        session = self._random.choice(SESSIONS)
        live = model.live(session)
        word = self.word() if kind == "put" else str(self._random.randint(0, 8) / 8)
        return Operation(kind, session, (self._random.choice(live),), (word,)) if live else None

    def _restore(self, model: Model) -> Operation | None:
        session = self._random.choice(SESSIONS)
        deleted = [name for name, known in model.sessions.get(session, {}).items() if known.deleted]
        return Operation("restore", session, (self._random.choice(deleted),)) if deleted else None

    def _of_chain(self, kind: str, model: Model) -> Operation | None:
        session, word = self._random.choice(SESSIONS), self.word()
        is_old = [bool(model.after_entry(session, name)) for name in model.live(session)]
        names = [
            name
            for name, old in zip(model.live(session), is_old, strict=True)
            if old == (kind == "reinstate")
        ]
        if not names:
            return None
        name = self._random.choice(names)
        if kind == "reinstate":
            return Operation(kind, session, (name,))
        return Operation(kind, session, (name, f"{self._seed}-{self._count}-newer"), (word,))

    def _of_session(self, kind: str, model: Model) -> Operation | None:
        there = sorted(model.sessions)
        # Where all goes again and again, nothing is left to go wrong.
        if not there or (kind != "compact" and self._random.random() < 0.5):
            return None
        names = (f"r/{self._seed}/{self.word()}",) if kind == "rename" else ()
        return Operation(kind, self._random.choice(there), names)

    def _of_others(self, kind: str, model: Model) -> Operation | None:
        word = self.word()
        if kind in ("write", "append"):
            return Operation(kind, self._random.choice(FILES), (), (word,))
        if kind == "unlink":
            return Operation(kind, self._random.choice(sorted(model.files))) if model.files else None
        if kind == "unnote":
            return Operation(kind, "", (), (self._random.choice(model.notes),)) if model.notes else None
        return Operation(kind, "", (), (word,))


def seen(home: Home) -> dict[str, Any]:
    """What a home shows of its entries, files and notes. A session may be there before its first entry."""
    agent = home.agent(AGENT)
    shown = {info.id: list(_shown(agent.session(info.id))) for info in agent.sessions()}
    return {
        "sessions": {session: entries for session, entries in shown.items() if entries},
        "files": {path: agent.files.read(path) for path in agent.files.list()},
        "notes": [note.content for note in notes_of(home.root).entries("Project")],
    }


def _shown(session: Session) -> Iterator[tuple[str, Any, float | None, bool]]:
    for entry in session.entries(include_superseded=True):
        yield entry.id, entry.data["content"], entry.line.get("priority"), entry.valid_to is not None


def check(root: Path, *allowed: Model) -> Model:
    """Open a home again; return which of the models it holds, once all ways to look at it agree."""
    with keepstone.open(root, embedder="none") as home:
        shown = seen(home)
        held = next((model for model in allowed if model.seen() == shown), None)
        assert held is not None, _difference(shown, *allowed)
        _check_index(home, held)
        # A line cut short is not taken back, for another program may have begun it; readers skip it.
        errors = [finding for finding in home.doctor() if finding.level == "error"]
        assert [error for error in errors if "unreadable line" not in error.message] == []
    assert spelled(root, held.gone) == set()
    return held


def _check_index(home: Home, model: Model) -> None:
    agent = home.agent(AGENT)
    for session in model.sessions:
        live = model.live(session)
        listed = agent.session(session).entries(limit=10_000, include_superseded=True)
        assert [entry.id for entry in listed] == live
        assert agent.session(session).entry_count() == len(live)
        for name in (*live[:2], *live[-2:]):
            word = model.sessions[session][name].words[-1]
            assert agent.get(name, session).data == {"content": word}
            found = [
                hit.entry.id
                for hit in agent.recall(word, limit=50, include_superseded=True)
                if hit.entry.data["content"] == word
            ]
            assert found == [name]
    for word in sorted(model.gone)[-5:]:
        assert [hit for hit in agent.recall(word) if word in hit.entry.text] == []


def _difference(shown: dict[str, Any], *allowed: Model) -> str:
    lines = []
    for model in allowed:
        wanted = model.seen()
        for session in sorted(wanted["sessions"].keys() | shown["sessions"].keys()):
            want, have = wanted["sessions"].get(session), shown["sessions"].get(session)
            if want != have:
                lost = [one for one in want or () if one not in (have or ())]
                more = [one for one in have or () if one not in (want or ())]
                lines.append(f"{session}: {want is None=} {have is None=} {lost[:3]=} {more[:3]=}")
        lines += [
            f"{key}: {wanted[key]} {shown[key]}" for key in ("files", "notes") if wanted[key] != shown[key]
        ]
        lines.append("--")
    return "the home holds something else:\n" + "\n".join(lines)


def spelled(root: Path, words: set[str]) -> set[tuple[str, str]]:
    """Which files spell the end of any of the words: an index leaves out letters that neighbours share."""
    held = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    ends = {word: word[5:].encode() for word in words}
    return {(path.name, word) for path, data in held.items() for word, end in ends.items() if end in data}
