"""Publishing this home in a shared folder: changed files first, the manifest last.

Other devices ignore a file that differs from the manifest. If this process is killed before the end, they
wait for the next sync and never read half a log (docs/decisions/0022-merge-logs-by-line.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from typing import Any, Protocol

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, PURGED, SUGGESTIONS
from keepstone.log.line import dump_read
from keepstone.log.sides import read_side
from keepstone.operations.syncing.devices import (
    TEMPORARY,
    Device,
    content_or_none,
    digest,
    listing,
    write_manifest,
)
from keepstone.operations.syncing.exchanged import ExchangedSession
from keepstone.operations.syncing.taking import GIVEN_SUGGESTIONS, LINE_FILES, LocalHome, published, sessions
from keepstone.store.files import purge_digests, suggestion_file

_Listed = dict[tuple[str, str], tuple[int, str]]


class Own(Protocol):
    """A part of a home other than its sessions."""

    def give(self, giver: Giver, agent: str) -> None:
        """Publish this part of an agent, of whose name only the digest may be known."""


def give(local: LocalHome, shared: Folder, place: str, own: Iterable[Own], known: Iterable[str]) -> None:
    """Publish this home's sessions, journals and ``own`` parts, also of ``known`` agents that are gone."""
    root, layout = local.home.root, local.layout
    shared.make_folder(place)
    before = Device(shared, place).listed
    listed: _Listed = {}
    giver = Giver(local, shared, place, before, listed)
    agents = local.home.agents()
    present = {purge_digests.gone_name(agent) for agent in agents}
    # Agents that no longer exist here still have erasures and deletions that other devices must learn.
    gone = {*purge_digests.vanished_agents(root), *known} - present
    for agent in sorted([*agents, *gone]):
        shared.make_folder(f"{place}/{agent}")
        giver.agent = agent
        erased = purge_digests.erased_of(root, layout, agent)
        giver.write(PURGED, b"".join(map(dump_read, erased.lines())))
        for part in own:
            part.give(giver, agent)
        if agent not in agents:
            continue
        with local.folder(agent) as folder:
            if folder is not None:
                giver.sessions_of(folder)
                if "{agent}" in layout.sessions:
                    suggestions = suggestion_file.read(layout.beside(root, agent, SUGGESTIONS), root)
                    giver.write(GIVEN_SUGGESTIONS, b"".join(suggestions))
                for name in LINE_FILES:
                    if (raw := content_or_none(folder, name)) is not None:
                        giver.write(name, raw)
    for agent, file in before.keys() - listed.keys():  # Removed here, as journal and versions record.
        with suppress(FileNotFoundError):
            shared.unlink(f"{place}/{agent}/{file}")
    write_manifest(root, shared, place, listing(listed))


class Giver:
    """Writes this device's files, one agent after another."""

    agent = ""

    def __init__(
        self, local: LocalHome, shared: Folder, place: str, before: _Listed, listed: _Listed
    ) -> None:
        self._local = local
        self._shared = shared
        self._place = place
        self._before = before
        self._listed = listed

    def write(self, file: str, raw: bytes) -> tuple[int, str]:
        """Write a file unless the folder already has it with this content."""
        entry = len(raw), digest(raw)
        if self._before.get((self.agent, file)) != entry:
            if file.startswith(f"{ARCHIVE}/"):
                self._shared.make_folder(f"{self._place}/{self.agent}/{ARCHIVE}")
            temporary = f"{self._place}/{TEMPORARY}"
            replace_file(self._shared, f"{self._place}/{self.agent}/{file}", [raw], temporary=temporary)
        self._listed[self.agent, file] = entry
        return entry

    def keep(self, file: str, entry: tuple[int, str]) -> bool:
        """List a file if the folder has it with this length and digest; return False otherwise."""
        if self._before.get((self.agent, file)) != entry:
            return False
        self._listed[self.agent, file] = entry
        return True

    def sessions_of(self, folder: Folder) -> None:
        """Write the agent's sessions that changed since the last exchange, and list the unchanged ones."""
        for session in sorted(sessions(folder, self._local.layout)):
            self._session(folder, session, self._local.layout.session_file(session))

    def _session(self, folder: Folder, session: str, file: str) -> None:
        log, archive = self._local.files(folder, session)
        names = (file, f"{ARCHIVE}/{file}")
        taken = self._local.taken[self.agent, session]
        # Compare states before reading: without a change since the last exchange no log is opened.
        state = self._local.state(folder, log, archive)
        known = self._local.exchanged.known(self.agent, session, state)
        if known is not None and self._is_there(names, known.given):
            for name, entry in known.given.items():
                self._listed[self.agent, name] = entry[0], entry[1]
            self._local.exchanged.keep(
                self.agent, session, ExchangedSession(state, known.given, {**known.taken, **taken})
            )
            return
        with closing(log), closing(archive), log.locked():
            with log.reading() as fd, archive.reading() as old:
                side = read_side(fd, old)
            # Take the state again, under the lock: it must be the state of the lines that were read.
            state = self._local.state(folder, log, archive)
        given: dict[str, list[Any]] = {names[0]: [*self.write(names[0], published(side.log, side))]}
        if side.archive:
            given[names[1]] = [*self.write(names[1], published(side.archive, None))]
        self._local.exchanged.keep(self.agent, session, ExchangedSession(state, given, taken))

    def _is_there(self, names: Iterable[str], given: dict[str, list[Any]]) -> bool:
        """Return whether the folder has exactly the files that were published last, unchanged."""
        listed = {name: [*entry] for name in names if (entry := self._before.get((self.agent, name)))}
        return listed == given
