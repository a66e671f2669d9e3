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
"""Seconds that ``close`` waits for a remote embedder."""
_MOST_AGENTS = 1024
"""Agents that are kept, so that a slug is not checked with each call."""
_LOOKING_SECONDS = 0.1
"""Seconds between two looks of a watch for changes."""


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
    """Open a home. Nothing is written before the first add.

    Args:
        target: The home's folder, as a path or a ``file:`` URL. Default: ``$KEEPSTONE_HOME``, else the user's
            data folder.
        layout: ``"default"``, ``"bmad"``, ``"cache"`` or a ``Layout``.
        embedder: The embedder of vector search. ``"auto"`` is the embedder of the home's vectors; in a home
            without vectors $KEEPSTONE_EMBEDDER, else the best installed one (minilm, else e5, else
            static, else none). Otherwise ``"none"``, a name such as ``"minilm"``, ``"e5"`` (multilingual),
            ``"static"``, ``"openai:MODEL"`` or ``"http://HOST:PORT/v1?model=MODEL"``, an object with ``id``,
            ``dim``, ``embed_documents`` and ``embed_query``, a LangChain ``Embeddings``, or a function from
            texts to vectors. Nothing is loaded before the first recall, unless the embedder has no id, as a
            bound method, a lambda or a partial: it is known by its vector of a fixed text.
        space: An id for the embedder's space, in the place of its own: homes with the same id compare
            their vectors, so say it only of the same model.
        durability: ``"full"`` syncs each write to the disk before it returns; ``"os"`` leaves syncing to
            the system, which is faster but loses the last writes in a power failure.
        reranker: Rescores the best hits of each recall: a function of the query and the list of their
            texts that returns one number per text, higher is better.
        secrets: How to treat keys and tokens anywhere in entries: ``"keep"`` stores them, and ``doctor``
            warns; ``"mask"`` stores a placeholder such as ``[secret: GitHub token]``; ``"refuse"`` raises
            ``SecretError``. Only well-known formats are detected. An agent's own files are not checked.
        clock: Returns the time of new entries; default: the system clock.
        language: The language whose stemmer is used for words in Latin letters, such as ``"de"``. The home
            remembers it; default: the remembered one, else English. Russian and Greek words are recognized
            by their script. Another language rebuilds the indexes.
        project: The folder whose files entries cite; default: the root of the repository of the working
            folder, else that folder.
        memory: Bytes that the indexes of all open agents of this process keep in memory together, for all
            homes, as it was said last; default: 256 MB. The agent in use may take more.

    Raises:
        ValueError: The layout, durability, language or ``secrets`` is unknown, the target is not a folder's
            path, or a URL of an unknown scheme.
        StoreError: The target is a database whose extra is not installed.
        AccessDeniedError: Permission to access the target is denied.
        EmbedderUnavailableError: The named embedder is not usable here; the message says what to do.
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
    # For the process and not for this home: indexes of all homes share one budget of memory.
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
    from platformdirs import user_data_dir  # Only needed where no home is named.

    return user_data_dir("keepstone", appauthor=False)


def _guard(secrets: Literal["keep", "mask", "refuse"]) -> Guard | None:
    if secrets == "keep":
        return None
    from keepstone.secrets.policy import guard_of  # Late: compiling its patterns takes time.

    return guard_of(secrets)


class Home(BoundToProcess):
    """The place where memory lives, opened by ``keepstone.open``. Safe to share between threads.

    Also a context manager, which closes it.
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
        with suppress(KeyError, TypeError):  # It is new here, or not even a string.
            return self._agents[slug]
        if len(self._agents) >= _MOST_AGENTS:
            # All at once, which costs less than an order of use and happens rarely.
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
        """Export the live entries of all agents into a new folder with a folder each; return their number.

        The folder appears as a whole at the end, or not at all. ``import_from`` reads every format.

        Args:
            path: The folder to write to.
            format: ``ndjson``, ``md``, ``okf``, ``sqlite`` or ``csv``.
            force: Replace what is at the path.

        Raises:
            FileExistsError: There is something at the path.
            ValueError: The format is unknown, or the path and the home contain each other.
            AccessDeniedError, StoreError: The folder cannot be written; nothing is left of it.
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

        A second run adds nothing: changed records replace their entries, and what was deleted here stays
        deleted. The source is never changed, and nothing of it is executed.

        Args:
            source: What it is from, such as ``"mem0"`` or ``"chatgpt"``; ``"auto"`` recognises it.
            path: The file, folder or zip archive.
            agent: The slug of the agent to import into.
            keep_origin: Keep who said each record, as of a home of one's own. Without it nothing imported has
                more trust than ``import``.

        Raises:
            SourceError: The source is not recognised, cannot be read, is damaged or hostile.
            LockTimeoutError, StoreError: As for ``Session.add``; what was written before stays.
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
        """Index what other programs wrote, also logs above 32 MB, which readers leave to the background.

        ``progress`` is called with the bytes read of such logs of an agent, and their total.

        Raises:
            LockTimeoutError: Another process that began to do the same did not get on for 10 seconds.
        """
        self._store.sync(progress)

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild all indexes from the logs; return how many sessions were read.

        ``progress`` is called with the bytes read and the total bytes.
        """
        return self._store.maintenance.rebuild(progress)

    def embed(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed all entries without a vector; return how many vectors were made.

        ``progress`` is called with the number of vectors made and the total.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it failed. Vectors made before are kept.
        """
        meaning = self._shared.meaning
        choice = meaning.choice()
        maker = None if choice.embedder is None else meaning.maker(choice.embedder)
        return embed_all(self._store, choice, progress, maker)

    def reembed(
        self, embedder: EmbedderLike = "auto", progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Re-embed all entries with another embedder, which is the home's from then on.

        If this is interrupted, recall is unchanged, and the next call resumes. Vectors given by callers stay
        in the logs.

        Args:
            embedder: As for ``keepstone.open``; ``"auto"`` is the best installed one.
            progress: Called with the number of vectors made and the total.

        Raises:
            EmbedderUnavailableError: The embedder is not usable, or failed. Vectors made before are kept.
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
            deep: Also compare every row and vector of the indexes with the logs, scan all lines for secrets,
                archives included, not only the newest of each log, and look for entries that contradict or
                repeat one another, among the newest 500 of each agent.
            fix: Repair what can be repaired, and return the repairs first. If unreadable lines are removed
                from a log, its original is kept beside its archive until its session is removed.
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
        """Copy the home into a new folder and verify the copy. Writers need not stop.

        The copy is a home: to restore it, open it, or put it in place of the home. Each session is copied
        under its lock. Entries purged before this returns are not in the copy. Indexes are left out, as they
        are rebuilt from the logs. The folder is created atomically at the end.

        Args:
            folder: The folder for the copy. It must be missing or empty, and outside the home.
            progress: Called with the bytes copied and the total bytes.
            vectors: Also copy the embedder's vectors, in indexes of the copy, so that they need not be made
                again, which can take hours.

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
        """Yield changes of entries and sessions as they come, those of other processes too.

        They come in the order of each session. This call reads the sessions once; from then on it looks at
        the state of their files about ten times a second.

        A cursor holds in other processes and after restarts. Its text grows with the sessions. Where a
        session was compacted since, what came after is found all the same, perhaps twice. Where a purge, an
        edit or a clear makes that impossible, the session is reported as a whole: ``clear``, then an ``add``
        for each entry that it has. So no change is left out, but one that came and went unseen.

        Args:
            agents: Only changes of these agents; also of those that do not exist yet.
            since: The cursor of a change, to go on after it; without one, changes from this call on.
            timeout: End after this many seconds without a change.

        Raises:
            TypeError, ValueError: An argument is none of these, or ``since`` is not a cursor.

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
        """Close all files. They are reopened when needed.

        A remote embedder gets up to a second to embed pending entries of the agents that were used, as a
        short program would otherwise never embed them.
        """
        self._catch_up()
        # Before the store, which the background thread uses.
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
    """Changes until there was none for ``timeout`` seconds, or until any thread closes it."""

    def __init__(self, look: Callable[[], list[Change]], timeout: float | None) -> None:
        self._closed = threading.Event()
        self._changes = self._found(look, timeout)

    def __next__(self) -> Change:
        return next(self._changes)

    def close(self) -> None:
        """End the iteration, also of a thread that waits in it."""
        self._closed.set()

    def _found(self, look: Callable[[], list[Change]], timeout: float | None) -> Iterator[Change]:
        idle_since = time.monotonic()
        while not self._closed.is_set():
            began = time.monotonic()
            changes = look()
            yield from changes
            now = time.monotonic()
            if changes:
                idle_since = now
                continue
            left = math.inf if timeout is None else idle_since + timeout - now
            if left <= 0:
                return
            # Looking at many sessions takes at most a tenth of one processor.
            self._closed.wait(min(max(_LOOKING_SECONDS, 10 * (now - began)), left))


_open_homes: weakref.WeakSet[Home] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A background thread in native code at interpreter exit would crash the process.
    for home in list(_open_homes):
        home.close()


def store_of(home: Home) -> Store:
    """Return the store of a home, for servers that keep something beside its memory."""
    return home._store  # noqa: SLF001  Of this module.
