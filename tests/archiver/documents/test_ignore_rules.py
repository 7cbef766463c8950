"""The rules of `.gitignore` files match as in git."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.documents.document_folders import IgnoreRules

FILES = ("a.py", "a.log", "keep.log", "build/a.py", "src/a.py", "src/build/b.py", "src/deep/a.log", "src/deep/c.py")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def kept(root: Path, folder: Path | None = None) -> list[str]:
    """Return the files that the rules do not ignore, as a scan applies them."""
    start = folder or root
    found: list[str] = []
    waiting = [(start, IgnoreRules.of(start))]
    while waiting:
        current, rules = waiting.pop()
        for path in current.iterdir():
            if path.name.startswith(".git") or rules.match(path, is_folder=path.is_dir()):
                continue
            if path.is_dir():
                waiting.append((path, rules.enter(path)))
            else:
                found.append(path.relative_to(root).as_posix())
    return sorted(found)


def test_nested_files_and_negations_count(repository: Path) -> None:
    """The innermost file decides, a later rule overrides an earlier one, and nothing in an ignored folder returns."""
    (repository / ".gitignore").write_text("*.log\n!keep.log\n/build/\n!build/a.py\n")
    (repository / "src" / ".gitignore").write_text("!a.log\n/deep/c.py\n")

    assert kept(repository) == ["a.py", "keep.log", "src/a.py", "src/build/b.py", "src/deep/a.log"]


def test_rules_of_the_repository_apply_in_a_subfolder(repository: Path) -> None:
    """A subfolder has the rules of its parents up to the repository, and of `.git/info/exclude`."""
    (repository / ".git" / "info").mkdir(parents=True)
    (repository / ".git" / "info" / "exclude").write_text("c.py\n")
    (repository / ".gitignore").write_text("*.log\n")
    (repository.parent / ".gitignore").write_text("*.py\n")

    assert kept(repository, repository / "src") == ["src/a.py", "src/build/b.py"]


def test_a_named_folder_is_not_ignored(repository: Path) -> None:
    """If the repository ignores the folder that the user named, the rules of the repository do not apply."""
    (repository / ".git").mkdir()
    (repository / ".gitignore").write_text("build/\n")

    assert kept(repository, repository / "build") == ["build/a.py"]


@pytest.mark.parametrize("content", [b"!\n*.log\n", b"\xff\xfe\n*.log\n", b"*.log\n\\\n"])
def test_an_invalid_line_is_skipped(repository: Path, content: bytes) -> None:
    """An invalid line does not disable the other rules."""
    (repository / ".gitignore").write_bytes(content)

    assert "a.log" not in kept(repository)
    assert "a.py" in kept(repository)


def test_a_link_is_no_file_of_rules(repository: Path) -> None:
    """A `.gitignore` that is a link or a folder has no rules."""
    (repository / "rules").write_text("*\n")
    (repository / ".gitignore").symlink_to(repository / "rules")
    (repository / "src" / ".gitignore").mkdir()

    assert "a.py" in kept(repository)
    assert "src/a.py" in kept(repository)


PATTERNS = st.sampled_from(
    ["*.log", "!*.log", "build", "/build", "build/", "src/*", "!src/deep", "**/a.py", "src/**/c.py", "deep/", "[ab].py"]
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=3))
def test_the_rules_agree_with_git(repository: Path, outer: list[str], inner: list[str]) -> None:
    """For any patterns in two files, the files that remain are those that git lists."""
    if not (repository / ".git").exists():
        subprocess.run(["git", "init", "-q", repository], check=True)
    (repository / ".gitignore").write_text("\n".join(outer))
    (repository / "src" / ".gitignore").write_text("\n".join(inner))
    command = ["git", "-C", str(repository), "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert kept(repository) == sorted(name for name in listed if not name.endswith(".gitignore"))
