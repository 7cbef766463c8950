"""Memories of a project as files, with functions to remember, recall, update and forget them.

Recall also finds memories that were stored with other toolsets.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Self

from msgspec import Struct, field

from ...archiver.redaction import Redactor
from ...core.clock import now, show_millisecond
from ...core.closing import Closing
from ...core.errors import InvalidInput, MemoryProtected, MnemonicsUnusable, PalaverError
from ...core.home import Home
from ...core.memory import Edge, Memory, MemoryRevision, MemoryState, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.project import root_of
from ...core.text import readable
from ..memory import GLOBAL_NAMESPACES, JudgeFactory, MemoryCore, RecalledMemory, near_the_best
from .file_sync import LEASE, PATIENCE, SOURCE, FileSync, MemoryFileProblem, ParsedFile
from .front_matter import MemoryFile, YamlInvalid
from .memory_file_types import FALLBACK, MemoryFileTypes, file_names, slug
from .mnemonics_folder import MnemonicsFolder

FORGETTABLE_MAX: Final = 10
"""Maximum number of memories that one query can forget."""
_SCORE_MIN, _SIMILARITY_MIN = 0.3, 0.5
"""Minimum score and minimum cosine similarity of a memory that `update` changes. One of them is sufficient."""


class RememberedFile(Struct, frozen=True):
    """Memory written into a file. `existed` is True if a memory with this title and content already existed."""

    stored: StoredMemory
    existed: bool = False
    superseded: tuple[StoredMemory, ...] = ()


class UpdatedFile(Struct, frozen=True):
    """Updated or new memory.

    `created` is True if no memory matched well enough to be updated, so a new one was created.
    """

    stored: StoredMemory
    created: bool


class ForgetPreview(Struct, frozen=True):
    """Memories that a query would forget, each with the digest of its file, and protected memories that are kept."""

    matches: tuple[RecalledMemory, ...]
    digests: tuple[str, ...]
    protected: tuple[RecalledMemory, ...]


class ForgetResult(Struct):
    """Forgotten memories, and the reason for each memory that was kept, by path."""

    forgotten: list[StoredMemory] = field(default_factory=list[StoredMemory])
    kept: dict[str, str] = field(default_factory=dict[str, str])


class ProjectMemories(Closing):
    """Memories of one project. Most calls synchronize its files first. An instance serves one thread at a time."""

    def __init__(self, core: MemoryCore, redactor: Redactor, folder: MnemonicsFolder) -> None:
        self._core, self._folder, self._sync = core, folder, FileSync(core, redactor, folder)

    @classmethod
    def open(cls, home: Home, start: Path, model: str | None = None, make_judge: JudgeFactory | None = None) -> Self:
        """Open the memories of the project that contains this folder, as a context manager."""
        home.prepare()
        core = MemoryCore.open(home, model, make_judge)
        return cls(core, Redactor(home.key()), MnemonicsFolder(root_of(start)))

    def close(self) -> None:
        """Close the memories."""
        self._core.close()

    @property
    def problems(self) -> tuple[MemoryFileProblem, ...]:
        """Files that the last call could not read."""
        return self._sync.problems

    @property
    def project(self) -> Path:
        """Folder of the project."""
        return self._folder.project

    def read_files(self) -> None:
        """Read the memory files of the project into the store."""
        self._sync.sync()

    def types(self) -> MemoryFileTypes:
        """Return the types that memories of this project can have."""
        self._sync.sync()
        return self._sync.types

    def remember(self, title: str, content: str, memory_type: str, tags: tuple[str, ...] = ()) -> RememberedFile:
        """Write a memory into a new file, with a number if the title is taken. Raises `InvalidInput`."""
        self._sync.sync()
        memory_type = self._sync.types.find(memory_type)
        if not title.strip():
            raise InvalidInput("Title cannot be empty", hint="Give a short title.")
        title = self._sync.redacted(" ".join(readable(title).split()))
        return self._write(title, self._clean(content), memory_type, tuple(map(self._sync.redacted, _plain(tags))))

    def recall(self, query: str, memory_type: str | None = None, limit: int = 10) -> list[RecalledMemory]:
        """Return the memories of this project and global memories that match a query, best first."""
        self._sync.sync()
        return self._matches(query, memory_type, limit, (self._sync.namespace, *GLOBAL_NAMESPACES))

    def nearest(self, query: str, memory_type: str | None = None) -> list[RecalledMemory]:
        """Return the most similar memories, even below the relevance threshold, without reading changed files."""
        wanted = self._wanted(memory_type, (self._sync.namespace, *GLOBAL_NAMESPACES))
        return self._of_this_checkout(self._core.nearest(query, wanted))

    def update(self, query: str, content: str, memory_type: str | None = None) -> UpdatedFile:
        """Replace the content of the best match. A new type moves the file.

        If no memory matches well enough, create a memory with the query as its title.

        Raises:
            InvalidInput: The content or type is invalid.
            MemoryProtected: The best match is protected.
            MnemonicsUnusable: The file cannot be written.
        """
        self._sync.sync()
        memory_type = self._sync.types.find(memory_type) if memory_type is not None else None
        content = self._clean(content)
        best = self._best(query)
        if best is None:
            title = self._sync.redacted(" ".join(query.split()))
            new = self._write(title, content, memory_type or FALLBACK, ())
            return UpdatedFile(new.stored, created=not new.existed)
        return UpdatedFile(self._revise(best, content, memory_type), created=False)

    def preview_update(self, query: str) -> StoredMemory | None:
        """Return the memory that an update would change, or None if it would create one."""
        self._sync.sync()
        return self._best(query)

    def preview_forget(self, query: str, memory_type: str | None = None) -> ForgetPreview:
        """Return the memories that a query would forget. Raises `InvalidInput` if no memory matches."""
        self._sync.sync()
        near = near_the_best(self._matches(query, memory_type, FORGETTABLE_MAX, (self._sync.namespace,)))
        if not near:
            raise InvalidInput(f"No memories found: {query}", hint="Search with memory_recall.")
        matches = tuple(match for match in near if not match.stored.protected)
        protected = tuple(match for match in near if match.stored.protected)
        return ForgetPreview(matches, tuple(self._digest(match.stored) for match in matches), protected)

    def forget(self, preview: ForgetPreview) -> ForgetResult:
        """Forget exactly the previewed memories. Memories that changed since the preview are kept and reported."""
        self._sync.sync()
        result = ForgetResult()
        with self._core.store.leases.hold(LEASE, PATIENCE):
            for match, digest in zip(preview.matches, preview.digests, strict=True):
                try:
                    result.forgotten.append(self._forget(match.stored, digest))
                except PalaverError as error:
                    result.kept[match.stored.memory.path or match.stored.id] = str(error)
        return result

    def superseding(self, memories: Sequence[StoredMemory]) -> list[Edge]:
        """Return the edges that supersede one of these memories, including proposed edges."""
        return self._core.graph.superseding(memories)

    def _best(self, query: str) -> StoredMemory | None:
        """Return the best match if it is good enough to be updated."""
        best = self._matches(query, None, 1, (self._sync.namespace,))
        if not best or (best[0].score < _SCORE_MIN and (best[0].similarity or 0) < _SIMILARITY_MIN):
            return None
        return best[0].stored

    def _matches(
        self, query: str, memory_type: str | None, limit: int, namespaces: tuple[str, ...]
    ) -> list[RecalledMemory]:
        wanted, asked = self._wanted(memory_type, namespaces), limit
        while True:
            found = self._core.recall(query, wanted, limit=asked)
            here = self._of_this_checkout(found)
            if len(here) >= limit or len(found) < asked:
                return here[:limit]
            asked *= 2

    def _wanted(self, memory_type: str | None, namespaces: tuple[str, ...]) -> MemoryFilter:
        types = (self._sync.types.find(memory_type),) if memory_type is not None else ()
        return MemoryFilter(namespaces=namespaces, types=types)

    def _of_this_checkout(self, found: Sequence[RecalledMemory]) -> list[RecalledMemory]:
        """Return the results without files of other checkouts of the project, which have the same namespace."""
        paths = {"", *self._sync.files}
        return [each for each in found if each.stored.memory.path in paths]

    def _clean(self, content: str) -> str:
        """Return content without secrets. Raises `InvalidInput` if the content cannot be stored."""
        return Memory(self._sync.redacted(readable(content)).strip()).checked().content

    def _write(self, title: str, content: str, memory_type: str, tags: tuple[str, ...]) -> RememberedFile:
        with self._core.store.leases.hold(LEASE, PATIENCE):
            self._sync.sync_leased()
            file = MemoryFile.new(content, memory_type, tags, show_millisecond(now()))
            relative, known = self._create(memory_type, slug(title), file)
            if known is not None and (stored := self._core.at_path(known.path)) is not None:
                return RememberedFile(stored, existed=True)
            path = self._folder.absolute(relative)
            memory = Memory(content, memory_type, title, self._sync.namespace, tags=tags, source=SOURCE, path=path)
            remembered = self._core.remember(memory)
            self._sync.record(relative, remembered.stored)
        return RememberedFile(remembered.stored, superseded=remembered.superseded)

    def _create(self, memory_type: str, stem: str, file: MemoryFile) -> tuple[str, ParsedFile | None]:
        """Create a file, and return its path and None. If a file with this body exists, return its path and content."""
        for name in file_names(stem):
            relative = f"{memory_type}/{name}"
            known = self._sync.files.get(self._folder.absolute(relative))
            if known is not None and known.memory.body == file.body:
                return relative, known
            if known is None and self._folder.create(relative, file.text.encode()):
                return relative, None
        raise AssertionError

    def _revise(self, stored: StoredMemory, content: str, memory_type: str | None) -> StoredMemory:
        if stored.protected:
            raise MemoryProtected(stored.id)
        with self._core.store.leases.hold(LEASE, PATIENCE):
            relative = self._rewrite_file(stored, content, memory_type)
            revision = MemoryRevision(content, memory_type, path=self._folder.absolute(relative))
            after = self._core.revise(stored.id, revision)
            self._sync.record(relative, after)
        return after

    def _rewrite_file(self, stored: StoredMemory, content: str, memory_type: str | None) -> str:
        """Write the new content of a memory into its file or a new file. Return the path of the file."""
        at, parsed = show_millisecond(now()), self._sync.files.get(stored.memory.path)
        if parsed is None:
            file = MemoryFile.new(content, memory_type or stored.memory.type, stored.memory.tags, at)
            return self._create(file.declared, slug(stored.memory.title or content[:60]), file)[0]
        try:
            file = parsed.memory.edited(content, at, memory_type)
        except YamlInvalid as error:
            raise MnemonicsUnusable(
                parsed.path, str(error), hint="Correct the front matter in an editor, then call again."
            ) from None
        if memory_type in {None, parsed.folder}:
            self._folder.replace(parsed.relative, file.text.encode(), parsed.digest)
            return parsed.relative
        relative = self._create(memory_type or parsed.folder, PurePosixPath(parsed.relative).stem, file)[0]
        self._folder.remove(parsed.relative, parsed.digest)
        self._core.store.mnemonics.drop(parsed.path)
        return relative

    def _digest(self, stored: StoredMemory) -> str:
        """Return a digest that changes with the file of a memory, or with its content if it has no file."""
        parsed = self._sync.files.get(stored.memory.path)
        return parsed.digest if parsed is not None else stored.memory.content_hash

    def _forget(self, shown: StoredMemory, digest: str) -> StoredMemory:
        stored = self._core.get(shown.id)
        if stored.protected:
            raise MemoryProtected(stored.id)
        moved = stored.memory.path != shown.memory.path
        if stored.state is MemoryState.ARCHIVED or moved or self._digest(stored) != digest:
            raise InvalidInput(
                "The memory has changed since it was shown", hint="Call the tool again to see its current content."
            )
        if stored.memory.path:
            self._folder.remove(stored.memory.path.removeprefix(f"{self._folder.path}/"), digest)
        self._core.forget([stored.id], reason="memory_forget")
        if stored.memory.path:
            self._sync.record_deleted(stored.memory.path)
        return stored


def _plain(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags as single lines of printable characters."""
    shown = ("".join(each if each.isprintable() else " " for each in readable(tag)) for tag in tags)
    return tuple(dict.fromkeys(" ".join(tag.split()) for tag in shown if tag.split()))
