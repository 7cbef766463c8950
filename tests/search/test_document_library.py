"""The library: documents taken up, found, told of and deleted."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents.document_roots import DocumentRoots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.document import ChunkKind, DocumentFilter, HeldChunk
from palaver.core.errors import DocumentOutsideRoots, InvalidInput
from palaver.core.home import Home
from palaver.core.query import Mode, Query
from palaver.search import document_library
from palaver.search.archive_search import ArchiveSearch
from palaver.search.document_library import DocumentLibrary, usual_roots
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
) -> list[HeldChunk]:
    return [one.held for one in documents.search(query, wanted, mode=mode)]


def test_what_was_indexed_is_found_at_once(documents: DocumentLibrary, folder: Path) -> None:
    """By words and by meaning, without waiting for anybody."""
    done = documents.index_file(folder / "guide.md", "docs")

    for mode in Mode:
        best = found(documents, "stir glaze", mode=mode)[0]
        assert (best.id, best.chunk.header_path) == (done.chunk_ids[1], "Setup > Glaze")


def test_scores_and_similarities_are_two_numbers(documents: DocumentLibrary, folder: Path) -> None:
    """One orders the list, the other is a true cosine, and there is none where only words were asked."""
    documents.index_directory(folder, async_mode=False)

    [best, *_] = documents.search("heat the kiln slowly")
    [words, *_] = documents.search("heat the kiln slowly", mode=Mode.TEXT)

    assert best.similarity is not None
    assert 0 < best.score <= 1
    assert -1 <= best.similarity <= 1
    assert words.similarity is None


def test_filters_hold(documents: DocumentLibrary, folder: Path) -> None:
    """By namespace, kind, file, folder and language."""
    documents.index_file(folder / "guide.md", "docs")
    documents.index_file(folder / "kiln.py", "code")

    for wanted, kinds in (
        (DocumentFilter(namespaces=("code",)), {ChunkKind.CODE}),
        (DocumentFilter(kinds=(ChunkKind.DOCUMENT,)), {ChunkKind.DOCUMENT}),
        (DocumentFilter(source_files=(folder / "kiln.py",)), {ChunkKind.CODE}),
        (DocumentFilter(languages=("python",)), {ChunkKind.CODE}),
        (DocumentFilter(under=folder), {ChunkKind.CODE, ChunkKind.DOCUMENT}),
        (DocumentFilter(under=folder / "other"), set[ChunkKind]()),
    ):
        assert {held.chunk.kind for held in found(documents, "heat kiln", wanted)} == kinds


def test_what_has_nothing_to_do_with_a_query_is_left_out(documents: DocumentLibrary, folder: Path) -> None:
    """An empty answer is an answer; an empty query is a mistake."""
    documents.index_directory(folder, async_mode=False)

    assert found(documents, "quarterly revenue", mode=Mode.TEXT) == []
    with pytest.raises(InvalidInput, match="Query cannot be empty"):
        documents.search("  ")
    with pytest.raises(InvalidInput):
        documents.search("kiln", limit=0)


def test_deleted_chunks_are_found_no_more(documents: DocumentLibrary, folder: Path) -> None:
    """By id, file, folder, namespace or all; what is named and not there is told apart."""
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


def test_chunks_are_had_by_id_and_by_page(documents: DocumentLibrary, folder: Path) -> None:
    """In the order asked; unknown ones are left out."""
    one, two = documents.index_file(folder / "guide.md").chunk_ids

    assert [held.id for held in documents.get([two, "chunk_99", one, two])] == [two, one]
    assert [held.id for held in documents.page(limit=1, offset=1)] == [two]


def test_statistics_count_what_is_held(documents: DocumentLibrary, folder: Path) -> None:
    """Files once, chunks by namespace and kind."""
    documents.index_directory(folder, "a", async_mode=False)
    documents.index_file(folder / "kiln.py", "b")

    told = documents.stats()

    assert (told.chunks, told.source_files) == (4, (folder / "guide.md", folder / "kiln.py"))
    assert (told.namespaces, told.kinds) == ({"a": 3, "b": 1}, {"code": 2, "document": 2})


def test_waiting_means_embedded_and_published(
    documents: DocumentLibrary, store: Store, generations: Generations, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `async_mode` nothing is left to do; with it, embedding is, and words find it meanwhile."""
    monkeypatch.setattr(document_library, "_PATIENCE", 300.0)
    assert documents.index_directory(folder, async_mode=True).unembedded == 3
    assert generations.current() is None
    assert found(documents, "stir glaze")
    assert documents.index_directory(folder, async_mode=False).unembedded == 0

    current = generations.current()
    assert current is not None
    assert current.manifest.watermark == store.changes.last()


def test_what_takes_long_is_queued(documents: DocumentLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`async_mode` comes back after some seconds; the rest lies in the database until somebody works it off."""
    monkeypatch.setattr(document_library, "_PATIENCE", -1.0)
    assert documents.index_directory(folder).queued == 2
    assert documents.stats().queued == 2

    assert (documents.work_off().indexed, documents.stats().queued) == (2, 0)
    assert found(documents, "stir glaze")


def test_without_a_model_words_find_it(store: Store, generations: Generations, folder: Path) -> None:
    """And nothing fails; what waits for the model is told."""
    documents = opened(store, generations, folder, missing=True)

    assert documents.index_directory(folder, async_mode=False).unembedded == 3
    assert found(documents, "stir glaze")


def test_chunks_stand_among_all_hits(
    documents: DocumentLibrary, store: Store, generations: Generations, folder: Path
) -> None:
    """Layer 1 names file, lines and kind; the filter for projects keeps to a namespace."""
    documents.index_directory(folder, "project:pots", async_mode=False)

    [hit, *_] = (
        Hits(store, Engine(store, generations, FakeEmbedder()))
        .search(Query.parse("heat kiln", projects=["project:pots"], files=["kiln.py"]))
        .hits
    )

    assert (hit.kind, hit.type, hit.title, hit.project) == ("code", "function", "heat, kiln.py", "project:pots")
    assert (hit.path, hit.start_line, hit.end_line) == (str(folder / "kiln.py"), 1, 3)


def test_layer_2_tells_the_whole_chunk(folder: Path, tmp_path: Path) -> None:
    """With its place, under the id that layer 1 gave."""
    home = Home(tmp_path / "home")
    with DocumentLibrary.open(home, [folder]) as documents:
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


def test_a_chunk_is_no_observation(folder: Path, tmp_path: Path) -> None:
    """Its key under another prefix, and its neighbours in a conversation, are refused with what to give instead."""
    with DocumentLibrary.open(Home(tmp_path / "home"), [folder]) as documents:
        [public, *_] = documents.index_file(folder / "guide.md").chunk_ids

    with ArchiveSearch(Home(tmp_path / "home")) as layers:
        with pytest.raises(InvalidInput, match="Unknown ID") as caught:
            layers.details([public.replace("chunk_", "obs-")])
        assert public in caught.value.hint
        with pytest.raises(InvalidInput, match=f"{public} is not part of a conversation"):
            layers.timeline(public)


def test_what_one_process_indexed_another_finds(folder: Path, tmp_path: Path) -> None:
    """At once, and it is gone there at once when it is deleted here."""
    home = Home(tmp_path / "home")
    program = (
        "import sys; from pathlib import Path; from palaver.core.home import Home; "
        "from palaver.search.document_library import DocumentLibrary; "
        "DocumentLibrary.open(Home(Path(sys.argv[1])), [Path(sys.argv[2])]).index_file(Path(sys.argv[2]) / 'guide.md')"
    )
    with DocumentLibrary.open(home, [folder]) as documents:
        assert documents.search("stir glaze", mode=Mode.TEXT) == []
        subprocess.run([sys.executable, "-c", program, str(home.root), str(folder)], check=True)
        assert documents.search("stir glaze", mode=Mode.TEXT)
        documents.clear()
        assert documents.search("stir glaze", mode=Mode.TEXT) == []


@pytest.mark.parametrize("namespace", ["", " ", "a\nb", "x" * 201, "project:a b", "project:"])
def test_namespaces_are_short_lines(documents: DocumentLibrary, folder: Path, namespace: str) -> None:
    """Any other name will do, but a project is named as in memories."""
    with pytest.raises(InvalidInput, match="Invalid namespace"):
        documents.index_file(folder / "guide.md", namespace)


def test_agents_may_index_where_they_work_and_where_the_user_lives(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what the setting names; never the whole disk, nor Palaver's own home."""
    monkeypatch.chdir(tmp_path)
    assert usual_roots(["~/more"]) == (tmp_path, home, home / "more")

    monkeypatch.chdir("/")
    assert usual_roots() == (home,)
    with DocumentLibrary.open(Home(home / "palaver"), usual_roots()) as documents:
        (home / "palaver" / "own.md").write_text("own")
        for path in (home / "palaver" / "own.md", Path("/etc/hosts.txt")):
            with pytest.raises(DocumentOutsideRoots):
                documents.index_file(path)


def test_indexing_a_file_embeds_no_other(
    documents: DocumentLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply does not wait for what others queued."""
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
    """Replies, hits and statistics name the file by a placeholder; both names filter and delete it."""
    path = folder / f"{SECRET}.md"
    path.write_text("# Quokka\nThe quokka sleeps.\n")
    indexed = documents.index_file(path)
    [hit] = documents.search("quokka")
    shown = hit.held.source_file
    store_hits = Hits(store, Engine(store, generations, FakeEmbedder())).search(Query.parse("quokka")).hits
    named = [indexed.source_file, *documents.stats().source_files, *(each.path for each in store_hits)]

    assert store_hits
    assert SECRET not in str([shown, named, [each.title for each in store_hits]])
    assert shown.suffix == ".md"
    assert documents.index_directory(folder, async_mode=False).gone == 0
    for name in (path, shown):
        assert [each.held.id for each in documents.search("quokka", DocumentFilter(source_files=(name,)))]
        assert documents.delete_file(name) == 1
        documents.index_file(path)
