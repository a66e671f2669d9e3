"""Embedder selection: which embedder a home uses, and why."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keepstone.embed.embedder import Turns
from keepstone.errors import EmbedderUnavailableError, KeepstoneError, SpaceMismatchError
from keepstone.model import Finding
from keepstone.store.protocol import Store
from keepstone.vector import Space

if TYPE_CHECKING:
    from keepstone.embed import Embedder
    from keepstone.embed.maker import Maker

logger = logging.getLogger("keepstone.recall")

AUTO, NONE = "auto", "none"
_SERVERS = ("http://", "https://")
"""Prefixes of embedder ids that are the address of a server."""
UNWANTED = "no embedder was wanted"
"""The reason if the caller asked for no embedder."""

MANY_GIVEN = 4096
"""Number of vectors given with an agent's entries after which its index is improved in the background."""

_MOST_HELD = 1024
"""Maximum number of cached spaces; the cache is cleared when it is full."""

SpaceKey = tuple[str | None, str, int | None]
"""The id of the named embedder, an agent, and the dimension of its vectors."""
Spaces = dict[SpaceKey, tuple[Space, float]]
"""Cache of the spaces in use, each with the monotonic time at which it was found."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An embedder and why it is used, or why there is none."""

    embedder: Embedder | None
    reason: str
    remote: bool = False
    """Whether the embedder asks a server, so that no call should wait for its answers."""
    remedy: str = ""
    """The command that allows the server that a home names; empty if nothing was refused."""
    mend: str = ""
    """The command that makes the home's vectors with an available embedder; empty if none is needed."""


class Meaning:
    """The embedder of a home. Nothing is loaded, and no server asked, before the first use.

    Args:
        store: Where the home's space is recorded.
        wanted: The ``embedder`` of ``keepstone.open``.
        name: The id of the named embedder's space; default: the embedder's own id.
        wake: Schedules background work for an agent: missing vectors, or an index to be improved.
        spaces: The cache of spaces that all selections of the home share, as a decision affects all of them.

    Raises:
        TypeError, ValueError, EmbedderUnavailableError: As for ``embed.choose.embedder_of``.
        ValueError: A name is given without an embedder.
        SpaceMismatchError: The named embedder is not the home's.
    """

    def __init__(
        self,
        store: Store,
        wanted: Any,
        wake: Callable[[str], None],
        spaces: Spaces | None = None,
        *,
        name: str | None = None,
    ) -> None:
        if isinstance(wanted, str) and wanted == AUTO:
            wanted = os.environ.get("KEEPSTONE_EMBEDDER") or AUTO
        self._store = store
        self.turns = Turns()
        self.refused: dict[tuple[str, int], None] = {}
        """Agents and keys of entries whose texts the embedder refused: these texts are tried last."""
        self._maker: Maker | None = None
        self._owed: dict[str, None] = {}
        self.wake = wake
        self._given: dict[str, int] = {}
        self._is_auto = wanted == AUTO if isinstance(wanted, str) else False
        self.named: Choice | None = None
        """The caller's choice, an embedder or none, instead of the home's."""
        self._chosen: tuple[Space | None, Choice] | None = None
        self.spaces: Spaces = {} if spaces is None else spaces
        self._claimed = True
        self.is_unwanted = wanted is None or (isinstance(wanted, str) and wanted == NONE)
        """Whether the caller wanted no embedder, so that only given vectors are compared."""
        if self.is_unwanted:
            self.named = Choice(None, UNWANTED)
        elif not self._is_auto:
            self.named = chosen(wanted, "named by the caller", recorded=store.home_space(), name=name)
            self._claimed = False
        if name is not None and (self.named is None or self.named.embedder is None):
            raise ValueError(f"space={name!r:.80} names the space of an embedder: give embedder=, too")
        self.own = None if self.named is None else self.named.embedder
        """The embedder that the caller named."""
        self._check_recorded()

    def choice(self) -> Choice:
        """Return the embedder in use and why."""
        if self.named is not None:
            return self.named
        recorded = self._store.home_space()
        # A server may have been allowed since it was refused.
        if self._chosen is None or self._chosen[0] != recorded or self._chosen[1].remedy:
            self._chosen = (recorded, best() if recorded is None else _recorded(recorded))
        return self._chosen[1]

    def maker(self, embedder: Embedder) -> Maker:
        """Return the maker of vectors for an embedder; it remembers failures."""
        from keepstone.embed.maker import Maker

        if self._maker is None or self._maker.embedder is not embedder:
            self._maker = Maker(embedder)
            self.refused = {}
        return self._maker

    def space(self) -> Space | None:
        """Return the decided space: the named embedder's, or the recorded one; else None.

        Raises:
            EmbedderUnavailableError: The named embedder failed when its dimension was asked for.
        """
        if self.own is not None:
            from keepstone.embed import check_embedder

            space = check_embedder(self.own)
            self._check_recorded(space.dim)
            return space
        recorded = self._store.home_space()
        if recorded is not None and not recorded.dim:
            embedder = self.choice().embedder
            return None if embedder is None else Space(recorded.id, embedder.dim)
        return recorded

    def hold(self, key: SpaceKey, space: Space | None) -> None:
        """Cache the space in use, see ``spaces``; None, for an undecided space, clears the cached one."""
        if space is None:
            self.spaces.pop(key, None)
            return
        if len(self.spaces) >= _MOST_HELD:
            self.spaces.clear()
        self.spaces[key] = space, time.monotonic()

    def owe(self, agent: str) -> None:
        """Remember that entries of an agent may lack vectors, so that ``close`` has a server make them."""
        self._owed[agent] = None

    def given(self, agent: str, vectors: int) -> None:
        """Count the vectors added for an agent, and wake the background once they are worth index files."""
        count = self._given.pop(agent, 0) + vectors
        if count < MANY_GIVEN:
            self._given[agent] = count
        else:
            self.wake(agent)

    def owed(self) -> list[str]:
        """Return and forget the agents for which a server makes vectors before the home closes."""
        agents, self._owed = list(self._owed), {}
        return agents if agents and self._may_be_remote() and self.choice().remote else []

    def _may_be_remote(self) -> bool:
        """Return, without loading the embedder, whether it may ask a server."""
        if self.named is not None:
            return self.named.remote
        recorded = self._store.home_space()
        return recorded is not None and recorded.id.startswith(("openai:", "http://", "https://"))

    def claim(self, agent: str) -> None:
        """Record the named embedder when the home is first written to, and that the agent may lack vectors.

        The embedder itself is not called.
        """
        self._owed[agent] = None
        if not self._claimed:
            self._claimed = True
            embedder = self.choice().embedder
            if embedder is not None and self._store.home_space() is None:
                # Dimension 0 means that the embedder was not asked for it yet.
                self._store.set_home_space(Space(embedder.id, 0, getattr(embedder, "probe", "")))
                self.spaces.clear()

    def record(self, space: Space) -> None:
        """Record the space of the first vectors."""
        recorded = self._store.home_space()
        if recorded is None or (recorded.id == space.id and not recorded.dim):
            probe = space.probe or (recorded.probe if recorded is not None else "")
            self._store.set_home_space(with_probe(replace(space, probe=probe), self.choice()))
            self.spaces.clear()

    def findings(self) -> Iterator[Finding]:
        """Yield the doctor's findings about the embedder, and about agents whose vectors it did not make."""
        yield self._finding()
        embedder = self.choice().embedder
        for agent in self._store.agents() if embedder is not None else ():
            spaces = self._store.spaces(agent)
            given = next((space for space in spaces if space.is_given), None)
            if (
                embedder is not None
                and given is not None
                and embedder.id not in {known.id for known in spaces}
            ):
                message = f"its vectors are {given.id}, which its callers made themselves"
                cost = "texts that are searched for are compared by their words only"
                yield Finding("warning", agent, message, reembedding(embedder.id), cost)

    def _finding(self) -> Finding:
        choice = self.choice()
        if choice.embedder is not None:
            return Finding("ok", "embedder", f"{choice.embedder.id}: {choice.reason}")
        if choice.mend:
            cost = "entries are found by their words only"
            return Finding("warning", "embedder", choice.reason, choice.mend, cost)
        level = "warning" if self._is_auto else "ok"
        message = f"none, recall is by words only: {choice.reason}"
        if not choice.remedy:
            return Finding(level, "embedder", message)
        cost = "entries are found by their words only"
        return Finding(level, "embedder", message, f"if you trust this server: {choice.remedy}", cost)

    def _check_recorded(self, dim: int = 0) -> None:
        embedder = self.own
        if embedder is None or (recorded := self._store.home_space()) is None:
            return
        if recorded.id != embedder.id:
            raise SpaceMismatchError(
                f"the embedder of this home is {recorded.id!r:.80}, not {embedder.id!r:.80}"
                f"{_compared(embedder, recorded)}: leave it out, or run: {reembedding()}"
            )
        if dim and recorded.dim not in (0, dim):
            raise SpaceMismatchError(
                f"the vectors of this home are of {recorded.id!r:.80} with {recorded.dim} numbers, "
                f"not {dim}: an embedder whose vectors change needs another id"
            )


def reembedding(name: str = "NAME") -> str:
    """Return the command that makes all vectors of a home with another embedder."""
    return f"keepstone index --re-embed --embedder {name}"


def whose_vectors(given: str, embedder: str) -> str:
    """Return the reason why an embedder's vectors cannot be compared with those that callers gave."""
    whose = f"the agent's vectors are {given}, which its callers made themselves"
    return f"{whose}; to search by meaning, run: {reembedding(embedder)}"


def with_probe(space: Space, choice: Choice) -> Space:
    """Return a space; if the embedder is a server, its answer to the probe text is added.

    The answer identifies the same model at another address.
    """
    if space.probe or choice.embedder is None or not choice.remote or choice.embedder.id != space.id:
        return space
    from keepstone.embed.probe import probed

    try:
        return replace(space, probe=probed(choice.embedder))
    except KeepstoneError as error:  # The server has just made vectors; its address alone identifies it.
        logger.warning("the embedder did not answer the probe text: %s", type(error).__name__)
        return space


def _compared(embedder: Embedder, recorded: Space) -> str:
    """Return how an embedder's answer to the probe text differs from the recorded answer, for a message."""
    answer = getattr(embedder, "probe", "")
    if not answer:
        return ""
    if not recorded.probe:
        return (
            ", and cannot be compared with it; if it is the same model, say so with "
            f"keepstone.open(space={recorded.id!r:.80})"
        )
    from keepstone.embed.probe import cosine

    return f", and its answer to the probe text differs (cosine {cosine(answer, recorded.probe):.2f})"


def chosen(wanted: Any, reason: str, *, recorded: Space | None = None, name: str | None = None) -> Choice:
    """Return the embedder that a caller names; errors as for ``embed.choose.embedder_of``.

    An embedder without an id, and a server at an address other than the recorded one, are identified by
    their answer to a fixed text. ``name`` is the id that the caller gives to the embedder's space.
    """
    from keepstone.embed.choose import embedder_of, is_local, is_remote
    from keepstone.embed.embedder import Patient

    embedder = embedder_of(wanted)
    if embedder is None:
        return Choice(None, reason)
    remote = is_remote(embedder)
    if name is not None or _needs_probe(embedder, recorded, remote=remote):
        from keepstone.embed.probe import Identified, identified, is_unnamed

        made = Identified(embedder, name) if name is not None else identified(embedder, recorded)
        if remote and is_unnamed(made.id):
            made.id = embedder.id  # A server with a different answer is identified by its address.
        return Choice(Patient(made) if not remote else made, reason, remote)
    # Third-party embedders get a timeout per call; local ones need none, and servers' clients have one.
    trusted = is_local(embedder) or is_remote(embedder)
    return Choice(embedder if trusted else Patient(embedder), reason, is_remote(embedder))


def _needs_probe(embedder: Embedder, recorded: Space | None, *, remote: bool) -> bool:
    if remote:
        # A server at another address may give the same vectors.
        is_moved = recorded is not None and recorded.id.startswith(_SERVERS) and recorded.id != embedder.id
        return is_moved and recorded is not None and bool(recorded.probe)
    return not getattr(embedder, "is_named", True)


def _recorded(space: Space) -> Choice:
    """Return the embedder that a home names. A server is used only if it is on the user's own list."""
    from keepstone.embed.servers import allowed, how_to_allow, server_of

    try:
        server = server_of(space.id)
        if server is not None and server not in allowed():
            remedy = how_to_allow(server)
            reason = (
                f"this home asks to send its texts to {space.id!r:.400}, which you did not allow on this "
                f"machine, so nothing is sent; if you trust that server, run {remedy}"
            )
            return Choice(None, reason, remedy=remedy)
        return chosen(space.id, "the home's vectors are made by it")
    except (EmbedderUnavailableError, ValueError) as error:
        mend = reembedding()
        reason = (
            f"the home's vectors are of {space.id!r:.80}, which cannot be used here: {error}; "
            f"pass that embedder, or make all vectors again: {mend}"
        )
        return Choice(None, reason, mend=mend)


def best() -> Choice:
    """Return the best embedder that is installed here, or why there is none."""
    from keepstone.embed.choose import LOCAL, unusable

    reasons: list[str] = []
    for name in LOCAL:
        reason = unusable(name)
        if reason is None:
            return chosen(name, "the best that is installed here" if not reasons else "; ".join(reasons))
        reasons.append(reason)
    return Choice(None, "; ".join(reasons))
