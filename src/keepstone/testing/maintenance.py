"""Store checks: maintenance. A store may lack an operation if its error names the operation."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from keepstone.testing.making import (
    AGENT,
    Factory,
    amend,
    ids_of,
    is_unsupported,
    raises,
    rebuild,
    record,
    same,
    search,
    tombstone,
)


def check_backup(factory: Factory) -> None:
    """A backup counts what it copied, reports progress, and refuses a folder that is not empty."""
    with factory() as store, TemporaryDirectory() as name:
        store.append(AGENT, "s1", [record("a", "one"), record("b", "two")])
        amend(store, "s1", tombstone("a"))
        store.files(AGENT).write("note.md", "x")
        progress: list[tuple[int, int]] = []
        folder = Path(name, "copy")
        if is_unsupported("backup", lambda: store.maintenance.backup(Path(name, "other"), None)):
            return
        info = store.maintenance.backup(folder, lambda done, of: progress.append((done, of)))
        same((info.agents, info.sessions, info.entries, info.files), (1, 1, 1, 1), "what was copied")
        same((info.findings, folder.is_dir(), bool(progress)), ((), True, True), "a sound copy")
        raises(ValueError, lambda: store.maintenance.backup(folder, None))
        same(ids_of(store.entries(AGENT, "s1", None, None)), ["b"], "the store is as it was")


def check_rebuild_and_doctor(factory: Factory) -> None:
    """An index can be rebuilt from what is stored, and a sound store has no findings."""
    with factory() as store:
        store.append(AGENT, "s1", [record("a", "walnut")])
        progress: list[tuple[int, int]] = []
        if rebuild(store, lambda done, of: progress.append((done, of))):
            same([done == of for done, of in progress[-1:]], [True], "progress ends at the end")
        store.sync()
        same(search(store, ["walnut"]), ["a"], "what was found is found again")
        if not is_unsupported("doctor", store.maintenance.doctor):
            same({finding.level for finding in store.maintenance.doctor()}, {"ok"}, "all is well")
