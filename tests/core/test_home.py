"""Tests of core/home.py."""

import os
import shlex
import stat
import subprocess
import sys
import unicodedata
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from palaver import __version__
from palaver.core import home
from palaver.core.errors import ConfigInvalid, StoreMissing, StoreReadOnly
from palaver.core.home import (
    DISTRIBUTION,
    OWN_PROMPT_MARK,
    Home,
    extra_command,
    identity_of,
    install_command,
    is_in_project,
    is_own_command,
    is_own_prompt,
    is_own_tool,
    main_worktree,
    project_name,
    root_of,
    upgrade_hint,
    without_recalled,
    working_folders,
)


def test_one_variable_moves_all_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All paths are below `PALAVER_HOME`."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "here"))
    home = Home.find()

    assert home.root == tmp_path / "here"
    for place in (home.database, home.archive, home.index, home.templates):
        assert place.parent == home.root


@pytest.mark.parametrize("value", [None, ""])
def test_default_home_is_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None) -> None:
    """Without the variable, the home is in the platform's data directory."""
    monkeypatch.delenv("PALAVER_HOME")
    if value is not None:
        monkeypatch.setenv("PALAVER_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    places = {}
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        places[platform] = Home.find().root

    assert places == {
        "linux": tmp_path / ".local" / "share" / "palaver",
        "darwin": tmp_path / "Library" / "Application Support" / "palaver",
        "win32": tmp_path / "local" / "palaver",
    }


def test_xdg_data_home_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On Linux, the home is in `XDG_DATA_HOME` if it is set."""
    monkeypatch.delenv("PALAVER_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")

    assert Home.find().root == tmp_path / "data" / "palaver"


def test_tilde_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tilde in `PALAVER_HOME` is expanded to the user's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PALAVER_HOME", "~/talk")

    assert Home.find().root == tmp_path / "talk"


@pytest.mark.parametrize("value", ["here", "./here", "~nobody-of-that-name/here"])
def test_relative_home_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A relative path in `PALAVER_HOME` raises an error."""
    monkeypatch.setenv("PALAVER_HOME", value)
    with pytest.raises(ConfigInvalid, match="PALAVER_HOME") as refused:
        Home.find()
    assert refused.value.hint


def test_finding_a_home_creates_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only `make` creates the folder, which is accessible only to its owner."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "deep" / "here"))
    home = Home.find()
    assert not list(tmp_path.iterdir())

    home.make()
    home.make()

    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert not list(home.root.iterdir())


def test_home_that_cannot_be_created_is_a_config_error(tmp_path: Path) -> None:
    """A file at the path of the folder raises `ConfigInvalid`."""
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigInvalid, match="cannot be created"):
            Home(root).make()


def test_permissions_of_an_existing_home_are_restricted(tmp_path: Path) -> None:
    """`make` restricts the permissions of an existing folder."""
    (tmp_path / "home").mkdir(mode=0o755)

    Home(tmp_path / "home").make()

    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("closed", ["", "palaver.db"])
def test_read_only_home_stays_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Permissions that the owner removed are not restored."""
    home = Home(tmp_path)
    home.database.write_text("rows")
    path = tmp_path / closed
    path.chmod(0o500)
    may = os.access

    def deny(each: Path, mode: int) -> bool:
        """Deny write access to the path. File permissions do not restrict an administrator who runs the tests."""
        return may(each, mode) and (mode != os.W_OK or each != path)

    monkeypatch.setattr(os, "access", deny)

    with pytest.raises(StoreReadOnly, match="is read-only"):
        home.make()
    home.prepare()

    assert stat.S_IMODE(path.stat().st_mode) == 0o500
    path.chmod(0o700)


KEY_MAKER = """
import sys; from pathlib import Path; from palaver.core.home import Home
print(Home(Path(sys.argv[1])).key().hex())
"""


def test_key_is_created_once(tmp_path: Path) -> None:
    """The key is random, permanent, and readable only by the owner."""
    home, other = Home(tmp_path / "a"), Home(tmp_path / "b")
    home.make()
    other.make()

    assert len(home.key()) == 32
    assert home.key() == home.key() != other.key()
    assert stat.S_IMODE((home.root / "redaction.key").stat().st_mode) == 0o600
    assert [path.name for path in home.root.iterdir()] == ["redaction.key"]


def test_concurrent_processes_get_one_key(tmp_path: Path) -> None:
    """Processes that request the key at the same time get the same key."""
    command = [sys.executable, "-c", KEY_MAKER, str(tmp_path)]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
    keys = {process.communicate()[0] for process in asking}

    assert len(keys) == 1
    assert len(keys.pop()) == 65
    assert [path.name for path in tmp_path.iterdir()] == ["redaction.key"]


@pytest.mark.parametrize("damage", [b"", b"short", bytes(33)])
def test_damaged_key_is_replaced(damage: bytes, tmp_path: Path) -> None:
    """A key of another length is replaced."""
    (tmp_path / "redaction.key").write_bytes(damage)
    key = Home(tmp_path).key()

    assert len(key) == 32
    assert Home(tmp_path).key() == key
    assert [path.name for path in tmp_path.iterdir()] == ["redaction.key"]


def test_key_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    """Without a folder for the key, an error is raised."""
    with pytest.raises(OSError, match="absent"):
        Home(tmp_path / "absent").key()


def test_copies_are_detected_without_a_database(tmp_path: Path) -> None:
    """Any archived file counts as a raw copy. Empty folders and partial files do not."""
    home = Home(tmp_path)
    for name in (".unfinished/tmp1", ".forgotten"):
        path = home.archive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (home.archive / "claude-code" / "app").mkdir(parents=True)
    assert not home.has_copies
    with pytest.raises(StoreMissing, match="No archive at"):
        home.check()

    (home.archive / "claude-code" / "app" / "one.jsonl").write_bytes(b"x")
    assert home.has_copies
    with pytest.raises(StoreMissing, match=r"The database in .* is missing") as missing:
        home.check()
    assert "rebuild --from-archive" in missing.value.hint

    home.database.write_bytes(b"")
    with pytest.raises(StoreMissing, match=r"The database in .* is missing"):
        home.check()
    home.database.write_bytes(b"x")
    home.check()


# Projects are identified by git remote or path, never by folder name.


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


def test_folders_of_windows_match_in_each_spelling() -> None:
    """Case and the kind of slash do not matter, and a folder above includes those below."""
    for name in ("D:\\Code\\shop", "d:/code/shop", "d:/code/shop/"):
        assert is_in_project([name], "x", "D:\\Code\\shop\\src")
        assert is_in_project([name], "x", "d:/Code/shop")
        assert not is_in_project([name], "x", "C:\\Code\\shop")
        assert not is_in_project([name], "x", "D:\\Code\\shop-2")


@pytest.mark.parametrize(
    "name",
    [
        "mcp__palaver__search",
        "mcp__plugin_palaver_palaver__read",
        "mcp_palaver_search",
        "palaver_search",
        "palaver-read",
    ],
)
def test_own_tools_are_detected_with_all_prefixes(name: str) -> None:
    """Palaver's tools are detected with the prefixes of all agents."""
    assert is_own_tool(name)


@pytest.mark.parametrize(
    "name", ["", "search", "palaver", "mcp__jira__palaver_issue", "mcp__palaverish__search", "Bash"]
)
def test_other_tools_are_not_detected(name: str) -> None:
    """A tool is detected by its server, not by a word in its name."""
    assert not is_own_tool(name)


@pytest.mark.parametrize(
    "command", ["palaver search 'x' --json", "uvx palaver read a --start 3 | head", "/usr/bin/palaver ask it  # why"]
)
def test_own_commands_are_detected(command: str) -> None:
    """Palaver's commands are detected with any launcher."""
    assert is_own_command(command)


@pytest.mark.parametrize("command", ["", "palaver status", "make && palaver search x", "palaver search x; rm b", "ls"])
def test_combined_command_is_not_detected(command: str) -> None:
    """A command that does more than query Palaver is not detected."""
    assert not is_own_command(command)


def test_own_prompt_begins_with_the_prefix() -> None:
    """Only a prompt that begins with the prefix is Palaver's own."""
    assert is_own_prompt(f"{OWN_PROMPT_MARK}\nExtract.")
    assert not is_own_prompt(f"What does {OWN_PROMPT_MARK} mean?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Look:\n<recalled>\nold words\n</recalled>\nDo it again.", "Look:\n\nDo it again."),
        ("<recalled>\nold\n</recalled>", ""),
        ("A\n<recalled-12345678>\nold\n</recalled-12345678>\nB", "A\n\nB"),
        ("<recalled-12345678>\nold\n</recalled-99999999>\n</recalled>\nold\n</recalled-12345678>\nB", "B"),
        ("  <recalled>\n  old\n  </recalled>\nA\n<recalled>\nold\n</recalled>", "A"),
        ("Why does <recalled> stand there?", "Why does <recalled> stand there?"),
        ("What is\n<recalled>\ngood for?", "What is\n<recalled>\ngood for?"),
        ("nothing of ours", "nothing of ours"),
    ],
)
def test_text_between_markers_is_removed(text: str, expected: str) -> None:
    """Text between markers is removed, and other text is kept."""
    assert without_recalled(text, shortened=False) == expected


@pytest.mark.parametrize("text", ["A\n<recalled>\nold\n[… 9 characters left out …]", "old\n</recalled>\nA", "A"])
def test_single_marker_is_enough_in_shortened_text(text: str) -> None:
    """If a shortened text has only one marker, the text is removed after an opening or before a closing marker."""
    assert without_recalled(text, shortened=True) == "A"


# Commands that install into the environment of Palaver.


def test_extra_is_installed_by_this_interpreter() -> None:
    """The command runs pip with this interpreter and contains the distribution with its extra."""
    assert shlex.split(extra_command("models")) == [sys.executable, "-m", "pip", "install", f"{DISTRIBUTION}[models]"]


def test_environment_without_pip_uses_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment without pip, the command uses uv."""

    def find_no_pip(name: str) -> object:
        return None if name == "pip" else find_spec(name)

    monkeypatch.setattr(home, "find_spec", find_no_pip)

    assert extra_command("models").startswith(f"uv pip install --python {shlex.quote(sys.executable)} ")


def test_library_is_upgraded_in_this_environment() -> None:
    """An upgrade command adds `--upgrade`."""
    expected = [sys.executable, "-m", "pip", "install", "--upgrade", "apsw"]
    assert shlex.split(install_command("apsw", upgrade=True)) == expected


def test_upgrade_hint_contains_the_distribution() -> None:
    """The upgrade hint contains the distribution name, not the import name."""
    assert f"install --upgrade {DISTRIBUTION}`" in upgrade_hint()


def test_distribution_is_installed_under_its_name() -> None:
    """The name in the commands is the name that pip installed."""
    assert version(DISTRIBUTION) == __version__
