"""Exchange of grants and tests line by line: the lines of all devices, without those that one removed.

A line that another device publishes takes effect here, as a line that git merges would. So everyone with
write access to the shared folder can grant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import NamedTuple

from keepstone.errors import StoreError
from keepstone.filesystem.layout import DEFAULT_AGENT, GRANTS, TESTS
from keepstone.operations.syncing.devices import Device, digest
from keepstone.operations.syncing.file_versions import Known, Versions, dump, ended, joined, written
from keepstone.operations.syncing.giving import Giver
from keepstone.operations.syncing.own_files import published_versions
from keepstone.operations.syncing.taking import LocalHome
from keepstone.store import memory_tests
from keepstone.store.files import purge_digests
from keepstone.store.sharing.grants import MOST_BYTES, DamagedGrantsError, parsed
from keepstone.store.sharing.grants_file import GrantsFile
from keepstone.store.suggestion_lines import lines_of

HOME = purge_digests.gone_name("")
"""Digest used in place of an agent's for files that belong to the whole home."""
_MOST_TESTS = 16 << 20


class _Kind(NamedTuple):
    """A kind of file that is exchanged line by line."""

    name: str
    most: int
    check: Callable[[bytes], object]
    """Function that raises an error for a damaged line, such as ValueError or StoreError."""


_KINDS = (
    _Kind(GRANTS, MOST_BYTES, parsed),
    _Kind(TESTS, _MOST_TESTS, lambda line: memory_tests.test_of(json.loads(line))),
)
_WRONG = (ValueError, TypeError, RecursionError, StoreError)


class OwnLines:
    """The exchange of grants and tests."""

    def __init__(self, local: LocalHome, known: Known) -> None:
        self._local = local
        self._known = known
        self._lines: dict[tuple[str, str], list[bytes]] = {}

    def take(self, devices: list[Device]) -> None:
        """Add the lines that other devices added, and remove the lines that they removed."""
        home = self._local.home
        agents = {purge_digests.gone_name(slug): slug for slug in home.agents()}
        for kind in _KINDS:
            published = published_versions(self._local, devices, _versions(kind.name))
            slugs = {slug for device in devices for slug, _ in device.listed}
            named = {purge_digests.gone_name(slug): slug for slug in slugs} | agents
            for name in [HOME] if kind.name == TESTS else sorted({*published, *agents} - {HOME}):
                if kind.name == GRANTS and not self._local.layout.has_agents:
                    continue
                ours = self._known.of(_group(name, kind.name))
                self._local.forget_removed_agent(name, ours, is_here=name in agents or name == HOME)
                self._exchange(kind, name, named.get(name, DEFAULT_AGENT), ours, published.get(name, []))

    def _exchange(
        self,
        kind: _Kind,
        name: str,
        agent: str,
        ours: Versions,
        published: list[tuple[Device, str, Versions]],
    ) -> None:
        arrived = self._arrived(kind, published)
        before = dict(ours)

        def united(lines: list[bytes]) -> list[bytes]:
            # Each call starts from the same versions, as this function may be called more than once.
            ours.clear()
            ours.update(before)
            present = {digest(line): line for line in lines if line.strip()}
            _found(ours, present)
            texts = arrived | present
            for _, _, versions in published:
                for key, version in versions.items():
                    new = joined(ours.get(key), version)
                    if not new.is_live or key in texts:
                        ours[key] = new
            live = {key for key in texts if key in ours and ours[key].is_live}
            if sum(len(texts[key]) for key in live) > kind.most:
                self._local.result.skipped.append(
                    f"{agent}/{kind.name}: more than {kind.most:,} bytes together"
                )
                live &= present.keys()
            if live == present.keys():
                self._lines[name, kind.name] = [*present.values()]
                return lines
            kept = [texts[key] for key in sorted(live, key=lambda key: (ours[key].time, key))]
            self._lines[name, kind.name] = kept
            return kept

        has_more = any(
            # A file is created only if an arriving line is live.
            key in arrived and joined(before.get(key), version).is_live
            for _, _, versions in published
            for key, version in versions.items()
        )
        try:
            self._change(kind, agent, united, has_more=has_more)
        except DamagedGrantsError as error:  # A damaged file grants nothing and stays unchanged.
            ours.clear()
            ours.update(before)
            self._local.result.skipped.append(f"{agent}/{kind.name}: {error}")
        for device, folder, _ in published:
            self._take_out(kind, device, folder, ours)

    def _change(
        self, kind: _Kind, agent: str, united: Callable[[list[bytes]], list[bytes]], *, has_more: bool
    ) -> None:
        home = self._local.home
        if kind.name == TESTS:
            memory_tests.rewrite(home.root, united, create=has_more)
            if not has_more and not (home.root / TESTS).exists():
                united([])
            return
        file = GrantsFile(home.root, self._local.layout, agent)

        def change(text: bytes) -> bytes:
            parsed(text)
            lines = lines_of(text)
            kept = united(lines)
            return text if kept is lines else b"".join(kept)

        if has_more or file.path.exists():
            file.revise(change)
        else:
            united([])

    def _arrived(self, kind: _Kind, published: list[tuple[Device, str, Versions]]) -> dict[str, bytes]:
        """Return the lines that other devices publish, by their digests."""
        found: dict[str, bytes] = {}
        for device, folder, _ in published:
            given = folder, _lines(kind.name)
            raw = device.read(*given) if given in device.listed else b""
            if raw is None or len(raw) > kind.most:
                self._local.result.pending.append(device.name(*given))
                continue
            for line in lines_of(raw):
                try:
                    kind.check(line)
                except _WRONG as error:
                    self._local.result.skipped.append(f"a line of {device.name(*given)}: {error}")
                else:
                    found[digest(line)] = line
        return found

    @staticmethod
    def _take_out(kind: _Kind, device: Device, folder: str, ours: Versions) -> None:
        """Delete removed lines from a device's folder."""
        given = folder, _lines(kind.name)
        raw = device.read(*given) if given in device.listed else None
        if raw:
            stay = [
                line
                for line in lines_of(raw)
                if (version := ours.get(digest(line))) is None or version.is_live
            ]
            if len(stay) < len(lines_of(raw)):
                device.rewrite({given: b"".join(stay)})

    def give(self, giver: Giver, agent: str) -> None:
        """Publish the lines of an agent, or of the home, and their versions."""
        name = purge_digests.as_gone_name(agent)
        for kind in _KINDS:
            versions = self._known.groups.get(_group(name, kind.name))
            if versions:
                lines = self._lines.get((name, kind.name), [])
                live = [line for line in lines if digest(line) in versions]
                if live:
                    giver.write(_lines(kind.name), b"".join(live))
                giver.write(_versions(kind.name), dump(versions))


def _found(ours: Versions, present: Collection[str]) -> None:
    """Update versions for this home's lines, given by their digests in the order of the file."""
    for key, version in ours.items():
        if version.is_live and key not in present:
            ours[key] = ended(version)
    place = 0
    for key in present:
        old = ours.get(key)
        if old is None or not old.is_live:
            ours[key] = written(old, key, place + 1)
        # The lines carry no times, so each new one gets a made-up, higher time, which records the order in
        # the file.
        place = max(place, ours[key].time)


def _group(name: str, file: str) -> str:
    return f"{name}/{file}"


def _lines(file: str) -> str:
    return f".{file}"


def _versions(file: str) -> str:
    return f".{file.partition('.')[0]}.json"
