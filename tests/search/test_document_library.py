"""Tests of the document library: indexing, searching, listing and deleting documents."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents.document_folders import DocumentRoots, usual_roots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.document import ChunkKind, DocumentFilter, StoredChunk
from palaver.core.errors import DocumentOutsideRoots, InvalidInput
from palaver.core.home import Home
from palaver.core.query import Mode, Query
from palaver.observe.archive import Archive
from palaver.search import document_library
from palaver.search.archive_search import ArchiveSearch
from palaver.search.document_library import DocumentLibrary
from palaver.search.index.generation import Generations
from palaver.search.present.hits import Hits
from palaver.search.rank.engine import Engine

from .fake_embedder import FakeEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Setup\n\n## Kiln\nHeat the kiln slowly.\n\n## Glaze\nStir the glaze well.\n")
    (folder / "kiln.py").write_text('def heat(kiln):\n    """Heat a kiln."""\n    return kiln\n')
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        yield store


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    return Generations(tmp_path / "index")


@pytest.fixture
def documents(store: Store, generations: Generations, folder: Path) -> DocumentLibrary:
    return opened(store, generations, folder)


def opened(store: Store, generations: Generations, folder: Path, *, missing: bool = False) -> DocumentLibrary:
    redactor, roots = Redactor(b"k" * 32), DocumentRoots([folder])
    return DocumentLibrary(store, generations, FakeEmbedder(missing=missing), redactor, roots)


def found(
    documents: DocumentLibrary, query: str, wanted: DocumentFilter | None = None, mode: Mode = Mode.BOTH
) -> list[StoredChunk]:
    return [one.stored for one in documents.search(query, wanted, mode=mode)]


def test_an_indexed_file_is_found_at_once(documents: DocumentLibrary, folder: Path) -> None:
    """Text search and vector search find an indexed file immediately."""
    done = documents.index_file(folder / "guide.md", "docs")

    for mode in Mode:
        best = found(documents, "stir glaze", mode=mode)[0]
        assert (best.id, best.chunk.header_path) == (done.chunk_ids[1], "Setup > Glaze")


def test_scores_and_similarities_are_two_numbers(documents: DocumentLibrary, folder: Path) -> None:
    """Results are ordered by score. The similarity is a cosine, or None in text mode."""
    documents.index_directory(folder, async_mode=False)

    [best, *_] = documents.search("heat the kiln slowly")
    [words, *_] = documents.search("heat the kiln slowly", mode=Mode.TEXT)

    assert best.similarity is not None
    assert 0 < best.score <= 1
    assert -1 <= best.similarity <= 1
    assert words.similarity is None


def test_filters_select_chunks(documents: DocumentLibrary, folder: Path) -> None:
    """Filters by namespace, kind, file, folder and language return only matching chunks."""
    documents.index_file(folder / "guide.md", "docs")
    documents.index_file(folder / "kiln.py", "code")

    for wanted, kinds in (
        (DocumentFilter(namespaces=("code",)), {ChunkKind.CODE}),
        (DocumentFilter(source_files=(folder / "kiln.py",)), {ChunkKind.CODE}),
        (DocumentFilter(under=folder), {ChunkKind.CODE, ChunkKind.DOCUMENT}),
        (DocumentFilter(under=folder / "other"), set[ChunkKind]()),
        (DocumentFilter(kinds=(ChunkKind.CODE,)), {ChunkKind.CODE}),
        (DocumentFilter(pattern="docs/*.MD"), {ChunkKind.DOCUMENT}),
        (DocumentFilter(languages=("Python",)), {ChunkKind.CODE}),
        (DocumentFilter(languages=("python",), kinds=(ChunkKind.DOCUMENT,)), set[ChunkKind]()),
        (DocumentFilter(units=("function", "class")), {ChunkKind.CODE}),
    ):
        assert {chunk_.chunk.kind for chunk_ in found(documents, "heat kiln", wanted)} == kinds


def test_unrelated_chunks_are_not_returned(documents: DocumentLibrary, folder: Path) -> None:
    """A query without matches returns an empty list. An empty query raises InvalidInput."""
    documents.index_directory(folder, async_mode=False)

    assert found(documents, "quarterly revenue", mode=Mode.TEXT) == []
    with pytest.raises(InvalidInput, match="Query cannot be empty"):
        documents.search("  ")
    with pytest.raises(InvalidInput):
        documents.search("kiln", limit=0)


def test_deleted_chunks_are_not_found(documents: DocumentLibrary, folder: Path) -> None:
    """Chunks can be deleted by ID, file, folder, namespace or all at once. Unknown IDs are not in the result."""
    guide = documents.index_file(folder / "guide.md", "docs").chunk_ids
    documents.index_file(folder / "kiln.py", "code")

    other = guide[0].replace("chunk_", "mem_")
    assert documents.delete([guide[0], other, "chunk_99", "nonsense"]) == (guide[0],)
    assert [held.chunk.kind for held in found(documents, "heat kiln")] == [ChunkKind.CODE]
    assert documents.delete_file(folder / "kiln.py", "docs") == 0
    assert documents.delete_file(folder / "kiln.py") == 1
    assert documents.index_file(folder / "guide.md", "docs").unchanged is False
    assert (documents.delete_directory(folder), documents.clear()) == (2, 0)
    assert documents.index_file(folder / "guide.md", "docs").unchanged is False
    assert (documents.delete_namespace("other"), documents.delete_namespace("docs")) == (0, 2)


def test_chunks_are_returned_by_id_and_by_page(documents: DocumentLibrary, folder: Path) -> None:
    """`get` returns chunks in the order of the IDs and skips unknown IDs."""
    one, two = documents.index_file(folder / "guide.md").chunk_ids

    assert [held.id for held in documents.get([two, "chunk_99", one, two])] == [two, one]
    assert [held.id for held in documents.page(limit=1, offset=1)] == [two]


def test_indexing_records_its_steps(documents: DocumentLibrary, store: Store, folder: Path) -> None:
    """After a folder is indexed, the status has the times of embedding and publishing."""
    documents.index_directory(folder, async_mode=False)

    assert {stage.name for stage in store.stages.all() if stage.succeeded} >= {"embed", "publish"}


def test_statistics_count_files_and_chunks(documents: DocumentLibrary, folder: Path) -> None:
    """Each file is counted once, and chunks are counted by namespace and kind."""
    documents.index_directory(folder, "a", async_mode=False)
    documents.index_file(folder / "kiln.py", "b")

    statistics = documents.stats()

    assert (statistics.chunks, statistics.source_files) == (4, (folder / "guide.md", folder / "kiln.py"))
    assert (statistics.namespaces, statistics.kinds) == ({"a": 3, "b": 1}, {"code": 2, "document": 2})


def test_waiting_means_embedded_and_published(
    documents: DocumentLibrary, store: Store, generations: Generations, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `async_mode`, files are searchable by words before they are embedded.

    Without it, they are embedded and published.
    """
    monkeypatch.setattr(document_library, "_PATIENCE", 300.0)
    assert documents.index_directory(folder, async_mode=True).unembedded == 3
    assert generations.current() is None
    assert found(documents, "stir glaze")
    assert documents.index_directory(folder, async_mode=False).unembedded == 0

    current = generations.current()
    assert current is not None
    assert current.manifest.watermark == store.changes.last()


def test_slow_indexing_is_queued(documents: DocumentLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`async_mode` returns after its time limit and leaves the remaining files in a queue."""
    monkeypatch.setattr(document_library, "_PATIENCE", -1.0)
    assert documents.index_directory(folder).queued == 2
    assert documents.stats().queued == 2

    assert (documents.index_queued().indexed, documents.stats().queued) == (2, 0)
    assert found(documents, "stir glaze")


def test_documents_are_found_by_words_without_a_model(store: Store, generations: Generations, folder: Path) -> None:
    """Indexing succeeds without a model and reports the number of unembedded chunks."""
    documents = opened(store, generations, folder, missing=True)

    assert documents.index_directory(folder, async_mode=False).unembedded == 3
    assert found(documents, "stir glaze")


def test_archive_search_returns_chunks(
    documents: DocumentLibrary, store: Store, generations: Generations, folder: Path
) -> None:
    """Layer 1 shows the file, lines and kind of a chunk. The project filter accepts its namespace."""
    documents.index_directory(folder, "project:pots", async_mode=False)

    [hit, *_] = (
        Hits(store, Engine.of(store, generations, FakeEmbedder()))
        .search(Query.parse("heat kiln", projects=["project:pots"], files=["kiln.py"]))
        .hits
    )

    assert (hit.kind, hit.type, hit.title, hit.project) == ("code", "function", "heat, kiln.py", "project:pots")
    assert (hit.path, hit.start_line, hit.end_line) == (str(folder / "kiln.py"), 1, 3)


def test_layer_2_returns_the_whole_chunk(folder: Path, tmp_path: Path) -> None:
    """Layer 2 accepts the ID from layer 1 and returns the text, headings and lines of the chunk."""
    home = Home(tmp_path / "home")
    with Archive(home).documents([folder]) as documents:
        [public, _] = documents.index_file(folder / "guide.md").chunk_ids
    with ArchiveSearch(home) as layers:
        [detail] = layers.details([public])

    assert (detail.id, detail.kind, detail.observation.narrative) == (
        public,
        "document",
        "## Kiln\nHeat the kiln slowly.",
    )
    assert (detail.observation.subtitle, detail.observation.origin) == ("Setup > Kiln", "document")
    assert (detail.path, detail.start_line, detail.end_line) == (str(folder / "guide.md"), 3, 4)


def test_a_chunk_is_not_an_observation(folder: Path, tmp_path: Path) -> None:
    """A chunk ID with another prefix is refused with a hint, and a timeline of a chunk is refused."""
    with Archive(Home(tmp_path / "home")).documents([folder]) as documents:
        [public, *_] = documents.index_file(folder / "guide.md").chunk_ids

    with ArchiveSearch(Home(tmp_path / "home")) as layers:
        with pytest.raises(InvalidInput, match="Unknown ID") as caught:
            layers.details([public.replace("chunk_", "obs-")])
        assert public in caught.value.hint
        with pytest.raises(InvalidInput, match=f"{public} is not part of a conversation"):
            layers.timeline(public)


def test_processes_see_the_documents_of_each_other(folder: Path, tmp_path: Path) -> None:
    """A process finds a document that another process indexed, and no longer finds it after its deletion."""
    home = Home(tmp_path / "home")
    program = (
        "import sys; from pathlib import Path; from palaver.core.home import Home; "
        "from palaver.observe.archive import Archive; "
        "Archive(Home(Path(sys.argv[1]))).documents([Path(sys.argv[2])]).index_file(Path(sys.argv[2]) / 'guide.md')"
    )
    with Archive(home).documents([folder]) as documents:
        assert documents.search("stir glaze", mode=Mode.TEXT) == []
        subprocess.run([sys.executable, "-c", program, str(home.root), str(folder)], check=True)
        assert documents.search("stir glaze", mode=Mode.TEXT)
        documents.clear()
        assert documents.search("stir glaze", mode=Mode.TEXT) == []


@pytest.mark.parametrize("namespace", ["", " ", "a\nb", "x" * 201, "project:a b", "project:"])
def test_invalid_namespaces_are_refused(documents: DocumentLibrary, folder: Path, namespace: str) -> None:
    """Empty, multi-line and long namespaces and invalid project names are refused."""
    with pytest.raises(InvalidInput, match="Invalid namespace"):
        documents.index_file(folder / "guide.md", namespace)


def test_agents_index_only_below_allowed_folders(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allowed folders are the working folder, the user's home and the configured folders, without Palaver's home."""
    monkeypatch.chdir(tmp_path)
    assert usual_roots(["~/more"]) == (tmp_path, home, home / "more")

    monkeypatch.chdir("/")
    assert usual_roots() == (home,)
    with Archive(Home(home / "palaver")).documents(usual_roots()) as documents:
        (home / "palaver" / "own.md").write_text("own")
        for path in (home / "palaver" / "own.md", Path("/etc/hosts.txt")):
            with pytest.raises(DocumentOutsideRoots):
                documents.index_file(path)


def test_indexing_a_file_does_not_embed_other_files(
    documents: DocumentLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexing a file returns without waiting for the embedding of files that were queued earlier."""
    monkeypatch.setattr(document_library, "_PATIENCE", 300.0)
    assert documents.index_directory(folder).unembedded == 3
    (folder / "new.md").write_text("# New\n\nA new kiln.\n")

    indexed = documents.index_file(folder / "new.md")

    assert len(indexed.chunk_ids) == 1
    assert documents.stats().unembedded == 3


SECRET = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_secrets_in_file_names_are_never_shown(
    documents: DocumentLibrary, folder: Path, store: Store, generations: Generations
) -> None:
    """A secret in a file name is shown as a placeholder. The real name and the placeholder both select the file."""
    path = folder / f"{SECRET}.md"
    path.write_text("# Quokka\nThe quokka sleeps.\n")
    indexed = documents.index_file(path)
    [hit] = documents.search("quokka")
    shown = hit.stored.source_file
    store_hits = Hits(store, Engine.of(store, generations, FakeEmbedder())).search(Query.parse("quokka")).hits
    named = [indexed.source_file, *documents.stats().source_files, *(each.path for each in store_hits)]

    assert store_hits
    assert SECRET not in str([shown, named, [each.title for each in store_hits]])
    assert shown.suffix == ".md"
    assert documents.index_directory(folder, async_mode=False).gone == 0
    for name in (path, shown):
        assert [each.stored.id for each in documents.search("quokka", DocumentFilter(source_files=(name,)))]
        assert documents.delete_file(name) == 1
        documents.index_file(path)
