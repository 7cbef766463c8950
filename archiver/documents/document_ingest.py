"""Ingest of documents, which stores files as chunks. An unchanged file is read, but not indexed again."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ...core import ids
from ...core.document import DocumentFilter, FailedFile, IndexedDirectory, IndexedFile
from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.progress import Progress, never, silent
from ...core.text import without_ansi
from ..formats.folders import is_gone
from ..redaction import VERSION as REDACTION_VERSION
from ..redaction import Redactor
from ..store import Document, QueuedFile, Store
from .document_formats import SUFFIXES, VERSION, format_of
from .document_reader import Section
from .document_roots import DocumentRoots, read, regular_files
from .isolated_parser import IsolatedParser
from .metadata import limited

_BATCH: Final = 50
"""Number of queued files that are fetched at once."""


class DocumentIngest:
    """Indexer of files. Each file is indexed atomically, so indexing can be interrupted at any time."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor, self._parser = store, redactor, IsolatedParser()

    def index_file(self, path: Path, namespace: str, roots: DocumentRoots) -> IndexedFile:
        """Index one file.

        Raises:
            InvalidInput: The path does not exist, is not allowed or has an unknown suffix.
            DocumentUnreadable: The file cannot be read.
        """
        plain, root = roots.find(path)
        if plain.is_dir():
            raise DocumentUnreadable(plain, "the path is a folder", hint="Index it as a directory.")
        format_of(path)
        with self._parser:
            return self._index(QueuedFile(plain, namespace, root))

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
        """Index every file with a known suffix in a folder.

        When `should_stop` returns True, the remaining files are queued. Unreadable files are reported and skipped.
        Chunks of files that no longer exist are deleted. Raises `DocumentUnreadable` if the folder is unreadable.
        """
        plain, root = roots.find(folder)
        if not plain.is_dir():
            raise DocumentUnreadable(plain, "the path is not a folder", hint="Index it as a file.")
        done = IndexedDirectory()
        paths, problems = regular_files(plain, recursive=recursive, without=roots.without)
        if unreadable := next((problem for problem in problems if problem.path == plain), None):
            raise unreadable
        found = [QueuedFile(path, namespace, root) for path in paths if path.suffix.lower() in SUFFIXES]
        done.failed += [FailedFile(problem.path, problem.reason, problem.hint) for problem in problems]
        with self._parser:
            for number, file in enumerate(found):
                if should_stop():
                    with self._store.transaction():
                        self._store.documents.queue(found[number:])
                    done.queued = len(found) - number
                    break
                progress(number, len(found))
                self._attempt(file, done)
            else:
                progress(len(found), len(found))
        done.gone = self._delete_gone(plain, namespace, recursive=recursive)
        return done

    def index_queued(self, progress: Progress = silent, should_stop: Callable[[], bool] = never) -> IndexedDirectory:
        """Index queued files until `should_stop` returns True. Unreadable files stay in the queue, with the reason."""
        done, total = IndexedDirectory(), self._store.documents.count_queued()
        with self._parser:
            for number, file in enumerate(self._queued()):
                if should_stop():
                    break
                progress(number, total)
                failed = self._attempt(file, done)
                with self._store.transaction():
                    self._store.documents.settle(file, *((failed.error, failed.hint) if failed else ()))
        done.queued = self._store.documents.count_queued()
        if total:
            progress(total - done.queued, total)
        return done

    def _queued(self) -> Iterator[QueuedFile]:
        while batch := self._store.documents.queued(_BATCH):
            yield from batch

    def _attempt(self, file: QueuedFile, done: IndexedDirectory) -> FailedFile | None:
        """Index a file and count the outcome. Return the failure if the file is unreadable."""
        try:
            indexed = self._index(file)
        except (DocumentUnreadable, DocumentNotFound, DocumentOutsideRoots) as problem:
            reason = problem.reason if isinstance(problem, DocumentUnreadable) else str(problem)
            failed = FailedFile(file.path, reason, problem.hint)
            done.failed.append(failed)
            return failed
        if indexed.unchanged:
            done.unchanged += 1
        else:
            done.indexed += 1
            done.chunks += len(indexed.chunk_ids)
        return None

    def _index(self, file: QueuedFile) -> IndexedFile:
        known, content = format_of(file.path), read(file.path, file.root)
        digest = sha256(f"{VERSION} {REDACTION_VERSION}\n".encode() + content.data).digest()
        documents = self._store.documents
        if documents.digest(file.path, file.namespace) == digest:
            keys = documents.keys_of(file.path, file.namespace)
            return IndexedFile(file.path, file.namespace, _ids(keys), unchanged=True)
        parsed = (self._parser if known.isolated else known).read(content.data, file.path)
        # Secrets are redacted before texts are split.
        chunks = known.chunks([self._redacted(section) for section in parsed.sections])
        metadata = limited(parsed.metadata, self._clean)
        document = Document(file.path, file.namespace, known.language, digest, content.at, metadata)
        with self._store.transaction():
            keys = documents.replace(document, chunks)
            documents.settle(file)
        return IndexedFile(file.path, file.namespace, _ids(keys))

    def _redacted(self, section: Section) -> Section:
        return replace(section, text=self._clean(section.text), headings=tuple(map(self._clean, section.headings)))

    def _clean(self, text: str) -> str:
        return self._redactor.redact(without_ansi(text).replace("\0", "")).text

    def _delete_gone(self, folder: Path, namespace: str, *, recursive: bool) -> int:
        wanted = DocumentFilter(namespaces=(namespace,), under=folder)
        gone = [
            stored.source_file
            for stored in self._store.documents.files(wanted)
            if (recursive or stored.source_file.parent == folder) and is_gone(stored.source_file)
        ]
        if gone:
            with self._store.transaction():
                self._store.documents.delete(DocumentFilter(namespaces=(namespace,), source_files=tuple(gone)))
        return len(gone)


def _ids(keys: list[int]) -> tuple[str, ...]:
    return tuple(ids.show("chunk", key) for key in keys)
