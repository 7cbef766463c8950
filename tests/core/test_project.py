"""Tests of core/project.py: projects are identified by git remote or path, never by folder name."""

import os
import subprocess
from pathlib import Path

import pytest

from palaver.core.project import identity_of, main_worktree, root_of


def git(folder: Path, *arguments: str) -> None:
    """Run git with a fixed user and without the user's configuration."""
    named = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "-C", folder, *named, *arguments], check=True, capture_output=True, env=quiet)


def repository(folder: Path, remote: str = "") -> Path:
    """Create a repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def test_root_is_the_nearest_folder_with_memories_or_repository(tmp_path: Path) -> None:
    """A folder with memory files is the root, even inside a repository."""
    inner = tmp_path / "repo" / "package" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert root_of(inner) == tmp_path / "repo"
    (tmp_path / "repo" / "package" / ".mnemonics").mkdir()

    assert root_of(inner) == tmp_path / "repo" / "package"


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:me/Repo.git",
        "https://github.com/me/Repo",
        "https://user:token@GitHub.com/me/Repo.git/",
        "ssh://git@github.com:22/me/Repo.git",
    ],
)
def test_addresses_of_one_remote_are_one_project(tmp_path: Path, url: str) -> None:
    """Scheme, account, password and suffix are removed from the identity."""
    assert identity_of(repository(tmp_path / "a", url)) == "github.com/me/Repo"


def test_worktrees_and_clones_have_the_identity_of_their_repository(tmp_path: Path) -> None:
    """A repository without a remote is identified by its path, which its worktrees and local clones share."""
    main = repository(tmp_path / "repo")
    git(main, "worktree", "add", "-q", str(tmp_path / "feature"))
    git(tmp_path, "clone", "-q", str(main), "elsewhere")

    assert {identity_of(tmp_path / name) for name in ("repo", "feature", "elsewhere")} == {str(main)}
    assert main_worktree(tmp_path / "feature") == main
    assert root_of(main / ".claude" / "worktrees" / "gone" / "src") == main


def test_folders_of_the_same_name_are_different_projects(tmp_path: Path) -> None:
    """Two repositories with the same folder name have different identities."""
    ours, theirs = repository(tmp_path / "a" / "repo", "git@x.org:me/repo"), repository(tmp_path / "b" / "repo")

    assert identity_of(ours) == "x.org/me/repo"
    assert identity_of(theirs) == str(theirs)


@pytest.mark.parametrize("config", ["url = x", "[remote", "\0", '[remote "origin"]\n', "[a]\n[a]\nx"])
def test_unreadable_configuration_is_ignored(tmp_path: Path, config: str) -> None:
    """A project with an invalid git configuration is identified by its path."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(config)

    assert identity_of(tmp_path) == str(tmp_path)
