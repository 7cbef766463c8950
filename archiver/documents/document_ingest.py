"""Ingest of documents, which stores files as chunks. An unchanged file is read, but not indexed again."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...core import ids
from ...core.document import ChunkKind, DocumentFilter, FailedFile, IndexedDirectory, IndexedFile
from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.progress import Progress, never, silent
from ..formats.folders import is_gone
from ..redaction import VERSION as REDACTION_VERSION
from ..redaction import Redactor
from ..store import Document, QueuedFile, Store
from .code_languages import CODE_LANGUAGES
from .code_parsing import CodeParser, ParsedDocument, parse
from .document_formats import VERSION, format_of
from .document_roots import DocumentFile, DocumentRoots, read
from .folder_scan import scan
from .generated_files import reason_by_content
from .isolated_parser import IsolatedParser

_BATCH: Final = 32
"""Number of files that are stored in one transaction."""
_ERRORS: Final = (DocumentUnreadable, DocumentNotFound, DocumentOutsideRoots)


class _Begun(NamedTuple):
    """File that was read. `document` is None if it did not change or if `failed` or `reason` says why it is skipped."""

    file: QueuedFile
    document: Document | None = None
    parsed: Callable[[], ParsedDocument] = ParsedDocument
    moved: bool = False
    """True if the chunks of another file, which no longer exists, are probably those of this file."""
    failed: FailedFile | None = None
    reason: str = ""


class DocumentIngest:
    """Indexer of files. Each file is indexed atomically, so indexing can be interrupted at any time."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor, self._isolated = store, redactor, IsolatedParser()

    def index_file(self, path: Path, namespace: str, roots: DocumentRoots) -> IndexedFile:
        """Index one file, even if a scan of its folder skips it.

        Raises:
            InvalidInput: The path does not exist, is not allowed or has an unknown suffix.
            DocumentUnreadable: The file cannot be read.
        """
        plain, root = roots.find(path)
        if plain.is_dir():
            raise DocumentUnreadable(plain, "the path is a folder", hint="Index it as a directory.")
        format_of(path)
        content = read(plain, root)
        document = self._changed(QueuedFile(plain, namespace, root), content)
        if document is None:
            keys = self._store.documents.keys_of(plain, namespace)
            return IndexedFile(plain, namespace, _ids(keys), unchanged=True)
        with self._isolated:
            parsed = parse(plain, content.data, self._redactor, self._isolated)
        with self._store.transaction():
            keys = self._save(document, lambda: parsed, counted := IndexedDirectory())
        return IndexedFile(plain, namespace, _ids(keys), units=counted.units)

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
        """Index every file of a folder that has a known suffix, except ignored, generated and similar files.

        When `should_stop` returns True, the remaining files are queued. Unreadable files are reported and skipped.
        Chunks of files that no longer exist, or are now skipped, are deleted. Raises `DocumentUnreadable` if the folder
        is unreadable.
        """
        plain, root = roots.find(folder)
        if not plain.is_dir():
            raise DocumentUnreadable(plain, "the path is not a folder", hint="Index it as a file.")
        found = scan(plain, recursive=recursive, without=roots.without)
        if unreadable := next((problem for problem in found.problems if problem.path == plain), None):
            raise unreadable
        done, files = IndexedDirectory(), [QueuedFile(path, namespace, root) for path in found.files]
        done.failed += [FailedFile(problem.path, problem.reason, problem.hint) for problem in found.problems]
        begun = self._index_all(files, done, partial(_report, progress, len(files), 0), should_stop)
        if rest := files[begun:]:
            with self._store.transaction():
                self._store.documents.queue(rest)
            done.queued = len(rest)
        done.gone += self._delete_gone(plain, namespace, found.excluded, recursive=recursive)
        done.skipped = dict((Counter(done.skipped) + found.skipped).most_common())
        return done

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
        """Index files, and count the outcomes. Return the number of files indexed before `should_stop` returned True.

        While one batch is stored, the pool parses the next one.
        """
        report(0)
        stored, before = 0, list[_Begun]()
        with self._isolated, CodeParser(self._redactor, self._isolated) as parser:
            for batch in _batches(files, should_stop):
                begun = [self._begin(file, parser) for file in batch]
                stored += self._finish(before, done, report, stored)
                before = begun
            stored += self._finish(before, done, report, stored)
        return stored

    def _begin(self, file: QueuedFile, parser: CodeParser) -> _Begun:
        """Read a file, and begin to parse it if it changed."""
        try:
            format_of(file.path)
            content = read(file.path, file.root)
        except _ERRORS as problem:
            return _Begun(file, failed=_failed(file, problem))
        if reason := reason_by_content(file.path, content.data):
            return _Begun(file, reason=reason)
        document = self._changed(file, content)
        if document is None:
            return _Begun(file)
        moved = self._former(document) is not None
        alone = partial(parse, file.path, content.data, self._redactor, self._isolated)
        if moved or file.path.suffix.lower() not in CODE_LANGUAGES:
            return _Begun(file, document, alone, moved)
        return _Begun(file, document, parser.submit(file.path, content.data))

    def _finish(self, begun: Sequence[_Begun], done: IndexedDirectory, report: Callable[[int], None], at: int) -> int:
        """Store files in one transaction, and return their number."""
        parsed: list[_Begun] = []
        for number, each in enumerate(begun, 1):
            try:
                parsed.append(each if each.moved else each._replace(parsed=partial(_same, each.parsed())))
            except _ERRORS as problem:
                parsed.append(each._replace(failed=_failed(each.file, problem)))
            report(at + number)
        if parsed:
            with self._store.transaction():
                for each in parsed:
                    self._settle(each, done)
        return len(parsed)

    def _settle(self, begun: _Begun, done: IndexedDirectory) -> None:
        """Store the outcome of one file, and count it."""
        documents, file, failed = self._store.documents, begun.file, begun.failed
        if failed is not None:
            done.failed.append(failed)
            documents.settle(file, failed.error, failed.hint)
            return
        if begun.document is not None:
            self._save(begun.document, begun.parsed, done)
        elif begun.reason:
            done.skipped[begun.reason] = done.skipped.get(begun.reason, 0) + 1
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

    def _former(self, document: Document) -> Path | None:
        """Return the path from which a file was moved: a file with the same content that no longer exists."""
        known = self._store.documents.paths_of(document.digest, document.namespace, document.language)
        return next((path for path in known if is_gone(path)), None)

    def _save(self, document: Document, parsed: Callable[[], ParsedDocument], done: IndexedDirectory) -> list[int]:
        """Store a new, changed or moved file, and return the keys of its chunks."""
        documents = self._store.documents
        if former := self._former(document):
            done.moved += 1
            return documents.move(former, document.namespace, document.path, document.at)
        found = parsed()
        done.indexed += 1
        done.chunks += len(found.chunks)
        done.units += len({(each.unit, each.name, each.signature) for each in found.chunks if each.is_named})
        done.unparsed += any(chunk.kind is ChunkKind.CODE and not chunk.unit for chunk in found.chunks)
        return documents.replace(replace(document, metadata=found.metadata), found.chunks)

    def _delete_gone(self, folder: Path, namespace: str, excluded: Sequence[Path], *, recursive: bool) -> int:
        wanted, skipped = DocumentFilter(namespaces=(namespace,), under=folder), frozenset(excluded)
        gone = [
            path
            for path in (stored.source_file for stored in self._store.documents.files(wanted))
            if (recursive or path.parent == folder) and (is_gone(path) or not skipped.isdisjoint((path, *path.parents)))
        ]
        if gone:
            with self._store.transaction():
                self._store.documents.delete(DocumentFilter(namespaces=(namespace,), source_files=tuple(gone)))
        return len(gone)


def _batches(files: Sequence[QueuedFile], should_stop: Callable[[], bool]) -> Iterator[list[QueuedFile]]:
    """Yield batches of files until `should_stop` returns True. It is called once per file."""
    for start in count(0, _BATCH):
        batch: list[QueuedFile] = []
        for file in files[start : start + _BATCH]:
            if should_stop():
                yield batch
                return
            batch.append(file)
        if not batch:
            return
        yield batch


def _same(parsed: ParsedDocument) -> ParsedDocument:
    return parsed


def _report(progress: Progress, total: int, before: int, done: int) -> None:
    if total:
        progress(before + done, total)


def _failed(file: QueuedFile, problem: Exception) -> FailedFile:
    reason = problem.reason if isinstance(problem, DocumentUnreadable) else str(problem)
    return FailedFile(file.path, reason, str(getattr(problem, "hint", "")))


def _ids(keys: list[int]) -> tuple[str, ...]:
    return tuple(ids.show("chunk", key) for key in keys)
