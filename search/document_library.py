"""The library: documents taken up, found, told of and deleted, over one home. What every surface calls."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Final, Self

from msgspec.structs import replace

from ..archiver.documents.document_ingest import DocumentIngest
from ..archiver.documents.document_roots import DocumentRoots
from ..archiver.redaction import Redactor
from ..archiver.store import Store
from ..core import ids
from ..core.closing import Closing
from ..core.document import (
    DEFAULT_NAMESPACE,
    DocumentFilter,
    DocumentStats,
    HeldChunk,
    IndexedDirectory,
    IndexedFile,
    checked_namespace,
)
from ..core.errors import InvalidInput, ModelUnavailable
from ..core.home import Home
from ..core.progress import Progress, Reporter, never, silent
from ..core.query import Mode
from .index.generation import Generations
from .index.indexer import Indexer
from .model.embedder import DEFAULT_MODEL, load
from .model.embedding import Embedder
from .rank.document_finder import DocumentFinder, FoundChunk

_PATIENCE: Final = 5.0
"""Seconds that `async_mode` reads before it queues the rest: most folders are read whole by then."""


class DocumentLibrary(Closing):
    """Not for several threads at once; several processes may have one each. What one stores every other finds at once.

    Raises `InvalidInput` for what the caller can correct, among them `DocumentNotFound`, `UnsupportedDocument` and
    `DocumentOutsideRoots`, and `DocumentUnreadable` for a file that cannot be read.
    """

    def __init__(
        self, store: Store, generations: Generations, embedder: Embedder, redactor: Redactor, roots: DocumentRoots
    ) -> None:
        self._store, self._roots = store, roots
        self._intake = DocumentIngest(store, redactor)
        self._finder = DocumentFinder(store, generations, embedder)
        self._indexer, self._model = Indexer(store, generations, embedder), embedder.name
        self._close = ExitStack()

    @classmethod
    def open(cls, home: Home, roots: Sequence[Path], model: str | None = None) -> Self:
        """The documents of this home, which is made if there is none; close it, or use it in `with`.

        Files are taken up from below `roots` alone (`usual_roots` where the caller is no person), and never from
        Palaver's own home.
        """
        home.prepare()
        allowed = DocumentRoots(roots, without=(home.root,))
        store = Store.create(home.database)
        embedder = load(model or DEFAULT_MODEL)
        documents = cls(store, Generations(home.index), embedder, Redactor(home.key()), allowed)
        documents._close.callback(store.close)
        return documents

    def index_file(self, path: str | Path, namespace: str = DEFAULT_NAMESPACE) -> IndexedFile:
        """Index one file and embed its chunks, which replace the previous ones.

        An unchanged file keeps its chunks. A chunk with the same text keeps its id. Chunks of other files that wait for
        the embedder are not embedded here.
        """
        done = self._intake.index_file(Path(path), checked_namespace(namespace), self._roots)
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
        """Index all files of a folder that have a known suffix. A file that cannot be read is reported, and skipped.

        Links and hidden files are skipped. With `async_mode` this reads for some seconds, queues the other files, and
        leaves embedding to the background: the server that called it, the background archiver, or the next `palaver
        archive`. Both queues are in the database. Without it everything is read, embedded and published on return.
        """
        end = time.monotonic() + _PATIENCE
        should_stop: Callable[[], bool] = (lambda: time.monotonic() > end) if async_mode else never
        done = self._intake.index_directory(
            Path(path),
            checked_namespace(namespace),
            self._roots,
            recursive=recursive,
            progress=_of_stage(report, "Reading"),
            should_stop=should_stop,
        )
        if not async_mode:
            self._finish(report)
        done.unembedded = self._store.documents.count_unembedded(self._model)
        return done

    def work_off(self, report: Reporter = silent) -> IndexedDirectory:
        """Read what was queued, whoever queued it, embed it and publish."""
        done = self._intake.index_queued(_of_stage(report, "Reading"))
        self._finish(report)
        done.unembedded = self._store.documents.count_unembedded(self._model)
        return done

    def search(
        self, query: str, wanted: DocumentFilter | None = None, *, limit: int = 5, mode: Mode = Mode.BOTH
    ) -> list[FoundChunk]:
        """The chunks that answer a query, best first; none where nothing has to do with it. Raises `InvalidInput`."""
        if not query.strip():
            raise InvalidInput("Query cannot be empty", hint="Say what to find.")
        if limit < 1:
            raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")
        wanted, shown = wanted or DocumentFilter(), self._store.documents.shown
        wanted = replace(wanted, source_files=tuple(map(shown, wanted.source_files)))
        return list(islice(self._finder.find(query, wanted, mode), limit))

    def get(self, wanted: Sequence[str]) -> list[HeldChunk]:
        """The chunks with these ids, in their order; unknown ones are left out."""
        keys = [key for public in wanted if (key := ids.key(public, "chunk")) is not None]
        known = self._store.documents.load(keys)
        return [known[key] for key in dict.fromkeys(keys) if key in known]

    def page(self, wanted: DocumentFilter | None = None, *, limit: int = 50, offset: int = 0) -> list[HeldChunk]:
        """Chunks by file and place, whatever they say."""
        return self._store.documents.select(wanted or DocumentFilter(), limit, offset)

    def delete(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Delete these chunks; the ids of those that were there. Indexing their file again brings them back."""
        keys = [key for public in wanted if (key := ids.key(public, "chunk")) is not None]
        with self._store.transaction():
            gone = self._store.documents.delete_chunks(keys)
        return tuple(public for public in dict.fromkeys(wanted) if ids.key(public, "chunk") in gone)

    def delete_file(self, path: str | Path, namespace: str | None = None) -> int:
        """Delete all chunks of a file, be it still there or not, in one namespace or in all; how many there were."""
        plain, documents = _plain(path), self._store.documents
        held = {each.source_file for each in documents.files()}
        meant = [file for file in held if plain in {file, documents.shown(file)}]
        return self._delete(DocumentFilter(namespaces=_one(namespace), source_files=(plain, *meant)))

    def delete_directory(self, path: str | Path, namespace: str | None = None) -> int:
        """Delete all chunks of all files below a folder; how many there were."""
        return self._delete(DocumentFilter(namespaces=_one(namespace), under=_plain(path)))

    def delete_namespace(self, namespace: str) -> int:
        """Delete all chunks of a namespace; how many there were."""
        return self._delete(DocumentFilter(namespaces=(namespace,)))

    def clear(self) -> int:
        """Delete all documents, and nothing else: memories and conversations stay. How many chunks there were."""
        return self._delete(DocumentFilter())

    def stats(self) -> DocumentStats:
        """What is held, and what waits."""
        documents = self._store.documents
        return DocumentStats(
            files=tuple(replace(each, source_file=documents.shown(each.source_file)) for each in documents.files()),
            namespaces=documents.count_by("namespace"),
            kinds=documents.count_by("kind"),
            queued=documents.count_queued(),
            unembedded=documents.count_unembedded(self._model),
            failed=tuple(documents.failed()),
        )

    def _delete(self, wanted: DocumentFilter) -> int:
        with self._store.transaction():
            return self._store.documents.delete(wanted)

    def _embed(self, progress: Progress, keys: Sequence[int]) -> None:
        """Embed these chunks. If the model is missing, they are found by words only until it is installed."""
        with suppress(ModelUnavailable):
            self._indexer.embed(progress, among=keys)

    def _finish(self, report: Reporter) -> None:
        self._embed(_of_stage(report, "Embedding"), self._store.documents.unembedded(self._model))
        self._indexer.publish()

    def close(self) -> None:
        """Let go of the file, where `open` opened it."""
        self._close.close()


def usual_roots(named: Sequence[str] = ()) -> tuple[Path, ...]:
    """Where an agent may take documents up from: the folder it works in, its user's home, and those that the setting
    `document_roots` names. The whole disk is nobody's folder.
    """
    folders = (Path.cwd(), Path.home(), *(Path(folder).expanduser() for folder in named))
    return tuple(folder for folder in folders if folder.is_absolute() and folder != Path(folder.anchor))


def _of_stage(report: Reporter, stage: str) -> Progress:
    return lambda done, total: report(stage, done, total)


def _plain(path: str | Path) -> Path:
    """Return a path as it is stored: absolute and without links. Raises `InvalidInput` if no file can have it."""
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # no such user, or a null character
        raise InvalidInput(f"Invalid path: {error}", hint="Give the path of an indexed file or folder.") from None


def _one(namespace: str | None) -> tuple[str, ...]:
    return () if namespace is None else (namespace,)
