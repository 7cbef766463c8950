"""DocumentLibrary that wait are read by whoever works next: a pass, or the background archiver."""

from pathlib import Path

import pytest

from palaver.archiver.store import Queued, Store
from palaver.core.home import Home
from palaver.observe.background.index_schedule import IndexSchedule
from palaver.observe.background.index_worker import WorkerResult, update_index
from palaver.observe.pipeline import Pipeline
from palaver.search.document_library import DocumentLibrary

from .background.test_index_schedule import ScriptedWorker, Time


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """A home in which one document waits, and one that cannot be read."""
    home, folder = Home(tmp_path / "home"), tmp_path / "docs"
    folder.mkdir()
    (folder / "kiln.md").write_text("# Kiln\nHeat the kiln slowly.\n")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4")
    home.make()
    with Store.create(home.database) as store, store.transaction():
        store.documents.queue(Queued(path, "docs", folder) for path in sorted(folder.iterdir()))
    return home


def is_done(home: Home) -> bool:
    """Whether the document is found, by meaning too, and nothing waits; the damaged one is told of."""
    with DocumentLibrary.open(home, []) as documents:
        stats = documents.stats()
        [found] = documents.search("how fast may a kiln be heated")
        assert [failed.file.name for failed in stats.failed] == ["bad.pdf"]
        return found.similarity is not None and not stats.queued


def test_a_pass_reads_what_waits(place: Home) -> None:
    """And embeds and publishes it with all else."""
    heard: list[str] = []
    with Pipeline(place) as pipeline:
        report = pipeline.run([], lambda stage, _done, _total: heard.append(stage))

    assert report.embedded == 1
    assert "Reading" in heard
    assert is_done(place)


def test_the_background_archiver_reads_what_waits(place: Home) -> None:
    """In the process that catches up."""
    assert update_index(place, None, settle=True).embedded == 1
    assert is_done(place)


def test_a_file_that_waits_begins_a_round(place: Home) -> None:
    """Even where nothing else changed; what failed waits no more."""
    worker = ScriptedWorker()
    with Store.open(place.database) as store:
        schedule = IndexSchedule(store, worker, lambda: "chosen", Time())
        schedule.step()
        assert worker.started == [False]

        with store.transaction():
            for file in store.documents.queued(9):
                store.documents.settle(file, "broken")
        worker.next = WorkerResult(seq=store.changes.last())
        worker.started.clear()
        schedule.step()
        assert worker.started == []
