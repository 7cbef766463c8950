"""Tests of queued documents: the next ingest run or the background archiver reads them."""

from pathlib import Path

import pytest

from palaver.archiver.store import QueuedFile, Store
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.background.index_worker import WorkerResult, update_index
from palaver.observe.background.schedule import IndexSchedule
from palaver.observe.pipeline import Pipeline

from .background.test_index_schedule import Clock, ScriptedWorker


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """Home with one queued document and one unreadable document."""
    home, folder = Home(tmp_path / "home"), tmp_path / "docs"
    folder.mkdir()
    (folder / "kiln.md").write_text("# Kiln\nHeat the kiln slowly.\n")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4")
    home.make()
    with Store.create(home.database) as store, store.transaction():
        store.documents.queue(QueuedFile(path, "docs", folder) for path in sorted(folder.iterdir()))
    return home


def is_done(home: Home) -> bool:
    """Return whether the document is found by vector search and the queue is empty.

    Check that the unreadable document is reported.
    """
    with Archive(home).documents([]) as documents:
        stats = documents.stats()
        [found] = documents.search("how fast may a kiln be heated")
        assert [failed.file.name for failed in stats.failed] == ["bad.pdf"]
        return found.similarity is not None and not stats.queued


def test_a_run_reads_queued_documents(place: Home) -> None:
    """An ingest run also embeds and publishes queued documents."""
    progress: list[str] = []
    with Pipeline(place) as pipeline:
        report = pipeline.run([], lambda stage, _done, _total: progress.append(stage))

    assert report.embedded == 1
    assert "Reading" in progress
    assert is_done(place)


def test_the_background_archiver_reads_queued_documents(place: Home) -> None:
    """The index worker also embeds queued documents."""
    assert update_index(place, None, settle=True).embedded == 1
    assert is_done(place)


def test_a_queued_document_starts_the_index_worker(place: Home) -> None:
    """The worker starts even without other changes. A document that failed does not start it again."""
    worker = ScriptedWorker()
    with Store.open(place.database) as store:
        schedule = IndexSchedule(store, worker, lambda: "chosen", Clock())
        schedule.step()
        assert worker.started == [False]

        with store.transaction():
            for file in store.documents.queued(9):
                store.documents.settle(file, "broken")
        worker.next = WorkerResult(seq=store.changes.last())
        worker.started.clear()
        schedule.step()
        assert worker.started == []
