"""Documents (indexed files that are split into searchable chunks), and results of code search.

Results of code search are symbols, lines, and the conversations that edited a unit of code, such as a function.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from . import ids
from .conversation import Milliseconds
from .errors import InvalidInput
from .memory import PROJECT, valid_namespace
from .text import path_fits

UNITS: Final = ("class", "interface", "enum", "type", "function", "method", "constant")
"""Kinds of units. Among equally good matches, kinds that are earlier in this tuple come first."""


class SymbolMatch(StrEnum):
    """Degree to which the name of a unit matches the searched name, best first.

    Case and underscores are ignored, so `parseArgs` also finds `parse_args`. Exact matches with the same spelling come
    first. `PART` and `SIMILAR` matches are searched only if there are no `EXACT` or `PREFIX` matches.
    """

    EXACT = "exact"
    PREFIX = "prefix"
    PART = "part"
    SIMILAR = "similar"


class Symbol(Struct, frozen=True):
    """Named unit of code, such as a function or a class.

    Attributes:
        id: ID of the first chunk of the unit.
        name: Qualified name, such as `Store.open`.
        unit: Kind of the unit, such as `method`.
        start_line: First line of the unit when the file was indexed, 1-based.
        doc: Documentation comment.
        match: Similarity of the name to the searched name.
    """

    id: str
    name: str
    unit: str
    signature: str
    source_file: Path
    namespace: str
    language: str
    start_line: int
    end_line: int
    doc: str = ""
    match: SymbolMatch = SymbolMatch.EXACT

    @property
    def last_name(self) -> str:
        """Last part of the qualified name, such as `open` for `Store.open`."""
        return last_name(self.name)


class Symbols(Struct, frozen=True):
    """Units with the name `name`, or with similar names, best first. `limited` is true if more units match."""

    name: str
    symbols: tuple[Symbol, ...] = ()
    limited: bool = False


class CodeLine(Struct, frozen=True):
    """Line of a file that contains a text literally.

    Attributes:
        id: ID of the chunk with the line.
        name: Qualified name of the unit with the line, or an empty text. `unit` is its kind.
        line: Number of the line when the file was indexed, 1-based, or 0 if the format has no lines.
        before: Lines before the line.
        after: Lines after the line.
    """

    id: str
    name: str
    unit: str
    source_file: Path
    namespace: str
    language: str
    line: int
    before: tuple[str, ...]
    text: str
    after: tuple[str, ...]


class CodeLines(Struct, frozen=True):
    """Lines that contain `text`, grouped by file. `limited` is true if more lines may match."""

    text: str
    lines: tuple[CodeLine, ...] = ()
    limited: bool = False


class CodeStatus(Struct, frozen=True):
    """State of the index of a folder.

    Attributes:
        files: Number of indexed files.
        newest: Newest modification time of an indexed file, or None.
        is_stale: True if a file was changed, deleted or added since it was indexed.
    """

    files: int = 0
    symbols: int = 0
    newest: Milliseconds | None = None
    is_stale: bool = False


class EditBasis(StrEnum):
    """Evidence that an exchange edited a unit. Line numbers are not used as evidence, because they change.

    `TEXT`: the exchange wrote a line that only this unit of the file contains. `NAME`: the exchange wrote the
    declaration of the unit, but the unit contains none of the other lines that the exchange wrote.
    """

    TEXT = "text"
    NAME = "name"


class UnitEdit(Struct, frozen=True):
    """Exchange that edited a unit of code.

    Attributes:
        id: ID of the exchange.
        lines: Number of the unit's lines that the exchange wrote.
    """

    id: str
    session_id: str
    session_title: str
    at: Milliseconds | None
    basis: EditBasis
    lines: int = 0


class EditedUnit(Struct, frozen=True):
    """Unit of code that an exchange edited. `id` is the ID of the unit's first chunk."""

    id: str
    name: str
    unit: str
    source_file: Path
    start_line: int
    end_line: int
    basis: EditBasis


def last_name(name: str) -> str:
    """Return the last part of a qualified name, such as `open` for `Store.open`."""
    return name.rpartition(".")[2]


DEFAULT_NAMESPACE = "default"
_NAMESPACE_MAX = 200


class ChunkKind(StrEnum):
    """Kind of a chunk: prose, or a unit of code. The values are also used in `Hit.kind`."""

    DOCUMENT = "document"
    CODE = "code"


class Chunk(Struct, frozen=True):
    """Part of a document, without an ID.

    Attributes:
        start_line: First line, 1-based, or 0 if the format has no lines. `end_line` is the last line, inclusive.
        page: Number of the page, 1-based, or 0 if the format has no pages.
        header_path: Headings above the chunk, such as `Setup > Linux`.
        unit: Kind of a unit of code: `function`, `class`, `method`, `interface`, `type`, `enum` or `constant`. Code
            outside of such units is a `module`.
        name: Qualified name of the unit, such as `Store.open`.
        signature: Declaration of the unit.
        doc: Documentation comment of the unit. If a unit is split, only its first chunk has it.
        unit_start: First line of the whole unit, including nested units. `unit_end` is its last line.
    """

    text: str
    kind: ChunkKind = ChunkKind.DOCUMENT
    start_line: int = 0
    end_line: int = 0
    page: int = 0
    header_path: str = ""
    unit: str = ""
    name: str = ""
    signature: str = ""
    doc: str = ""
    unit_start: int = 0
    unit_end: int = 0

    @property
    def is_named(self) -> bool:
        """True for a unit of code with a name. The chunks of a split unit have the same name and `unit_start`."""
        return bool(self.name) and self.unit not in {"", "module"}


class StoredChunk(Struct, frozen=True):
    """Stored chunk. `index` is its 0-based position in the document. `at` is the modification time of the file.

    `metadata` contains named values of the document, such as `title` and `author`.
    """

    key: int
    chunk: Chunk
    source_file: Path
    namespace: str
    language: str
    index: int
    at: Milliseconds
    metadata: Mapping[str, str] = {}

    @property
    def id(self) -> str:
        """Public ID, such as `chunk_7`."""
        return ids.show("chunk", self.key)


class DocumentFilter(Struct, frozen=True):
    """Conditions for chunks. Different fields are combined with AND, the values of one field with OR.

    An empty filter matches all chunks. Names and patterns ignore case.

    Attributes:
        source_files: Full paths of files.
        under: Folder that contains the files, directly or in subfolders.
        pattern: Glob for paths, such as `src/**/*.ts`, in the syntax of `path_fits`.
        languages: Languages of files, such as `python`.
        kinds: Prose, code, or both.
        units: Kinds of units of code, such as `function`.
    """

    namespaces: tuple[str, ...] = ()
    source_files: tuple[Path, ...] = ()
    under: Path | None = None
    pattern: str = ""
    languages: tuple[str, ...] = ()
    kinds: tuple[ChunkKind, ...] = ()
    units: tuple[str, ...] = ()

    def admits(self, stored: StoredChunk) -> bool:
        """Return whether a chunk meets all conditions."""
        return (
            (not self.namespaces or stored.namespace in self.namespaces)
            and (not self.source_files or stored.source_file in self.source_files)
            and (self.under is None or stored.source_file.is_relative_to(self.under))
            and (not self.pattern or self.admits_path(stored.source_file))
            and (not self.languages or stored.language.lower() in map(str.lower, self.languages))
            and (not self.kinds or stored.chunk.kind in self.kinds)
            and (not self.units or stored.chunk.unit.lower() in map(str.lower, self.units))
        )

    def admits_path(self, path: Path) -> bool:
        """Return whether a path matches the pattern."""
        return path_fits(self.pattern.lower(), path.as_posix().lower())


class DocumentFolder(Struct, frozen=True):
    """Folder whose documents the watcher keeps indexed, with or without subfolders."""

    path: Path
    namespace: str
    recursive: bool = True

    def contains(self, path: Path) -> bool:
        """Return whether a file is in the folder, or in a subfolder that is included."""
        return self.path in path.parents if self.recursive else path.parent == self.path


class IndexedFile(Struct, frozen=True):
    """Result of indexing a file with `units` named units of code. If `unchanged` is true, the file keeps its chunks.

    `truncated` is true if the file is too long, so that only its beginning is indexed.
    """

    source_file: Path
    namespace: str
    chunk_ids: tuple[str, ...]
    unchanged: bool = False
    units: int = 0
    truncated: bool = False


class FailedFile(Struct, frozen=True):
    """File that could not be indexed, with the reason."""

    file: Path
    error: str
    hint: str = ""


class StoredFile(Struct, frozen=True):
    """Indexed file, with its number of chunks, its modification time, and named values such as `title`."""

    source_file: Path
    namespace: str
    language: str
    chunks: int
    at: Milliseconds
    metadata: Mapping[str, str] = {}


class IndexedDirectory(Struct):
    """Result of indexing a folder.

    Attributes:
        indexed: Number of new or changed files.
        chunks: Number of chunks of these files.
        units: Number of named units of code in these files, such as functions.
        moved: Number of files that kept their chunks under a new path.
        unchanged: Number of files that were not indexed again.
        unparsed: Number of source files without units because of syntax errors.
        queued: Number of files that the background archiver or the next command will index.
        gone: Number of files that were removed from the index, because they no longer exist or are now skipped.
        skipped: Number of files and folders that are not indexed, by reason.
        unembedded: Number of chunks that only text search finds, because they are not embedded yet.
        truncated: New and changed files that are too long, so that only their beginning is indexed.
        failed: Files that could not be indexed.
    """

    indexed: int = 0
    chunks: int = 0
    units: int = 0
    moved: int = 0
    unchanged: int = 0
    unparsed: int = 0
    queued: int = 0
    gone: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    unembedded: int = 0
    truncated: list[Path] = field(default_factory=list[Path])
    failed: list[FailedFile] = field(default_factory=list[FailedFile])


class DocumentStats(Struct, frozen=True):
    """Statistics of indexed files.

    Attributes:
        namespaces: Number of chunks in each namespace, largest first.
        kinds: Number of chunks of each kind, largest first.
        queued: Number of files that have not been read yet.
        failed: Files that could not be read.
        watched: Folders whose documents the watcher keeps indexed.
        unembedded: Number of chunks that have not been embedded yet.
    """

    files: tuple[StoredFile, ...]
    namespaces: Mapping[str, int]
    kinds: Mapping[str, int]
    queued: int
    failed: tuple[FailedFile, ...]
    watched: tuple[DocumentFolder, ...] = ()
    unembedded: int = 0

    @property
    def chunks(self) -> int:
        """Number of all chunks."""
        return sum(self.namespaces.values())

    @property
    def source_files(self) -> tuple[Path, ...]:
        """Paths of the indexed files. A file in several namespaces is listed once."""
        return tuple(dict.fromkeys(file.source_file for file in self.files))


def checked_namespace(namespace: str) -> str:
    """Return the namespace if it is valid for documents.

    Any short text on one line is valid, such as `docs`. A name with the prefix `project:` must be the valid namespace
    of a project.

    Raises:
        InvalidInput: The namespace is invalid.
    """
    if namespace.startswith(PROJECT):
        return valid_namespace(namespace)
    if not namespace.strip() or len(namespace) > _NAMESPACE_MAX or not namespace.isprintable():
        raise InvalidInput(
            f"Invalid namespace: {namespace[:_NAMESPACE_MAX]!r}", hint="Use a short name, such as docs or project:NAME."
        )
    return namespace
