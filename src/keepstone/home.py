"""Where memory lives. A home holds agents, an agent holds sessions, a session holds entries."""

from __future__ import annotations

import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import Layout, layout_of
from keepstone.log.arguments import Clock, system_clock
from keepstone.model import BackupInfo, Finding, Scope
from keepstone.recall.embedder import Meaning
from keepstone.recall.reembed import embed_all, reembed
from keepstone.recall.rerank import Reranker
from keepstone.shared import Guard, Shared
from keepstone.store.background import Background
from keepstone.store.opening import open_store
from keepstone.store.protocol import Store

if TYPE_CHECKING:
    from keepstone.embed import EmbedderLike

logger = logging.getLogger("keepstone.recall")

_CATCHING_UP_SECONDS = 1.0
"""How long ``close`` waits for a server that makes vectors."""


def open(  # noqa: A001  The name that the design gives it, called as keepstone.open.
    target: str | os.PathLike[str] | None = None,
    *,
    layout: str | Layout = "default",
    embedder: EmbedderLike | None = "auto",
    durability: Literal["full", "os"] = "full",
    reranker: Reranker | None = None,
    secrets: Literal["keep", "mask", "refuse"] = "keep",
    clock: Clock | None = None,
) -> Home:
    """Open a home. Nothing is written before the first add.

    Args:
        target: The home's folder, as a path or a ``file:`` URL. Default: ``$KEEPSTONE_HOME``, else the user's
            data folder.
        layout: ``"default"``, ``"bmad"``, ``"cache"`` or a ``Layout``.
        embedder: What recall by meaning asks: ``"auto"`` is the embedder that the home's vectors are of,
            and in a home without any $KEEPSTONE_EMBEDDER, else the best that is installed (minilm, else
            static, else none); or ``"none"``, a name such as ``"minilm"``, ``"static"``,
            ``"openai:MODEL"`` or ``"http://HOST:PORT/v1?model=MODEL"``, an object with ``id``, ``dim``,
            ``embed_documents`` and ``embed_query``, a LangChain ``Embeddings``, or a function from texts
            to vectors (a lambda, bound method or partial needs an attribute ``id``). Nothing is loaded
            before the first recall.
        durability: ``"full"`` syncs each write to the disk before it returns; ``"os"`` leaves
            that to the system, which is faster and loses the last writes when the power fails.
        reranker: Scores the best hits of each recall anew: a function of the query and the list of their
            texts that returns one number a text, higher is better.
        secrets: What becomes of keys and tokens in entries, wherever in an entry they stand: ``"keep"``
            writes them, and ``doctor`` warns of them; ``"mask"`` writes ``[secret: GitHub token]`` in their
            place; ``"refuse"`` raises ``SecretError``. Only well-known formats are found. Files of an
            agent's own are left as they are.
        clock: Tells the time for new entries; the system's by default.

    Raises:
        ValueError: The layout, the durability or ``secrets`` is not one of these, or the target is a file,
            not a path, or a URL of another scheme.
        StoreError: The target is a database whose extra is not installed.
        AccessDeniedError: The system does not let us look at the target.
        EmbedderUnavailableError: The embedder that is named cannot be used here; the message says what to do.
        SpaceMismatchError: The home's vectors are of another embedder than the one that is named.

    Example:
        >>> home = keepstone.open(".work-agent")
        >>> entry = home.agent("coder").session("s1").add("note", {"content": "Use pnpm"})
        >>> home.close()
    """
    if durability not in ("full", "os"):
        raise ValueError(f"durability is 'full' or 'os', not {durability!r}")
    if secrets not in ("keep", "mask", "refuse"):
        raise ValueError(f"secrets is 'keep', 'mask' or 'refuse', not {secrets!r}")
    if clock is not None and not callable(clock):
        raise TypeError(f"clock must be callable, not {type(clock).__name__}: {clock!r:.80}")
    if reranker is not None and not callable(reranker):
        raise TypeError(f"reranker must be callable, not {type(reranker).__name__}: {reranker!r:.80}")
    store, root = open_store(
        os.environ.get("KEEPSTONE_HOME") or _user_folder() if target is None else target,
        layout_of(layout),
        durable=durability == "full",
    )
    return Home(
        store,
        root,
        embedder=embedder,
        reranker=reranker,
        secrets=secrets,
        clock=clock or system_clock,
    )


def _user_folder() -> str:
    from platformdirs import user_data_dir  # Only needed where no home is named.

    return user_data_dir("keepstone", appauthor=False)


def _guard(secrets: Literal["keep", "mask", "refuse"]) -> Guard | None:
    if secrets == "keep":
        return None
    from keepstone.secrets.policy import guard_of  # Its patterns take a moment, and nobody else needs them.

    return guard_of(secrets)


class Home:
    """Where memory lives. Made by ``keepstone.open``; safe to share between threads.

    Also a context manager, which closes it.
    """

    def __init__(
        self,
        store: Store,
        root: Path,
        *,
        embedder: EmbedderLike | None,
        reranker: Reranker | None,
        secrets: Literal["keep", "mask", "refuse"],
        clock: Clock,
    ) -> None:
        """Use ``keepstone.open`` instead."""
        self.root = root
        self._store = store
        self._background = Background(self._improve)
        meaning = Meaning(self._store, embedder, self._background.wake)
        self._shared = Shared(self._store, clock, meaning, reranker, _guard(secrets))
        _open_homes.add(self)

    def __repr__(self) -> str:
        return f"<Home {str(self.root)!r}>"

    def agents(self) -> list[str]:
        """Return the slugs of all agents that have a session or a file, sorted."""
        return self._store.agents()

    def agent(self, slug: str) -> Agent:
        """Return an agent, which need not exist yet: its first write makes it.

        Raises:
            InvalidAgentIdError: The slug is not 1 to 128 of ``A-Z a-z 0-9 . _ -``, or begins or ends wrong.
        """
        return Agent(self._shared, self._store.check_agent(slug))

    def purge_agent(self, slug: str) -> None:
        """Remove every byte of an agent: sessions, archives, files and index.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        self._store.purge_agent(self._store.check_agent(slug))

    def sync(self) -> None:
        """Take in what other programs wrote to the logs of all agents."""
        self._store.sync()

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make all indexes anew from the logs; return how many sessions were read.

        ``progress`` is called with the bytes read so far and all bytes.
        """
        return self._store.maintenance.rebuild(progress)

    def embed(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the vectors that entries of any agent still lack; return how many were made.

        ``progress`` is called with how many were made so far and how many there are to make.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it failed. What was made is kept.
        """
        return embed_all(self._store, self._shared.meaning.choice(), progress)

    def reembed(
        self, embedder: EmbedderLike = "auto", progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Make the vectors of all agents anew with another embedder, which is the home's from then on.

        When this is stopped half-way, nothing has changed for recall; called again it goes on
        where it stopped. Vectors that callers gave stay in the logs.

        Args:
            embedder: As for ``keepstone.open``; ``"auto"`` is the best that is installed.
            progress: Called with how many were made so far and how many there are to make.

        Raises:
            EmbedderUnavailableError: There is no such embedder, or it failed. What was made is kept.
        """
        return reembed(self._store, embedder, progress)

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        """Look at every log and index and at the place where they lie, and return what was found.

        No log, archive or file is changed without ``fix``.

        Args:
            deep: Compare every row and vector of the indexes with the logs, too, and look for secrets in
                all lines, archives included, not only in the newest of each log, and for entries that
                contradict or repeat one another, among the newest 500 of each agent.
            fix: Mend what can be mended, and return first what was done. A log whose unreadable lines are
                taken out keeps its original beside its archive, until its session is removed.
            progress: Called with the bytes of logs looked at so far and all bytes.
        """
        findings = self._store.maintenance.doctor(deep=deep, fix=fix, progress=progress)
        if deep:
            from keepstone.recall.conflicts import findings as conflicts

            findings = [*findings, *conflicts(self._store, self._shared.clock)]
        return [*findings, self._shared.meaning.finding()]

    def backup(
        self, folder: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None
    ) -> BackupInfo:
        """Copy the home into a new folder while others may go on writing; the copy is checked.

        The copy is a home: to go back to it, open it, or put it in the home's place. Each session is
        copied under its lock, as one of its writers left it. What was purged before this returns is not
        in the copy. Indexes are left out: they are made anew from the logs. The folder appears at the end,
        whole; until then, and after a failure, nothing of its name is there.

        Args:
            folder: Where the copy is to be. It must be missing or empty, and not in the home.
            progress: Called with the bytes copied so far and all bytes.

        Raises:
            ValueError: The folder is a file, is not empty, or lies in the home.
            LockTimeoutError: A writer kept a session locked for five seconds.
            StoreError: The disk is full or failed, or the copy is not what was read.

        Example:
            >>> home.backup("backups/2026-01-11").entries
            2
        """
        return self._store.maintenance.backup(Path(folder).expanduser(), progress)

    def close(self) -> None:
        """Give back all open files. Using the home again opens them anew.

        Where a server makes the vectors, it gets up to a second for those that are missing of the agents
        that were used: a program that adds or recalls and ends would never have them otherwise.
        """
        self._catch_up()
        self._background.close()
        self._store.close()

    def _catch_up(self) -> None:
        until = time.monotonic() + _CATCHING_UP_SECONDS
        try:
            for agent in self._shared.meaning.owed():
                if (left := until - time.monotonic()) > 0:
                    self.agent(agent).vectors().catch_up(left)
        except KeepstoneError as error:
            logger.warning("vectors are still missing, run keepstone index: %s", type(error).__name__)

    def _improve(self, agent: str) -> bool:
        """Do one piece of work on an agent's index; False if there is none left."""
        return self.agent(agent).vectors().fill_some(Scope(agent)) or self._store.maintenance.upkeep(agent)

    def __enter__(self) -> Self:
        """Return the home itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the home."""
        self.close()


_open_homes: weakref.WeakSet[Home] = weakref.WeakSet()


def _close_all() -> None:
    for home in list(_open_homes):
        home.close()


# A background that is in native code when the interpreter goes away would take the process down with it.
atexit.register(_close_all)
