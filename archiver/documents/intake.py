"""Intake: files become chunks in the store. What is the same as before costs one reading of its bytes."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from ...core import ids
from ...core.document import Chunk, DocumentFilter, FailedFile, IndexedDirectory, IndexedFile
from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.progress import Progress, never, silent
from ...core.text import without_ansi
from ..redaction import VERSION as RULES
from ..redaction import Redactor
from ..store import Document, Queued, Store
from .formats import SUFFIXES, VERSION, DocumentFormat, format_of
from .roots import Read, Roots, Walk, read

_PART: Final = 50
"""Files that are queued, or read from the queue, at once."""


class Intake:
    """Takes files up. Each is stored whole or not at all, so it can be interrupted at any time."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor = store, redactor

    def index_file(self, path: Path, namespace: str, roots: Roots) -> IndexedFile:
        """Take one file up; raises what says why it cannot be: `InvalidInput` or `DocumentUnreadable`."""
        plain, root = roots.find(path)
        if plain.is_dir():
            raise DocumentUnreadable(plain, "it is a folder", hint="Index it as a directory.")
        format_of(path)
        return self._take_up(Queued(plain, namespace, root))

    def index_directory(
        self,
        folder: Path,
        namespace: str,
        roots: Roots,
        *,
        recursive: bool = True,
        progress: Progress = silent,
        enough: Callable[[], bool] = never,
    ) -> IndexedDirectory:
        """Take up every file of a folder that has a known suffix. When it is `enough`, the rest is queued.

        A file that cannot be read is reported, and skipped. Files that are gone from the folder are deleted here too.
        Raises `DocumentUnreadable` for the folder itself.
        """
        plain, root = roots.find(folder)
        if not plain.is_dir():
            raise DocumentUnreadable(plain, "it is no folder", hint="Index it as a file.")
        done, walk = IndexedDirectory(), Walk(plain)
        found = [
            Queued(path, namespace, root)
            for path in walk.files(recursive=recursive, without=roots.without)
            if path.suffix.lower() in SUFFIXES
        ]
        if unreadable := next((problem for problem in walk.problems if problem.path == plain), None):
            raise unreadable
        done.failed += [FailedFile(problem.path, problem.reason, problem.hint) for problem in walk.problems]
        for place, file in enumerate(found):
            if enough():
                self._queue(found[place:])
                done.queued = len(found) - place
                break
            progress(place, len(found))
            self._attempt(file, done)
        else:
            progress(len(found), len(found))
        done.gone = self._forget_gone(plain, namespace, recursive=recursive)
        return done

    def work_off(self, progress: Progress = silent, enough: Callable[[], bool] = never) -> IndexedDirectory:
        """Take up what waits, whoever queued it, until it is `enough`. What cannot be read is kept with its reason."""
        done, total = IndexedDirectory(), self._store.documents.count_queued()
        if not total:
            return done
        for place, file in enumerate(self._waiting()):
            if enough():
                break
            progress(place, total)
            failed = len(done.failed)
            self._attempt(file, done)
            problem = done.failed[-1] if len(done.failed) > failed else FailedFile(file.path, "")
            with self._store.transaction():
                self._store.documents.settle(file, problem.error, problem.hint)
        done.queued = self._store.documents.count_queued()
        progress(total - done.queued, total)
        return done

    def _waiting(self) -> Iterator[Queued]:
        while part := self._store.documents.queued(_PART):
            yield from part

    def _queue(self, files: list[Queued]) -> None:
        with self._store.transaction():
            self._store.documents.queue(files)

    def _attempt(self, file: Queued, done: IndexedDirectory) -> None:
        """Take a file up, or note why not."""
        try:
            indexed = self._take_up(file)
        except DocumentUnreadable as problem:
            done.failed.append(FailedFile(file.path, problem.reason, problem.hint))
        except (DocumentNotFound, DocumentOutsideRoots) as problem:
            done.failed.append(FailedFile(file.path, str(problem), problem.hint))
        else:
            if indexed.unchanged:
                done.unchanged += 1
            else:
                done.indexed += 1
                done.chunks += len(indexed.chunk_ids)

    def _take_up(self, file: Queued) -> IndexedFile:
        known, was = format_of(file.path), read(file.path, file.root)
        digest = _digest(was.data)
        documents = self._store.documents
        if documents.digest(file.path, file.namespace) == digest:
            keys = documents.keys_of(file.path, file.namespace)
            return IndexedFile(file.path, file.namespace, _ids(keys), unchanged=True)
        chunks = self._chunks(known, was, file.path)
        document = Document(file.path, file.namespace, known.language, digest, was.at)
        with self._store.transaction():
            keys = documents.replace(document, chunks)
            documents.settle(file)
        return IndexedFile(file.path, file.namespace, _ids(keys))

    def _chunks(self, known: DocumentFormat, was: Read, path: Path) -> list[Chunk]:
        """The file's chunks without secrets, which are taken out before anything is cut."""
        texts = known.texts(was.data, path)
        return known.chunks([self._redactor.redact(without_ansi(text).replace("\0", "")).text for text in texts])

    def _forget_gone(self, folder: Path, namespace: str, *, recursive: bool) -> int:
        wanted = DocumentFilter(namespaces=(namespace,), under=folder)
        gone = [
            held.source_file
            for held in self._store.documents.files(wanted)
            if (recursive or held.source_file.parent == folder) and _is_gone(held.source_file)
        ]
        if gone:
            with self._store.transaction():
                self._store.documents.delete(DocumentFilter(namespaces=(namespace,), source_files=tuple(gone)))
        return len(gone)


def _digest(data: bytes) -> bytes:
    return sha256(f"{VERSION} {RULES}\n".encode() + data).digest()


def _ids(keys: list[int]) -> tuple[str, ...]:
    return tuple(ids.show("chunk", key) for key in keys)


def _is_gone(path: Path) -> bool:
    """Whether a file is surely not there any more; where it cannot be told, it is."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
