"""The document watcher scans after events, and regularly."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents.document_ingest import DocumentScan
from palaver.archiver.store import Store
from palaver.archiver.watch.file_events import Changes, FileEvents, WatchedFolder
from palaver.archiver.watch.watchers import DocumentWatcher
from palaver.core.document import DocumentFolder
from palaver.core.home import Home


class ScriptedDocumentEvents(FileEvents):
    """Events that a test determines."""

    def __init__(self) -> None:
        super().__init__()
        self.changes, self.followed = Changes(), list[Path]()

    def follow(self, folders: Collection[WatchedFolder]) -> None:
        self.followed = [folder.path for folder in folders]

    def wait(self) -> Changes:
        return self.changes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        yield store


def test_events_and_time_cause_scans(store: Store, tmp_path: Path) -> None:
    """A change is found after an event in the folder, but not in hidden folders, or else by the regular scan."""
    folder, now, events = tmp_path / "docs", [100.0], ScriptedDocumentEvents()
    folder.mkdir()
    watcher = DocumentWatcher(store, DocumentScan(store, ()), events, lambda: now[0])
    assert watcher.step() is None

    with store.transaction():
        store.document_folders.add(DocumentFolder(folder, "docs"))
    assert watcher.step() is None
    assert events.followed == [folder]

    (folder / "a.md").write_text("# A\n")
    assert watcher.step() is None
    events.changes = Changes(frozenset({folder / ".git" / "index"}))
    assert watcher.step() is None
    events.changes = Changes(frozenset({folder / "a.md"}))
    found = watcher.step()
    assert found is not None
    assert found.queued == 1

    (folder / "b.md").write_text("# B\n")
    events.changes, now[0] = Changes(), 116.0
    found = watcher.step()
    assert found is not None
    assert found.queued == 1
