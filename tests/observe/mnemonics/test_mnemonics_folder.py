"""The memory folder: files are replaced and deleted only if they are unedited."""

import errno
import os
from pathlib import Path

import pytest

from palaver.core.errors import MnemonicsUnusable
from palaver.observe.mnemonics import MnemonicsFolder, digest_of


def test_what_somebody_edits_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Neither replaced nor deleted, and nothing lies beside it afterwards."""
    folder = MnemonicsFolder(tmp_path)
    assert folder.create("issue/a.md", b"one")
    (folder.path / "issue" / "a.md").write_bytes(b"two")

    with pytest.raises(MnemonicsUnusable, match="somebody is editing it"):
        folder.replace("issue/a.md", b"three", digest_of(b"one"))
    with pytest.raises(MnemonicsUnusable, match="somebody is editing it"):
        folder.remove("issue/a.md", digest_of(b"one"))
    assert [each.name for each in (folder.path / "issue").iterdir()] == ["a.md"]
    assert folder.read("issue/a.md") == b"two"


def test_a_replaced_file_keeps_its_rights(tmp_path: Path) -> None:
    """What nobody else could read before, nobody else can afterwards."""
    folder = MnemonicsFolder(tmp_path)
    folder.create("issue/a.md", b"one")
    file = folder.path / "issue" / "a.md"
    file.chmod(0o600)
    folder.replace("issue/a.md", b"two", digest_of(b"one"))

    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o600)


def test_a_file_that_is_there_is_never_created(tmp_path: Path) -> None:
    """Not over a file, not through a link, not over a folder."""
    folder = MnemonicsFolder(tmp_path)
    folder.create("issue/a.md", b"one")
    (folder.path / "issue" / "b.md").symlink_to(tmp_path / "outside.md")
    (folder.path / "issue" / "c.md").mkdir()

    assert [folder.create(f"issue/{name}.md", b"two") for name in "abc"] == [False, False, False]
    assert not (tmp_path / "outside.md").exists()


def test_a_file_system_without_links_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Still never over a file that is there."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    folder = MnemonicsFolder(tmp_path)

    assert [folder.create("issue/a.md", text) for text in (b"one", b"two")] == [True, False]
    assert [(each.name, each.read_bytes()) for each in (folder.path / "issue").iterdir()] == [("a.md", b"one")]


def test_only_markdown_files_are_seen(tmp_path: Path) -> None:
    """In a type's folder and beside them, without what editors leave; what is no regular file is a problem."""
    folder = MnemonicsFolder(tmp_path)
    for name in ("issue/a.md", "issue/sub/b.MD", "issue/.a.md.swp", "issue/a.md~", "issue/notes.txt", "README.md"):
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("x")
    os.mkfifo(folder.path / "issue" / "pipe.md")
    (folder.path / "issue" / os.fsdecode(b"caf\xe9.md")).write_text("x")
    seen = folder.scan()

    assert sorted(seen.files) == ["README.md", "issue/a.md", "issue/sub/b.MD"]
    assert sorted(seen.problems.values()) == ["it is no regular file", "its name is not UTF-8"]
    assert seen.folders == ["issue", "issue/sub"]


def test_no_path_leads_out(tmp_path: Path) -> None:
    """Not even one that only a fault of ours could make."""
    for path in ("../a.md", "issue/../../a.md", "/etc/passwd"):
        with pytest.raises(AssertionError):
            MnemonicsFolder(tmp_path).read(path)


def test_a_home_holds_no_memory_files(tmp_path: Path) -> None:
    """A project folder that is a Palaver home has none, whatever is in it."""
    folder = MnemonicsFolder(tmp_path)
    assert folder.create("issue/a.md", b"# A")
    assert folder.scan().files
    (tmp_path / "palaver.db").touch()
    assert not folder.scan().files
