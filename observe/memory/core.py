"""The whole memory core over one home: each part does one thing, and all of them see the same store."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from ...archiver.redaction import Redactor
from ...archiver.store import Store
from ...core.clock import now
from ...core.closing import Closing
from ...core.conversation import Milliseconds
from ...core.home import Home
from ...search.index.generation import Generations
from ...search.model.embedder import DEFAULT_MODEL, load
from ...search.model.embedding import Embedder
from ...search.rank.memory_finder import MemoryFinder
from .conflicts import Conflicts
from .context import Contexts
from .expanding import Expanding
from .graph import Graph
from .health import HealthCheck
from .judging import Judge, Judging, OfflineJudge
from .learning import Learning
from .memories import Memories
from .recalling import Recalling
from .remembering import Remembering
from .secrecy import Secrecy


class MemoryCore(Closing):
    """What every surface calls. Not for several threads at once; several processes may have one each.

    `remembering` stores, `recalling` finds, `expanding` adds what edges lead to, `memories` lists, edits, forgets and
    restores, `learning` earns confidence, `graph` relates, `conflicts` finds what disagrees, `health` what should be
    looked at, `contexts` chooses what a new session should know, `projects` knows the namespace of each project. All of
    them raise `InvalidInput` for what the caller can correct.
    """

    def __init__(
        self,
        store: Store,
        generations: Generations,
        embedder: Embedder,
        redactor: Redactor,
        *,
        judge: Judge | None = None,
        clock: Callable[[], Milliseconds] = now,
    ) -> None:
        """`redactor` takes the secrets out of all that is to be stored.

        `judge` says whether two memories disagree: by rules, offline, where none is given.
        """
        finder, judging = MemoryFinder(store, generations, embedder), judge or OfflineJudge()
        secrecy = Secrecy(redactor)
        # An edit is judged by rules alone, so that none costs money, or waits for the network.
        self.memories = Memories(store, finder, secrecy, Conflicts(store, finder, OfflineJudge(), clock), clock)
        self.remembering = Remembering(store, finder, judging, secrecy, clock)
        self.recalling = Recalling(store, finder, clock)
        self.expanding = Expanding(store, clock)
        self.learning = Learning(store, secrecy, clock)
        self.graph = Graph(store, finder, secrecy, clock)
        self.conflicts = Conflicts(store, finder, judging, clock)
        self.health = HealthCheck(store, finder, clock)
        self.contexts = Contexts(store, self.recalling, clock)
        self.projects = store.projects
        self._close = ExitStack()

    @classmethod
    def open(cls, home: Home, model: str | None = None, judging: Judging | None = None) -> Self:
        """The core over the archive in this home, making it if there is none; close it, or use it in `with`.

        `judging` makes the judge that works with the same store.
        """
        home.prepare()
        store = Store.create(home.database)
        core = cls.over(store, home, model, judging)
        core._close.callback(store.close)  # noqa: SLF001 - one of ours
        return core

    @classmethod
    def over(cls, store: Store, home: Home, model: str | None = None, judging: Judging | None = None) -> Self:
        """The same over the store of this home, which is open and stays so when the core is closed."""
        judge = judging(store) if judging is not None else None
        embedder = load(model or DEFAULT_MODEL)
        core = cls(store, Generations(home.index), embedder, Redactor(home.key()), judge=judge)
        if judge is not None:
            core._close.callback(judge.close)
        return core

    def close(self) -> None:
        """Let go of the judge, and of the file where `open` opened it."""
        self._close.close()
