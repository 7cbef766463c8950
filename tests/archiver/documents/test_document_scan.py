"""A scan of the watched folders queues changed documents and removes deleted ones."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.documents.document_ingest import DocumentIngest, DocumentScan
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.document import DocumentFilter, DocumentFolder
from palaver.core.home import Home


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path, store: Store) -> Path:
    """Return a watched folder with two indexed documents."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# A\nAlpha.\n")
    (folder / "sub" / "b.rst").write_text("B\n=\nBeta.\n")
    DocumentIngest(store, Redactor(b"k" * 32)).index_directory(folder, "docs", DocumentRoots([folder]))
    with store.transaction():
        store.document_folders.add(DocumentFolder(folder, "docs"))
    return folder


def index(store: Store) -> list[str]:
    """Index the queue, and return the names of the indexed files."""
    DocumentIngest(store, Redactor(b"k" * 32)).index_queued()
    return [file.source_file.name for file in store.documents.files()]


def keys(store: Store, name: str) -> list[int]:
    """Return the keys of the chunks of a file."""
    return [each.key for each in store.documents.select(DocumentFilter()) if each.source_file.name == name]


def test_only_changes_are_queued(store: Store, folder: Path) -> None:
    """The first scan compares with the index, and later ones with the scan before."""
    scan = DocumentScan(store, ())
    assert scan.run().queued == 0

    (folder / "new.org").write_text("* New\n")
    os.utime(folder / "a.md", (1, 1))
    (folder / "image.png").touch()

    assert (scan.run().queued, scan.run().queued) == (2, 0)
    assert index(store) == ["a.md", "new.org", "b.rst"]
    assert DocumentScan(store, ()).run().queued == 1  # The content of a.md did not change, so its time is not stored.


def test_a_deleted_file_is_removed(store: Store, folder: Path) -> None:
    """A file that was deleted, also before the first scan, is removed from the index."""
    (folder / "a.md").unlink()

    assert DocumentScan(store, ()).run().gone == 1
    assert index(store) == ["b.rst"]


def test_a_moved_file_keeps_its_chunks(store: Store, folder: Path) -> None:
    """The old path of a moved file is removed only after its new path is read, so its chunks keep their IDs."""
    scan, before = DocumentScan(store, ()), keys(store, "a.md")
    scan.run()
    (folder / "a.md").rename(folder / "sub" / "c.md")

    changes = scan.run()
    assert (changes.queued, changes.gone, changes.waiting) == (1, 0, True)
    assert index(store) == ["b.rst", "c.md"]
    assert keys(store, "c.md") == before
    assert scan.run().gone == 0


def test_a_missing_folder_keeps_its_documents(store: Store, folder: Path) -> None:
    """The documents of a folder that does not exist, such as an unmounted disk, stay indexed."""
    folder.rename(folder.with_name("elsewhere"))

    assert DocumentScan(store, ()).run().gone == 0
    assert len(index(store)) == 2


def test_an_emptied_folder_keeps_its_documents(store: Store, folder: Path) -> None:
    """The documents of a folder without any file, such as the mount point of an unmounted disk, stay indexed."""
    (folder / "a.md").unlink()
    (folder / "sub" / "b.rst").unlink()

    assert DocumentScan(store, ()).run().gone == 0
    assert len(index(store)) == 2


def test_documents_of_folders_that_are_no_longer_scanned_are_removed(store: Store, folder: Path) -> None:
    """Documents in a subfolder that is replaced by a link are removed."""
    (folder / "sub").rename(folder.with_name("moved"))
    (folder / "sub").symlink_to(folder.with_name("moved"))

    assert DocumentScan(store, ()).run().gone == 1
    assert index(store) == ["a.md"]


def test_removed_folders_are_not_scanned(store: Store, folder: Path) -> None:
    """A folder whose documents are removed from the index is not watched."""
    with store.transaction():
        store.documents.delete(DocumentFilter(source_files=(folder,)))
        store.documents.delete(DocumentFilter(under=folder))

    assert store.document_folders.all() == []
    assert DocumentScan(store, ()).run().queued == 0
