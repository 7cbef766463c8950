"""Synchronization of memory files with the store, in both directions. If both changed, the file wins."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import Redactor
from ...archiver.store import MirroredFile
from ...core.amount import many
from ...core.clock import show_millisecond
from ...core.errors import InvalidInput, LeaseHeld, MnemonicsUnusable
from ...core.memory import Memory, MemoryRevision, MemoryState, StoredMemory
from ...core.origin import Origin
from ..memory import MemoryCore
from .front_matter import MemoryFile, YamlInvalid
from .memory_file_types import FALLBACK, TYPES_FILE, MemoryFileTypes, kebab, parse_types, title_of
from .mnemonics_folder import MnemonicsFolder, digest_of, error_reason

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
            known = self._cache.get(relative)
            if known is None or known[0] != stamp:
                # A second edit may have the same modification time as a recent edit, so read the file again.
                settled = time.time_ns() - stamp[0] > _RECENT
                known = (stamp if settled else ()), self._read(relative)
                self._cache[relative] = known
            if isinstance(known[1], str):
                problems[relative] = known[1]
            else:
                self.files[known[1].path] = known[1]
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
