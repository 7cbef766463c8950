"""The background indexer embeds and publishes queued documents."""

import threading
from pathlib import Path

import pytest

from palaver.archiver.store import LEARNER, Store
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.background import index_worker
from palaver.observe.background.index_worker import BackgroundIndexer
from palaver.search import document_library
from palaver.search.document_library import DocumentLibrary
from palaver.search.index.generation import Generations
from palaver.search.model.embedder import load

LONG = 200.0
"""Seconds after which a test fails."""


def wait_for_indexer(seconds: float) -> None:
    """Wait until no work is left, at most for a number of seconds."""
    for thread in threading.enumerate():
        if thread.name == "background-indexer":
            thread.join(seconds)


@pytest.fixture
def documents(tmp_path: Path) -> DocumentLibrary:
    (tmp_path / "docs").mkdir()
    for name in ("kiln", "glaze", "clay"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nAll about {name}.\n")
    return Archive(Home(tmp_path / "home")).documents([tmp_path])


@pytest.mark.parametrize("patience", [300.0, -1.0], ids=["read", "queued"])
def test_waiting_chunks_are_embedded_and_published(
    documents: DocumentLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Queued files are read as well, and `join` returns once every chunk has a vector in the published index."""
    monkeypatch.setattr(document_library, "_PATIENCE", patience)
    home = Home(tmp_path / "home")
    with documents:
        indexed = documents.index_directory(tmp_path / "docs")
        assert indexed.queued or indexed.unembedded

        background = BackgroundIndexer(home, None)
        background.wake()
        wait_for_indexer(LONG)

        stats = documents.stats()
    assert (stats.queued, stats.unembedded, stats.chunks) == (0, 0, 3)
    published = Generations(home.index).current()
    assert published is not None
    assert published.manifest.vectors == 3


def test_workers_wait_for_another_learner(
    documents: DocumentLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process observes and embeds, a worker ends without work and is started again later."""
    monkeypatch.setattr(index_worker, "_RETRY", 0.01)
    home, background = Home(tmp_path / "home"), BackgroundIndexer(Home(tmp_path / "home"), None)
    with documents:
        documents.index_directory(tmp_path / "docs")
        with Store.open(home.database) as store, store.leases.hold(LEARNER):
            background.wake()
            wait_for_indexer(2.0)
            assert store.documents.count_unembedded(load().name) == 3
        wait_for_indexer(LONG)
        assert documents.stats().unembedded == 0
