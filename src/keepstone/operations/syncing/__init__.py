"""Sync of homes over a shared folder, such as one on a mounted disk or one of a sync service.

Each device publishes into its own folder below ``devices`` and reads the folders of the other devices. A
device's files count only if they match its manifest, which is written last. docs/moving.md describes the
shared folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import SYNC, Layout
from keepstone.filesystem.lock import Lock
from keepstone.home import Home
from keepstone.operations.syncing.devices import Device, check_format, device_name
from keepstone.operations.syncing.exchanged import Exchanged
from keepstone.operations.syncing.file_versions import Known
from keepstone.operations.syncing.giving import give
from keepstone.operations.syncing.own_files import OwnFiles
from keepstone.operations.syncing.own_lines import HOME, OwnLines
from keepstone.operations.syncing.taking import LocalHome, Synced, entries
from keepstone.store.files import file_deletions
from keepstone.store.opening import is_database

__all__ = ["Synced", "exchange", "one_sync", "sync"]

_LOCK = "lock"


def sync(home: Home, layout: Layout, folder: Path) -> Synced:
    """Exchange entries and purges with the other homes that sync over a folder.

    Raises:
        ValueError: The folder and the home contain each other, the folder's parent is missing, the folder has
            a newer format, or the home is a database.
        LockTimeoutError: Another process syncs this home, or holds the lock of a log.
        StoreError: As for ``Session.add``. Sessions merged so far stay merged; sync again.
    """
    if is_database(home.root):
        raise ValueError(
            "a home in a database needs no folder to sync over: devices open the database itself"
        )
    root, path = home.root.resolve(), folder.expanduser().resolve()
    if root.is_relative_to(path) or path.is_relative_to(root):
        raise ValueError(
            f"{folder} and the home {home.root} contain each other: choose a folder outside of it"
        )
    # A disk that is not mounted must not be replaced by a new folder on this one.
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a folder: mount it or make it, then sync again")
    with one_sync(home):
        return exchange(home, layout, path)


@contextmanager
def one_sync(home: Home) -> Iterator[None]:
    """Hold the lock that allows only one sync of a home at a time, until the ``with`` block ends.

    Raises:
        LockTimeoutError: Another process syncs this home.
    """
    with (
        Folder(home.root / SYNC, root=home.root, create=True) as folder,
        closing(Lock(folder, _LOCK)) as lock,
        lock.hold(),
    ):
        yield


def exchange(home: Home, layout: Layout, path: Path) -> Synced:
    """Exchange with the devices in a folder; the caller holds ``one_sync``."""
    result = Synced()
    with border(path), Folder(path, create=True) as shared:
        check_format(shared)
        name = result.device = device_name(home.root, shared)
        exchanged = Exchanged.load(home.root)
        local = LocalHome(home, layout, result, exchanged)
        for agent in home.agents():
            # Merge conflicting copies first, so that their lines are exchanged, too.
            local.merge_copies(agent)
        others = [other for other in sorted(entries(shared, "devices")) if other != name]
        devices = [Device(shared, f"devices/{other}") for other in others]
        result.devices = len(devices)
        for device in devices:  # All erasures first, so that no merge brings an erased entry back.
            local.take_erasures(device)
        for device in devices:
            local.take(device)
        known = Known.load(home.root)
        own = OwnFiles(local, known), OwnLines(local, known)
        for part in own:
            part.take(devices)
        known.save(home.root)  # Save before publishing: published versions must not change later.
        file_deletions.forget(home.root, own[0].journal)
        give(local, shared, f"devices/{name}", own, [*known.agents(), HOME])
        exchanged.save(home.root)
    if result.changed or result.merged_copies:
        home.sync()  # Index the lines, which were written without the index.
    return result
