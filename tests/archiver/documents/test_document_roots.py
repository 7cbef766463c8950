"""Roots: what may be read, and that nobody is led out."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents import document_roots
from palaver.archiver.documents.document_roots import DocumentRoots, FolderWalk, read
from palaver.core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable, PalaverError

from ...shared import SHARED

PAYLOADS = SHARED / "hostile" / "payloads.tar.gz"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that may be read, beside one that may not."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("canary")
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "a.md").write_text("inside")
    return root


def test_a_file_below_a_root_is_read(root: Path) -> None:
    """However it is named, and with the time of its last change."""
    path, found = DocumentRoots([root]).find(root / "deep" / ".." / "deep" / "a.md")
    os.utime(path, (5, 5))

    assert (path, found) == (root / "deep" / "a.md", root)
    assert read(path, found) == document_roots.DocumentFile(b"inside", 5_000)


@pytest.mark.parametrize("name", ["../outside/secret.md", "../outside", "..", "/etc/passwd", "/", "../outside/none.md"])
def test_what_lies_outside_is_refused(root: Path, name: str) -> None:
    """Be it there or not: nothing can be probed."""
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(root / name)


def test_a_sibling_with_the_same_beginning_lies_outside(root: Path) -> None:
    """Folders are compared, not texts (CVE-2025-53110)."""
    beside = root.with_name("root-private")
    beside.mkdir()

    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(beside)


def test_a_link_is_followed_inside_and_not_out(root: Path) -> None:
    """The file is taken up under its own name."""
    (root / "in.md").symlink_to(root / "deep" / "a.md")
    (root / "out.md").symlink_to(root.parent / "outside" / "secret.md")
    (root / "loop.md").symlink_to(root / "loop.md")

    assert DocumentRoots([root]).find(root / "in.md")[0] == root / "deep" / "a.md"
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(root / "out.md")
    with pytest.raises((DocumentNotFound, DocumentOutsideRoots)):
        DocumentRoots([root]).find(root / "loop.md")


@pytest.mark.parametrize("swapped", ["deep", "deep/a.md"])
def test_a_link_that_takes_a_place_after_the_check_is_not_followed(root: Path, swapped: str) -> None:
    """Neither as a folder on the way nor as the file (CVE-2025-53109)."""
    path, found = DocumentRoots([root]).find(root / "deep" / "a.md")
    (root.parent / "outside" / "a.md").write_text("canary")
    (root / swapped).rename(root / "moved")
    (root / swapped).symlink_to(root.parent / "outside" / ("a.md" if swapped.endswith("md") else ""))

    with pytest.raises(DocumentOutsideRoots):
        read(path, found)


def test_what_is_no_regular_file_is_refused(root: Path) -> None:
    """A pipe is not waited for, a folder not read."""
    os.mkfifo(root / "pipe.md")

    for name in ("pipe.md", "deep"):
        with pytest.raises(DocumentUnreadable):
            read(root / name, root)


@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys", "/dev/fd/0"])
def test_the_system_is_left_alone(path: str) -> None:
    """Even where the whole disk is a root."""
    with pytest.raises((DocumentOutsideRoots, DocumentNotFound)):
        DocumentRoots([Path("/")]).find(Path(path))


def test_a_file_that_is_too_large_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is read."""
    monkeypatch.setattr(document_roots, "BYTES_MAX", 5)

    with pytest.raises(DocumentUnreadable, match="larger than"):
        read(root / "deep" / "a.md", root)


def test_folders_that_are_left_out_are_refused(root: Path) -> None:
    """Palaver's own home is no document."""
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root], without=[root / "deep"]).find(root / "deep" / "a.md")


def test_a_walk_finds_regular_files_alone(root: Path) -> None:
    """No link, nothing hidden, no packages of others, no virtual environment; not below where it is told not to."""
    for folder in (".git", "node_modules", "venv", "deep/kept", "left"):
        (root / folder).mkdir()
        (root / folder / "b.md").write_text("b")
    (root / "venv" / "pyvenv.cfg").touch()
    (root / ".hidden.md").touch()
    (root / "link.md").symlink_to(root / "deep" / "a.md")
    (root / "way").symlink_to(root.parent / "outside")
    os.mkfifo(root / "pipe.md")

    found = list(FolderWalk(root).files(recursive=True, without=[root / "left"]))

    assert [path.relative_to(root).as_posix() for path in found] == ["deep/a.md", "deep/kept/b.md"]
    assert list(FolderWalk(root / "deep").files(recursive=False)) == [root / "deep" / "a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_looked_into_is_told(root: Path) -> None:
    """The others are walked."""
    closed = [root / "closed", root / "deep" / "closed", root / "next" / "closed"]
    for folder in closed:
        folder.mkdir(mode=0, parents=True)
    walk = FolderWalk(root)

    assert list(walk.files(recursive=True)) == [root / "deep" / "a.md"]
    assert sorted(problem.path for problem in walk.problems) == closed


def payloads() -> Iterator[str]:
    with tarfile.open(PAYLOADS) as tar:
        for member in tar:
            if "traversal" in member.name and (file := tar.extractfile(member)) is not None:
                yield from file.read().decode("utf-8", "replace").splitlines()[:300]


@pytest.mark.skipif(not PAYLOADS.exists(), reason="no payloads")
def test_no_payload_leads_out(root: Path) -> None:
    """Thousands of known ways to name a file elsewhere."""
    allowed, tried = DocumentRoots([root]), 0
    for payload in payloads():
        for name in (payload, payload.replace("{FILE}", "outside/secret.md")):
            tried += 1
            try:
                path, found = allowed.find(root / name)
                assert b"canary" not in read(path, found).data
                assert path.is_relative_to(root)
            except PalaverError:
                continue
    assert tried > 1_000


def test_nothing_in_a_home_is_a_document(root: Path) -> None:
    """Homes are known by their marker files: they are passed over below a folder, and refused when they are named."""
    home = root / "deep" / "home"
    home.mkdir()
    (home / "notes.md").write_text("# Notes")
    before = {path.name for path in FolderWalk(root).files(recursive=True)}
    (home / "redaction.key").touch()

    assert {path.name for path in FolderWalk(root).files(recursive=True)} == before - {"notes.md"}
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(home / "notes.md")
