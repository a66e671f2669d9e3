"""Random operations on two homes, and what each of them answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from keepstone import Agent, Home, KeepstoneError
from keepstone.home import store_of
from keepstone.store.changes import Change
from keepstone.testing import ManualClock

WORDS = (
    "red blue green apple pear plum token cache index shard replica naïve Straße ключ память 東京タワー "
    "データ database databases running runs deploy-42 foo_bar v1.2.3 https://x.y/z alpha beta gamma delta"
).split()
SESSIONS = ("s1", "s 2", "日本", "a/b", "S%")
TYPES = ("message", "fact", "decision", "preference")
DIM = 8
_ERRORS = (KeepstoneError, ValueError, TypeError, LookupError)

Act = Callable[[Agent], Any]
Place = tuple[str, str]


class Operations:
    """Random operations, the same ones for each seed; with ``vectors`` entries and queries have some."""

    def __init__(self, seed: int, clock: ManualClock, *, vectors: bool) -> None:
        self._random = random.Random(seed)
        self._clock = clock
        self._vectors = vectors
        self._count = 0
        self._known: list[Place] = [("s1", "none")]

    def __iter__(self) -> Iterator[tuple[str, Act]]:
        """Yield a name and what to do, without end."""
        kinds: dict[Callable[[], Act], float] = {
            self.add: 26, self.add_many: 4, self.update: 7, self.replace: 2, self.supersede: 4,
            self.reinstate: 1, self.delete: 4, self.restore: 2, self.purge: 2, self.link: 1, self.related: 1,
            self.history: 1, self.compact: 1, self.clear: 0.3, self.remove: 0.2, self.delete_where: 1,
            self.count: 2, self.entries: 8, self.session_entries: 2, self.as_of: 2, self.get: 1,
            self.sessions: 1, self.copy: 0.5, self.export: 1, self.set_title: 1, self.summaries: 1,
            self.context: 2, self.recall: 26,
        }  # fmt: skip
        while True:
            self._count += 1
            self._clock.advance(timedelta(seconds=self._random.choice([1, 60, 3600, 7200])))
            [make] = self._random.choices([*kinds], [*kinds.values()])
            yield make.__name__, make()

    def _new(self, session: str) -> str:
        self._known.append((session, f"i{self._count}-{len(self._known)}"))
        return self._known[-1][1]

    def _old(self) -> Place:
        return self._random.choice(self._known[-120:])

    def _session(self) -> str:
        return self._random.choice(SESSIONS)

    def _text(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 9)))

    def _vector(self) -> list[float]:
        return [round(self._random.gauss(0, 1), 3) for _ in range(DIM)]

    def _hours(self, least: int, most: int) -> str:
        return (self._clock() + timedelta(hours=self._random.randint(least, most))).isoformat()

    def _some(self, **keys: tuple[float, Callable[[], Any]]) -> dict[str, Any]:
        """Return each key with its probability."""
        return {key: make() for key, (often, make) in keys.items() if self._random.random() < often}

    def _keys(self) -> dict[str, Any]:
        pick = self._random
        return self._some(
            tags=(0.3, lambda: pick.sample("abc", pick.randint(1, 2))),
            priority=(0.3, lambda: round(pick.random(), 2)),
            pinned=(0.15, lambda: True),
            expires=(0.15, lambda: self._hours(-5, 50)),
            valid_from=(0.1, lambda: self._hours(-5, 20)),
            aliases=(0.1, lambda: [pick.choice(WORDS)]),
            summary=(0.2, self._text),
            embedding=(0.35 if self._vectors else 0, self._vector),
        )

    def _data(self) -> dict[str, Any]:
        pick = self._random
        data = {"n": pick.randint(0, 20), "who": pick.choice(["ada", "bob", None])}
        return data | self._some(
            nest=(0.5, lambda: {"k": round(pick.random(), 2)}),
            b=(0.3, lambda: pick.choice([True, 1, 1.0, 0, False])),
            l=(0.2, lambda: [1, "x"]),
        )

    def _where(self) -> dict[str, Any]:
        return self._random.choice(
            [
                {"n": 7},
                {"n": {"gt": 12}},
                {"who": "ada"},
                {"who": {"ne": "ada"}},
                {"nest.k": {"lte": 0.5}},
                {"who": {"in": ["bob", None]}},
                {"nest.k": {"exists": False}},
                {"n": {"not_in": [1, 2]}},
                {"b": True},
                {"b": 1},
                {"who": None},
                {"l": [1, "x"]},
                {"n": {"gte": 3}, "who": "bob"},
            ]
        )

    def _filters(self) -> dict[str, Any]:
        pick = self._random
        return self._some(
            types=(0.3, lambda: pick.sample(TYPES, pick.randint(1, 2))),
            tags=(0.25, lambda: [pick.choice("abc")]),
            where=(0.4, self._where),
            since=(0.15, lambda: self._hours(-300, -1)),
            until=(0.15, lambda: self._hours(-100, 0)),
        )

    def add(self) -> Act:
        session, kind, data, keys = self._session(), self._random.choice(TYPES), self._data(), self._keys()
        entry_id, text = self._new(session), self._random.choice([None, self._text()])
        return lambda agent: agent.session(session).add(kind, data, id=entry_id, text=text, **keys)

    def add_many(self) -> Act:
        session, count = self._session(), self._random.randint(1, 5)
        # Each has its own time: archives do not tell the places of entries with one time.
        times = [(self._clock() + timedelta(milliseconds=at)).isoformat() for at in range(count)]
        items = [
            {
                "id": self._new(session),
                "ts": ts,
                "type": "message",
                "text": self._text(),
                "data": self._data(),
            }
            for ts in times
        ]
        return lambda agent: agent.session(session).add_many(items)

    def update(self) -> Act:
        session, entry_id = self._old()
        changes: list[dict[str, Any]] = [
            {"text": self._text()},
            {"data": self._data()},
            {"data_merge": {"n": 5, "who": None}},
            {"priority": round(self._random.random(), 2), "tags": ["b"]},
            {"pinned": None, "summary": self._text()},
        ]
        change = self._random.choice(changes)
        return lambda agent: agent.session(session).update(entry_id, **change)

    def replace(self) -> Act:
        (session, entry_id), item = self._old(), {"type": "fact", "text": self._text()}
        return lambda agent: agent.session(session).replace(entry_id, item)

    def supersede(self) -> Act:
        session, entry_id = self._old()
        item = {"id": self._new(session), "text": self._text()}
        return lambda agent: agent.supersede(entry_id, item, session=session)

    def reinstate(self) -> Act:
        session, entry_id = self._old()
        return lambda agent: agent.reinstate(entry_id, session)

    def delete(self) -> Act:
        session, entry_id = self._old()
        return lambda agent: agent.session(session).delete(entry_id)

    def restore(self) -> Act:
        session, entry_id = self._old()
        return lambda agent: agent.session(session).restore(entry_id)

    def purge(self) -> Act:
        session, entry_id = self._old()
        return lambda agent: agent.session(session).purge(entry_id)

    def link(self) -> Act:
        (session, entry_id), (_, target) = self._old(), self._old()
        return lambda agent: agent.session(session).link(entry_id, target, "about")

    def related(self) -> Act:
        _, entry_id = self._old()
        return lambda agent: agent.related(entry_id, depth=2)

    def history(self) -> Act:
        _, entry_id = self._old()
        return lambda agent: agent.history(entry_id)

    def compact(self) -> Act:
        session = self._session()
        return lambda agent: agent.session(session).compact()

    def clear(self) -> Act:
        session = self._session()
        return lambda agent: agent.session(session).clear()

    def remove(self) -> Act:
        session = self._session()
        return lambda agent: agent.session(session).remove()

    def delete_where(self) -> Act:
        filters = self._filters() or {"types": ["fact"]}
        is_dry = self._random.random() < 0.7
        return lambda agent: agent.delete_where(dry_run=is_dry, **filters)

    def count(self) -> Act:
        filters = self._filters()
        return lambda agent: agent.count(**filters)

    def entries(self) -> Act:
        filters, limit = self._filters(), self._random.choice([1, 7, 100])
        newest, every = self._random.random() < 0.5, self._random.random() < 0.5

        def pages(agent: Agent) -> list[Place]:
            found: list[Place] = []
            cursor = None
            while len(found) <= 60:
                page = agent.entries(
                    limit=limit, cursor=cursor, newest_first=newest, include_superseded=every, **filters
                )
                found += [(entry.session, entry.id) for entry in page]
                cursor = page.next
                if cursor is None:
                    break
            return found

        return pages

    def session_entries(self) -> Act:
        session, is_archived = self._session(), self._random.random() < 0.5
        return lambda agent: agent.session(session).entries(limit=20, archived=is_archived)

    def as_of(self) -> Act:
        session, moment = self._session(), self._hours(-500, 0)
        return lambda agent: agent.session(session).entries(as_of=moment)

    def get(self) -> Act:
        _, entry_id = self._old()
        return lambda agent: agent.get(entry_id)

    def sessions(self) -> Act:
        return lambda agent: sorted(info.id for info in agent.sessions())

    def copy(self) -> Act:
        session, new = self._session(), f"copy {self._count}"
        return lambda agent: agent.session(session).copy(new)

    def export(self) -> Act:
        session = self._session()
        return lambda agent: [*agent.session(session).export()]

    def set_title(self) -> Act:
        session, title = self._session(), self._random.choice([None, self._text()])
        return lambda agent: agent.session(session).set_title(title)

    def summaries(self) -> Act:
        return lambda agent: [
            (one.id, one.title, one.entries, one.preview) for one in agent.session_summaries()
        ]

    def context(self) -> Act:
        query = self._text()
        return lambda agent: agent.context(query, budget=300)

    def recall(self) -> Act:
        pick = self._random
        about = f"what about {pick.choice(WORDS)} last week?"
        query = pick.choice([self._text(), pick.choice(WORDS), "databse runing", about, "apple red"])
        options = self._filters() | self._some(
            neighbours=(0.2, lambda: pick.randint(1, 2)),
            as_of=(0.15, lambda: self._hours(-400, 0)),
            min_priority=(0.15, lambda: round(pick.random(), 2)),
            min_relevance=(0.15, lambda: round(pick.random() * 0.7, 2)),
            include_superseded=(0.2, lambda: True),
            sessions=(0.3, lambda: pick.sample(SESSIONS, pick.randint(0, 2))),
            vector=(0.3 if self._vectors else 0, self._vector),
        )
        limit = pick.choice([1, 3, 10, 30])
        return lambda agent: agent.recall(query, limit=limit, **options)


def plain(value: Any) -> Any:  # noqa: PLR0911  One for each kind.
    """Return an answer as values that two stores can be compared by."""
    kind = type(value).__name__
    if isinstance(value, float):
        return round(value, 3)
    if kind == "Hit":
        entry = value.entry
        return (entry.session, entry.id, plain(value.score), plain(value.relevance), value.passage)
    if kind == "Entry":
        return {key: plain(one) for key, one in value.as_dict().items()} | {"in": value.session}
    if kind == "Version":
        return (value.as_dict(), value.written, value.deleted)
    if kind == "Context":
        return value.text
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.id if kind == "Session" else value


def answer(act: Act, agent: Agent) -> Any:
    """Return what an operation answers, or the kind of its error."""
    try:
        return plain(act(agent))
    except _ERRORS as error:
        return type(error).__name__


def net(changes: list[Change], alive: set[Place]) -> list[tuple[str, str, str]]:
    """Return what changes come to: what one call did, in however many steps it was told.

    ``alive`` are the entries that were told so far. What was deleted and archived may be purged untold.
    """
    before, changed = set(alive), set[Place]()
    for one in changes:
        place = one.session, one.id or ""
        if one.kind in ("add", "update"):
            alive.add(place)
            changed.add(place)
        elif one.id is None:
            alive -= {each for each in alive if each[0] == one.session}
        else:
            alive.discard(place)
    gone = [(*place, "gone") for place in before - alive]
    return sorted([*gone, *((*place, "update" if place in before else "add") for place in changed & alive)])


def differences(
    homes: tuple[Home, Home], clock: ManualClock, *, seed: int, count: int, vectors: bool
) -> tuple[Counter[str], list[str]]:
    """Return how many answers of each kind of operation differ, and the first of them in full."""
    agents = tuple(home.agent(f"r{seed}") for home in homes)
    found, shown = Counter[str](), list[str]()
    looks = [store_of(home).changes([agent.slug], None) for home, agent in zip(homes, agents, strict=True)]
    alive: tuple[set[Place], set[Place]] = (set(), set())
    for number, (name, act) in zip(range(count), Operations(seed, clock, vectors=vectors), strict=False):
        one, other = (answer(act, agent) for agent in agents)
        told = [net(look(), known) for look, known in zip(looks, alive, strict=True)]
        if one != other:
            found[name] += 1
            shown.append(f"{number} {name}: {one!r}\n    {other!r}")
        if told[0] != told[1]:
            found[f"watch {name}"] += 1
            shown.append(f"{number} watch {name}: {told[0]}\n    {told[1]}")
    return found, shown
