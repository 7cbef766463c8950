"""Tests of core/home.py: projects are identified by git remote or path, never by folder name."""

import os
import subprocess
import unicodedata
from pathlib import Path

import pytest

from palaver.core.home import identity_of, is_in_project, main_worktree, project_name, root_of, working_folders


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


NAMES = {
    "/": "",
    "": "",
    "/home/demo/shop/": "shop",
    "/code/größe 1": "größe 1",
    "D:\\work\\shop": "shop",
    "\\\\server\\share\\shop": "shop",
    # worktrees inside the repository
    "/home/demo/shop/.claude/worktrees/fix-1": "shop",
    "/home/demo/shop/.claude/worktrees/fix-1/.claude/worktrees/fix-2": "shop",
    "/home/demo/shop/.worktrees/fix-1/src": "shop",
    "/srv/shop/.gemini/worktrees/fix-1/src": "shop",
    "D:\\work\\shop\\.claude\\worktrees\\fix": "shop",
    "/home/demo/.claude/worktrees/dotfiles-1/bin": "demo",
    # worktrees beside the repository
    "/code/shop.worktrees/feat/new-cache": "shop",
    "/code/shop-worktrees/fix-1": "shop",
    "/code/shop_worktrees/fix-1/src": "shop",
    "/code/shop.js.worktrees/fix-1": "shop.js",
    "D:\\work\\shop.worktrees\\feat\\new-cache": "shop",
    "/code/shop.worktrees/feat/.claude/worktrees/fix-1": "shop",
    # worktrees below the own folder of an agent
    "/home/demo/.codex/worktrees/7c1e/shop": "shop",
    "/home/demo/.codex/worktrees/7c1e/shop/src/cart": "shop",
    "/Users/demo/.codex/worktrees/beef/shop": "shop",
    "/root/.codex/worktrees/0042/shop": "shop",
    "/Users/demo/.cursor/worktrees/shop/a1b2c": "shop",
    "/Users/demo/.cursor/worktrees/shop/a1b2c/src": "shop",
    "/Users/demo/conductor/workspaces/shop/oslo": "shop",
    "/home/demo/worktrees/shop/fix-1": "shop",
    "C:\\Users\\demo\\.codex\\worktrees\\7c1e\\shop": "shop",
    "C:/Users/demo/.cursor/worktrees/shop/a1b2c": "shop",
    # no worktrees
    "/code/worktrees/shop": "shop",
    "/code/shop-worktrees": "shop-worktrees",
    "/code/my-worktrees-tool/src": "src",
    "/home/demo/.codex/sessions/shop": "shop",
}
"""Project names by folder."""


def test_a_project_is_named_after_its_folder() -> None:
    """The name is the last in the path. A worktree has the name of its repository, on every system."""
    wrong = {folder: found for folder, name in NAMES.items() if (found := project_name(folder)) != name}
    assert wrong == {}


def test_both_forms_of_a_name_are_one_project(tmp_path: Path) -> None:
    """Paths are compared in normalization form C."""
    spelled = {unicodedata.normalize(form, str(tmp_path / "Größe")) for form in ("NFC", "NFD")}

    assert len({identity_of(Path(folder)) for folder in spelled}) == len({*map(project_name, spelled)}) == 1
    assert all(is_in_project([one], "x", f"{other}/src") for one in spelled for other in spelled)


def test_a_worktree_is_in_the_folder_of_its_repository() -> None:
    """A filter by folder includes worktrees of the repository that the path names, even if they no longer exist."""
    for folder in ("/code/shop.worktrees/fix-1/src", "/code/shop/.claude/worktrees/fix-1", "/code/shop/src"):
        assert is_in_project(["/code/shop"], "x", folder)
        assert is_in_project(["/code/"], "x", folder)
        assert is_in_project([working_folders(folder)[0]], "x", folder)
    assert not is_in_project(["/code/shop"], "x", "/code/shop-2/src")
    assert not is_in_project(["/code/shop", ""], "x", "")
    assert is_in_project(["shop"], "shop", "")
