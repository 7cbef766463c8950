"""Documents in the store: chunks are items, and every change of one is logged."""

from pathlib import Path

import pytest

from palaver.archiver.store import Document, Embedded, Entity, Queued, Store
from palaver.core.document import Chunk, ChunkKind, DocumentFilter

A, B = Path("/docs/a.md"), Path("/docs-other/b.py")


def put(store: Store, path: Path, *texts: str, namespace: str = "docs") -> list[int]:
    """Store a document with a chunk for each text."""
    kind = ChunkKind.CODE if path.suffix == ".py" else ChunkKind.DOCUMENT
    language = "python" if path.suffix == ".py" else "markdown"
    chunks = [Chunk(text, kind, line, line) for line, text in enumerate(texts, 1)]
    with store.transaction():
        return store.documents.replace(Document(path, namespace, language, b"1", 7), chunks)


def texts(store: Store, wanted: DocumentFilter) -> list[str]:
    return [held.chunk.text for held in store.documents.select(wanted)]


def test_a_chunk_is_loaded_as_it_was_stored(store: Store) -> None:
    """Every field is equal."""
    chunk = Chunk("text", ChunkKind.CODE, 2, 3, 4, "A > B", "method", "A.b", "def b(self)")
    with store.transaction():
        [key] = store.documents.replace(Document(A, "docs", "python", b"", 7), [chunk])

    held = store.documents.load([key, 99])[key]

    assert (held.chunk, held.source_file, held.namespace, held.language, held.index, held.at) == (
        chunk,
        A,
        "docs",
        "python",
        0,
        7,
    )
    assert held.id == f"chunk_{key}"
    assert store.items.load([key])[key].kind == "code"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (DocumentFilter(), ["code", "one", "two", "one"]),
        (DocumentFilter(namespaces=("docs",)), ["code", "one", "two"]),
        (DocumentFilter(kinds=(ChunkKind.CODE,)), ["code"]),
        (DocumentFilter(source_files=(A,)), ["one", "two", "one"]),
        (DocumentFilter(under=Path("/docs")), ["one", "two", "one"]),
        (DocumentFilter(under=Path("/")), ["code", "one", "two", "one"]),
        (DocumentFilter(languages=("python",)), ["code"]),
        (DocumentFilter(namespaces=("docs",), under=Path("/docs")), ["one", "two"]),
        (DocumentFilter(namespaces=("%",)), []),
    ],
)
def test_filters_combine(store: Store, wanted: DocumentFilter, found: list[str]) -> None:
    """A folder matches files below it, not paths with an equal prefix; store and filter agree."""
    put(store, A, "one", "two")
    put(store, A, "one", namespace="other")
    put(store, B, "code")

    assert texts(store, wanted) == found
    assert [held.chunk.text for held in store.documents.select(DocumentFilter()) if wanted.admits(held)] == found


def test_deleting_is_logged_and_leaves_the_others(store: Store) -> None:
    """By file, folder or namespace; deleted files leave the queue, too."""
    one, other = put(store, A, "one", "two"), put(store, B, "code")
    before = store.changes.last()
    with store.transaction():
        store.documents.queue([Queued(A, "docs", A.parent), Queued(B, "docs", B.parent)])
        gone = store.documents.delete(DocumentFilter(under=A.parent))

    assert gone == 2
    assert store.changes.since(before, [Entity.ITEM]) == one
    assert list(store.documents.load([*one, *other])) == other
    assert [file.path for file in store.documents.queued(9)] == [B]
    assert store.documents.digest(A, "docs") == b""


def test_a_document_that_lost_a_chunk_is_read_again(store: Store) -> None:
    """Its digest is cleared; a document without chunks is deleted."""
    one, two = put(store, A, "one", "two")
    with store.transaction():
        assert store.documents.delete_chunks([one, 99]) == [one]
    assert store.documents.digest(A, "docs") == b""
    assert texts(store, DocumentFilter()) == ["two"]

    with store.transaction():
        store.documents.delete_chunks([two])
    assert store.documents.files() == []


def test_a_moved_chunk_keeps_its_vectors(store: Store) -> None:
    """Its content is equal, so it is not embedded again; its new position is logged."""
    [one] = put(store, A, "one")
    with store.transaction():
        store.vectors.replace("model", {one: {0: Embedded(b"vector")}})
    before = store.changes.last()

    [new, same] = put(store, A, "new", "one")

    assert same == one
    assert store.vectors.unembedded("model", 9) == [new]
    assert store.documents.count_unembedded("model") == 1
    assert store.changes.since(before) == [one, new]


def test_a_file_is_queued_once(store: Store) -> None:
    """Queuing a file again has no effect, except that a failed file is tried again."""
    file = Queued(A, "docs", A.parent)
    with store.transaction():
        store.documents.queue([file, file])
        store.documents.settle(file, "broken", "mend it")
    assert (store.documents.queued(9), [failed.error for failed in store.documents.failed()]) == ([], ["broken"])

    with store.transaction():
        store.documents.queue([file])
    assert (store.documents.queued(9), store.documents.failed()) == ([file], [])
