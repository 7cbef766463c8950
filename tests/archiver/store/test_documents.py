"""Document chunks are items, and every change of a chunk is logged."""

from pathlib import Path

import pytest

from palaver.archiver.store import Document, Embedding, Entity, QueuedFile, Store
from palaver.core.document import Chunk, ChunkKind, DocumentFilter

A, B = Path("/docs/a.md"), Path("/docs-other/b.py")


def put(store: Store, path: Path, *texts: str, namespace: str = "docs") -> list[int]:
    """Store a document with a chunk for each text."""
    kind = ChunkKind.CODE if path.suffix == ".py" else ChunkKind.DOCUMENT
    language = "python" if path.suffix == ".py" else "markdown"
    unit = "function" if kind is ChunkKind.CODE else ""
    chunks = [Chunk(text, kind, line, line, unit=unit) for line, text in enumerate(texts, 1)]
    with store.transaction():
        return store.documents.replace(Document(path, namespace, language, b"1", 7), chunks)


def texts(store: Store, wanted: DocumentFilter) -> list[str]:
    return [held.chunk.text for held in store.documents.select(wanted)]


def test_a_chunk_is_loaded_as_it_was_stored(store: Store) -> None:
    """Every field of a chunk is loaded as it was stored."""
    chunk = Chunk("text", ChunkKind.CODE, 2, 3, 4, "A > B", "method", "A.b", "def b(self)", "Do b.", 1, 9)
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
        (DocumentFilter(source_files=(A,)), ["one", "two", "one"]),
        (DocumentFilter(under=Path("/docs")), ["one", "two", "one"]),
        (DocumentFilter(under=Path("/")), ["code", "one", "two", "one"]),
        (DocumentFilter(namespaces=("docs",), under=Path("/docs")), ["one", "two"]),
        (DocumentFilter(namespaces=("%",)), []),
        (DocumentFilter(pattern="*.py"), ["code"]),
        (DocumentFilter(pattern="Docs/*"), ["one", "two", "one"]),
        (DocumentFilter(pattern="docs/*", namespaces=("other",)), ["one"]),
        (DocumentFilter(pattern="nowhere/**"), []),
        (DocumentFilter(languages=("Python", "go")), ["code"]),
        (DocumentFilter(kinds=(ChunkKind.DOCUMENT,)), ["one", "two", "one"]),
        (DocumentFilter(units=("function",)), ["code"]),
        (DocumentFilter(units=("class",)), []),
    ],
)
def test_filters_combine(store: Store, wanted: DocumentFilter, found: list[str]) -> None:
    """A folder filter matches only files below the folder, and the store agrees with the filter's `admits`."""
    put(store, A, "one", "two")
    put(store, A, "one", namespace="other")
    put(store, B, "code")

    assert texts(store, wanted) == found
    assert [held.chunk.text for held in store.documents.select(DocumentFilter()) if wanted.admits(held)] == found


def test_deleting_documents_is_logged_and_keeps_other_documents(store: Store) -> None:
    """Documents are deleted by file, folder or namespace, and deleted files also leave the queue."""
    one, other = put(store, A, "one", "two"), put(store, B, "code")
    before = store.changes.last()
    with store.transaction():
        store.documents.queue([QueuedFile(A, "docs", A.parent), QueuedFile(B, "docs", B.parent)])
        gone = store.documents.delete(DocumentFilter(under=A.parent))

    assert gone == 2
    assert store.changes.since(before, [Entity.ITEM]) == one
    assert list(store.documents.load([*one, *other])) == other
    assert [file.path for file in store.documents.queued(9)] == [B]
    assert store.documents.digest(A, "docs") == b""


def test_a_document_that_lost_a_chunk_is_read_again(store: Store) -> None:
    """If a chunk is deleted, the digest of its document is cleared. A document without chunks is deleted."""
    one, two = put(store, A, "one", "two")
    with store.transaction():
        assert store.documents.delete_chunks([one, 99]) == [one]
    assert store.documents.digest(A, "docs") == b""
    assert texts(store, DocumentFilter()) == ["two"]

    with store.transaction():
        store.documents.delete_chunks([two])
    assert store.documents.files() == []


def test_a_moved_chunk_keeps_its_vectors(store: Store) -> None:
    """A moved chunk with equal content is not embedded again, and its new position is logged."""
    [one] = put(store, A, "one")
    with store.transaction():
        store.vectors.replace("model", {one: {0: Embedding(b"vector")}})
    before = store.changes.last()

    [new, same] = put(store, A, "new", "one")

    assert same == one
    assert store.vectors.unembedded("model", 9) == [new]
    assert store.documents.count_unembedded("model") == 1
    assert store.changes.since(before) == [one, new]


def test_a_move_replaces_the_document_of_its_target(store: Store) -> None:
    """A file that is moved onto an indexed file keeps its chunks, and those of the target are deleted."""
    target = A.with_name("z.md")
    before, gone = put(store, A, "moved"), put(store, target, "replaced")

    with store.transaction():
        moved = store.documents.move(A, "docs", target, 8)

    assert (moved, texts(store, DocumentFilter())) == (before, ["moved"])
    assert store.items.load(gone) == {}


def test_a_file_is_queued_once(store: Store) -> None:
    """Queuing a file again has no effect, except that a failed file is retried."""
    file = QueuedFile(A, "docs", A.parent)
    with store.transaction():
        store.documents.queue([file, file])
        store.documents.settle(file, "broken", "mend it")
    assert (store.documents.queued(9), [failed.error for failed in store.documents.failed()]) == ([], ["broken"])

    with store.transaction():
        store.documents.queue([file])
    assert (store.documents.queued(9), store.documents.failed()) == ([file], [])
