"""A log against a dictionary, through everything that may happen to both."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.damage import Damaged, batch, entry, lines, patch, tombstone

from keepstone.model import Record

ids = st.sampled_from(["id-a", "id-b", "id-c"])
changes = st.sampled_from([{"access": 1}, {"access": 2}, {"pinned": True}, {"pinned": None}, {"tags": ["t"]}])


def replay(entries: dict[str, Record], line: Record) -> None:
    """Let one line change a dictionary of entries, by the words of the format page."""
    there = entries.get(line["id"])
    if line.get("deleted"):
        entries.pop(line["id"], None)
    elif "type" in line:
        kept = {key: value for key, value in (there or {}).items() if key in ("access", "pinned", "tags")}
        modified = {"modified": line["ts"]} if there else {}
        entries[line["id"]] = kept | line | {"ts": (there or line)["ts"]} | modified
    elif there:
        changed = {key: line[key] for key in line if key not in ("id", "ts")}
        merged = there | changed | ({} if changed.keys() == {"access"} else {"modified": line["ts"]})
        entries[line["id"]] = {key: value for key, value in merged.items() if value is not None}


class LogModel(RuleBasedStateMachine):
    """What is in the log as groups of lines written together, and which texts are on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="keepstone-test-"))
        self.session = Damaged(self.root / "sessions")
        self.groups: list[list[Record]] = []
        self.texts: dict[str, str] = {}
        self.count = 0
        self.finished = True

    def teardown(self) -> None:
        self.session.close()
        shutil.rmtree(self.root)

    def entries(self) -> dict[str, Record]:
        entries: dict[str, Record] = {}
        for group in self.groups:
            for line in group:
                replay(entries, line)
        return entries

    def write(self, *records: Record) -> None:
        self.session.append(*(records if len(records) == 1 else batch(*records)))
        self.groups.append(list(records))
        self.finished = True

    def new(self, entry_id: str) -> Record:
        self.count += 1
        text = f"text number {self.count}."
        self.texts[text] = entry_id
        return entry(entry_id, text, ts=f"2026-01-11T14:31:00.{self.count:06}Z")

    @rule(entry_id=ids)
    def put(self, entry_id: str) -> None:
        self.write(self.new(entry_id))

    @rule(entry_id=ids, keys=changes)
    def patch(self, entry_id: str, keys: dict[str, Any]) -> None:
        self.write(patch(entry_id, **keys))

    @rule(entry_id=ids)
    def delete(self, entry_id: str) -> None:
        self.write(tombstone(entry_id))

    @rule(some=st.lists(ids, min_size=2, max_size=4))
    def put_many(self, some: list[str]) -> None:
        self.write(*(self.new(entry_id) for entry_id in some))

    @rule()
    def compact(self) -> None:
        if self.session.compact():
            self.groups = [[record] for record in self.entries().values()]
            self.finished = True

    @rule(entry_id=ids)
    def purge(self, entry_id: str) -> None:
        before = self.session.log.stat()
        self.session.purge(entry_id)
        if self.session.log.stat() != before:
            self.groups = [[line] for group in self.groups for line in group if line["id"] != entry_id]
            # A torn line of an earlier write stays, and may be the last one now.
            self.finished = self.session.path.read_bytes().endswith(b"}\n")
        self.forget_texts(entry_id)

    @rule(some=st.lists(ids, min_size=1, max_size=3), keys=changes, deleted=ids)
    def compact_beside_a_writer(self, some: list[str], keys: dict[str, Any], deleted: str) -> None:
        folded, before = self.entries(), self.session.log.stat()
        groups: list[list[Record]] = []
        self.session.compact_beside(lambda: groups.extend(self.written_beside(some, keys, deleted)))
        if before is not None:
            self.groups = [[record] for record in folded.values()]
            self.finished = True
        self.groups += [[line] for group in groups for line in group]

    @rule(entry_id=ids, some=st.lists(ids, min_size=1, max_size=3), keys=changes, deleted=ids)
    def purge_beside_a_writer(
        self, entry_id: str, some: list[str], keys: dict[str, Any], deleted: str
    ) -> None:
        before = self.session.log.stat()
        groups: list[list[Record]] = []
        self.session.purge_beside(entry_id, lambda: groups.extend(self.written_beside(some, keys, deleted)))
        if before is not None:
            lines = [line for group in [*self.groups, *groups] for line in group]
            self.groups = [[line] for line in lines if line["id"] != entry_id]
            self.finished = self.session.path.read_bytes().endswith(b"}\n")
        self.forget_texts(entry_id)

    def written_beside(self, some: list[str], keys: dict[str, Any], deleted: str) -> list[list[Record]]:
        """Write what another writer does during a rewrite, and return it as groups."""
        groups = [[self.new(entry_id) for entry_id in some], [patch(some[0], **keys)], [tombstone(deleted)]]
        for group in groups:
            self.session.append(*(group if len(group) == 1 else batch(*group)))
        return groups

    def forget_texts(self, entry_id: str) -> None:
        """Check that no text of a purged entry is left, and look for none of them from now on."""
        purged = [text for text, owner in self.texts.items() if owner == entry_id]
        assert not [text for text in purged if text in self.on_disk()]
        for text in purged:
            del self.texts[text]

    @rule()
    def clear(self) -> None:
        self.session.clear()
        self.groups, self.texts, self.finished = [], {}, True

    @precondition(lambda self: self.finished and self.groups)
    @rule(part=st.floats(0, 1))
    def cut_the_tail(self, part: float) -> None:
        group = self.groups[-1]
        written = group if len(group) == 1 else batch(*group)
        length = len(lines(written[-1]))
        count = 1 + round(part * (length - 1))
        self.session.cut(count)
        self.finished = False
        if count > 1:
            self.groups.pop()
            self.texts = {text: owner for text, owner in self.texts.items() if not self.is_in(group, text)}

    def is_in(self, group: list[Record], text: str) -> bool:
        return any(line.get("text") == text for line in group)

    @rule()
    def reopen(self) -> None:
        self.session.reopen()

    def on_disk(self) -> str:
        paths = (self.session.path, self.session.archive_path)
        return "".join(path.read_text() for path in paths if path.exists())

    @invariant()
    def the_log_holds_what_the_dictionary_holds(self) -> None:
        assert self.session.records() == list(self.entries().values())

    @invariant()
    def no_version_is_lost(self) -> None:
        on_disk = self.on_disk()
        assert not [text for text in self.texts if text not in on_disk]


LogModel.TestCase.settings = settings(stateful_step_count=30)
test_a_log_does_what_a_dictionary_does_through_every_damage = LogModel.TestCase
