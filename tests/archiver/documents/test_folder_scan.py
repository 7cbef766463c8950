"""A scan finds the files that people wrote, and counts the others."""

import os
from pathlib import Path

import pytest

from palaver.archiver.documents.document_folders import FolderScan, scan


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("a.py", "deep/b.md", "deep/image.png"):
        write(root / name)
    return root


def write(path: Path, text: str = "text\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def names(found: FolderScan, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in found.files]


def test_links_hidden_files_and_environments_are_left_out(root: Path) -> None:
    """Links, hidden files, virtual environments and excluded folders are left out without a count."""
    for folder in (".git", "venv", "deep/kept", "left", "__pycache__"):
        write(root / folder / "c.md")
    (root / "venv" / "pyvenv.cfg").touch()
    (root / ".hidden.md").touch()
    (root / "link.md").symlink_to(root / "deep" / "b.md")
    (root / "way").symlink_to(root.parent)
    os.mkfifo(root / "pipe.md")

    found = scan(root, recursive=True, without=[root / "left"])

    assert names(found, root) == ["a.py", "deep/b.md", "deep/kept/c.md"]
    assert found.skipped == {"unsupported": 1}
    assert names(scan(root / "deep", recursive=False), root) == ["deep/b.md"]


def test_a_palaver_home_is_left_out(root: Path) -> None:
    """A folder with a marker file of a Palaver home is left out, with its subfolders."""
    write(root / "deep" / "redaction.key")

    assert names(scan(root, recursive=True), root) == ["a.py"]


def test_skipped_files_and_folders_are_counted_by_reason(root: Path) -> None:
    """Ignored, vendored, generated and large files are counted. A skipped folder counts once."""
    write(root / ".gitignore", "*.log.md\nbuild/\n")
    for name in ("x.log.md", "build/a.py", "build/b.py", "node_modules/p/index.js", "app.min.js", "api_pb2.py"):
        write(root / name)
    write(root / "bundle.js", "x();\n" * 300_000)
    write(root / "large.md", "x\n" * 600_000)

    found = scan(root, recursive=True)

    assert names(found, root) == ["a.py", "large.md", "deep/b.md"]
    assert found.skipped == {"ignored": 2, "vendored": 1, "generated": 2, "too large": 1, "unsupported": 1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_is_a_problem(root: Path) -> None:
    """A scan reports an unreadable folder and continues with the other folders."""
    closed = [root / "closed", root / "deep" / "closed"]
    for folder in closed:
        folder.mkdir(mode=0, parents=True)

    found = scan(root, recursive=True)

    assert names(found, root) == ["a.py", "deep/b.md"]
    assert sorted(problem.path for problem in found.problems) == closed
