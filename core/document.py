"""Documents: indexed files, in chunks that are found separately."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, field

from . import ids
from .conversation import Milliseconds
from .errors import InvalidInput
from .memory import PROJECT, named_namespace

DEFAULT_NAMESPACE = "default"
_NAMESPACE_MAX = 200


class ChunkKind(StrEnum):
    """Prose, or a unit of code. The values are those of `Hit.kind`."""

    DOCUMENT = "document"
    CODE = "code"


class Chunk(Struct, frozen=True):
    """Part of a document, without identity.

    Lines are 1-based and inclusive, 0 if the format has none; `page` counts from 1, 0 without pages. `header_path` has
    the headings above it, as in `Setup > Linux`. `unit` is the kind of a unit of code (`function`, `class`, `method`,
    `module`), `name` its name (`Store.open`) and `signature` its declaration.
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


class HeldChunk(Struct, frozen=True):
    """Stored chunk. `index` counts from 0 within its document; `at` is the modification time of the file."""

    key: int
    chunk: Chunk
    source_file: Path
    namespace: str
    language: str
    index: int
    at: Milliseconds

    @property
    def id(self) -> str:
        """Public id, as in `chunk_7`."""
        return ids.show("chunk", self.key)


class DocumentFilter(Struct, frozen=True):
    """Conditions for chunks: AND between different filters, OR between the values of one; empty means no filter.

    `source_files` are full paths, `under` is a folder. `languages` are those of `DocumentFormat`, such as `python`.
    """

    namespaces: tuple[str, ...] = ()
    kinds: tuple[ChunkKind, ...] = ()
    source_files: tuple[Path, ...] = ()
    under: Path | None = None
    languages: tuple[str, ...] = ()

    def admits(self, held: HeldChunk) -> bool:
        """Return whether a chunk meets all conditions."""
        return (
            (not self.namespaces or held.namespace in self.namespaces)
            and (not self.kinds or held.chunk.kind in self.kinds)
            and (not self.source_files or held.source_file in self.source_files)
            and (self.under is None or held.source_file.is_relative_to(self.under))
            and (not self.languages or held.language in self.languages)
        )


class IndexedFile(Struct, frozen=True):
    """Result of indexing one file. An `unchanged` file keeps its chunks."""

    source_file: Path
    namespace: str
    chunk_ids: tuple[str, ...]
    unchanged: bool = False


class FailedFile(Struct, frozen=True):
    """File that could not be indexed, and the reason."""

    file: Path
    error: str
    hint: str = ""


class HeldFile(Struct, frozen=True):
    """Indexed file: its chunks and its modification time."""

    source_file: Path
    namespace: str
    language: str
    chunks: int
    at: Milliseconds


class IndexedDirectory(Struct):
    """Result of indexing a folder.

    `indexed` files were new or changed and now have `chunks` chunks. `unchanged` files were skipped, `queued` ones wait
    for the background archiver or the next command, `gone` ones were deleted. `unembedded` chunks are found by text
    search only, until they are embedded.
    """

    indexed: int = 0
    chunks: int = 0
    unchanged: int = 0
    queued: int = 0
    gone: int = 0
    unembedded: int = 0
    failed: list[FailedFile] = field(default_factory=list[FailedFile])


class DocumentStats(Struct, frozen=True):
    """Statistics of indexed files.

    `queued` files wait to be read; `failed` ones could not be read. `unembedded` chunks wait for the embedder.
    `namespaces` and `kinds` count chunks, the most frequent first.
    """

    files: tuple[HeldFile, ...]
    namespaces: Mapping[str, int]
    kinds: Mapping[str, int]
    queued: int
    failed: tuple[FailedFile, ...]
    unembedded: int = 0

    @property
    def chunks(self) -> int:
        """Number of all chunks."""
        return sum(self.namespaces.values())

    @property
    def source_files(self) -> tuple[Path, ...]:
        """Every file once, whatever its namespaces."""
        return tuple(dict.fromkeys(file.source_file for file in self.files))


def checked_namespace(namespace: str) -> str:
    """Return a namespace for documents: any short line, such as `docs`, or that of a project.

    Raises:
        InvalidInput: for any other text.
    """
    if namespace.startswith(PROJECT):
        return named_namespace(namespace)
    if not namespace.strip() or len(namespace) > _NAMESPACE_MAX or not namespace.isprintable():
        raise InvalidInput(
            f"Invalid namespace: {namespace[:_NAMESPACE_MAX]!r}", hint="Use a short name, such as docs or project:NAME."
        )
    return namespace
