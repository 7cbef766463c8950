"""Files in the memory folder are replaced and deleted only if the user has not edited them."""

import errno
import os
from pathlib import Path

import pytest

from palaver.core.errors import MnemonicsUnusable
from palaver.observe.mnemonics import MnemonicsFolder, digest_of


def test_files_edited_meanwhile_are_kept(tmp_path: Path) -> None:
    """A file that the user edited since the last scan is neither replaced nor deleted."""
    folder = MnemonicsFolder(tmp_path)
    assert folder.create("issue/a.md", b"one")
    (folder.path / "issue" / "a.md").write_bytes(b"two")

    with pytest.raises(MnemonicsUnusable, match="the file was edited in the meantime"):
        folder.replace("issue/a.md", b"three", digest_of(b"one"))
    with pytest.raises(MnemonicsUnusable, match="the file was edited in the meantime"):
        folder.remove("issue/a.md", digest_of(b"one"))
    assert [each.name for each in (folder.path / "issue").iterdir()] == ["a.md"]
    assert folder.read("issue/a.md") == b"two"


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    """A private file stays private after it is replaced."""
    folder = MnemonicsFolder(tmp_path)
    folder.create("issue/a.md", b"one")
    file = folder.path / "issue" / "a.md"
    file.chmod(0o600)
    folder.replace("issue/a.md", b"two", digest_of(b"one"))

    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o600)


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """Creating a file never overwrites a file, follows a link or replaces a folder."""
    folder = MnemonicsFolder(tmp_path)
    folder.create("issue/a.md", b"one")
    (folder.path / "issue" / "b.md").symlink_to(tmp_path / "outside.md")
    (folder.path / "issue" / "c.md").mkdir()

    assert [folder.create(f"issue/{name}.md", b"two") for name in "abc"] == [False, False, False]
    assert not (tmp_path / "outside.md").exists()


def test_files_are_created_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing file is not overwritten on a file system without hard links."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    folder = MnemonicsFolder(tmp_path)

    assert [folder.create("issue/a.md", text) for text in (b"one", b"two")] == [True, False]
    assert [(each.name, each.read_bytes()) for each in (folder.path / "issue").iterdir()] == [("a.md", b"one")]


def test_only_markdown_files_are_listed(tmp_path: Path) -> None:
    """Markdown files in and beside type folders are listed, editor files are not, and irregular files are problems."""
    folder = MnemonicsFolder(tmp_path)
    for name in ("issue/a.md", "issue/sub/b.MD", "issue/.a.md.swp", "issue/a.md~", "issue/notes.txt", "README.md"):
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("x")
    os.mkfifo(folder.path / "issue" / "pipe.md")
    (folder.path / "issue" / os.fsdecode(b"caf\xe9.md")).write_text("x")
    seen = folder.scan()

    assert sorted(seen.files) == ["README.md", "issue/a.md", "issue/sub/b.MD"]
    assert sorted(seen.problems.values()) == ["it is not a regular file", "its name is not UTF-8"]
    assert seen.folders == ["issue", "issue/sub"]


def test_no_path_leaves_the_folder(tmp_path: Path) -> None:
    """A path outside the folder is rejected, even if an internal error produces it."""
    for path in ("../a.md", "issue/../../a.md", "/etc/passwd"):
        with pytest.raises(AssertionError):
            MnemonicsFolder(tmp_path).read(path)


def test_a_palaver_home_has_no_memory_files(tmp_path: Path) -> None:
    """A project folder that is a Palaver home has no memory files, whatever it contains."""
    folder = MnemonicsFolder(tmp_path)
    assert folder.create("issue/a.md", b"# A")
    assert folder.scan().files
    (tmp_path / "palaver.db").touch()
    assert not folder.scan().files
