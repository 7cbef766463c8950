"""Mnemonics: memories as files of a project, found through the memory core beside all that other surfaces stored."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Final, Self

from msgspec import Struct, field

from ...archiver.redaction import Redactor
from ...archiver.store import Store
from ...core.clock import now, show_millisecond
from ...core.closing import Closing
from ...core.errors import InvalidInput, MemoryProtected, MnemonicsUnusable, PalaverError
from ...core.home import Home
from ...core.memory import Memory, MemoryRevision, MemoryState, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.project import root_of
from ...core.text import readable
from ..memory import (
    GLOBAL_NAMESPACES,
    JudgeFactory,
    MemoryCore,
    RecalledMemory,
    RememberResult,
    near_the_best,
)
from .folder import Folder
from .front_matter import Mnemonic, YamlInvalid
from .kinds import FALLBACK, Kinds
from .mirror import LEASE, PATIENCE, SOURCE, Found, Mirror, Problem
from .names import numbered, slug

FORGETTABLE_MAX: Final = 10
_SURE, _MEANT = 0.3, 0.5
"""The score, and the cosine, below both of which a memory is too far from a query to be replaced by what is told."""


class Match(Struct, frozen=True):
    """A memory that answers, and where it is: its file, or its id where it is kept in none."""

    stored: StoredMemory
    score: float
    similarity: float | None

    @property
    def path(self) -> str:
        """The absolute path of the file, or the id."""
        return self.stored.memory.path or self.stored.id


class Written(Struct, frozen=True):
    """A file that holds a memory now. `existed` where the same title said the same already."""

    stored: StoredMemory
    existed: bool = False
    superseded: tuple[StoredMemory, ...] = ()


class Compounded(Struct, frozen=True):
    """What became of a memory that was told anew; `created` where none was near enough."""

    stored: StoredMemory
    created: bool


class Forgettable(Struct, frozen=True):
    """What a query would forget: its matches, each with the digest of its file; golden rules stay."""

    matches: tuple[Match, ...]
    digests: tuple[str, ...]
    protected: tuple[Match, ...]


class Deleted(Struct):
    """What was forgotten, and what was not, with the reason."""

    gone: list[StoredMemory] = field(default_factory=list[StoredMemory])
    kept: dict[str, str] = field(default_factory=dict[str, str])


class Mnemonics(Closing):
    """The memories of one project. Each call first takes up what was edited by hand. For one thread at a time."""

    def __init__(self, store: Store, core: MemoryCore, redactor: Redactor, folder: Folder) -> None:
        self._store, self._core = store, core
        self._mirror, self._folder = Mirror(store, core, redactor, folder), folder
        self._close = ExitStack()

    @classmethod
    def open(cls, home: Home, start: Path, model: str | None = None, judging: JudgeFactory | None = None) -> Self:
        """The memories of the project that this folder belongs to; close it at the end."""
        home.make()
        core = MemoryCore.open(home, model, judging)
        mnemonics = cls(core.store, core, Redactor(home.key()), Folder(root_of(start)))
        mnemonics._close.callback(core.close)
        return mnemonics

    def close(self) -> None:
        """Let go of the file, where `open` opened it."""
        self._close.close()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The files that the last call could not take up."""
        return self._mirror.problems

    @property
    def project(self) -> Path:
        """Return the folder of the project."""
        return self._folder.project

    def read_files(self) -> None:
        """Read the project's memory files into the store."""
        self._mirror.sync()

    def kinds(self) -> Kinds:
        """The types that memories of this project may have."""
        self._mirror.sync()
        return self._mirror.kinds

    def remember(self, title: str, content: str, kind: str, tags: tuple[str, ...] = ()) -> Written:
        """Write a memory into a file of its own; a title that is taken gets a number. Raises `InvalidInput`."""
        self._mirror.sync()
        kind = self._mirror.kinds.named(kind)
        if not title.strip():
            raise InvalidInput("Title cannot be empty", hint="Say in a few words what it is about.")
        title = self._mirror.redacted(" ".join(readable(title).split()))
        return self._written(title, self._told(content), kind, tuple(map(self._mirror.redacted, _plain(tags))))

    def recall(self, query: str, kind: str | None = None, limit: int = 10) -> list[Match]:
        """What answers a query, best first: this project's memories and those that hold everywhere."""
        self._mirror.sync()
        return self._matches(query, kind, limit, (self._mirror.namespace, *GLOBAL_NAMESPACES))

    def nearest(self, query: str, kind: str | None = None) -> list[Match]:
        """The nearest, also where nothing is clearly relevant to a query, as the files were at the last call."""
        wanted = self._wanted(kind, (self._mirror.namespace, *GLOBAL_NAMESPACES))
        return self._here(self._core.nearest(query, wanted))

    def compound(self, query: str, content: str, kind: str | None = None) -> Compounded:
        """Replace what the memory says that answers best, and its type where one is given, which moves the file.

        Where none is near enough, a new one has the query as its title.
        """
        self._mirror.sync()
        kind = self._mirror.kinds.named(kind) if kind is not None else None
        content = self._told(content)
        best = self._matches(query, None, 1, (self._mirror.namespace,))
        if not best or (best[0].score < _SURE and (best[0].similarity or 0) < _MEANT):
            new = self._written(self._mirror.redacted(" ".join(query.split())), content, kind or FALLBACK, ())
            return Compounded(new.stored, created=not new.existed)
        return Compounded(self._rewritten(best[0].stored, content, kind), created=False)

    def forgettable(self, query: str, kind: str | None = None) -> Forgettable:
        """What a query would forget; raises `InvalidInput` where that is nothing."""
        self._mirror.sync()
        found = self._matches(query, kind, FORGETTABLE_MAX, (self._mirror.namespace,))
        near = near_the_best(found)
        if not near:
            raise InvalidInput(f"No memories found: {query}", hint="Look for them with memory_recall.")
        free = tuple(match for match in near if not match.stored.protected)
        digests = tuple(self._digest(match.stored) for match in free)
        return Forgettable(free, digests, tuple(match for match in near if match.stored.protected))

    def forget(self, previewed: Forgettable) -> Deleted:
        """Delete exactly what was previewed. What was edited, moved or proven since stays, and is told of."""
        self._mirror.sync()
        deleted = Deleted()
        with self._store.leases.hold(LEASE, PATIENCE):
            for match, digest in zip(previewed.matches, previewed.digests, strict=True):
                try:
                    deleted.gone.append(self._deleted(match.stored, digest))
                except PalaverError as error:
                    deleted.kept[match.path] = str(error)
        return deleted

    def _matches(self, query: str, kind: str | None, limit: int, namespaces: tuple[str, ...]) -> list[Match]:
        wanted, asked = self._wanted(kind, namespaces), limit
        while True:
            found = self._core.recall(query, wanted, limit=asked)
            here = self._here(found)
            if len(here) >= limit or len(found) < asked:
                return here[:limit]
            asked *= 2

    def _wanted(self, kind: str | None, namespaces: tuple[str, ...]) -> MemoryFilter:
        kinds = (self._mirror.kinds.named(kind),) if kind is not None else ()
        return MemoryFilter(namespaces=namespaces, types=kinds)

    def _here(self, found: Sequence[RecalledMemory]) -> list[Match]:
        """Without those of another checkout of the project, which has the same namespace and files of its own."""
        paths = {"", *self._mirror.files}
        return [Match(each.stored, each.score, each.similarity) for each in found if each.stored.memory.path in paths]

    def _told(self, content: str) -> str:
        """Content as it is written; raises `InvalidInput` where it cannot be held."""
        return Memory(self._mirror.redacted(readable(content)).strip()).checked().content

    def _written(self, title: str, content: str, kind: str, tags: tuple[str, ...]) -> Written:
        with self._store.leases.hold(LEASE, PATIENCE):
            self._mirror.sync_leased()
            told = Mnemonic.new(content, kind, tags, show_millisecond(now()))
            place, known = self._placed(kind, slug(title), told)
            if known is not None:
                held = self._core.at_path(known.path)
                if held is not None:
                    return Written(held, existed=True)
            remembered = self._remembered(title, told, place)
            self._mirror.note(place, remembered.stored)
        return Written(remembered.stored, superseded=remembered.superseded)

    def _placed(self, kind: str, stem: str, told: Mnemonic) -> tuple[str, Found | None]:
        """Where a new memory stands now, or stood already."""
        for name in numbered(stem):
            place = f"{kind}/{name}"
            known = self._mirror.files.get(self._folder.whole(place))
            if known is not None and known.mnemonic.body == told.body:
                return place, known
            if known is None and self._folder.create(place, told.text.encode()):
                return place, None
        raise AssertionError

    def _remembered(self, title: str, told: Mnemonic, place: str) -> RememberResult:
        namespace, path = self._mirror.namespace, self._folder.whole(place)
        memory = Memory(told.body, told.declared, title, namespace, tags=told.tags, source=SOURCE, path=path)
        return self._core.remember(memory)

    def _rewritten(self, held: StoredMemory, content: str, kind: str | None) -> StoredMemory:
        if held.protected:
            raise MemoryProtected(held.id)
        with self._store.leases.hold(LEASE, PATIENCE):
            place = self._rewritten_file(held, content, kind)
            said = MemoryRevision(content, kind, path=self._folder.whole(place))
            after = self._core.revise(held.id, said)
            self._mirror.note(place, after)
        return after

    def _rewritten_file(self, held: StoredMemory, content: str, kind: str | None) -> str:
        """Write what a memory says now; where its file stands then. What is kept in no file gets one."""
        at, found = show_millisecond(now()), self._mirror.files.get(held.memory.path)
        if found is None:
            told = Mnemonic.new(content, kind or held.memory.type, held.memory.tags, at)
            return self._placed(told.declared, slug(held.memory.title or content[:60]), told)[0]
        try:
            told = found.mnemonic.changed(content, at, kind)
        except YamlInvalid as error:
            raise MnemonicsUnusable(found.path, str(error), hint="Repair it by hand, then call again.") from None
        if kind in {None, found.folder}:
            self._folder.replace(found.place, told.text.encode(), found.digest)
            return found.place
        stem = PurePosixPath(found.place).stem
        place = self._placed(kind or found.folder, stem, told)[0]
        self._folder.remove(found.place, found.digest)
        self._store.mnemonics.drop(found.path)
        return place

    def _digest(self, held: StoredMemory) -> str:
        """What tells whether a memory is still what was shown."""
        found = self._mirror.files.get(held.memory.path)
        return found.digest if found is not None else held.memory.content_hash

    def _deleted(self, shown: StoredMemory, digest: str) -> StoredMemory:
        held = self._core.get(shown.id)
        if held.protected:
            raise MemoryProtected(held.id)
        moved = held.memory.path != shown.memory.path
        if held.state is MemoryState.ARCHIVED or moved or self._digest(held) != digest:
            raise InvalidInput("It is not what was shown any more", hint="Call again to see what it is now.")
        if held.memory.path:
            place = held.memory.path.removeprefix(f"{self._folder.path}/")
            self._folder.remove(place, digest)
        self._core.forget([held.id], reason="memory_forget")
        if held.memory.path:
            self._mirror.forgotten(held.memory.path)
        return held


def _plain(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags in one line each, without what neither YAML nor a screen can show."""
    shown = ("".join(each if each.isprintable() else " " for each in readable(tag)) for tag in tags)
    return tuple(dict.fromkeys(" ".join(tag.split()) for tag in shown if tag.split()))
