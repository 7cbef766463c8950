"""Documents: files that a person or an agent had taken up, in chunks that can be found one by one."""

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
    """What a chunk is: prose for people, or a unit of code. Equals `Hit.kind`."""

    DOCUMENT = "document"
    CODE = "code"


class Chunk(Struct, frozen=True):
    """One stretch of a document, without identity.

    Lines are 1-based and inclusive, 0 where the format has none; `page` counts from 1, 0 where there are no pages.
    `header_path` are the headings above it, as in `Setup > Linux`. `unit` says what a unit of code is (`function`,
    `class`, `method`, `module`), `name` what it is called (`Store.open`) and `signature` how it is declared.
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
    """A stored chunk. `index` counts from 0 within its document; `at` is when the file was last changed."""

    key: int
    chunk: Chunk
    source_file: Path
    namespace: str
    language: str
    index: int
    at: Milliseconds

    @property
    def id(self) -> str:
        """How people and agents name it."""
        return ids.show("chunk", self.key)


class DocumentFilter(Struct, frozen=True):
    """What a chunk must satisfy. Different filters combine with AND, the values of one with OR; empty means no filter.

    `source_files` are whole paths, `under` is a folder. `languages` are those of `DocumentFormat`, such as `python`.
    """

    namespaces: tuple[str, ...] = ()
    kinds: tuple[ChunkKind, ...] = ()
    source_files: tuple[Path, ...] = ()
    under: Path | None = None
    languages: tuple[str, ...] = ()

    def admits(self, held: HeldChunk) -> bool:
        """Whether a chunk satisfies all of it."""
        return (
            (not self.namespaces or held.namespace in self.namespaces)
            and (not self.kinds or held.chunk.kind in self.kinds)
            and (not self.source_files or held.source_file in self.source_files)
            and (self.under is None or held.source_file.is_relative_to(self.under))
            and (not self.languages or held.language in self.languages)
        )


class IndexedFile(Struct, frozen=True):
    """What became of one file. `unchanged` says that it was known as it is, so that its chunks are those of before."""

    source_file: Path
    namespace: str
    chunk_ids: tuple[str, ...]
    unchanged: bool = False


class FailedFile(Struct, frozen=True):
    """A file that could not be taken up, and why. The others were."""

    file: Path
    error: str
    hint: str = ""


class HeldFile(Struct, frozen=True):
    """A file as it is held: its chunks, and when it was last changed."""

    source_file: Path
    namespace: str
    language: str
    chunks: int
    at: Milliseconds


class IndexedDirectory(Struct):
    """What became of a folder. `indexed` files were new or changed and have `chunks` chunks now, `unchanged` ones were
    passed over, `queued` ones wait for the background archiver or the next command, `gone` ones were deleted with
    their files. `unembedded` chunks are found by words at once and by meaning once they are embedded.
    """

    indexed: int = 0
    chunks: int = 0
    unchanged: int = 0
    queued: int = 0
    gone: int = 0
    unembedded: int = 0
    failed: list[FailedFile] = field(default_factory=list[FailedFile])


class DocumentStats(Struct, frozen=True):
    """Statistics of indexed files. `queued` files wait to be read; `failed` ones could not be read from the queue.

    `unembedded` chunks wait for the embedder. `namespaces` and `kinds` count chunks, the most first.
    """

    files: tuple[HeldFile, ...]
    namespaces: Mapping[str, int]
    kinds: Mapping[str, int]
    queued: int
    failed: tuple[FailedFile, ...]
    unembedded: int = 0

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return sum(self.namespaces.values())

    @property
    def source_files(self) -> tuple[Path, ...]:
        """Every file once, whatever its namespaces."""
        return tuple(dict.fromkeys(file.source_file for file in self.files))


def checked_namespace(namespace: str) -> str:
    """Return a namespace for documents: any short line, such as `docs`; that of a project as memories have it.

    Raises:
        InvalidInput: for any other.
    """
    if namespace.startswith(PROJECT):
        return named_namespace(namespace)
    if not namespace.strip() or len(namespace) > _NAMESPACE_MAX or not namespace.isprintable():
        raise InvalidInput(
            f"Invalid namespace: {namespace[:_NAMESPACE_MAX]!r}", hint="Use a short name, such as docs or project:NAME."
        )
    return namespace
