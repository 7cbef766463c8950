"""The preview lists memory files, and only an erasure deletes them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from palaver.core.deletion import DeletionPreview, DeletionRequest, DeletionResult
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.mnemonics import ProjectMemories
from palaver.templates.render import Renderer


@dataclass
class Project:
    """A project with memory files, and its home."""

    folder: Path
    home: Home

    def opened(self) -> ProjectMemories:
        """Open the memories as another process does."""
        return ProjectMemories.of(Archive(self.home).memories, self.folder)

    def remember(self, title: str, content: str) -> tuple[str, Path]:
        """Store a memory and return its ID and its file."""
        mnemonics = self.opened()
        stored = mnemonics.remember(title, content, "issue").stored
        mnemonics.close()
        return stored.id, Path(stored.memory.path)

    def recalled(self, query: str) -> list[str]:
        """Return the results of a query after a scan of the files."""
        mnemonics = self.opened()
        found = [match.stored.memory.content for match in mnemonics.recall(query)]
        mnemonics.close()
        return found

    def preview(self, wanted: DeletionRequest) -> DeletionPreview:
        """Return a preview."""
        with Deleter(self.home) as deleter:
            return deleter.preview(wanted)

    def forget(self, wanted: DeletionRequest, meanwhile: Callable[[], object] = lambda: None) -> DeletionResult:
        """Delete the previewed content."""
        with Deleter(self.home) as deleter:
            token = deleter.preview(wanted).token
            meanwhile()
            return deleter.delete(wanted, token)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose folder is an empty repository."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    return Project(tmp_path / "shop", Home(tmp_path / "home"))


def test_an_erasure_deletes_memory_files(project: Project) -> None:
    """The preview lists the file, the reply mentions version control, and no byte of the memory remains in the home."""
    memory, file = project.remember("Walrus migration", "The walrus migration hangs while a replica lags behind")
    _, other = project.remember("Ports", "The staging server listens on port 8443")
    wanted = DeletionRequest((memory,), erase=True)
    preview = project.preview(wanted)

    assert preview.files == (str(file),)
    assert f"Memory files that are deleted from your project:\n- {file}" in Renderer().render(
        "forget_preview", preview=preview
    )
    outcome = project.forget(wanted)
    assert (file.exists(), other.exists(), outcome.remaining_files) == (False, True, ())
    assert "version control" in Renderer().render("forget_done", done=outcome)
    assert outcome.check is not None
    assert outcome.check.passed
    assert not any(b"walrus" in path.read_bytes().lower() for path in project.home.root.rglob("*") if path.is_file())
    assert project.recalled("walrus migration replica") == []


def test_a_deletion_keeps_memory_files(project: Project) -> None:
    """A deletion keeps the memory file and lists it in the preview, and the memory is not recalled."""
    memory, file = project.remember("Cache", "The cache is flushed by the deploy script")
    before, wanted = file.read_bytes(), DeletionRequest((memory,))
    page = Renderer().render("forget_preview", preview=project.preview(wanted))

    assert "which stay in your project (--erase deletes them)" in page
    assert str(file) in page
    assert project.forget(wanted).remaining_files == ()
    assert file.read_bytes() == before
    assert project.recalled("cache flushed deploy") == []
    assert file.read_bytes() == before


def test_a_file_that_was_edited_since_needs_a_new_preview(project: Project) -> None:
    """If a file was edited after the preview, the file and its memory are kept."""
    memory, file = project.remember("Cache", "The cache is flushed by the deploy script")
    outcome = project.forget(
        DeletionRequest((memory,), erase=True), lambda: file.write_text(f"{file.read_text()}\nAnd by cron.\n")
    )

    assert outcome.number is None
    assert file.read_text().endswith("And by cron.\n")
    assert project.recalled("cache flushed cron") != []


def test_a_file_that_cannot_be_deleted_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory file that cannot be deleted is reported, and it is not imported again."""
    memory, file = project.remember("Cache", "The cache is flushed by the deploy script")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", refused)
        outcome = project.forget(DeletionRequest((memory,), erase=True))

    assert outcome.remaining_files == (f"{file}: permission denied",)
    assert f"Not deleted: {file}: permission denied. Delete the file yourself." in Renderer().render(
        "forget_done", done=outcome
    )
    assert file.exists()
    assert project.recalled("cache flushed deploy") == []


def test_a_link_is_not_followed(project: Project, tmp_path: Path) -> None:
    """If a memory file was replaced with a link, an erasure keeps the link and its target."""
    memory, file = project.remember("Cache", "The cache is flushed by the deploy script")
    target = tmp_path / "precious.md"
    file.rename(target)
    file.symlink_to(target)
    outcome = project.forget(DeletionRequest((memory,), erase=True))

    assert (outcome.preview.files, outcome.remaining_files) == ((), ())
    assert target.exists()
    assert file.is_symlink()


def test_a_restored_file_is_a_new_memory(project: Project) -> None:
    """If the user writes an erased file again, it becomes a new memory."""
    memory, file = project.remember("Cache", "The cache is flushed by the deploy script")
    kept = file.read_bytes()
    project.forget(DeletionRequest((memory,), erase=True))
    file.write_bytes(kept)

    assert project.recalled("cache flushed deploy") == ["The cache is flushed by the deploy script"]
