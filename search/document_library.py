"""Document library, which indexes, searches and deletes documents."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final, Self

from msgspec.structs import replace

from ..archiver.documents.document_folders import DocumentRoots
from ..archiver.documents.document_ingest import DocumentIngest
from ..archiver.redaction import Redactor
from ..archiver.store import Store
from ..core import ids
from ..core.conversation import Milliseconds
from ..core.document import (
    DEFAULT_NAMESPACE,
    CodeStatus,
    DocumentFilter,
    DocumentFolder,
    DocumentStats,
    IndexedDirectory,
    IndexedFile,
    StoredChunk,
    checked_namespace,
)
from ..core.errors import DocumentNotFound, DocumentOutsideRoots, InvalidInput, ModelUnavailable, PalaverError
from ..core.query import Mode
from ..core.runtime import Closing, Progress, Reporter, never, silent, stage
from .code_search import CodeSearch
from .index.generation import Generations
from .index.indexer import Indexer
from .model.embedder import DEFAULT_MODEL, load
from .model.embedding import Embedder
from .rank.item_finder import CacheStats, DocumentFinder, FoundChunk

_PATIENCE: Final = 5.0
"""Seconds after which a call with `async_mode` queues the remaining files. Indexing most folders takes less time."""


class DocumentLibrary(Closing):
    """Documents of one Palaver home. An instance is not thread-safe, but several processes can open the same home.

    Invalid arguments raise `InvalidInput` or its subclasses `DocumentNotFound`, `UnsupportedDocument` and
    `DocumentOutsideRoots`. A file that cannot be read raises `DocumentUnreadable`.
    """

    def __init__(
        self, store: Store, generations: Generations, embedder: Embedder, redactor: Redactor, roots: DocumentRoots
    ) -> None:
        self._store, self._roots = store, roots
        self._ingest = DocumentIngest(store, redactor)
        self._finder = DocumentFinder(store, generations, embedder)
        self.code = CodeSearch(store, lambda: self._finder)
        """Search in the chunks of code."""
        self._indexer, self._model = Indexer(store, generations, embedder), embedder.name
        self._close = ExitStack()

    @classmethod
    def open(cls, store: Store, roots: Sequence[Path], model: str | None = None) -> Self:
        """Open the documents in a store, which `close` closes.

        Only files below `roots` can be indexed. Files in the home of the store cannot be indexed.
        """
        home = store.home
        allowed = DocumentRoots(roots, without=(home.root,))
        embedder = load(model or DEFAULT_MODEL)
        generations = Generations(home.index, read_only=home.read_only)
        documents = cls(store, generations, embedder, Redactor(home.key()), allowed)
        documents._close.callback(store.close)
        return documents

    def namespace_of(self, path: Path) -> str:
        """Return the namespace of the project that contains a path, and reserve it for this project.

        Memories of the project have the same namespace. If an earlier version of Palaver started to watch
        this folder in the namespace `default`, the folder is watched in the project's namespace instead. Its documents
        in `default` are deleted, because the archiver indexes them again.

        Raises:
            DocumentNotFound: The path does not exist.
            DocumentOutsideRoots: The path is outside the folders that may be indexed.
        """
        plain, _ = self._roots.find(path)
        namespace = self._store.projects.claim(plain if plain.is_dir() else plain.parent)
        if (old := DocumentFolder(plain, DEFAULT_NAMESPACE)) in self._store.document_folders.all():
            with self._store.transaction():
                self._store.document_folders.change_namespace(old, namespace)
                self._store.documents.delete(DocumentFilter((old.namespace,), under=plain))
        return namespace

    def index_file(self, path: str | Path, namespace: str = DEFAULT_NAMESPACE) -> IndexedFile:
        """Index one file and embed its chunks, which replace the file's previous chunks.

        An unchanged file keeps its chunks, and an unchanged chunk keeps its ID.
        """
        done = self._ingest.index_file(Path(path), checked_namespace(namespace), self._roots)
        self._embed(silent, [key for public in done.chunk_ids if (key := ids.key(public, "chunk")) is not None])
        return replace(done, source_file=self._store.documents.shown(done.source_file))

    def index_directory(
        self,
        path: str | Path,
        namespace: str = DEFAULT_NAMESPACE,
        *,
        recursive: bool = True,
        async_mode: bool = True,
        report: Reporter = silent,
    ) -> IndexedDirectory:
        """Index the files of a folder that have a known suffix. Skip symbolic links, hidden files and ignored files.

        Files that cannot be read are reported and skipped. With `async_mode`, the call returns after a few seconds and
        queues the remaining work for the server, the watcher or the next `palaver archive`. Without it, all chunks are
        embedded and published before the call returns.
        """
        end = time.monotonic() + _PATIENCE
        should_stop: Callable[[], bool] = (lambda: time.monotonic() > end) if async_mode else never
        done = self._ingest.index_directory(
            Path(path),
            checked_namespace(namespace),
            self._roots,
            recursive=recursive,
            progress=_of_stage(report, "Reading"),
            should_stop=should_stop,
        )
        if not async_mode:
            self._finish(report)
        done.unembedded = self.count_unembedded()
        return done

    def watch(self, path: str | Path, namespace: str = DEFAULT_NAMESPACE, *, recursive: bool = True) -> None:
        """Watch a folder: while the background archiver runs, it indexes new and changed documents in the folder."""
        plain, _ = self._roots.find(Path(path))
        with self._store.transaction():
            self._store.document_folders.add(DocumentFolder(plain, checked_namespace(namespace), recursive))

    def watched_above(self, path: str | Path, namespace: str | None = None) -> Path | None:
        """Return the watched folder that contains a path, or None.

        If documents in a watched folder are deleted from the library, the archiver indexes them again.
        """
        plain = _plain(path)
        folders = [watched for watched in self._store.document_folders.all() if namespace in {None, watched.namespace}]
        return next((watched.path for watched in folders if watched.path in plain.parents), None)

    def index_queued(self, report: Reporter = silent) -> IndexedDirectory:
        """Index all queued files, embed their chunks and publish the index."""
        done = self._ingest.index_queued(_of_stage(report, "Reading"))
        self._finish(report)
        done.unembedded = self.count_unembedded()
        return done

    def search(
        self, query: str, scope: DocumentFilter | None = None, *, limit: int = 5, mode: Mode = Mode.BOTH
    ) -> list[FoundChunk]:
        """Return the chunks that match a query, best first, without unrelated chunks. Raises `InvalidInput`."""
        if not query.strip():
            raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
        if limit < 1:
            raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")
        scope, current_path = scope or DocumentFilter(), self._store.documents.shown
        scope = replace(scope, source_files=tuple(map(current_path, scope.source_files)))
        return list(islice(self._finder.find(query, scope, mode), limit))

    def count_unembedded(self) -> int:
        """Count the chunks that only text search finds, because they are not embedded yet."""
        return self._store.documents.count_unembedded(self._model)

    def code_status(self, folder: Path) -> CodeStatus:
        """Return the number of indexed files and symbols of a folder, and whether an indexed file has changed since."""
        scope = DocumentFilter(under=_plain(folder))
        modified = self._store.documents.modified(scope)
        stale = any(_modified(path) != at for path, at in modified.items()) or self._has_new_files(folder)
        return CodeStatus(len(modified), self._store.symbols.count(scope), max(modified.values(), default=None), stale)

    def get(self, public_ids: Sequence[str]) -> list[StoredChunk]:
        """Return the chunks with these IDs in the given order. Unknown IDs are skipped."""
        keys = [key for public in public_ids if (key := ids.key(public, "chunk")) is not None]
        chunks = self._store.documents.load(keys)
        return [chunks[key] for key in dict.fromkeys(keys) if key in chunks]

    def page(self, scope: DocumentFilter | None = None, *, limit: int = 50, offset: int = 0) -> list[StoredChunk]:
        """Return one page of chunks, sorted by file and position."""
        return self._store.documents.select(scope or DocumentFilter(), limit, offset)

    def delete(self, public_ids: Sequence[str]) -> tuple[str, ...]:
        """Delete chunks by ID and return the IDs that existed. Indexing the file again restores its chunks."""
        keys = [key for public in public_ids if (key := ids.key(public, "chunk")) is not None]
        with self._store.transaction():
            gone = self._store.documents.delete_chunks(keys)
        return tuple(public for public in dict.fromkeys(public_ids) if ids.key(public, "chunk") in gone)

    def delete_file(self, path: str | Path, namespace: str | None = None) -> int:
        """Delete all chunks of a file and return their number.

        The file does not need to exist on disk. Without `namespace`, chunks in all namespaces are deleted.
        """
        plain, documents = _plain(path), self._store.documents
        stored = {each.source_file for each in documents.files()}
        matching = [file for file in stored if plain in {file, documents.shown(file)}]
        return self._delete(DocumentFilter(namespaces=_one(namespace), source_files=(plain, *matching)))

    def delete_directory(self, path: str | Path, namespace: str | None = None) -> int:
        """Delete all chunks of files below a folder and return their number."""
        return self._delete(DocumentFilter(namespaces=_one(namespace), under=_plain(path)))

    def delete_namespace(self, namespace: str) -> int:
        """Delete all chunks of a namespace and return their number."""
        return self._delete(DocumentFilter(namespaces=(namespace,)))

    def clear(self) -> int:
        """Delete all documents and return the number of chunks. Memories and conversations stay."""
        return self._delete(DocumentFilter())

    @property
    def cache_stats(self) -> CacheStats:
        """Hits and misses of the cache of query embeddings since the library was opened."""
        return self._finder.cache_stats

    def stats(self) -> DocumentStats:
        """Return statistics of stored and queued documents."""
        documents = self._store.documents
        return DocumentStats(
            files=tuple(replace(file, source_file=documents.shown(file.source_file)) for file in documents.files()),
            namespaces=documents.count_by("namespace"),
            kinds=documents.count_by("kind"),
            queued=documents.count_queued(),
            watched=tuple(self._store.document_folders.all()),
            unembedded=documents.count_unembedded(self._model),
            failed=tuple(documents.failed()),
        )

    def _has_new_files(self, folder: Path) -> bool:
        try:
            return self._ingest.has_new_files(folder, self._roots)
        except (DocumentNotFound, DocumentOutsideRoots):
            return False

    def _delete(self, scope: DocumentFilter) -> int:
        with self._store.transaction():
            return self._store.documents.delete(scope)

    def _embed(self, progress: Progress, keys: Sequence[int]) -> None:
        """Embed these chunks. If the model is unavailable, only text search finds the chunks."""
        problems = list[PalaverError]()
        try:
            self._indexer.embed(progress, among=keys)
        except ModelUnavailable as problem:
            problems.append(problem)
        self._store.stages.note("embed", problems)

    def _finish(self, report: Reporter) -> None:
        """Publish the text index, then embed the chunks and publish the vectors.

        If embedding is interrupted, text search already finds the chunks.
        """
        with stage(report, "Indexing"):
            self._indexer.publish()
        self._embed(_of_stage(report, "Embedding"), self._store.documents.unembedded(self._model))
        self._indexer.publish()
        self._store.stages.note("publish")

    def close(self) -> None:
        """Close the store if `open` opened it."""
        self._close.close()


def _of_stage(report: Reporter, stage: str) -> Progress:
    return lambda done, total: report(stage, done, total)


def _plain(path: str | Path) -> Path:
    """Return an absolute path with links resolved, as stored. Raises `InvalidInput` for invalid paths."""
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # unknown user or null character
        raise InvalidInput(f"Invalid path: {error}", hint="Give the path of an indexed file or folder.") from None


def _modified(path: Path) -> Milliseconds | None:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _one(namespace: str | None) -> tuple[str, ...]:
    return () if namespace is None else (namespace,)
