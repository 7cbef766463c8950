"""The JSON of documents that callers may rely on. Keys are only ever added."""

from collections.abc import Mapping
from typing import TypedDict

from ..core.clock import show_minute
from ..core.document import DocumentStats, FailedFile, IndexedDirectory
from .quote import clean


class FailedFileJson(TypedDict):
    """A file that could not be read, and why."""

    file: str
    error: str
    hint: str


class IndexedJson(TypedDict):
    """What became of files that were to be indexed."""

    namespace: str
    files_indexed: int
    total_chunks: int
    unchanged: int
    queued: int
    gone: int
    unembedded: int
    failed_files: list[FailedFileJson]


class HeldFileJson(TypedDict):
    """A file that is held. `date` is when it was last changed, YYYY-MM-DD HH:MM in UTC."""

    file: str
    namespace: str
    language: str
    chunks: int
    date: str


class DocumentsJson(TypedDict):
    """All that is held; `namespaces` and `kinds` count chunks."""

    files: list[HeldFileJson]
    total_chunks: int
    namespaces: Mapping[str, int]
    kinds: Mapping[str, int]
    queued: int
    failed_files: list[FailedFileJson]


def indexed_json(indexed: IndexedDirectory, namespace: str) -> IndexedJson:
    """What became of files, as JSON."""
    return IndexedJson(
        namespace=namespace,
        files_indexed=indexed.indexed,
        total_chunks=indexed.chunks,
        unchanged=indexed.unchanged,
        queued=indexed.queued,
        gone=indexed.gone,
        unembedded=indexed.unembedded,
        failed_files=[_failed(file) for file in indexed.failed],
    )


def documents_json(stats: DocumentStats) -> DocumentsJson:
    """What is held, as JSON."""
    return DocumentsJson(
        files=[
            HeldFileJson(
                file=clean(str(held.source_file)),
                namespace=held.namespace,
                language=held.language,
                chunks=held.chunks,
                date=show_minute(held.at),
            )
            for held in stats.files
        ],
        total_chunks=stats.chunks,
        namespaces=stats.namespaces,
        kinds=stats.kinds,
        queued=stats.queued,
        failed_files=[_failed(file) for file in stats.failed],
    )


def _failed(file: FailedFile) -> FailedFileJson:
    return FailedFileJson(file=clean(str(file.file)), error=clean(file.error), hint=clean(file.hint))
