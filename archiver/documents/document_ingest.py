"""Ingest of documents: scan watched folders, queue changed files, store their chunks, remove deleted files.

The scan finds new, changed and deleted documents and queues files, but does not read them. The ingest reads queued
files, splits them into chunks and stores these. It skips unchanged files.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...core import ids
from ...core.document import Chunk, ChunkKind, DocumentFilter, DocumentFolder, FailedFile, IndexedDirectory, IndexedFile
from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable, NotADocument
from ...core.runtime import Progress, never, silent
from ..copies.raw_copy import Stat
from ..formats.record_reader import is_gone
from ..redaction import VERSION as REDACTION_VERSION
from ..redaction import Redactor
from ..store import Document, QueuedFile, Store
from .code_chunks import CODE_LANGUAGES
from .document_folders import DocumentFile, DocumentRoots, FolderScan, read, reason_by_content, scan
from .document_formats import VERSION, format_of
from .document_reader import ParsedDocument
from .isolated_parser import CodeParser, IsolatedParser, parse


def removed(
    paths: Iterable[Path], folder: DocumentFolder, result: FolderScan, watched: Iterable[DocumentFolder]
) -> list[Path]:
    """Return the known files of a folder that its scan did not find.

    Some files are kept:

    - Files in unreadable folders.
    - Files in another watched folder below this one, unless they were deleted.
    - Every file, if the scan found no file at all, because the folder can be an empty mount point.
    """
    if result.is_empty:
        return []
    files, unreadable = frozenset(result.files), frozenset(problem.path for problem in result.problems)
    inner = [
        inner_folder
        for inner_folder in watched
        if inner_folder.namespace == folder.namespace and folder.path in inner_folder.path.parents
    ]
    return [
        path
        for path in paths
        if path not in files
        and folder.contains(path)
        and unreadable.isdisjoint((path, *path.parents))
        and (is_gone(path) or not any(inner_folder.contains(path) for inner_folder in inner))
    ]


_BATCH: Final = 32
"""Maximum number of files that are stored in one transaction."""
_BATCH_BYTES: Final = 16 << 20
"""Size in bytes at which a batch ends. The content of two batches is in memory at the same time."""
_ERRORS: Final = (DocumentUnreadable, DocumentNotFound, DocumentOutsideRoots)


class _FileResult(NamedTuple):
    """Result of reading one file.

    - A changed file has a `document`, and either its `former` path (if it was moved) or its `parsed` content.
    - A file that cannot be read has `failed`.
    - A skipped file has a `reason`.
    - An unchanged file has none of these.
    """

    file: QueuedFile
    document: Document | None = None
    parse: Callable[[], ParsedDocument] = ParsedDocument
    former: Path | None = None
    parsed: ParsedDocument | None = None
    failed: FailedFile | None = None
    reason: str = ""


class DocumentIngest:
    """Indexer of files. Each file is indexed atomically, so indexing can be interrupted at any time."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor, self._isolated = store, redactor, IsolatedParser()

    def index_file(self, path: Path, namespace: str, roots: DocumentRoots) -> IndexedFile:
        """Index one file, even if a scan of its folder would skip it.

        Raises:
            InvalidInput: The path does not exist, is not allowed or has an unknown suffix.
            DocumentUnreadable: The file cannot be read. The problem is also recorded in the store.
        """
        plain, root = roots.find(path)
        if plain.is_dir():
            raise NotADocument(plain, "the path is a folder", hint="Index it as a directory.")
        format_of(path)
        file = QueuedFile(plain, namespace, root)
        try:
            return self._index_file(file)
        except DocumentUnreadable as problem:
            with self._store.transaction():
                self._store.documents.settle(file, problem.reason, problem.hint)
            raise

    def _index_file(self, file: QueuedFile) -> IndexedFile:
        documents, (path, namespace, root) = self._store.documents, (file.path, file.namespace, file.root)
        content = read(path, root)
        document = self._changed(file, content)
        if document is None:
            return IndexedFile(path, namespace, _ids(documents.keys_of(path, namespace)), unchanged=True)
        with self._store.transaction():
            if (former := self._former(document)) is not None:
                keys = documents.move(former, namespace, path, document.at)
                documents.settle(file)
                chunks = [stored.chunk for stored in documents.load(keys).values()]
                return IndexedFile(path, namespace, _ids(keys), units=_count_units(chunks))
        with self._isolated:
            parsed = parse(path, content.data, self._redactor, self._isolated)
        with self._store.transaction():
            keys = documents.replace(replace(document, metadata=parsed.metadata), parsed.chunks)
            documents.settle(file)
        units = _count_units(parsed.chunks)
        return IndexedFile(path, namespace, _ids(keys), units=units, truncated=parsed.truncated)

    def index_directory(
        self,
        folder: Path,
        namespace: str,
        roots: DocumentRoots,
        *,
        recursive: bool = True,
        progress: Progress = silent,
        should_stop: Callable[[], bool] = never,
    ) -> IndexedDirectory:
        """Index every file of a folder that has a known suffix. Skip ignored, generated, minified and vendored files.

        When `should_stop` returns True, the remaining files are queued. Unreadable files are reported and skipped.
        Chunks of files that no longer exist, or are now skipped, are deleted. Raises `DocumentUnreadable` if the folder
        is unreadable.
        """
        plain, root = roots.find(folder)
        if not plain.is_dir():
            raise NotADocument(plain, "the path is not a folder", hint="Index it as a file.")
        result = scan(plain, recursive=recursive, without=roots.without)
        if unreadable := next((problem for problem in result.problems if problem.path == plain), None):
            raise unreadable
        done, files = IndexedDirectory(), [QueuedFile(path, namespace, root) for path in result.files]
        done.failed += [FailedFile(problem.path, problem.reason, problem.hint) for problem in result.problems]
        begun = self._index_all(files, done, partial(_report, progress, len(files), 0), should_stop)
        if remaining := files[begun:]:
            with self._store.transaction():
                self._store.documents.queue(remaining)
            done.queued += len(remaining)
        done.gone += self._delete_gone(DocumentFolder(plain, namespace, recursive), result)
        done.skipped = dict((Counter(done.skipped) + result.skipped).most_common())
        return done

    def has_new_files(self, folder: Path, roots: DocumentRoots) -> bool:
        """Return whether a folder contains a file that `index_directory` would index for the first time."""
        filters, (plain, root) = DocumentFilter(under=folder), roots.find(folder)
        known = {
            *self._store.documents.modified(filters),
            *(failure.file for failure in self._store.documents.failed(filters)),
        }
        return any(
            _is_indexable(path, root)
            for path in scan(plain, recursive=True, without=roots.without).files
            if path not in known
        )

    def index_queued(self, progress: Progress = silent, should_stop: Callable[[], bool] = never) -> IndexedDirectory:
        """Index queued files until `should_stop` returns True. Unreadable files stay in the queue, with the reason."""
        done, total = IndexedDirectory(), self._store.documents.count_queued()
        number, stopped = 0, False
        while not stopped and (files := self._store.documents.queued(_BATCH * 32)):
            report = partial(_report, progress, max(total, number + len(files)), number)
            begun = self._index_all(files, done, report, should_stop)
            number, stopped = number + begun, begun < len(files)
        done.queued = self._store.documents.count_queued()
        if total:
            progress(total - done.queued, total)
        return done

    def _index_all(
        self,
        files: Sequence[QueuedFile],
        done: IndexedDirectory,
        report: Callable[[int], None],
        should_stop: Callable[[], bool],
    ) -> int:
        """Index files, and count the results in `done`. Return the number of files processed before a stop.

        While one batch is stored, other processes parse the code files of the next batch.
        """
        report(0)
        stored, before = 0, list[_FileResult]()
        with self._isolated, CodeParser(self._redactor) as parser:
            for batch in batches(files, should_stop):
                results = [self._read(file, parser) for file in batch]
                stored += self._store_batch(before, done, report, stored)
                before = results
            stored += self._store_batch(before, done, report, stored)
        return stored

    def _read(self, file: QueuedFile, parser: CodeParser) -> _FileResult:
        """Read a file, and begin to parse it if it changed."""
        try:
            format_of(file.path)
            content = read(file.path, file.root)
        except _ERRORS as problem:
            return _FileResult(file, failed=_failed(file, problem))
        if reason := reason_by_content(file.path, content.data):
            return _FileResult(file, reason=reason)
        document = self._changed(file, content)
        if document is None:
            return _FileResult(file)
        if file.path.suffix.lower() in CODE_LANGUAGES:
            return _FileResult(file, document, parser.submit(file.path, content.data))
        return _FileResult(file, document, partial(parse, file.path, content.data, self._redactor, self._isolated))

    def _store_batch(
        self, batch: Sequence[_FileResult], done: IndexedDirectory, report: Callable[[int], None], at: int
    ) -> int:
        """Parse the files of a batch, store them in one transaction, and return their number."""
        results, formers = list[_FileResult](), set[Path]()
        for number, result in enumerate(batch, 1):
            results.append(self._parsed(result, formers))
            report(at + number)
        if results:
            with self._store.transaction():
                for result in results:
                    self._settle(result, done)
        return len(results)

    def _parsed(self, result: _FileResult, formers: set[Path]) -> _FileResult:
        """Find the path from which a file was moved, or parse the file if it was not moved.

        The paths in `formers` are already assigned to other files of the batch.
        """
        if result.document is None:
            return result
        if (former := self._former(result.document, formers)) is not None:
            formers.add(former)
            return result._replace(former=former)
        try:
            return result._replace(parsed=result.parse())
        except DocumentUnreadable as problem:
            return result._replace(failed=_failed(result.file, problem))

    def _settle(self, result: _FileResult, done: IndexedDirectory) -> None:
        """Store the result of reading one file, and count it in `done`."""
        documents, file, document = self._store.documents, result.file, result.document
        if result.failed is not None:
            done.failed.append(result.failed)
            documents.settle(file, result.failed.error, result.failed.hint)
            return
        if document is not None and result.parsed is not None:
            done.indexed += 1
            done.chunks += len(result.parsed.chunks)
            done.units += _count_units(result.parsed.chunks)
            done.unparsed += any(chunk.kind is ChunkKind.CODE and not chunk.unit for chunk in result.parsed.chunks)
            done.truncated += [file.path] if result.parsed.truncated else []
            documents.replace(replace(document, metadata=result.parsed.metadata), result.parsed.chunks)
        elif document is not None and result.former is not None:
            if documents.digest(result.former, file.namespace) != document.digest:
                # Another process deleted or moved the former file, so this file must be parsed.
                documents.queue([file])
                done.queued += 1
                return
            done.moved += 1
            documents.move(result.former, file.namespace, file.path, document.at)
        elif result.reason:
            done.skipped[result.reason] = done.skipped.get(result.reason, 0) + 1
            if documents.digest(file.path, file.namespace):
                documents.delete(DocumentFilter(namespaces=(file.namespace,), source_files=(file.path,)))
                done.gone += 1
        else:
            done.unchanged += 1
        documents.settle(file)

    def _changed(self, file: QueuedFile, content: DocumentFile) -> Document | None:
        """Return the new state of a file, or None if it did not change."""
        digest = sha256(f"{VERSION} {REDACTION_VERSION}\n".encode() + content.data).digest()
        if self._store.documents.digest(file.path, file.namespace) == digest:
            return None
        return Document(file.path, file.namespace, format_of(file.path).language, digest, content.at)

    def _former(self, document: Document, without: Collection[Path] = ()) -> Path | None:
        """Return the path from which a file was moved, or None if the file was not moved.

        This is the path of a stored file that has the same content and no longer exists.
        """
        paths = self._store.documents.paths_of(document.digest, document.namespace, document.language)
        return next((path for path in paths if path not in without and is_gone(path)), None)

    def _delete_gone(self, folder: DocumentFolder, result: FolderScan) -> int:
        """Delete the documents that a scan of their folder did not find, and return their number."""
        documents, filters = self._store.documents, DocumentFilter((folder.namespace,), under=folder.path)
        stored = documents.modified(filters).keys()
        failed = [failure.file for failure in documents.failed(filters)]
        gone = removed([*stored, *failed], folder, result, self._store.document_folders.all())
        if gone:
            with self._store.transaction():
                documents.delete(DocumentFilter((folder.namespace,), tuple(gone)))
        return len(stored & gone)


def _count_units(chunks: Sequence[Chunk]) -> int:
    """Count the named units of a file. A large unit has several chunks."""
    return len({(chunk.unit, chunk.name, chunk.unit_start) for chunk in chunks if chunk.is_named})


def batches(files: Sequence[QueuedFile], should_stop: Callable[[], bool]) -> Iterator[list[QueuedFile]]:
    """Split files into batches. Stop when `should_stop`, which is called once per file, returns True."""
    batch, size = list[QueuedFile](), 0
    for file in files:
        if should_stop():
            break
        batch.append(file)
        size += _size(file.path)
        if len(batch) == _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _is_indexable(path: Path, root: Path) -> bool:
    try:
        return not reason_by_content(path, read(path, root).data)
    except _ERRORS:
        return False


def _report(progress: Progress, total: int, before: int, done: int) -> None:
    if total:
        progress(before + done, total)


def _failed(file: QueuedFile, problem: Exception) -> FailedFile:
    reason = problem.reason if isinstance(problem, DocumentUnreadable) else str(problem)
    return FailedFile(file.path, reason, str(getattr(problem, "hint", "")))


def _ids(keys: list[int]) -> tuple[str, ...]:
    return tuple(ids.show("chunk", key) for key in keys)


_Files: TypeAlias = dict[Path, Stat]


class DocumentChanges(Struct):
    """Number of queued files and of deleted files. A moved file counts as both.

    `waiting` is true if deleted files stay indexed until all queued files are read. A moved file can then keep its
    chunks.
    """

    queued: int = 0
    gone: int = 0
    waiting: bool = False


class DocumentScan:
    """Scanner that remembers the state of each file in the watched folders, and finds the changes."""

    def __init__(self, store: Store, without: Sequence[Path]) -> None:
        """Create a scanner. Files below the folders in `without`, such as Palaver's home, are skipped."""
        self._store, self._without = store, without
        self._known: dict[DocumentFolder, _Files] = {}

    def run(self) -> DocumentChanges:
        """Queue new and changed files, and remove deleted files from the index.

        A folder that does not exist, such as one on an unmounted disk, keeps its documents.
        """
        done, folders = DocumentChanges(), self._store.document_folders.all()
        self._known = {folder: files for folder, files in self._known.items() if folder in folders}
        for folder in folders:
            if folder.path.is_dir():
                self._run(folder, folders, done)
        return done

    def _run(self, folder: DocumentFolder, watched: Sequence[DocumentFolder], done: DocumentChanges) -> None:
        result = scan(folder.path, recursive=folder.recursive, without=self._without)
        states = {path: state for path in result.files if (state := _state(path)) is not None}
        documents, filters = self._store.documents, DocumentFilter((folder.namespace,), under=folder.path)
        stored = documents.modified(filters)
        before = self._known.get(folder)
        changed = [
            path
            for path, state in states.items()
            # The first scan compares with the index, because files may have changed while nothing watched them.
            if (before.get(path) != state if before is not None else stored.get(path) != state.mtime // 1_000_000)
        ]
        failed = [failure.file for failure in documents.failed(filters)]
        gone = removed([*stored, *failed], folder, result, watched)
        if changed:
            with self._store.transaction():
                documents.queue(QueuedFile(path, folder.namespace, folder.path) for path in changed)
            done.queued += len(changed)
        self._known[folder] = states
        if gone and documents.count_queued():
            done.waiting = True
        elif gone:
            with self._store.transaction():
                documents.delete(DocumentFilter((folder.namespace,), tuple(gone)))
            done.gone += len(stored.keys() & gone)


def _state(path: Path) -> Stat | None:
    try:
        return Stat.of(path)
    except OSError:
        return None
