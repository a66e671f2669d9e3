"""Homes: a home contains agents, an agent contains sessions, a session contains entries."""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import Layout, layout_of
from keepstone.filesystem.slug import slug
from keepstone.log.arguments import Clock, count_of, name_of, names_of, number_of, system_clock
from keepstone.model import BackupInfo, Finding, Scope
from keepstone.recall.conflicts import ConflictFinder
from keepstone.recall.filling import catch_up, fill_some
from keepstone.recall.reembed import embed_all, reembed
from keepstone.recall.rerank import Reranker
from keepstone.recall.selection import Meaning
from keepstone.recall.shared import BoundToProcess, Guard, Shared
from keepstone.store.background import Background
from keepstone.store.changes import Change
from keepstone.store.citations import Project
from keepstone.store.memory_budget import BUDGET
from keepstone.store.opening import open_store, shown_root
from keepstone.store.protocol import Store
from keepstone.store.trust import Judge
from keepstone.text.tokenizer import check_language
from keepstone.tracing import traced

if TYPE_CHECKING:
    from keepstone.embed import EmbedderLike
    from keepstone.importing import ImportResult

logger = logging.getLogger("keepstone.recall")

_CATCHING_UP_SECONDS = 1.0
"""Maximum number of seconds that ``close`` waits for a remote embedder."""
_MOST_AGENTS = 1024
"""Maximum number of cached agents; the cache saves checking the slug at each call."""
_LOOKING_SECONDS = 0.1
"""Minimum number of seconds between two polls of a watch."""


def open(  # noqa: A001  Called as keepstone.open.
    target: str | os.PathLike[str] | None = None,
    *,
    layout: str | Layout = "default",
    embedder: EmbedderLike | None = "auto",
    space: str | None = None,
    durability: Literal["full", "os"] = "full",
    reranker: Reranker | None = None,
    secrets: Literal["keep", "mask", "refuse"] = "keep",
    clock: Clock | None = None,
    language: str | None = None,
    project: str | os.PathLike[str] | None = None,
    memory: int | None = None,
) -> Home:
    """Open a home. Nothing is written before the first entry is added.

    Args:
        target: The home's folder, as a path or a ``file:`` URL. Default: ``$KEEPSTONE_HOME``, else the user's
            data folder.
        layout: ``"default"``, ``"bmad"``, ``"cache"`` or a ``Layout``.
        embedder: The embedder of vector search. ``"auto"`` is the embedder of the home's vectors. In a home
            without vectors, it is $KEEPSTONE_EMBEDDER, else the best installed one (minilm, else e5, else
            static, else none). Other values are ``"none"``; a name such as ``"minilm"``, ``"e5"``
            (multilingual), ``"static"``, ``"openai:MODEL"`` or ``"http://HOST:PORT/v1?model=MODEL"``; an
            object with ``id``, ``dim``, ``embed_documents`` and ``embed_query``; a LangChain ``Embeddings``;
            or a function from texts to vectors. Nothing is loaded before the first recall, except for an
            embedder without an id, such as a bound method, a lambda or a partial: it is called with a fixed
            text, whose vector identifies it.
        space: An id for the embedder's space, which replaces the embedder's own id. Vectors with the same id
            are compared, so use one id for one model only.
        durability: ``"full"`` syncs each write to the disk before the call returns. ``"os"`` leaves syncing
            to the system: it is faster, but a power failure loses the last writes.
        reranker: A function that rescores the best hits of each recall. Its arguments are the query and the
            list of the hits' texts; it returns one number per text, higher is better.
        secrets: How to treat secret keys and tokens anywhere in entries. ``"keep"`` stores them, and
            ``doctor`` warns of them. ``"mask"`` stores a placeholder such as ``[secret: GitHub token]``.
            ``"refuse"`` raises ``SecretError``. Only well-known formats are detected. An agent's own files
            are not checked.
        clock: A function that returns the current time, for new entries and validity; default: the system
            clock.
        language: The language whose stemmer is used for words in Latin letters, such as ``"de"``. The home
            stores it; default: the stored language, else English. Russian and Greek words are recognized by
            their script. Changing the language rebuilds the indexes.
        project: The folder whose files entries cite; default: the root of the repository that contains the
            working folder, else the working folder.
        memory: Maximum number of bytes that the indexes of all agents keep in memory, in total for all homes
            of this process; default: 256 MB. The last value given counts. The agent in use may exceed the
            limit.

    Raises:
        ValueError: The layout, durability, language or ``secrets`` is unknown, or the target is neither the
            path of a folder nor a URL of a known scheme.
        StoreError: The target is a database, and its extra is not installed.
        AccessDeniedError: Permission to access the target is denied.
        EmbedderUnavailableError: The named embedder cannot be used; the message says what to do.
        SpaceMismatchError: The home's vectors are from an embedder other than the named one.

    Examples:
        >>> home = keepstone.open(".work-agent")
        >>> entry = home.agent("coder").session("s1").add("note", {"content": "Use pnpm"})
        >>> home.close()
    """
    if durability not in ("full", "os"):
        raise ValueError(f"durability must be 'full' or 'os', not {durability!r}")
    if secrets not in ("keep", "mask", "refuse"):
        raise ValueError(f"secrets must be 'keep', 'mask' or 'refuse', not {secrets!r}")
    if clock is not None and not callable(clock):
        raise TypeError(f"clock must be callable, not {type(clock).__name__}: {clock!r:.80}")
    if reranker is not None and not callable(reranker):
        raise TypeError(f"reranker must be callable, not {type(reranker).__name__}: {reranker!r:.80}")
    # This sets the limit for the process, not for this home: the indexes of all homes share one memory
    # budget.
    if memory is not None:
        BUDGET.limit = count_of(memory, "memory")
    store, root = open_store(
        os.environ.get("KEEPSTONE_HOME") or _user_folder() if target is None else target,
        layout_of(layout),
        durable=durability == "full",
        language=None if language is None else check_language(language),
    )
    return Home(
        store,
        root,
        embedder=embedder,
        space=None if space is None else name_of(space, "space"),
        reranker=reranker,
        secrets=secrets,
        clock=clock or system_clock,
        project=Project(project),
    )


def _user_folder() -> str:
    from platformdirs import user_data_dir  # Needed only if no home is named.

    return user_data_dir("keepstone", appauthor=False)


def _guard(secrets: Literal["keep", "mask", "refuse"]) -> Guard | None:
    if secrets == "keep":
        return None
    from keepstone.secrets.policy import guard_of  # Late: compiling its patterns takes time.

    return guard_of(secrets)


class Home(BoundToProcess):
    """A home: the agents, indexes and settings of one folder or database. Safe to share between threads.

    ``keepstone.open`` opens it. It is also a context manager, which closes it.
    """

    def __init__(
        self,
        store: Store,
        root: Path,
        *,
        embedder: EmbedderLike | None,
        space: str | None,
        reranker: Reranker | None,
        secrets: Literal["keep", "mask", "refuse"],
        clock: Clock,
        project: Project | None = None,
    ) -> None:
        """Use ``keepstone.open`` instead."""
        self.root = root
        self._store = store
        self._background = Background(self._improve)
        meaning = Meaning(self._store, embedder, self._background.wake, name=space)
        judge = Judge(self._store, clock, project or Project())
        conflicts = ConflictFinder(self._store, clock, judge)
        self._shared = Shared(self._store, root, clock, meaning, reranker, conflicts, judge, _guard(secrets))
        self._agents: dict[str, Agent] = {}
        _open_homes.add(self)

    def __repr__(self) -> str:
        return f"<Home {shown_root(self.root)!r}>"

    def agents(self) -> list[str]:
        """Return the sorted slugs of all agents that have a session or a file."""
        return self._store.agents()

    def agent(self, slug: str) -> Agent:
        """Return an agent, which need not exist: its first write creates it.

        Raises:
            InvalidAgentIdError: The slug is not 1 to 128 of ``A-Z a-z 0-9 . _ -``, starting with a letter or
                digit and not ending with a dot.
        """
        with suppress(KeyError, TypeError):  # The slug is not cached, or not even a string.
            return self._agents[slug]
        if len(self._agents) >= _MOST_AGENTS:
            # Drop all of them: this happens rarely, and costs less than tracking the order of use.
            self._agents.clear()
        self._agents[slug] = agent = Agent(self._shared, self._store.check_agent(slug))
        return agent

    def user(self, name: str) -> Agent:
        """Return the agent of a user, whose name may be any text, such as an email address.

        Examples:
            >>> home.user("ada@example.com") is home.agent(keepstone.slug("ada@example.com"))
            True
        """
        return self.agent(slug(name))

    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "ndjson",  # noqa: A002
        *,
        force: bool = False,
    ) -> int:
        """Export the live entries of all agents into a new folder, and return their number.

        The new folder has one folder for each agent, and is created atomically at the end. ``import_from``
        reads every format.

        Args:
            path: The folder to write to.
            format: ``ndjson``, ``md``, ``okf``, ``sqlite`` or ``csv``.
            force: Replace what is at the path.

        Raises:
            FileExistsError: The path exists.
            ValueError: The format is unknown, or the path and the home contain each other.
            AccessDeniedError, StoreError: The folder cannot be written; no partial output is left.
        """
        from keepstone.operations.exporting import export_memory  # Loaded for an export only.

        return export_memory(self, os.fspath(path), format=format, force=force)

    def import_from(
        self,
        source: str,
        path: str | os.PathLike[str],
        *,
        agent: str = "default",
        keep_origin: bool = False,
    ) -> ImportResult:
        """Import the memory of another tool, or an export, into an agent.

        Running the import again adds no duplicates: changed records replace their entries, and entries that
        were deleted in the home stay deleted. The source is never changed, and no code in it is executed.

        Args:
            source: The kind of source, such as ``"mem0"`` or ``"chatgpt"``; ``"auto"`` detects it.
            path: The file, folder or zip archive.
            agent: The slug of the agent to import into.
            keep_origin: Keep the origin of each record, for exports of one's own homes. Otherwise no imported
                entry has more trust than ``import``.

        Raises:
            SourceError: The source is not recognised, cannot be read, is damaged or hostile.
            LockTimeoutError, StoreError: As for ``Session.add``; records written before the error stay.
        """
        from keepstone.importing import import_memory  # Loaded for an import only.

        return import_memory(self.agent(agent), source, path, keep_origin=keep_origin)

    @traced("purge")
    def purge_agent(self, slug: str) -> None:
        """Remove every byte of an agent: sessions, archives, files and index.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        self._store.purge_agent(self._store.check_agent(slug))

    def sync(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Index all lines that other programs wrote, including those of logs above 32 MB.

        Readers leave the indexing of such long logs to a background thread. ``progress`` is called with the
        bytes read of an agent's long logs, and their total.

        Raises:
            LockTimeoutError: Another process is indexing the same logs, and made no progress for 10 seconds.
        """
        self._store.sync(progress)

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild all indexes from the logs, and return the number of sessions read.

        ``progress`` is called with the bytes read and the total bytes.
        """
        return self._store.maintenance.rebuild(progress)

    def embed(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed all entries that have no vector, and return the number of vectors made.

        ``progress`` is called with the number of vectors made and the total.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it failed. Vectors made before the error are
                kept.
        """
        meaning = self._shared.meaning
        choice = meaning.choice()
        maker = None if choice.embedder is None else meaning.maker(choice.embedder)
        return embed_all(self._store, choice, progress, maker)

    def reembed(
        self, embedder: EmbedderLike = "auto", progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Re-embed all entries with another embedder, which becomes the home's embedder.

        If the call is interrupted, recall still uses the previous embedder, and the next call resumes.
        Vectors given by callers stay in the logs.

        Args:
            embedder: As for ``keepstone.open``; ``"auto"`` is the best installed one.
            progress: Called with the number of vectors made and the total.

        Raises:
            EmbedderUnavailableError: The embedder cannot be used, or failed. Vectors made before the error
                are kept.
        """
        made = reembed(self._store, embedder, progress)
        self._shared.meaning.spaces.clear()
        return made

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        """Check every log and index and the home's folder, and return the findings.

        Without ``fix`` no log, archive or file is changed.

        Args:
            deep: Also compare every row and vector of the indexes with the logs; scan all lines of logs and
                archives for secrets, not only the newest lines of each log; and search the newest 500 entries
                of each agent for entries that contradict or repeat each other.
            fix: Make all possible repairs, and return them first. If unreadable lines are removed from a log,
                the original log is kept next to its archive until the session is removed.
            progress: Called with the bytes of logs checked and the total bytes.
        """
        findings = self._store.maintenance.doctor(deep=deep, fix=fix, progress=progress)
        if deep:
            from keepstone.recall.conflict_review import findings as conflicts

            findings = [*findings, *conflicts(self._store, self._shared.clock)]
        return [*findings, *self._shared.judge.findings(), *self._shared.meaning.findings()]

    def backup(
        self,
        folder: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        vectors: bool = False,
    ) -> BackupInfo:
        """Copy the home into a new folder, and verify the copy. Writers can continue.

        The copy is a home: to restore it, open it, or put it in place of the home. Each session is copied
        under its lock. Entries purged before this returns are not in the copy. Indexes are left out, as they
        are rebuilt from the logs. The folder is created atomically at the end.

        Args:
            folder: The folder for the copy. It must be missing or empty, and outside the home.
            progress: Called with the bytes copied and the total bytes.
            vectors: Also copy the embedder's vectors, into indexes of the copy. Otherwise the vectors must be
                made again, which can take hours.

        Raises:
            ValueError: The folder is a file, is not empty, or is inside the home.
            LockTimeoutError: A writer held a session's lock for five seconds.
            StoreError: The disk is full or failed, or the verification failed.

        Examples:
            >>> home.backup("backups/2026-01-11").entries
            2
        """
        return self._store.maintenance.backup(Path(folder).expanduser(), progress, vectors=vectors)

    def watch(
        self, agents: Iterable[str] | None = None, since: str | None = None, timeout: float | None = None
    ) -> Iterator[Change]:
        """Yield changes of entries and sessions as they happen, including changes by other processes.

        Changes of one session come in order. This call reads the sessions once; after that, it checks the
        state of their files about ten times a second.

        A cursor is valid in other processes and after restarts. Its length grows with the number of sessions.
        If a session was compacted after the cursor was made, later changes are still reported, some of them
        perhaps twice. If a purge, an edit or a clear makes that impossible, the whole session is reported:
        ``clear``, then an ``add`` for each of its entries. So the only changes left out are those that were
        undone before they were seen.

        Args:
            agents: Only changes of these agents, which need not exist yet.
            since: The cursor of a change: only later changes are yielded. Default: changes from this call on.
            timeout: Stop after this many seconds without a change.

        Raises:
            TypeError, ValueError: An argument is invalid, or ``since`` is not a cursor.

        Examples:
            >>> changes = home.watch(timeout=0.1)
            >>> entry = home.agent("coder").session("s1").add("note", {"content": "Use pnpm"}, id="pnpm")
            >>> [(change.kind, change.session, change.id) for change in changes]
            [('add', 's1', 'pnpm')]
        """
        names = names_of(agents, "agents")
        slugs = None if names is None else [*map(self._store.check_agent, names)]
        seconds = None if timeout is None else number_of(timeout, "timeout", least=0)
        return _Watch(self._store.changes(slugs, since), seconds)

    def close(self) -> None:
        """Close all files. A later call reopens them.

        A remote embedder gets up to a second to embed the pending entries of the agents that were used.
        Otherwise, a short program would never embed them.
        """
        self._catch_up()
        # Close the background thread before the store, which it uses.
        self._background.close()
        self._store.close()

    def _catch_up(self) -> None:
        until = time.monotonic() + _CATCHING_UP_SECONDS
        try:
            for agent in self._shared.meaning.owed():
                if (left := until - time.monotonic()) > 0:
                    catch_up(self.agent(agent).vectors(), left)
        except KeepstoneError as error:
            logger.warning("entries are not embedded yet, run keepstone index: %s", type(error).__name__)

    def _improve(self, agent: str) -> bool:
        """Do one unit of background work on an agent's index; False if there is none left."""
        return fill_some(self.agent(agent).vectors(), Scope(agent)) or self._store.maintenance.upkeep(agent)

    def __enter__(self) -> Self:
        """Return the home itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the home."""
        self.close()


class _Watch(Iterator[Change]):
    """An iterator of changes that ends after ``timeout`` seconds without one, or when a thread closes it."""

    def __init__(self, read_changes: Callable[[], list[Change]], timeout: float | None) -> None:
        self._closed = threading.Event()
        self._changes = self._found(read_changes, timeout)

    def __next__(self) -> Change:
        return next(self._changes)

    def close(self) -> None:
        """End the iteration, even if another thread is waiting in it."""
        self._closed.set()

    def _found(self, read_changes: Callable[[], list[Change]], timeout: float | None) -> Iterator[Change]:
        idle_since = time.monotonic()
        while not self._closed.is_set():
            began = time.monotonic()
            changes = read_changes()
            yield from changes
            now = time.monotonic()
            if changes:
                idle_since = now
                continue
            left = math.inf if timeout is None else idle_since + timeout - now
            if left <= 0:
                return
            # Ten times as long as the poll took: polling many sessions then uses at most a tenth of one
            # processor.
            self._closed.wait(min(max(_LOOKING_SECONDS, 10 * (now - began)), left))


_open_homes: weakref.WeakSet[Home] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A background thread in native code at interpreter exit would crash the process.
    for home in list(_open_homes):
        home.close()


def store_of(home: Home) -> Store:
    """Return the store of a home, for servers that store other data besides its memory."""
    return home._store  # noqa: SLF001  Of this module.
