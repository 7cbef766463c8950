"""A scan removes the documents that it does not find, except those that it cannot judge."""

from pathlib import Path

import pytest

from palaver.archiver.documents.document_folders import FolderScan, scan
from palaver.archiver.documents.document_ingest import removed
from palaver.core.document import DocumentFolder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with one document, and a document in a folder that scans skip."""
    (tmp_path / "node_modules" / "react" / "lib").mkdir(parents=True)
    (tmp_path / "a.md").touch()
    (tmp_path / "node_modules" / "react" / "b.md").touch()
    return tmp_path


def removed_names(
    root: Path, *names: str, watched: tuple[DocumentFolder, ...] = (), recursive: bool = True
) -> set[str]:
    """Return the names of the documents, out of these, that a scan of the folder removes."""
    folder = DocumentFolder(root, "docs", recursive)
    found = scan(root, recursive=recursive)
    return {str(path.relative_to(root)) for path in removed([root / name for name in names], folder, found, watched)}


def test_documents_that_are_not_found_are_removed(root: Path) -> None:
    """Deleted and skipped files are removed, and files in a folder that became a link or a virtual environment."""
    for name in ("venv", "target"):
        (root / name).mkdir()
        (root / name / "c.md").touch()
    (root / "venv" / "pyvenv.cfg").touch()
    (root / "link").symlink_to(root / "target")
    names = ("a.md", "gone.md", "node_modules/react/b.md", "venv/c.md", "link/c.md", "target/c.md")

    assert removed_names(root, *names) == {"gone.md", "node_modules/react/b.md", "venv/c.md", "link/c.md"}
    assert removed_names(root, *names, recursive=False) == {"gone.md"}


def test_documents_of_a_watched_subfolder_are_removed_only_if_deleted(root: Path) -> None:
    """A skipped folder that is watched itself keeps its documents, in its own namespace, while they exist."""
    react, names = root / "node_modules" / "react", ("node_modules/react/b.md", "node_modules/react/gone.md")

    assert removed_names(root, *names, watched=(DocumentFolder(react, "docs"),)) == {names[1]}
    assert removed_names(root, *names, watched=(DocumentFolder(react, "other"),)) == {*names}
    assert removed_names(root, *names, watched=(DocumentFolder(root, "docs"),)) == {*names}


def test_documents_that_cannot_be_read_are_kept(root: Path) -> None:
    """Documents below an unreadable folder are kept."""
    found = FolderScan([root / "a.md"])
    found.add_problem(PermissionError(13, "Permission denied"), root / "locked")

    assert removed([root / "locked" / "c.md"], DocumentFolder(root, "docs"), found, ()) == []


def test_an_empty_folder_keeps_its_documents(tmp_path: Path) -> None:
    """A folder without any file, such as the mount point of an unmounted disk, keeps its documents."""
    (tmp_path / "empty").mkdir()
    assert removed_names(tmp_path, "a.md") == set()

    (tmp_path / "b.unknown").touch()
    assert removed_names(tmp_path, "a.md") == {"a.md"}
