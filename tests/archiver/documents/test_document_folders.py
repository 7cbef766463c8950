"""Tests of `document_folders.py`."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents import document_folders
from palaver.archiver.documents.document_folders import DocumentRoots, read, reason_by_content, reason_by_name
from palaver.core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable, PalaverError

from ...shared import SHARED

# Document roots: readable files, and protection against paths that leave the roots.


PAYLOADS = SHARED / "hostile" / "payloads.tar.gz"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with a sibling folder outside the root."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("canary")
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "a.md").write_text("inside")
    return root


def test_a_file_below_a_root_is_read(root: Path) -> None:
    """A file below a root is read with its modification time, whatever its name."""
    path, found = DocumentRoots([root]).find(root / "deep" / ".." / "deep" / "a.md")
    os.utime(path, (5, 5))

    assert (path, found) == (root / "deep" / "a.md", root)
    assert read(path, found) == document_folders.DocumentFile(b"inside", 5_000)


@pytest.mark.parametrize("name", ["../outside/secret.md", "../outside", "..", "/etc/passwd", "/", "../outside/none.md"])
def test_paths_outside_are_refused(root: Path, name: str) -> None:
    """Paths outside are refused with the same error whether or not a file exists, so files cannot be probed."""
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(root / name)


def test_a_sibling_with_the_same_prefix_is_outside(root: Path) -> None:
    """Paths are compared by folder, not by text prefix (CVE-2025-53110)."""
    beside = root.with_name("root-private")
    beside.mkdir()

    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(beside)


def test_links_are_followed_only_inside_a_root(root: Path) -> None:
    """A file reached through a link inside a root is indexed under its real path."""
    (root / "in.md").symlink_to(root / "deep" / "a.md")
    (root / "out.md").symlink_to(root.parent / "outside" / "secret.md")
    (root / "loop.md").symlink_to(root / "loop.md")

    assert DocumentRoots([root]).find(root / "in.md")[0] == root / "deep" / "a.md"
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(root / "out.md")
    with pytest.raises((DocumentNotFound, DocumentOutsideRoots)):
        DocumentRoots([root]).find(root / "loop.md")


@pytest.mark.parametrize("swapped", ["deep", "deep/a.md"])
def test_a_link_created_after_the_check_is_not_followed(root: Path, swapped: str) -> None:
    """A link that replaces a folder or file after the check is not followed (CVE-2025-53109)."""
    path, found = DocumentRoots([root]).find(root / "deep" / "a.md")
    (root.parent / "outside" / "a.md").write_text("canary")
    (root / swapped).rename(root / "moved")
    (root / swapped).symlink_to(root.parent / "outside" / ("a.md" if swapped.endswith("md") else ""))

    with pytest.raises(DocumentOutsideRoots):
        read(path, found)


def test_irregular_files_are_refused(root: Path) -> None:
    """Pipes and folders are refused, and opening a pipe does not block."""
    os.mkfifo(root / "pipe.md")

    for name in ("pipe.md", "deep"):
        with pytest.raises(DocumentUnreadable):
            read(root / name, root)


@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys", "/dev/fd/0"])
def test_system_folders_are_refused(path: str) -> None:
    """System folders are refused even if the whole file system is a root."""
    with pytest.raises((DocumentOutsideRoots, DocumentNotFound)):
        DocumentRoots([Path("/")]).find(Path(path))


def test_a_file_that_is_too_large_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is too large is refused before it is read."""
    monkeypatch.setattr(document_folders, "BYTES_MAX", 5)

    with pytest.raises(DocumentUnreadable, match="larger than"):
        read(root / "deep" / "a.md", root)


def test_excluded_folders_are_refused(root: Path) -> None:
    """Excluded folders, such as Palaver's own home, are refused."""
    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root], without=[root / "deep"]).find(root / "deep" / "a.md")


def payloads() -> Iterator[str]:
    with tarfile.open(PAYLOADS) as tar:
        for member in tar:
            if "traversal" in member.name and (file := tar.extractfile(member)) is not None:
                yield from file.read().decode("utf-8", "replace").splitlines()[:300]


@pytest.mark.skipif(not PAYLOADS.exists(), reason="no payloads")
def test_no_known_payload_leads_out_of_a_root(root: Path) -> None:
    """Thousands of known path-traversal payloads are confined to the root."""
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
    """Folders with Palaver marker files are refused."""
    home = root / "deep" / "home"
    home.mkdir()
    (home / "notes.md").write_text("# Notes")
    (home / "redaction.key").touch()

    with pytest.raises(DocumentOutsideRoots):
        DocumentRoots([root]).find(home / "notes.md")


# Generated, minified and binary files are recognised.


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("app.min.js", "generated"),
        ("main.bundle.js", "generated"),
        ("api_pb2.py", "generated"),
        ("api.pb.go", "generated"),
        ("minute.js", ""),
        ("file-lock.py", ""),
        ("pb2.py", ""),
    ],
)
def test_names_of_generated_files(name: str, reason: str) -> None:
    """Names of minified, bundled and protobuf files are recognised."""
    assert reason_by_name(Path(name), 10) == reason


def test_only_source_files_have_a_maximum_size() -> None:
    """A source file of more than 1 MiB is skipped, a document is not."""
    assert [reason_by_name(Path(name), 2 << 20) for name in ("a.js", "a.md", "a.pdf")] == ["too large", "", ""]


@pytest.mark.parametrize(
    "header",
    [
        "// @generated by a tool",
        "/**\n * @generated\n */",
        "// Code generated by protoc-gen-go. DO NOT EDIT.",
        "# This file is auto-generated",
        "# Autogenerated by a script",
    ],
)
def test_headers_of_generated_files(header: str) -> None:
    """A comment at the beginning that says so marks a generated file."""
    assert reason_by_content(Path("a.go"), f"{header}\n\npackage a\n".encode()) == "generated"


@pytest.mark.parametrize(
    "text",
    [
        'MARKER = "@generated"\n',
        "# Reads what was generated.\n",
        "x = 1\n" * 400 + "# @generated\n",
        "# Edit @generated\n",
    ],
)
def test_other_mentions_are_no_header(text: str) -> None:
    """The words in code, inside a sentence, or far below the beginning mark nothing."""
    assert reason_by_content(Path("a.py"), text.encode()) == ""


def test_minified_code_is_recognised_by_its_lines() -> None:
    """Code with very long lines on average is minified. Prose may have long lines."""
    text = b"function a(){return 1};" * 200

    assert reason_by_content(Path("a.js"), text) == "minified"
    assert reason_by_content(Path("a.md"), text) == ""
    assert reason_by_content(Path("a.js"), text[:1_000]) == ""


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.py", b"a\0b", "binary"),
        ("a.md", b"\0" * 99, "binary"),
        ("a.py", "text".encode("utf-16"), ""),
        ("a.PDF", b"%PDF-1.7\0", ""),
        ("a.pdf", b"\0" * 99, ""),
        ("a.docx", b"\0" * 99, ""),
    ],
)
def test_nul_bytes_mark_binary_files(name: str, data: bytes, reason: str) -> None:
    """NUL bytes mark a binary file, except in UTF-16, PDF and Office files. Readers report damaged ones of these."""
    assert reason_by_content(Path(name), data) == reason
