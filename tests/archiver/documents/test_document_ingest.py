"""Ingest of documents: files become chunks in the store."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.documents import document_ingest, isolated_parser
from palaver.archiver.documents.document_folders import DocumentRoots, FolderScan, scan
from palaver.archiver.documents.document_formats import format_of
from palaver.archiver.documents.document_ingest import DocumentIngest, removed
from palaver.archiver.documents.document_reader import CHUNKS_MAX, DocumentReader
from palaver.archiver.store import QueuedFile, Store
from palaver.core.document import DocumentFilter, DocumentFolder
from palaver.core.errors import DocumentNotFound, DocumentUnreadable, UnsupportedDocument
from palaver.core.home import Home
from palaver.core.runtime import never

from ...unprivileged import start

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        yield store


@pytest.fixture
def ingest(store: Store) -> DocumentIngest:
    from palaver.archiver.redaction import Redactor

    return DocumentIngest(store, Redactor(b"k" * 32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three valid documents and a broken document."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# A\nAlpha.\n\n# B\nBeta.\n")
    (folder / "b.py").write_text("def find():\n    return 1\n")
    (folder / "sub" / "c.TXT").write_text("Gamma.\n")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4")
    (folder / "image.png").write_bytes(b"\x89PNG")
    return folder


def chunk_texts(store: Store) -> list[str]:
    """Return the texts of all chunks, by file and position."""
    return [held.chunk.text for held in store.documents.select(DocumentFilter())]


def test_a_folder_is_indexed(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Every file with a known suffix is indexed, even if another file fails."""
    done = ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert (done.indexed, done.chunks, done.unchanged, done.queued) == (3, 4, 0, 0)
    assert [(failed.file, failed.error) for failed in done.failed] == [
        (folder / "bad.pdf", "the file is damaged or not a PDF")
    ]
    assert chunk_texts(store) == ["# A\nAlpha.", "# B\nBeta.", "def find():\n    return 1", "Gamma."]
    assert store.documents.count_by("kind") == {"document": 3, "code": 1}


def test_damaged_documents_are_listed(ingest: DocumentIngest, folder: Path) -> None:
    """A PDF or Office file of NUL bytes, or without any byte, failed. It is not skipped like a program."""
    damaged = {folder / "bad.pdf", *(folder / name for name in ("nul.pdf", "nul.docx", "empty.pdf", "empty.docx"))}
    for file in damaged - {folder / "bad.pdf"}:
        file.write_bytes(b"\0" * 3_000 if file.stem == "nul" else b"")
    done = ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert {failed.file for failed in done.failed} == damaged
    assert all("damaged" in failed.error for failed in done.failed)


def test_a_file_has_a_limited_number_of_chunks(store: Store, ingest: DocumentIngest, tmp_path: Path) -> None:
    """Many small sections share chunks, which together contain every section."""
    count = 3_000
    cells = [{"cell_type": "markdown", "source": f"# {number}"} for number in range(count)]
    members = "".join(f"    int m{number}() {{ return {number}; }}\n" for number in range(3))
    files = {
        "a.md": "".join(f"# {number}\n\n" for number in range(count)),
        "a.rst": "".join(f"{number:04}\n====\n\n" for number in range(count)),
        "a.org": "".join(f"* {number}\n" for number in range(count)),
        "a.html": "".join(f"<h1>{number}</h1>\n" for number in range(count)),
        "a.ipynb": json.dumps({"nbformat": 4, "cells": cells}),
        "a.py": "".join(f"def f{number}(): pass\n" for number in range(count)),
        "a.java": "".join(f"class C{number} {{\n{members}}}\n" for number in range(1_000)),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        indexed = ingest.index_file(tmp_path / name, "docs", DocumentRoots([tmp_path]))
        stored = store.documents.select(DocumentFilter(source_files=(tmp_path / name,)))
        found = "\n".join(each.chunk.text for each in stored)

        assert (len(stored) <= CHUNKS_MAX, indexed.truncated) == (True, False), (name, len(stored))
        assert {f"{number}" for number in range(1_000)} <= {*re.findall(r"[1-9]\d*|0(?=\D)", found)}, name
        if name == "a.java":  # The members of small classes share a chunk.
            assert [each.chunk.name for each in stored[:2]] == ["C0", "C1"]
        if name == "a.md":
            assert all(each.chunk.text.splitlines()[0] == lines(text, each.chunk.start_line) for each in stored)


def lines(text: str, number: int) -> str:
    """Return a line of a text by its number."""
    return text.split("\n")[number - 1]


def test_a_long_file_is_cut_and_says_so(store: Store, ingest: DocumentIngest, tmp_path: Path) -> None:
    """Only the first chunks of a long file are indexed. The result and the metadata of the file state this."""
    text = "".join(f"Line {number} of the tide table.\n" for number in range(90_000))
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.md").write_text("# Kiln\nHeat it slowly.\n")
    done = ingest.index_directory(tmp_path, "docs", DocumentRoots([tmp_path]))
    stored = store.documents.select(DocumentFilter(source_files=(tmp_path / "a.txt",)))

    assert (len(stored), done.truncated) == (CHUNKS_MAX, [tmp_path / "a.txt"])
    assert stored[0].metadata == {"indexed": "only the first 2,000 chunks"}
    assert stored[-1].chunk.text.splitlines()[-1] in text
    (tmp_path / "a.txt").write_text("Short.")
    again = ingest.index_directory(tmp_path, "docs", DocumentRoots([tmp_path]))
    assert (again.truncated, again.unchanged) == ([], 1)


def test_deep_headings_cost_little(ingest: DocumentIngest, tmp_path: Path) -> None:
    """A format without a limit of levels has a limited path of headings."""
    rows = "".join(f"{'*' * number} {number}\nText.\n" for number in range(1, 500))
    (tmp_path / "a.org").write_text(rows)
    ingest.index_file(tmp_path / "a.org", "docs", DocumentRoots([tmp_path]))
    [*_, last] = ingest._store.documents.select(DocumentFilter())  # pyright: ignore[reportPrivateUsage]

    assert last.chunk.header_path == " > ".join(str(number) for number in range(488, 500))


def test_without_recursion_subfolders_are_ignored(ingest: DocumentIngest, folder: Path) -> None:
    """Indexing without recursion covers only files directly in the folder."""
    assert ingest.index_directory(folder, "docs", DocumentRoots([folder]), recursive=False).indexed == 2


def test_unchanged_files_are_skipped(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A file with unchanged content is skipped, even if its modification time changed, and is not logged."""
    ingest.index_directory(folder, "docs", DocumentRoots([folder]))
    (folder / "a.md").touch()
    before = store.changes.last()

    done = ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert (done.indexed, done.unchanged, store.changes.last()) == (0, 3, before)


def test_named_units_of_code_are_counted(ingest: DocumentIngest, tmp_path: Path) -> None:
    """A class and each method are one unit, even if a method has several chunks. Other lines are no unit."""
    body = "".join(f"        total = total * {number} + first_number - second_number\n" for number in range(150))
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text(
        f"import os\n\nclass Cart:\n    def small(self):\n        return 1\n\n    def large(self, total):\n{body}"
    )
    (tmp_path / "shop" / "notes.md").write_text("# Notes\nAlpha.\n")
    done = ingest.index_directory(tmp_path / "shop", "docs", DocumentRoots([tmp_path]))

    assert done.units == 3
    assert done.chunks > 6


def test_a_changed_file_replaces_its_chunks(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Chunks of a changed file are replaced. A chunk with unchanged text keeps its ID."""
    roots = DocumentRoots([folder])
    first = ingest.index_file(folder / "a.md", "docs", roots)
    (folder / "a.md").write_text("New.\n\n# B\nBeta.\n")

    second = ingest.index_file(folder / "a.md", "docs", roots)

    assert chunk_texts(store) == ["New.", "# B\nBeta."]
    assert second.chunk_ids[1] == first.chunk_ids[1]
    assert first.chunk_ids[0] not in second.chunk_ids
    assert [held.chunk.start_line for held in store.documents.select(DocumentFilter())] == [1, 3]


def test_equal_chunks_of_one_file_are_all_stored(ingest: DocumentIngest, folder: Path) -> None:
    """Each equal chunk of a file is stored, also after another equal chunk was removed."""
    roots = DocumentRoots([folder])
    (folder / "a.md").write_text("# A\nsame\n# A\nsame\n# A\nsame\n")
    three = ingest.index_file(folder / "a.md", "docs", roots)
    (folder / "a.md").write_text("# A\nsame\n# A\nsame\n")

    two = ingest.index_file(folder / "a.md", "docs", roots)

    assert len(set(three.chunk_ids)) == 3
    assert two.chunk_ids == three.chunk_ids[:2]


def test_a_file_may_be_in_two_namespaces(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A file may be in two namespaces, and its entries are independent."""
    for namespace in ("one", "two"):
        ingest.index_file(folder / "b.py", namespace, DocumentRoots([folder]))

    assert store.documents.count_by("namespace") == {"one": 1, "two": 1}


def test_chunks_of_a_deleted_file_are_deleted(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Indexing a folder again deletes the chunks of deleted files, but only in the same namespace."""
    roots = DocumentRoots([folder])
    for namespace in ("one", "two"):
        ingest.index_directory(folder, namespace, roots)
    (folder / "sub" / "c.TXT").unlink()

    kept, gone = (ingest.index_directory(folder, "one", roots, recursive=deep).gone for deep in (False, True))

    assert (kept, gone) == (0, 1)
    assert store.documents.count_by("namespace") == {"two": 4, "one": 3}


def test_secrets_are_redacted_before_text_is_cut(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Secrets are redacted before text is split, so no chunk contains part of a secret."""
    for place in range(960, 1_010, 7):
        (folder / "a.md").write_text(f"{'x ' * (place // 2)}\nexport GITHUB_TOKEN={TOKEN}\n{'y ' * 300}")
        ingest.index_file(folder / "a.md", "docs", DocumentRoots([folder]))

        assert TOKEN[:16] not in "".join(chunk_texts(store))
        assert "[secret:github" in "".join(chunk_texts(store))


def test_any_process_indexes_queued_files(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Any process can index the queue in the database. Unreadable files stay queued with the reason."""
    queued = ingest.index_directory(folder, "docs", DocumentRoots([folder]), should_stop=lambda: True)
    assert (queued.indexed, queued.queued, chunk_texts(store)) == (0, 4, [])

    begun = ingest.index_queued(should_stop=iter([False, True]).__next__)
    assert (begun.indexed, begun.queued) == (1, 3)

    done = ingest.index_queued(should_stop=never)
    assert (done.indexed, done.queued, len(done.failed)) == (2, 0, 1)
    assert [failed.error for failed in store.documents.failed()] == ["the file is damaged or not a PDF"]

    (folder / "bad.pdf").unlink()
    (folder / "bad.pdf").with_suffix(".txt").write_text("whole")
    assert ingest.index_directory(folder, "docs", DocumentRoots([folder]), should_stop=lambda: True).queued == 4
    assert ingest.index_queued().unchanged == 3


def test_unreadable_files_are_recorded(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A file that cannot be read is recorded with the reason until it is deleted or readable."""
    roots = DocumentRoots([folder])
    (folder / "worse.pdf").write_bytes(b"%PDF-1.4")
    ingest.index_directory(folder, "docs", roots)
    assert [failed.file.name for failed in store.documents.failed()] == ["bad.pdf", "worse.pdf"]

    (folder / "bad.pdf").unlink()
    assert ingest.index_directory(folder, "docs", roots).gone == 0
    assert [failed.file.name for failed in store.documents.failed()] == ["worse.pdf"]


def test_a_queued_file_is_opened_without_following_links(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A link that replaces a queued file is not followed."""
    (folder.parent / "secret.md").write_text("canary")
    ingest.index_directory(folder, "docs", DocumentRoots([folder]), should_stop=lambda: True)
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(folder.parent / "secret.md")

    done = ingest.index_queued()

    assert [failed.file.name for failed in done.failed] == ["a.md", "bad.pdf"]
    assert "canary" not in "".join(chunk_texts(store))


def test_encodings_are_detected(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A byte order mark selects UTF-8 or UTF-16. Python files use their declaration. Other files may be Latin-1."""
    roots = DocumentRoots([folder])
    (folder / "a.md").write_bytes("é\r\nzwei".encode("utf-8-sig"))
    (folder / "sub" / "c.TXT").write_bytes("ü".encode("utf-16"))
    (folder / "b.py").write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    (folder / "d.txt").write_bytes("café".encode("latin-1"))
    for name in ("a.md", "b.py", "d.txt", "sub/c.TXT"):
        ingest.index_file(folder / name, "docs", roots)

    assert chunk_texts(store) == ["é\nzwei", "# coding: latin-1\nx = 'é'", "café", "ü"]


@pytest.mark.parametrize("data", [b"\xff\xfe\xff", b"\xe9\x01\x02\x03", b"a\0b"])
def test_binary_data_is_an_error(ingest: DocumentIngest, folder: Path, data: bytes) -> None:
    """Files with NUL or many control characters are refused, regardless of their names."""
    (folder / "a.md").write_bytes(data)

    with pytest.raises(DocumentUnreadable, match="text"):
        ingest.index_file(folder / "a.md", "docs", DocumentRoots([folder]))


def test_no_file_stops_the_others(
    store: Store, ingest: DocumentIngest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is reported and skipped if its reader raises any error, and the other files are indexed."""

    def format_or_failure(path: Path) -> DocumentReader:
        if path.name == "a.md":
            raise RuntimeError("maximum recursion")
        return format_of(path)

    monkeypatch.setattr(isolated_parser, "format_of", format_or_failure)
    (folder / "b.py").write_text("# coding: undefined\n")

    done = ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert [(failed.file.name, failed.error) for failed in done.failed] == [
        ("a.md", "the reader failed with RuntimeError"),
        ("b.py", "the file is not UNDEFINED text"),
        ("bad.pdf", "the file is damaged or not a PDF"),
    ]
    assert chunk_texts(store) == ["Gamma."]


def test_characters_that_are_not_unicode_are_replaced(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A lone surrogate, which YAML can contain as an escape, is stored as a question mark."""
    (folder / "a.md").write_text('---\ntitle: "a\\uD800b"\n---\nText.\n')

    ingest.index_file(folder / "a.md", "docs", DocumentRoots([folder]))

    assert [file.metadata for file in store.documents.files()] == [{"title": "a?b"}]


def test_each_mistake_has_its_own_error(ingest: DocumentIngest, folder: Path) -> None:
    """Unknown suffixes, missing files, and confusing a folder with a file each raise a specific error."""
    roots = DocumentRoots([folder])
    (folder / "image.png").touch()
    with pytest.raises(UnsupportedDocument, match=r"Unsupported file type: \.png"):
        ingest.index_file(folder / "image.png", "docs", roots)
    for name in ("none.md", "nodocs", "none.png"):
        with pytest.raises(DocumentNotFound, match="File not found: "):
            ingest.index_file(folder / name, "docs", roots)
    with pytest.raises(DocumentUnreadable, match="not a folder"):
        ingest.index_directory(folder / "a.md", "docs", roots)
    for name in ("folder.md", "folder"):
        (folder / name).mkdir()
        with pytest.raises(DocumentUnreadable, match="the path is a folder"):
            ingest.index_file(folder / name, "docs", roots)


def test_names_may_be_any_bytes(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """File names may consist of any bytes, for example in another encoding."""
    path = folder / "caf\udce9.md"
    path.write_text("Coffee.")

    ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert path in [file.source_file for file in store.documents.files()]


UNREADABLE = """
import sys
from pathlib import Path
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.errors import DocumentUnreadable
folder = Path(sys.argv[1])
with Store.create(folder.parent.parent / "home.db") as store:
    ingest = DocumentIngest(store, Redactor(b"k" * 32))
    try:
        ingest.index_directory(folder, "docs", DocumentRoots([folder.parent]))
    except DocumentUnreadable as error:
        print(error.path.name, error.reason)
    folder.chmod(0o700)
    (folder / "locked").chmod(0)
    done = ingest.index_directory(folder, "docs", DocumentRoots([folder.parent]))
    print(done.indexed, [failed.file.name for failed in done.failed])
    (folder / "locked").chmod(0o700)
"""


def test_an_unreadable_folder_is_reported(folder: Path) -> None:
    """An unreadable folder raises an error. An unreadable subfolder is listed among the failures."""
    (folder / "locked").mkdir()
    (folder / "a.md").write_text("Heat the kiln.")
    folder.chmod(0)

    told, _ = start(UNREADABLE, folder).communicate()

    assert told.splitlines() == ["docs Permission denied", "3 ['locked', 'bad.pdf']"]


def test_a_moved_file_keeps_its_chunks(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A moved file keeps the IDs and vectors of its chunks. Its former paths are remembered."""
    roots = DocumentRoots([folder])
    before = ingest.index_file(folder / "b.py", "docs", roots)
    for name in ("c.py", "sub/d.py"):
        (folder / "b.py").rename(folder / name) if name == "c.py" else (folder / "c.py").rename(folder / name)
        done = ingest.index_directory(folder, "docs", roots)
        assert (done.moved, done.gone) == (1, 0)
    after = ingest.index_file(folder / "sub" / "d.py", "docs", roots)

    assert (after.unchanged, after.chunk_ids) == (True, before.chunk_ids)
    assert store.documents.former_paths(folder / "sub" / "d.py", "docs") == [folder / "b.py", folder / "c.py"]
    assert store.documents.digest(folder / "b.py", "docs") == b""


def test_a_moved_file_is_not_parsed(
    store: Store, ingest: DocumentIngest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was moved keeps its chunks without being parsed again, also if it is indexed by its path."""
    roots = DocumentRoots([folder])
    before = ingest.index_file(folder / "b.py", "docs", roots)
    moved = (folder / "b.py").rename(folder / "c.py")
    monkeypatch.setattr(document_ingest, "parse", _refused)

    after = ingest.index_file(moved, "docs", roots)
    assert (after.chunk_ids, after.units, after.unchanged) == (before.chunk_ids, before.units, False)
    assert [each.source_file for each in store.documents.files()] == [moved]


def test_a_single_unreadable_file_is_recorded(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A file that was indexed by its path and cannot be read is listed with the reason."""
    roots, file = DocumentRoots([folder]), folder / "bad.pdf"
    file.write_bytes(b"no PDF")
    with pytest.raises(DocumentUnreadable):
        ingest.index_file(file, "docs", roots)
    assert [(each.file, each.error) for each in store.documents.failed()] == [
        (file, "the file is damaged or not a PDF")
    ]


def _refused(*_: object) -> None:
    pytest.fail("parsed")


def test_a_copied_file_is_not_moved(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A copy has its own chunks, and two copies of a deleted file share its chunks with nobody."""
    roots = DocumentRoots([folder])
    first = ingest.index_file(folder / "b.py", "docs", roots)
    (folder / "c.py").write_bytes((folder / "b.py").read_bytes())
    copied = ingest.index_directory(folder, "docs", roots)
    assert (copied.moved, copied.indexed) == (0, 3)
    for name in ("c.py", "d.py", "e.py"):
        (folder / name).write_bytes((folder / "b.py").read_bytes())
    (folder / "b.py").unlink()

    done = ingest.index_directory(folder, "docs", roots)

    assert (done.moved, done.indexed) == (1, 1)
    names = [held.source_file.name for held in store.documents.select(DocumentFilter()) if held.language == "python"]
    assert names == ["c.py", "d.py", "e.py"]
    assert [held.id for held in store.documents.select(DocumentFilter(source_files=(folder / "d.py",)))] == list(
        first.chunk_ids
    )


def test_another_process_may_delete_the_former_file(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A moved file is queued and parsed if another process deletes its former file in the meantime."""
    roots = DocumentRoots([folder])
    ingest.index_file(folder / "b.py", "docs", roots)
    (folder / "b.py").rename(folder / "c.py")

    def delete_former(number: int, total: int) -> None:
        if number == total:  # The files are parsed, but not stored.
            with store.transaction():
                store.documents.delete(DocumentFilter(source_files=(folder / "b.py",)))

    done = ingest.index_directory(folder, "docs", roots, progress=delete_former)

    assert (done.indexed, done.moved, done.queued) == (2, 0, 1)
    assert (ingest.index_queued().indexed, len(chunk_texts(store))) == (1, 4)


def test_a_batch_has_a_maximum_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends at a number of files or at a size, so large files are not in memory together."""
    monkeypatch.setattr(document_ingest, "_BATCH_BYTES", 100)
    monkeypatch.setattr(document_ingest, "_BATCH", 3)
    files = [QueuedFile(tmp_path / f"{number}.md", "docs", tmp_path) for number in range(7)]
    for number, size in enumerate((60, 60, 200, 1, 1, 1)):
        files[number].path.write_bytes(b"x" * size)

    assert [len(batch) for batch in document_ingest.batches(files, never)] == [2, 1, 3, 1]


def test_skipped_files_leave_the_index(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Files that a scan skips are counted, and their chunks are deleted if they were indexed before."""
    roots = DocumentRoots([folder])
    ingest.index_directory(folder, "docs", roots)
    (folder / ".gitignore").write_text("sub/\n")
    (folder / "b.py").write_text("# @generated\nX = 1\n")

    done = ingest.index_directory(folder, "docs", roots)

    assert done.skipped == {"ignored": 1, "generated": 1, "unsupported": 1}
    assert (done.gone, done.unchanged) == (2, 1)
    assert chunk_texts(store) == ["# A\nAlpha.", "# B\nBeta."]


def test_files_with_syntax_errors_are_counted(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A source file that does not parse is indexed as text and counted. A file broken halfway has units."""
    (folder / "b.py").write_text("}} (((\n")
    (folder / "c.py").write_text("def whole():\n    return 1\n\n\ndef broken(:\n")

    done = ingest.index_directory(folder, "docs", DocumentRoots([folder]))

    assert (done.indexed, done.unparsed) == (4, 1)
    assert "whole" in [held.chunk.name for held in store.documents.select(DocumentFilter())]


def test_many_files_are_parsed_in_several_processes(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Files parsed in other processes have the same chunks, and unreadable files are reported."""
    for number in range(100):
        (folder / f"m{number:03}.py").write_text(f"def find_{number}():\n    return '{TOKEN}'\n")
    (folder / "m050.py").write_bytes(b"# coding: nothing\n")
    seen: list[tuple[int, int]] = []

    done = ingest.index_directory(
        folder, "docs", DocumentRoots([folder]), progress=lambda number, total: seen.append((number, total))
    )

    assert (done.indexed, [failed.file.name for failed in done.failed]) == (102, ["bad.pdf", "m050.py"])
    assert [f"find_{number}" for number in range(100) if number != 50] == [
        held.chunk.name for held in store.documents.select(DocumentFilter()) if held.chunk.name.startswith("find_")
    ]
    assert TOKEN[:16] not in "".join(chunk_texts(store))
    assert seen == [(number, 104) for number in range(105)]


def test_hostile_code_is_indexed_as_text(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """Code whose parsing takes too much time or memory is split like prose, and other files are not affected."""
    (folder / "hostile.cs").write_text("a<\n" * 30_000)
    (folder / "kiln.cs").write_text("class Kiln { }\n")
    done = ingest.index_directory(folder, "default", DocumentRoots([folder]))

    assert ([each.file.name for each in done.failed], done.unparsed) == (["bad.pdf"], 1)
    assert [each.name for each in store.symbols.of_file(folder / "kiln.cs")] == ["Kiln"]
    assert len(store.documents.select(DocumentFilter(source_files=(folder / "hostile.cs",)))) > 1


def test_lines_keep_their_numbers_after_a_secret(store: Store, ingest: DocumentIngest, folder: Path) -> None:
    """A redacted secret of several lines, such as a private key, does not shift the lines below it."""
    rows = "\n".join("MIIEpAIBAAKCAQEA7bq98Zk3tQ0xY" + 35 * letter for letter in "abcdefgh")
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{rows}\n-----END RSA PRIVATE KEY-----"
    text = f'KEY = """{key}"""\n\n\ndef find_kiln():\n    return KEY\n'
    file = folder / "key.py"
    file.write_text(text)
    ingest.index_file(file, "default", DocumentRoots([folder]))
    [found] = [each for each in store.symbols.of_file(file) if each.name == "find_kiln"]

    assert "MIIEpAIB" not in "".join(chunk_texts(store))
    assert text.split("\n")[found.start_line - 1] == "def find_kiln():"


# A scan removes the documents that it does not find, except those that it cannot judge.


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
