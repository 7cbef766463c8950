"""Memories of a project as files: remember, recall, update and forget them, and sync them with the store.

Synchronization works in both directions. If the file and the memory both changed, the file wins. Recall also finds
memories that were stored with other toolsets. Forgetting a memory deletes its file. Undo restores the memory, and the
next synchronization recreates the file.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.redaction import Redactor
from ...archiver.store import MirroredFile, Store
from ...core.conversation import Origin, now, show_millisecond
from ...core.errors import InvalidInput, LeaseHeld, MemoryProtected, MnemonicsUnusable, PalaverError
from ...core.home import MNEMONICS, root_of
from ...core.memory import Memory, MemoryFilter, MemoryRevision, MemoryState, StoredMemory
from ...core.reports import many
from ...core.runtime import Closing
from ...core.text import readable
from ..memory import GLOBAL_NAMESPACES, MemoryCore, RecalledMemory, near_the_best
from .mnemonics_folder import (
    FALLBACK,
    TYPES_FILE,
    MemoryFile,
    MemoryFileTypes,
    MnemonicsFolder,
    YamlInvalid,
    digest_of,
    error_reason,
    file_names,
    kebab,
    parse_types,
    slug,
    title_of,
)

LEASE: Final = "mnemonics"
PATIENCE: Final = 30.0
"""Maximum seconds to wait for another process that synchronizes the same files."""
_TIME_MAX: Final = 15.0
"""Maximum seconds of one synchronization. The next call continues.

MCP clients wait for a minute, and a file takes 0.1 s.
"""
_RECENT: Final = 2_000_000_000
"""Maximum nanoseconds between two edits of a file that may get the same modification time."""
SOURCE: Final = "historian"


class MemoryFileProblem(Struct, frozen=True):
    """Absolute path of a file that could not be read, and the reason. The file stays unchanged."""

    path: str
    reason: str


class ParsedFile(Struct, frozen=True):
    """Readable file: its path within the folder, its absolute path, the digest of its bytes, and its content."""

    relative: str
    path: str
    digest: str
    memory: MemoryFile

    @property
    def folder(self) -> str:
        """Type of memory that the name of the file's folder indicates."""
        return folder_type(self.relative)


def folder_type(relative: str) -> str:
    """Return the type that the first folder of a path indicates, or the fallback type for a path without a folder."""
    first, *below = PurePosixPath(relative).parts
    return kebab(first) if below else FALLBACK


class FileSync:
    """Synchronization of the memory files of one project with the store.

    Files that Palaver did not write may come from a cloned repository. Until the user allows the folder, their origin
    is `external`: search finds them, but they are not added to the context of a session.

    `types`, `files` and `problems` are results of the last synchronization.
    """

    def __init__(self, core: MemoryCore, redactor: Redactor, folder: MnemonicsFolder) -> None:
        self._store, self._core, self._redactor, self.folder = core.store, core, redactor, folder
        self.namespace = core.projects.namespace(folder.project)
        self.types = MemoryFileTypes({}, ())
        self.files: dict[str, ParsedFile] = {}
        self.problems: tuple[MemoryFileProblem, ...] = ()
        self._cache: dict[str, tuple[tuple[int, ...], ParsedFile | str]] = {}

    def sync(self) -> None:
        """Synchronize files that were edited, moved, added or deleted since any process last synchronized them.

        If the store is read-only, only read the files.
        """
        if self._steps() and not self._store.is_read_only:
            # Another process that holds the lease for this long reads the same files.
            with suppress(LeaseHeld), self._store.leases.hold(LEASE, PATIENCE):
                self.sync_leased()

    def sync_leased(self) -> None:
        """Synchronize the files for a caller that holds the lease."""
        self.namespace = self._core.projects.claim(self.folder.project)
        failed: dict[str, str] = {}
        steps, deadline = self._steps(), time.monotonic() + _TIME_MAX
        for number, (path, step) in enumerate(steps):
            if time.monotonic() > deadline:
                left = many(len(steps) - number, "file is", "files are")
                failed[str(self.folder.path)] = f"{left} not read yet. Call again to continue"
                break
            try:
                step()
            except (InvalidInput, MnemonicsUnusable, YamlInvalid) as error:
                failed[path] = getattr(error, "reason", str(error))
        self.problems += tuple(MemoryFileProblem(path, reason) for path, reason in failed.items())

    def record(self, relative: str, stored: StoredMemory) -> None:
        """Record that the current content of this file and this memory are synchronized."""
        parsed = self._parse(relative, self.folder.read(relative))
        self.files[parsed.path] = parsed
        self._record(parsed, stored)

    def record_deleted(self, path: str) -> None:
        """Record that a file was deleted with its memory, so that restoring the memory recreates the file."""
        self.files.pop(path, None)
        row = self._store.mnemonics.below(str(self.folder.path))[path]
        self._store.mnemonics.put(replace(row, gone=True))

    def redacted(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redactor.redact(text).text

    @property
    def _origin(self) -> Origin:
        """Origin of files that Palaver did not write."""
        return Origin.DOCUMENT if self._is_allowed else Origin.EXTERNAL

    @property
    def _is_allowed(self) -> bool:
        return str(self.folder.path) in self._store.mnemonics.allowed()

    def _steps(self) -> list[tuple[str, Callable[[], None]]]:
        """Return the steps of a synchronization, each with the path that it concerns."""
        unreadable = self._read_files()
        rows = self._store.mnemonics.below(str(self.folder.path))
        memories = self._store.memories.load([row.memory for row in rows.values() if row.memory is not None])
        lost = {path: row for path, row in rows.items() if path not in self.files and not _is_within(path, unreadable)}
        moved = self._moved(rows, {path: row for path, row in lost.items() if not row.gone})
        steps = [
            (path, step)
            for path, parsed in self.files.items()
            for step in self._file_steps(parsed, rows.get(path) or moved.get(path), memories)
        ]
        kept = {row.path for row in moved.values()}
        steps += [
            (path, step)
            for path, row in lost.items()
            if path not in kept
            for step in self._lost_file_steps(row, memories)
        ]
        return steps

    def _read_files(self) -> set[str]:
        """Read new and edited files. Return the paths of files and folders that cannot be read."""
        listing = self.folder.scan()
        problems, self.files = dict(listing.problems), {}
        for relative, stamp in listing.files.items():
            cached = self._cache.get(relative)
            if cached is None or cached[0] != stamp:
                # A second edit may have the same modification time as a recent edit, so read the file again.
                settled = time.time_ns() - stamp[0] > _RECENT
                cached = (stamp if settled else ()), self._read(relative)
                self._cache[relative] = cached
            if isinstance(cached[1], str):
                problems[relative] = cached[1]
            else:
                self.files[cached[1].path] = cached[1]
        own, reason = self._own_types()
        self.types = MemoryFileTypes(own if self._is_allowed else dict.fromkeys(own, ""), listing.folders)
        reported = problems | ({TYPES_FILE: reason} if reason else {})
        self.problems = tuple(
            MemoryFileProblem(self.folder.absolute(relative), why) for relative, why in reported.items()
        )
        return {self.folder.absolute(relative) for relative in problems}

    def _read(self, relative: str) -> ParsedFile | str:
        """Return the parsed file, or the reason why it cannot be read."""
        try:
            return self._parse(relative, self.folder.read(relative))
        except (OSError, UnicodeDecodeError, YamlInvalid) as error:
            return _reason(error)

    def _parse(self, relative: str, data: bytes) -> ParsedFile:
        return ParsedFile(relative, self.folder.absolute(relative), digest_of(data), MemoryFile.parse(data.decode()))

    def _own_types(self) -> tuple[dict[str, str], str]:
        """Return the types that the project defines. If they cannot be read, return no types and the reason."""
        try:
            return parse_types(self.folder.read(TYPES_FILE).decode()), ""
        except FileNotFoundError:
            return {}, ""
        except (OSError, UnicodeDecodeError, YamlInvalid) as error:
            return {}, _reason(error)

    def _moved(self, rows: Mapping[str, MirroredFile], lost: Mapping[str, MirroredFile]) -> dict[str, MirroredFile]:
        """Return the records of moved files by new path. A moved file has the same bytes or creation time as before."""
        left, moved = dict(lost), dict[str, MirroredFile]()
        for same in (_same_bytes, _same_creation):
            for path, parsed in self.files.items():
                row = next((row for row in left.values() if same(parsed, row)), None)
                if row is not None and path not in rows and path not in moved:
                    moved[path] = left.pop(row.path)
        return moved

    def _file_steps(
        self, parsed: ParsedFile, row: MirroredFile | None, memories: Mapping[int, StoredMemory]
    ) -> Iterator[Callable[[], None]]:
        stored = memories.get(row.memory) if row is not None and row.memory is not None else None
        active = stored is not None and stored.state is MemoryState.ACTIVE
        misplaced = active and stored is not None and stored.memory.namespace != self.namespace
        if row is None or row.gone or row.digest != parsed.digest or misplaced:
            yield partial(self._store_file, parsed, row, stored)
        elif row.path != parsed.path:
            yield partial(self._store_file, parsed, row, stored) if active else partial(self._rename, parsed, row)
        elif stored is not None and active and stored.memory.content_hash != row.content_hash:
            yield partial(self._update_file, parsed, stored)

    def _lost_file_steps(self, row: MirroredFile, memories: Mapping[int, StoredMemory]) -> Iterator[Callable[[], None]]:
        stored = memories.get(row.memory) if row.memory is not None else None
        if stored is None or stored.state is MemoryState.ARCHIVED:
            return
        if not row.gone:
            yield partial(self._forget_deleted, row, stored)
        elif not stored.protected:
            yield partial(self._restore_file, row, stored)

    def _store_file(self, parsed: ParsedFile, row: MirroredFile | None, stored: StoredMemory | None) -> None:
        """Store the content of a new, edited, moved or restored file."""
        content, declared = self.redacted(parsed.memory.body), self._type(parsed, row)
        stored = stored or self._core.at_path(parsed.path)
        if stored is not None and row is not None and row.gone and stored.state is MemoryState.ARCHIVED:
            stored = self._core.restore(stored.id)
        title = title_of(PurePosixPath(parsed.path).stem)
        if stored is None or stored.state is not MemoryState.ACTIVE:
            memory = Memory(
                content,
                declared or parsed.folder,
                title,
                self.namespace,
                tags=parsed.memory.tags,
                source=SOURCE,
                origin=self._origin,
                path=parsed.path,
            )
            after = self._core.remember(memory).stored
        else:
            renamed = PurePosixPath(parsed.path).stem != PurePosixPath(stored.memory.path).stem
            revision = MemoryRevision(
                content,
                declared,
                title if renamed else None,
                self.namespace,
                tags=parsed.memory.tags,
                path=parsed.path,
                origin=self._origin,
            )
            after = self._core.revise(stored.id, revision, force=True)
        if row is not None:
            self._rename(parsed, row)
        self._record(parsed, after)

    def _type(self, parsed: ParsedFile, row: MirroredFile | None) -> str | None:
        """Return the type to which the user changed a file, or None if the type is unchanged.

        The user changes the type by moving the file to another folder or by editing the front matter.
        """
        declared = kebab(parsed.memory.declared)
        named = declared if declared in self.types else parsed.folder
        if row is None:
            return named
        if parsed.folder != folder_type(row.path.removeprefix(f"{self.folder.path}/")):
            return parsed.folder
        return named if declared != row.declared else None

    def _rename(self, parsed: ParsedFile, row: MirroredFile) -> None:
        if row.path != parsed.path:
            with self._store.transaction():
                self._store.mnemonics.drop(row.path)
                self._store.mnemonics.put(replace(row, path=parsed.path))

    def _update_file(self, parsed: ParsedFile, stored: StoredMemory) -> None:
        """Write the edited content of a memory into its file."""
        edited = parsed.memory.edited(stored.memory.content, show_millisecond(stored.updated))
        self.folder.replace(parsed.relative, edited.text.encode(), parsed.digest)
        if stored.memory.path != parsed.path:
            stored = self._core.revise(stored.id, MemoryRevision(path=parsed.path))
        self.record(parsed.relative, stored)

    def _restore_file(self, row: MirroredFile, stored: StoredMemory) -> None:
        """Recreate the file of a restored memory."""
        memory, relative = stored.memory, row.path.removeprefix(f"{self.folder.path}/")
        file = MemoryFile.new(memory.content, memory.type, memory.tags, show_millisecond(stored.updated))
        self.folder.create(relative, file.text.encode())
        self.record(relative, stored)

    def _forget_deleted(self, row: MirroredFile, stored: StoredMemory) -> None:
        """Forget the memory of a deleted file, unless the memory is protected."""
        self._core.forget([stored.id], reason=f"deleted by hand: {row.path}")
        self._store.mnemonics.put(replace(row, gone=True))

    def _record(self, parsed: ParsedFile, stored: StoredMemory) -> None:
        file, hashed = parsed.memory, stored.memory.content_hash
        row = MirroredFile(parsed.path, stored.key, parsed.digest, hashed, kebab(file.declared), file.created)
        self._store.mnemonics.put(row)


def _reason(error: OSError | UnicodeDecodeError | YamlInvalid) -> str:
    """Return the reason why the file cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error_reason(error) if isinstance(error, OSError) else str(error)


def _is_within(path: str, unreadable: set[str]) -> bool:
    """Return whether a path is unreadable or below an unreadable folder."""
    return path in unreadable or any(str(parent) in unreadable for parent in PurePosixPath(path).parents)


def _same_bytes(parsed: ParsedFile, row: MirroredFile) -> bool:
    return parsed.digest == row.digest


def _same_creation(parsed: ParsedFile, row: MirroredFile) -> bool:
    return parsed.memory.created != "" and parsed.memory.created == row.created


class ForgottenFiles(Struct, frozen=True):
    """Forgotten and protected memories, paths of deleted files, and the reason for each file that was kept."""

    forgotten: tuple[StoredMemory, ...]
    protected: tuple[StoredMemory, ...]
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def forget_with_files(
    core: MemoryCore, memory_ids: Sequence[str], *, force: bool = False, reason: str
) -> ForgottenFiles:
    """Forget memories as `MemoryCore.forget` does, and delete their files.

    A file that was edited since the last synchronization is kept, because the next one stores its new content.
    """
    done = core.forget(memory_ids, force=force, reason=reason)
    paths = [stored.memory.path for stored in done.forgotten if stored.memory.path]
    deleted, kept = _deleted(core.store, paths)
    return ForgottenFiles(done.forgotten, done.protected, deleted, kept)


def _deleted(store: Store, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Delete the files that were not edited. Return their paths, and the reason for each file that was kept."""
    if not paths:
        return (), ()
    deleted, kept = list[str](), list[str]()
    try:
        with store.leases.hold(LEASE, PATIENCE):
            for path in paths:
                try:
                    deleted += [path] if _delete(store, path) else []
                except MnemonicsUnusable as error:
                    kept.append(str(error))
    except LeaseHeld as error:
        return (), tuple(f"{path}: {error}" for path in paths)
    return tuple(deleted), tuple(kept)


def _delete(store: Store, path: str) -> bool:
    """Delete a file and record it, so that undo restores it. Return False if the file was already deleted."""
    folder, _, relative = path.rpartition(f"/{MNEMONICS}/")
    row = store.mnemonics.below(str(Path(path).parent)).get(path)
    if row is None or not Path(path).exists():
        return False
    MnemonicsFolder(Path(folder)).remove(relative, row.digest)
    store.mnemonics.put(replace(row, gone=True))
    return True


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
        self.core, self._folder, self._sync = core, folder, FileSync(core, redactor, folder)

    @classmethod
    def of(cls, core: MemoryCore, start: Path) -> Self:
        """Return the memories of the project that contains this folder, as a context manager that closes `core`."""
        return cls(core, Redactor(core.store.home.key()), MnemonicsFolder(root_of(start)))

    def close(self) -> None:
        """Close the memories."""
        self.core.close()

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
        where = self._wanted(memory_type, (self._sync.namespace, *GLOBAL_NAMESPACES))
        return self._of_this_checkout(self.core.nearest(query, where))

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
        best = near_the_best(self._matches(query, memory_type, FORGETTABLE_MAX, (self._sync.namespace,)))
        if not best:
            raise InvalidInput(f"No memories found: {query}", hint="Search with memory_recall.")
        matches = tuple(match for match in best if not match.stored.protected)
        protected = tuple(match for match in best if match.stored.protected)
        return ForgetPreview(matches, tuple(self._digest(match.stored) for match in matches), protected)

    def forget(self, preview: ForgetPreview) -> ForgetResult:
        """Forget exactly the previewed memories. Memories that changed since the preview are kept and reported."""
        self._sync.sync()
        result = ForgetResult()
        with self.core.store.leases.hold(LEASE, PATIENCE):
            for match, digest in zip(preview.matches, preview.digests, strict=True):
                try:
                    result.forgotten.append(self._forget(match.stored, digest))
                except PalaverError as error:
                    result.kept[match.stored.memory.path or match.stored.id] = str(error)
        return result

    def _best(self, query: str) -> StoredMemory | None:
        """Return the best match if it is good enough to be updated."""
        best = self._matches(query, None, 1, (self._sync.namespace,))
        if not best or (best[0].score < _SCORE_MIN and (best[0].similarity or 0) < _SIMILARITY_MIN):
            return None
        return best[0].stored

    def _matches(
        self, query: str, memory_type: str | None, limit: int, namespaces: tuple[str, ...]
    ) -> list[RecalledMemory]:
        where, asked = self._wanted(memory_type, namespaces), limit
        while True:
            matches = self.core.recall(query, where, limit=asked)
            here = self._of_this_checkout(matches)
            if len(here) >= limit or len(matches) < asked:
                return here[:limit]
            asked *= 2

    def _wanted(self, memory_type: str | None, namespaces: tuple[str, ...]) -> MemoryFilter:
        types = (self._sync.types.find(memory_type),) if memory_type is not None else ()
        return MemoryFilter(namespaces=namespaces, types=types)

    def _of_this_checkout(self, matches: Sequence[RecalledMemory]) -> list[RecalledMemory]:
        """Return the results without files of other checkouts of the project, which have the same namespace."""
        paths = {"", *self._sync.files}
        return [match for match in matches if match.stored.memory.path in paths]

    def _clean(self, content: str) -> str:
        """Return content without secrets. Raises `InvalidInput` if the content cannot be stored."""
        return Memory(self._sync.redacted(readable(content)).strip()).checked().content

    def _write(self, title: str, content: str, memory_type: str, tags: tuple[str, ...]) -> RememberedFile:
        with self.core.store.leases.hold(LEASE, PATIENCE):
            self._sync.sync_leased()
            file = MemoryFile.new(content, memory_type, tags, show_millisecond(now()))
            relative, existing = self._create(memory_type, slug(title), file)
            if existing is not None and (stored := self.core.at_path(existing.path)) is not None:
                return RememberedFile(stored, existed=True)
            path = self._folder.absolute(relative)
            memory = Memory(content, memory_type, title, self._sync.namespace, tags=tags, source=SOURCE, path=path)
            remembered = self.core.remember(memory)
            self._sync.record(relative, remembered.stored)
        return RememberedFile(remembered.stored, superseded=remembered.superseded)

    def _create(self, memory_type: str, stem: str, file: MemoryFile) -> tuple[str, ParsedFile | None]:
        """Create a file, and return its path and None. If a file with this body exists, return its path and content."""
        for name in file_names(stem):
            relative = f"{memory_type}/{name}"
            existing = self._sync.files.get(self._folder.absolute(relative))
            if existing is not None and existing.memory.body == file.body:
                return relative, existing
            if existing is None and self._folder.create(relative, file.text.encode()):
                return relative, None
        raise AssertionError

    def _revise(self, stored: StoredMemory, content: str, memory_type: str | None) -> StoredMemory:
        if stored.protected:
            raise MemoryProtected(stored.id)
        with self.core.store.leases.hold(LEASE, PATIENCE):
            relative = self._rewrite_file(stored, content, memory_type)
            revision = MemoryRevision(content, memory_type, path=self._folder.absolute(relative))
            after = self.core.revise(stored.id, revision)
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
        self.core.store.mnemonics.drop(parsed.path)
        return relative

    def _digest(self, stored: StoredMemory) -> str:
        """Return a digest that changes with the file of a memory, or with its content if it has no file."""
        parsed = self._sync.files.get(stored.memory.path)
        return parsed.digest if parsed is not None else stored.memory.content_hash

    def _forget(self, listed: StoredMemory, digest: str) -> StoredMemory:
        stored = self.core.get(listed.id)
        if stored.protected:
            raise MemoryProtected(stored.id)
        moved = stored.memory.path != listed.memory.path
        if stored.state is MemoryState.ARCHIVED or moved or self._digest(stored) != digest:
            raise InvalidInput(
                "The memory has changed since it was shown", hint="Call the tool again to see its current content."
            )
        if stored.memory.path:
            self._folder.remove(stored.memory.path.removeprefix(f"{self._folder.path}/"), digest)
        self.core.forget([stored.id], reason="memory_forget")
        if stored.memory.path:
            self._sync.record_deleted(stored.memory.path)
        return stored


def _plain(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags as single lines of printable characters."""
    printable = ("".join(character if character.isprintable() else " " for character in readable(tag)) for tag in tags)
    return tuple(dict.fromkeys(" ".join(tag.split()) for tag in printable if tag.split()))
